//! The file that a recording writes.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that one recording writes while others read it. It is locked until it is dropped, and removed if it is new
/// and nothing was written. What was there stays until the first bytes after the first flush, which are more than a
/// trace's head: a recording that cannot start, or ends before anything was recorded, leaves it.
#[derive(Debug)]
pub struct TraceOutput {
    /// `None`: standard output.
    file: Option<File>,
    /// What is there is to be replaced.
    replaces: bool,
    /// What is to replace it, up to the first flush.
    head: Vec<u8>,
    is_head_whole: bool,
    /// The path, if this made the file and has written nothing.
    made: Option<PathBuf>,
}

impl TraceOutput {
    /// Opens `path` for writing, and creates it where there is none; `-` is standard output.
    ///
    /// # Errors
    /// If it cannot be written, or another recording writes it ([`io::ErrorKind::ResourceBusy`]).
    pub fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self {
                file: None,
                replaces: false,
                head: Vec::new(),
                is_head_whole: false,
                made: None,
            });
        }
        let is_new = !path.exists();
        let file = File::options().write(true).create(true).truncate(false).open(path)?;
        let found = file.metadata()?;
        if found.is_file() {
            lock(&file)?;
        }
        // The file itself, where the path is a link that led to none.
        let made = if is_new && found.is_file() { Some(fs::canonicalize(path)?) } else { None };
        // A pipe or a device has no length to set.
        let replaces = found.is_file() && found.len() > 0;
        Ok(Self { file: Some(file), replaces, head: Vec::new(), is_head_whole: false, made })
    }

    /// Whether a recording writes the file.
    pub fn is_recorded(file: &File) -> bool {
        cfg!(unix) && matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }

    /// Waits until the bytes are on the disk.
    ///
    /// # Errors
    /// The system's.
    pub fn sync(&self) -> io::Result<()> {
        match &self.file {
            Some(file) if file.metadata()?.is_file() => file.sync_all(),
            _ => Ok(()),
        }
    }
}

/// Returns how many bytes the process may still write to a file where it stands. Writing more would end a traced
/// program with SIGXFSZ.
#[cfg(unix)]
fn may_grow(file: &mut File) -> io::Result<u64> {
    use std::io::Seek;

    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    match limit {
        Some(limit) if file.metadata()?.is_file() => Ok(limit.saturating_sub(file.stream_position()?)),
        _ => Ok(u64::MAX),
    }
}

/// Returns how many bytes the process may still write to a file: there is no limit but the disk's.
#[cfg(not(unix))]
fn may_grow(_file: &mut File) -> io::Result<u64> {
    Ok(u64::MAX)
}

/// Locks a file for one recording. Elsewhere than on Unix a lock would keep readers out, too.
fn lock(file: &File) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let words = "another recording writes it: wait for its end, or name another file";
            Err(io::Error::new(io::ErrorKind::ResourceBusy, words))
        }
        // A file system without locks.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

impl Write for TraceOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(file) = &mut self.file else { return io::stdout().write(bytes) };
        if self.replaces && !self.is_head_whole {
            self.head.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        let may_grow = usize::try_from(may_grow(file)?).unwrap_or(usize::MAX);
        if may_grow <= self.head.len() && !bytes.is_empty() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if self.replaces {
            file.set_len(0)?;
            self.replaces = false;
            file.write_all(&std::mem::take(&mut self.head))?;
            return self.write(bytes);
        }
        let written = file.write(&bytes[..bytes.len().min(may_grow)])?;
        self.made = None;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.is_head_whole |= !self.head.is_empty();
        match &mut self.file {
            Some(file) => file.flush(),
            None => io::stdout().flush(),
        }
    }
}

impl Drop for TraceOutput {
    fn drop(&mut self) {
        if let Some(path) = &self.made {
            // An empty file would only be in the way.
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_recording_is_refused_and_one_that_does_not_start_leaves_what_was_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.wtrc");
        drop(TraceOutput::open(&path).expect("it can be made"));
        assert!(!path.exists(), "nothing was written");
        #[cfg(unix)]
        {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink("a.wtrc", &link).expect("a link can be made");
            drop(TraceOutput::open(&link).expect("its file can be made"));
            assert!(link.is_symlink() && !path.exists(), "the link stays, the file goes");
        }

        fs::write(&path, "an earlier trace").expect("it can be written");
        let mut first = TraceOutput::open(&path).expect("it can be opened");
        assert_eq!(fs::read(&path).expect("it is there"), b"an earlier trace");
        if cfg!(unix) {
            let refused = TraceOutput::open(&path).expect_err("the first has it");
            assert_eq!(refused.kind(), io::ErrorKind::ResourceBusy);
            assert!(TraceOutput::is_recorded(&File::open(&path).expect("it can be read")));
        }
        first.write_all(b"head").expect("it is kept");
        first.flush().expect("it is kept");
        assert_eq!(fs::read(&path).expect("it is there"), b"an earlier trace");
        drop(first);
        assert_eq!(fs::read(&path).expect("it is there"), b"an earlier trace", "nothing was recorded");
        let mut first = TraceOutput::open(&path).expect("it can be opened");
        first.write_all(b"head, ").expect("it is kept");
        first.flush().expect("it is kept");
        first.write_all(b"new").expect("there is room");
        assert_eq!(fs::read(&path).expect("it is there"), b"head, new");
        drop(first);
        assert!(!TraceOutput::is_recorded(&File::open(&path).expect("it can be read")));
        drop(TraceOutput::open(&path).expect("the first is done"));
        assert_eq!(fs::read(&path).expect("it is there"), b"head, new");
    }
}
