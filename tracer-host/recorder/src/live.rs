use warptrace_format::file::LaunchInfo;
use warptrace_format::span::WarpSpan;

use crate::DeviceError;

/// Maximum bytes of one read.
pub const MAX_READ: usize = 16 << 20;

/// Device memory that a running kernel may write. The kernel sees writes in their order.
pub trait LiveMemory {
    /// Starts to copy ranges of memory, given as address and number of bytes, both multiples of 8, at most
    /// [`MAX_READ`] bytes in total. At most two reads can be pending. Each aligned 8 bytes are read
    /// atomically, and so are aligned 16 bytes that the kernel stored with one instruction. Other bytes may
    /// be from different times. Fails if a range is not inside one allocation, or the driver fails.
    fn start_read(&mut self, ranges: &[(u64, usize)]) -> Result<(), DeviceError>;

    /// Waits for the oldest pending read, and returns its ranges concatenated. Fails if no read is pending.
    fn finish_read(&mut self) -> Result<&[u8], DeviceError>;

    /// Copies bytes to an address. Address and length are multiples of 8. Each aligned 8 bytes change
    /// atomically. Fails if the target is not inside one allocation, or the driver fails.
    fn write_live(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Copies ranges like [`start_read`](Self::start_read), and waits for them. No other read may be pending.
    fn read_live(&mut self, ranges: &[(u64, usize)]) -> Result<&[u8], DeviceError> {
        self.start_read(ranges)?;
        self.finish_read()
    }

    /// Sets the final times of a launch's warp spans that were copied while it runs, where the kernel does
    /// not write them itself. On a GPU the kernel does.
    fn place_spans(&self, _launch: &LaunchInfo, _spans: &mut [WarpSpan]) {}
}

/// Empties logs. Called with the device's memory repeatedly while a kernel runs, and not after it has ended.
/// The launch returns its error once the kernel has ended.
pub type Serve<'a> = dyn FnMut(&mut dyn LiveMemory) -> Result<(), DeviceError> + 'a;
