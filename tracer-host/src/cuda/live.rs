//! Copies on a stream of their own, beside a kernel that runs.

use std::collections::BTreeMap;
use std::ffi::c_void;

use cudarc::driver::{result, sys};

use super::driver::Called;
use crate::DeviceError;
use crate::live::{LiveMemory, MAX_READ};

/// A stream and pinned memory. All of it is there from the beginning: the driver gives none while a kernel runs.
pub(super) struct Live {
    stream: sys::CUstream,
    buffer: *mut c_void,
}

impl Live {
    pub(super) fn new() -> Result<Self, DeviceError> {
        // Flags 0: cached by the CPU. SAFETY: a plain pinned allocation, freed in `drop`.
        let buffer = unsafe { result::malloc_host(MAX_READ, 0) }.called("cuMemHostAlloc")?;
        // Not blocking: the default stream, on which kernels run, waits for others.
        let stream =
            result::stream::create(result::stream::StreamKind::NonBlocking).called("cuStreamCreate")?;
        Ok(Self { stream, buffer })
    }

    pub(super) fn read(&mut self, ranges: &[(u64, usize)]) -> Result<&[u8], DeviceError> {
        let bytes: usize = ranges.iter().map(|(_, bytes)| bytes).sum();
        check_length(bytes)?;
        let mut at = 0;
        for &(address, length) in ranges {
            // SAFETY: the buffer is pinned and long enough; the caller has checked the source. It is read behind `synchronize`.
            unsafe {
                let target = std::slice::from_raw_parts_mut(self.buffer.cast::<u8>().add(at), length);
                result::memcpy_dtoh_async(target, address, self.stream).called("cuMemcpyDtoHAsync")?;
            }
            at += length;
        }
        // SAFETY: the stream is alive; after it all copies are done, and all bytes initialised by them.
        unsafe {
            result::stream::synchronize(self.stream).called("cuStreamSynchronize")?;
            Ok(std::slice::from_raw_parts(self.buffer.cast::<u8>(), bytes))
        }
    }

    pub(super) fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        check_length(bytes.len())?;
        // SAFETY: the buffer is pinned and long enough, and is not used again before the copy is done; the caller has checked the
        // target.
        unsafe {
            let source = std::slice::from_raw_parts_mut(self.buffer.cast::<u8>(), bytes.len());
            source.copy_from_slice(bytes);
            result::memcpy_htod_async(address, source, self.stream).called("cuMemcpyHtoDAsync")?;
            result::stream::synchronize(self.stream).called("cuStreamSynchronize")
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // SAFETY: made in `new`; no copy is under way between calls unless the context failed.
        unsafe {
            let _ = result::stream::synchronize(self.stream);
            let _ = result::free_host(self.buffer);
            let _ = result::stream::destroy(self.stream);
        }
    }
}

fn check_length(bytes: usize) -> Result<(), DeviceError> {
    if bytes <= MAX_READ {
        return Ok(());
    }
    let problem = format!("{bytes} bytes at once beside a kernel: at most {MAX_READ} are possible");
    Err(DeviceError::Unsupported { problem })
}

/// What is allocated, and the stream: device memory as it is seen beside a kernel.
pub(super) struct Beside<'a> {
    pub(super) allocations: &'a BTreeMap<u64, u64>,
    pub(super) live: &'a mut Live,
}

/// Checks that bytes lie in one of the allocations.
pub(super) fn check_inside(
    allocations: &BTreeMap<u64, u64>,
    address: u64,
    bytes: u64,
) -> Result<(), DeviceError> {
    let inside = allocations
        .range(..=address)
        .next_back()
        .is_some_and(|(&start, &len)| address - start <= len && bytes <= len - (address - start));
    if inside { Ok(()) } else { Err(DeviceError::OutOfBounds { address, bytes }) }
}

impl LiveMemory for Beside<'_> {
    fn read_live(&mut self, ranges: &[(u64, usize)]) -> Result<&[u8], DeviceError> {
        for &(address, bytes) in ranges {
            check_inside(self.allocations, address, bytes as u64)?;
        }
        self.live.read(ranges)
    }

    fn write_live(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        check_inside(self.allocations, address, bytes.len() as u64)?;
        self.live.write(address, bytes)
    }
}
