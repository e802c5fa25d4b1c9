//! Large copies from the device through two pinned buffers. The device fills one while the host empties the
//! other. From pageable memory, the driver copies at a fraction of the link's rate.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use cudarc::driver::{result, sys};
use rayon::prelude::*;

use super::driver::Called;
use crate::{DeviceError, threads};

/// Minimum bytes of a staged copy. Shorter copies are direct.
const WORTH_STAGING: usize = 1 << 20;
/// Size of each pinned buffer: large enough for the fixed cost of a copy, small enough for several pieces.
const BUFFER_BYTES: usize = 4 << 20;
/// Minimum pieces of a copy, so that device and host overlap, and minimum size of a piece.
const LEAST_PIECES: usize = 4;
const LEAST_PIECE_BYTES: usize = 512 << 10;
/// Bytes that one task copies out of a buffer.
const COPIED_AT_ONCE: usize = 256 << 10;

pub(super) struct Staging {
    buffers: [*mut c_void; 2],
    done: [sys::CUevent; 2],
}

/// Copies `bytes.len()` bytes from the device address `from`, which the caller has checked, after the work in
/// `stream`. Creates the buffers on first use.
pub(super) fn read(
    staging: &mut Option<Staging>,
    stream: sys::CUstream,
    from: u64,
    bytes: &mut [u8],
) -> Result<(), DeviceError> {
    if bytes.len() < WORTH_STAGING {
        // SAFETY: the caller has checked the source; the second call waits for the copy.
        return unsafe {
            result::memcpy_dtoh_async(bytes, from, stream).called("cuMemcpyDtoHAsync")?;
            result::stream::synchronize(stream).called("cuStreamSynchronize")
        };
    }
    let length = bytes.len();
    let mut rest = bytes;
    made(staging)?.pieces(stream, from, length, |piece| {
        let (target, after) = std::mem::take(&mut rest).split_at_mut(piece.len());
        threads::copy(|| {
            let parts = target.par_chunks_mut(COPIED_AT_ONCE).zip(piece.par_chunks(COPIED_AT_ONCE));
            parts.for_each(|(to, from)| to.copy_from_slice(from));
        });
        rest = after;
    })
}

/// Like [`read`], but appends to `to`, whose new bytes are written only once.
pub(super) fn append(
    staging: &mut Option<Staging>,
    stream: sys::CUstream,
    from: u64,
    bytes: usize,
    to: &mut Vec<u8>,
) -> Result<(), DeviceError> {
    if bytes < WORTH_STAGING {
        let before = to.len();
        to.resize(before + bytes, 0);
        return read(staging, stream, from, &mut to[before..]);
    }
    to.reserve(bytes);
    let mut rest = &mut to.spare_capacity_mut()[..bytes];
    made(staging)?.pieces(stream, from, bytes, |piece| {
        let (target, after) = std::mem::take(&mut rest).split_at_mut(piece.len());
        copy(piece, target);
        rest = after;
    })?;
    // SAFETY: the pieces have initialized the `bytes` bytes after the current length.
    unsafe { to.set_len(to.len() + bytes) };
    Ok(())
}

/// Copies on several cores. One core is slower than the link, especially on first access to memory.
fn copy(from: &[u8], to: &mut [MaybeUninit<u8>]) {
    threads::copy(|| {
        to.par_chunks_mut(COPIED_AT_ONCE).zip(from.par_chunks(COPIED_AT_ONCE)).for_each(|(to, from)| {
            to.write_copy_of_slice(from);
        });
    });
}

pub(super) fn made(staging: &mut Option<Staging>) -> Result<&mut Staging, DeviceError> {
    match staging {
        Some(staging) => Ok(staging),
        None => Ok(staging.insert(Staging::new()?)),
    }
}

impl Staging {
    pub(super) fn new() -> Result<Self, DeviceError> {
        // Flags 0: cached by the CPU. Write-combined memory would be slow to read.
        // SAFETY: plain pinned allocations, freed in `drop`.
        let buffer = || unsafe { result::malloc_host(BUFFER_BYTES, 0) }.called("cuMemHostAlloc");
        let event =
            || result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING).called("cuEventCreate");
        Ok(Self { buffers: [buffer()?, buffer()?], done: [event()?, event()?] })
    }

    /// Passes `bytes` bytes at `from` to `take` in consecutive pieces, after the work in `stream`.
    fn pieces(
        &mut self,
        stream: sys::CUstream,
        from: u64,
        bytes: usize,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), DeviceError> {
        let most = bytes.div_ceil(LEAST_PIECES).clamp(LEAST_PIECE_BYTES, BUFFER_BYTES);
        let pieces = bytes.div_ceil(most);
        let length = |piece: usize| most.min(bytes - piece * most);
        if pieces > 0 {
            self.start(stream, from, 0, length(0))?;
        }
        for piece in 0..pieces {
            if piece + 1 < pieces {
                self.start(stream, from + ((piece + 1) * most) as u64, piece + 1, length(piece + 1))?;
            }
            let half = piece % 2;
            // SAFETY: the event is alive; after it the buffer holds the piece until `take` has returned.
            let found = unsafe {
                result::event::synchronize(self.done[half]).called("cuEventSynchronize")?;
                std::slice::from_raw_parts(self.buffers[half].cast::<u8>(), length(piece))
            };
            take(found);
        }
        Ok(())
    }

    fn start(
        &mut self,
        stream: sys::CUstream,
        from: u64,
        piece: usize,
        length: usize,
    ) -> Result<(), DeviceError> {
        let half = piece % 2;
        // SAFETY: the buffer is pinned, at least `length` bytes long, and not read before the event.
        unsafe {
            let target = std::slice::from_raw_parts_mut(self.buffers[half].cast::<u8>(), length);
            result::memcpy_dtoh_async(target, from, stream).called("cuMemcpyDtoHAsync")?;
            result::event::record(self.done[half], stream).called("cuEventRecord")
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // SAFETY: created in `new`.
        unsafe {
            // After an error, a copy may still be running.
            for done in self.done {
                let _ = result::event::synchronize(done);
            }
            for buffer in self.buffers {
                let _ = result::free_host(buffer);
            }
            for event in self.done {
                let _ = result::event::destroy(event);
            }
        }
    }
}
