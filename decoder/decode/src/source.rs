//! Sources of the bytes of a trace.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that several threads can read at any offset. Files are not memory-mapped: if another program
/// shortens a mapped file, an access raises `SIGBUS` and ends the process, while a read returns an error.
pub trait ByteSource: Send + Sync {
    /// Returns the length in bytes. Called once, when the trace is opened. Fails with the system's error.
    fn length(&self) -> io::Result<u64>;

    /// Fills `buffer` with the bytes from `offset` on. Fails with the system's error, or with
    /// [`io::ErrorKind::UnexpectedEof`] if the source has too few bytes.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Announces likely reads, so that a remote source can fetch them at once. Does nothing by default.
    fn will_read(&self, ranges: &[Range<u64>]) {
        let _ = ranges;
    }
}

impl ByteSource for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    #[cfg(unix)]
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buffer, offset)
    }

    #[cfg(windows)]
    fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        use std::os::windows::fs::FileExt;
        while !buffer.is_empty() {
            match self.seek_read(buffer, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    buffer = &mut buffer[read..];
                    offset += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn copy_from(bytes: &[u8], buffer: &mut [u8], offset: u64) -> io::Result<()> {
    let from = usize::try_from(offset).ok();
    let range = from.and_then(|from| bytes.get(from..from.checked_add(buffer.len())?));
    buffer.copy_from_slice(range.ok_or(io::ErrorKind::UnexpectedEof)?);
    Ok(())
}

impl ByteSource for Vec<u8> {
    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        copy_from(self, buffer, offset)
    }
}

impl ByteSource for Arc<[u8]> {
    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        copy_from(self, buffer, offset)
    }
}

/// Any seekable reader. One thread at a time reads it.
#[derive(Debug)]
pub struct SeekSource<R>(Mutex<R>);

impl<R> SeekSource<R> {
    /// Wraps `reader`.
    pub const fn new(reader: R) -> Self {
        Self(Mutex::new(reader))
    }
}

impl<R: Read + Seek + Send> ByteSource for SeekSource<R> {
    fn length(&self) -> io::Result<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).seek(SeekFrom::End(0))
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        // The position is unknown after a panic of another thread, but every read seeks first.
        let mut reader = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reader.seek(SeekFrom::Start(offset))?;
        reader.read_exact(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_reads_the_same_and_ends_the_same() {
        let bytes: Vec<u8> = (0..100).collect();
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, &bytes).unwrap();
        let sources: [Box<dyn ByteSource>; 4] = [
            Box::new(file),
            Box::new(bytes.clone()),
            Box::new(Arc::<[u8]>::from(&bytes[..])),
            Box::new(SeekSource::new(io::Cursor::new(bytes.clone()))),
        ];
        for source in sources {
            assert_eq!(source.length().unwrap(), 100);
            let mut buffer = [0; 10];
            source.read_exact_at(&mut buffer, 90).unwrap();
            assert_eq!(buffer, bytes[90..]);
            for offset in [91, 100, 1000, u64::MAX] {
                assert!(source.read_exact_at(&mut buffer, offset).is_err(), "offset {offset}");
            }
        }
    }
}
