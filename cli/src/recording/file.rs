//! The file that a recording writes.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// A file that is emptied with its first byte, so that a recording that cannot start leaves an earlier trace
/// as it is.
#[derive(Debug)]
pub(super) struct TraceOutput {
    file: File,
    emptied: bool,
}

impl TraceOutput {
    /// Opens `path` for writing, and creates it where there is none.
    ///
    /// # Errors
    /// If it cannot be written, now rather than after the kernel has run.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        // A pipe or a device has no length to set.
        let emptied = !file.metadata()?.is_file();
        Ok(Self { file, emptied })
    }

    /// Waits until the bytes are on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        if self.file.metadata()?.is_file() { self.file.sync_all() } else { Ok(()) }
    }
}

impl Write for TraceOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.emptied {
            self.file.set_len(0)?;
            self.emptied = true;
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
