//! Kernels whose logs are emptied while they run.

use warptrace_device::simt::host::Recording;
use warptrace_format::stream::StreamLogs;

use crate::{DeviceError, Placement};

/// The most that is copied at once, and that is written.
pub const MAX_READ: usize = 32 << 20;

/// Device memory while a kernel may write it.
///
/// What is written in one call is seen by the kernel after what was written in calls before.
pub trait LiveMemory {
    /// Copies ranges of memory, each an address and a number of bytes, both multiples of 8, and answers them one behind the other:
    /// at most [`MAX_READ`] bytes in all. The eight bytes at a multiple of 8 are seen as one, and 16 bytes that the kernel has stored by one instruction at a
    /// multiple of 16; all else may be from different times.
    ///
    /// # Errors
    /// If a range is not inside one allocation, or the driver fails.
    fn read_live(&mut self, ranges: &[(u64, usize)]) -> Result<&[u8], DeviceError>;

    /// Copies at most [`MAX_READ`] bytes to an address, both multiples of 8; eight at a multiple of 8 change together.
    ///
    /// # Errors
    /// If the target is not inside one allocation, or the driver fails.
    fn write_live(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError>;
}

/// What a streamed launch records and where.
#[derive(Clone, Copy, Debug)]
pub struct Streaming {
    /// What is recorded.
    pub recording: Recording,
    /// Where lanes keep their records on a GPU; `None`: what suits the kernel. The simulator ignores it.
    pub placement: Option<Placement>,
    /// The launch's logs.
    pub logs: StreamLogs,
}

/// Empties logs: called with the device's memory again and again while a kernel runs, not after it has ended. An error is
/// returned by the launch, when the kernel has ended.
pub type Serve<'a> = dyn FnMut(&mut dyn LiveMemory) -> Result<(), DeviceError> + 'a;
