//! Copies on a stream of their own, while a kernel runs.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::atomic::AtomicU64;

use cudarc::driver::{result, sys};

use super::driver::Called;
use super::pinned::Pinned;
use crate::live::{LiveMemory, MAX_READ, copy_words, store_words};
use crate::{AddressMap, DeviceError};

/// Bytes that are written at once.
const MAX_WRITE: usize = 1 << 20;

/// A buffer that copies fill.
struct Buffer {
    memory: *mut c_void,
    done: sys::CUevent,
}

/// Streams and pinned memory. All of it is there from the beginning: the driver gives none while a kernel
/// runs.
pub(super) struct Live {
    reads: sys::CUstream,
    writes: sys::CUstream,
    buffers: [Buffer; 2],
    written: *mut c_void,
    /// Reads that are under way, in their order.
    under_way: VecDeque<Read>,
    next: usize,
    /// What was answered last of [memory of the host](Pinned).
    answered: Vec<u64>,
}

/// A read that is under way.
enum Read {
    /// This many bytes are copied into the buffer with this number.
    Copied(usize, usize),
    /// It was of memory of the host, which needs no driver.
    Taken(Vec<u64>),
}

impl Live {
    pub(super) fn new() -> Result<Self, DeviceError> {
        // Flags 0: cached by the CPU. SAFETY: plain pinned allocations, freed in `drop`.
        let memory = |bytes| unsafe { result::malloc_host(bytes, 0) }.called("cuMemHostAlloc");
        // Not blocking: the default stream, on which kernels run, waits for others.
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
            answered: Vec::new(),
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
            // SAFETY: the buffer is pinned and long enough; the caller has checked the source. It is read
            // behind its event.
            unsafe {
                let target = std::slice::from_raw_parts_mut(memory.cast::<u8>().add(at), length);
                result::memcpy_dtoh_async(target, address, self.reads).called("cuMemcpyDtoHAsync")?;
            }
            at += length;
        }
        // SAFETY: event and stream are alive.
        unsafe { result::event::record(*done, self.reads) }.called("cuEventRecord")?;
        self.under_way.push_back(Read::Copied(self.next, bytes));
        self.next = (self.next + 1) % self.buffers.len();
        Ok(())
    }

    /// Copies ranges of memory of the host, of which `words` returns the words.
    fn take<'m>(
        &mut self,
        ranges: &[(u64, usize)],
        words: impl Fn(u64, usize) -> Option<&'m [AtomicU64]>,
    ) -> Result<(), DeviceError> {
        let mut read = std::mem::take(&mut self.answered);
        read.clear();
        for &(address, bytes) in ranges {
            let out_of_bounds = DeviceError::OutOfBounds { address, bytes: bytes as u64 };
            copy_words(address, words(address, bytes).ok_or(out_of_bounds)?, &mut read);
        }
        self.under_way.push_back(Read::Taken(read));
        Ok(())
    }

    pub(super) fn finish_read(&mut self) -> Result<&[u8], DeviceError> {
        let (number, bytes) = match self.under_way.pop_front() {
            Some(Read::Copied(number, bytes)) => (number, bytes),
            Some(Read::Taken(words)) => {
                self.answered = words;
                return Ok(bytemuck::cast_slice(&self.answered));
            }
            None => {
                let problem = "no read is under way".to_owned();
                return Err(DeviceError::Unsupported { problem });
            }
        };
        let Buffer { memory, done } = &self.buffers[number];
        // SAFETY: the event is alive. Behind it all bytes are there, and the next read but one is the first
        // to change them.
        unsafe {
            result::event::synchronize(*done).called("cuEventSynchronize")?;
            Ok(std::slice::from_raw_parts(memory.cast::<u8>(), bytes))
        }
    }

    fn write(&mut self, mut address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        for piece in bytes.chunks(MAX_WRITE) {
            // SAFETY: the buffer is pinned and long enough, and is not used again before the copy is done;
            // the caller has checked the target.
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
        // SAFETY: made in `new`, used by nothing else.
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

/// What is allocated, and the stream: device memory as it is seen while a kernel runs.
pub(super) struct LiveDevice<'a> {
    pub(super) allocations: &'a AddressMap<()>,
    pub(super) pinned: &'a Pinned,
    pub(super) live: &'a mut Live,
}

/// Checks that bytes lie in one of the allocations.
pub(super) fn check_inside(
    allocations: &AddressMap<()>,
    address: u64,
    bytes: u64,
) -> Result<(), DeviceError> {
    allocations.around(address, bytes).copied().ok_or(DeviceError::OutOfBounds { address, bytes })
}

impl LiveMemory for LiveDevice<'_> {
    fn start_read(&mut self, ranges: &[(u64, usize)]) -> Result<(), DeviceError> {
        let Self { pinned, live, .. } = self;
        // Of nothing, too: a driver that has failed returns nothing.
        if ranges.first().is_none_or(|&(address, bytes)| pinned.holds(address, bytes as u64)) {
            return live.take(ranges, |address, bytes| pinned.words(address, bytes));
        }
        for &(address, bytes) in ranges {
            check_inside(self.allocations, address, bytes as u64)?;
        }
        self.live.start_read(ranges)
    }

    fn finish_read(&mut self) -> Result<&[u8], DeviceError> {
        self.live.finish_read()
    }

    fn write_live(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        if let Some(words) = self.pinned.words(address, bytes.len()) {
            store_words(words, bytes);
            return Ok(());
        }
        check_inside(self.allocations, address, bytes.len() as u64)?;
        self.live.write(address, bytes)
    }
}
