//! Output limited by the length of the file.

use std::fmt;
use std::io::{self, Write};

use crate::file::TraceFile;
use crate::work::Work;

/// A writer with a limit; see [`TraceFile::limited`].
pub struct LimitedOutput<'a, W> {
    out: W,
    work: &'a Work,
}

impl TraceFile {
    /// Limits all outputs of the trace together to 1 GiB plus 2^15 bytes for each byte of the file, unless
    /// [`unlimited`](Self::unlimited). Fails above it; the source is a [`DecodeError`](crate::DecodeError).
    pub const fn limited<W: Write>(&self, out: W) -> LimitedOutput<'_, W> {
        LimitedOutput { out, work: &self.work }
    }
}

impl<W> fmt::Debug for LimitedOutput<'_, W> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("LimitedOutput").field("work", self.work).finish_non_exhaustive()
    }
}

impl<W: Write> Write for LimitedOutput<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.work.write(written as u64).map_err(io::Error::other)?;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
