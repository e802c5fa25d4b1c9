//! Kernels whose logs are emptied while they run.

use warptrace_format::file::LaunchInfo;
use warptrace_format::span::WarpSpan;

use crate::DeviceError;

/// The most that one read copies.
pub const MAX_READ: usize = 16 << 20;

/// Device memory while a kernel may write it.
///
/// What is written in one call is seen by the kernel after what was written in calls before.
pub trait LiveMemory {
    /// Starts to copy ranges of memory, each an address and a number of bytes, both multiples of 8: at most
    /// [`MAX_READ`] bytes in all. The eight bytes at a multiple of 8 are seen as one, and 16 bytes that the
    /// kernel has stored by one instruction at a multiple of 16; all else may be from different times. At
    /// most two reads are under way.
    ///
    /// # Errors
    /// If a range is not inside one allocation, or the driver fails.
    fn start_read(&mut self, ranges: &[(u64, usize)]) -> Result<(), DeviceError>;

    /// Waits for the first of the reads that are under way, and returns its ranges, one behind the other.
    ///
    /// # Errors
    /// If none is under way, or the driver fails.
    fn finish_read(&mut self) -> Result<&[u8], DeviceError>;

    /// Copies bytes to an address, both multiples of 8; eight at a multiple of 8 change together.
    ///
    /// # Errors
    /// If the target is not inside one allocation, or the driver fails.
    fn write_live(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Copies ranges as [`start_read`](Self::start_read) does, and waits for them. No read is under way.
    ///
    /// # Errors
    /// As for the two.
    fn read_live(&mut self, ranges: &[(u64, usize)]) -> Result<&[u8], DeviceError> {
        self.start_read(ranges)?;
        self.finish_read()
    }

    /// Puts the spans of a launch's recorded warps, copied while it runs, to where they belong in time, as
    /// far as they are not when the kernel writes them. On a GPU they are.
    fn place_spans(&self, _launch: &LaunchInfo, _spans: &mut [WarpSpan]) {}
}

/// Empties logs: called with the device's memory again and again while a kernel runs, not after it has ended.
/// An error is returned by the launch, when the kernel has ended.
pub type Serve<'a> = dyn FnMut(&mut dyn LiveMemory) -> Result<(), DeviceError> + 'a;
