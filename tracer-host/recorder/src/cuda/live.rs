//! Copies on separate streams while a kernel runs.

use std::collections::VecDeque;
use std::ffi::c_void;

use cudarc::driver::{result, sys};

use super::driver::Called;
use crate::live::{LiveMemory, MAX_READ};
use crate::{AddressMap, DeviceError};

const MAX_WRITE: usize = 1 << 20;

struct Buffer {
    memory: *mut c_void,
    done: sys::CUevent,
}

/// Streams and pinned memory, created in advance: the driver allocates nothing while a kernel runs.
pub(super) struct Live {
    reads: sys::CUstream,
    writes: sys::CUstream,
    buffers: [Buffer; 2],
    written: *mut c_void,
    /// Pending reads, oldest first: index of the buffer, and number of bytes.
    under_way: VecDeque<(usize, usize)>,
    next: usize,
}

impl Live {
    pub(super) fn new() -> Result<Self, DeviceError> {
        // Flags 0: cached by the CPU. SAFETY: plain pinned allocations, freed in `drop`.
        let memory = |bytes| unsafe { result::malloc_host(bytes, 0) }.called("cuMemHostAlloc");
        // Non-blocking streams, because the default stream, on which kernels run, synchronizes with others.
        let stream =
            || result::stream::create(result::stream::StreamKind::NonBlocking).called("cuStreamCreate");
        let buffer = || {
            let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING;
            let done = result::event::create(flags).called("cuEventCreate")?;
            Ok::<_, DeviceError>(Buffer { memory: memory(MAX_READ)?, done })
        };
        Ok(Self {
            reads: stream()?,
            writes: stream()?,
            buffers: [buffer()?, buffer()?],
            written: memory(MAX_WRITE)?,
            under_way: VecDeque::new(),
            next: 0,
        })
    }

    pub(super) fn start_read(&mut self, ranges: &[(u64, usize)]) -> Result<(), DeviceError> {
        let bytes: usize = ranges.iter().map(|(_, bytes)| bytes).sum();
        if bytes > MAX_READ || self.under_way.len() == self.buffers.len() {
            let problem = format!(
                "a read of {bytes} bytes while a kernel runs, and {} under way: at most {MAX_READ} bytes, and {} reads, are possible",
                self.under_way.len(),
                self.buffers.len()
            );
            return Err(DeviceError::Unsupported { problem });
        }
        let Buffer { memory, done } = &self.buffers[self.next];
        let mut at = 0;
        for &(address, length) in ranges {
            // SAFETY: the buffer is pinned, long enough, and read after its event; the source was checked.
            unsafe {
                let target = std::slice::from_raw_parts_mut(memory.cast::<u8>().add(at), length);
                result::memcpy_dtoh_async(target, address, self.reads).called("cuMemcpyDtoHAsync")?;
            }
            at += length;
        }
        // SAFETY: event and stream are alive.
        unsafe { result::event::record(*done, self.reads) }.called("cuEventRecord")?;
        self.under_way.push_back((self.next, bytes));
        self.next = (self.next + 1) % self.buffers.len();
        Ok(())
    }

    pub(super) fn finish_read(&mut self) -> Result<&[u8], DeviceError> {
        let Some((number, bytes)) = self.under_way.pop_front() else {
            let problem = "no read is under way".to_owned();
            return Err(DeviceError::Unsupported { problem });
        };
        let Buffer { memory, done } = &self.buffers[number];
        // SAFETY: the event is alive, and after it all bytes are in the buffer. A pending read uses the other
        // buffer, and no read can start while the result is borrowed.
        unsafe {
            result::event::synchronize(*done).called("cuEventSynchronize")?;
            Ok(std::slice::from_raw_parts(memory.cast::<u8>(), bytes))
        }
    }

    fn write(&mut self, mut address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        for piece in bytes.chunks(MAX_WRITE) {
            // SAFETY: the buffer is pinned, long enough, and unused during the copy; the target was checked.
            unsafe {
                let source = std::slice::from_raw_parts_mut(self.written.cast::<u8>(), piece.len());
                source.copy_from_slice(piece);
                result::memcpy_htod_async(address, source, self.writes).called("cuMemcpyHtoDAsync")?;
                result::stream::synchronize(self.writes).called("cuStreamSynchronize")?;
            }
            address += piece.len() as u64;
        }
        Ok(())
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // SAFETY: created in `new`, and not used by anything else.
        unsafe {
            for stream in [self.reads, self.writes] {
                let _ = result::stream::synchronize(stream);
                let _ = result::stream::destroy(stream);
            }
            for Buffer { memory, done } in &self.buffers {
                let _ = result::free_host(*memory);
                let _ = result::event::destroy(*done);
            }
            let _ = result::free_host(self.written);
        }
    }
}

pub(super) struct LiveDevice<'a> {
    pub(super) allocations: &'a AddressMap<()>,
    pub(super) live: &'a mut Live,
}

pub(super) fn check_inside(
    allocations: &AddressMap<()>,
    address: u64,
    bytes: u64,
) -> Result<(), DeviceError> {
    allocations.around(address, bytes).copied().ok_or(DeviceError::OutOfBounds { address, bytes })
}

impl LiveMemory for LiveDevice<'_> {
    fn start_read(&mut self, ranges: &[(u64, usize)]) -> Result<(), DeviceError> {
        for &(address, bytes) in ranges {
            check_inside(self.allocations, address, bytes as u64)?;
        }
        self.live.start_read(ranges)
    }

    fn finish_read(&mut self) -> Result<&[u8], DeviceError> {
        self.live.finish_read()
    }

    fn write_live(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        check_inside(self.allocations, address, bytes.len() as u64)?;
        self.live.write(address, bytes)
    }
}
