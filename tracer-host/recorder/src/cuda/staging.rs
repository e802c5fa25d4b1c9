//! Large copies from the device. Into page-locked memory the device copies directly. Into other memory, it copies
//! through two page-locked buffers: it fills one while the host empties the other. From pageable memory, the
//! driver would copy at a fraction of the link's rate.

use std::mem::MaybeUninit;

use bytemuck::{AnyBitPattern, NoUninit};
use cudarc::driver::{result, sys};
use rayon::prelude::*;

use super::driver::Called;
use super::locked::LockedMemory;
use crate::host_memory::Locked;
use crate::{DeviceError, HostMemory, threads};

/// Minimum bytes of a staged copy. The driver makes shorter copies.
const WORTH_STAGING: usize = 1 << 20;
/// Size of each buffer: large enough for the fixed cost of a copy, small enough for several pieces.
const BUFFER_BYTES: usize = 4 << 20;
/// Minimum pieces of a copy, so that device and host overlap, and minimum size of a piece.
const LEAST_PIECES: usize = 4;
const LEAST_PIECE_BYTES: usize = 512 << 10;
/// Bytes that one task copies out of a buffer.
const COPIED_AT_ONCE: usize = 256 << 10;

/// Page-locked memory of a device.
#[derive(Default)]
pub(super) struct Staging {
    buffers: Option<Buffers>,
    // Freed after the buffers.
    locked: LockedMemory,
}

impl Staging {
    /// Locks memory for the first copies and creates the buffers.
    pub(super) fn prepare(&mut self) -> Result<(), DeviceError> {
        self.locked.prepare();
        self.buffers().map(drop)
    }

    /// Returns the buffers; `None` if no memory can be locked.
    fn buffers(&mut self) -> Result<Option<&mut Buffers>, DeviceError> {
        if self.buffers.is_none()
            && let Some(memory) = self.locked.take(2 * BUFFER_BYTES)
        {
            self.buffers = Some(Buffers::new(memory)?);
        }
        Ok(self.buffers.as_mut())
    }

    /// Copies `bytes.len()` bytes from the device address `from`, which the caller has checked, after the work in
    /// `stream`.
    pub(super) fn read(
        &mut self,
        stream: sys::CUstream,
        from: u64,
        bytes: &mut [u8],
    ) -> Result<(), DeviceError> {
        let length = bytes.len();
        if length >= WORTH_STAGING
            && let Some(buffers) = self.buffers()?
        {
            let mut rest = bytes;
            return buffers.pieces(stream, from, length, |piece| {
                let (target, after) = std::mem::take(&mut rest).split_at_mut(piece.len());
                threads::copy(|| {
                    let parts = target.par_chunks_mut(COPIED_AT_ONCE).zip(piece.par_chunks(COPIED_AT_ONCE));
                    parts.for_each(|(to, from)| to.copy_from_slice(from));
                });
                rest = after;
            });
        }
        // SAFETY: the caller has checked the source.
        unsafe { copy(stream, from, bytes) }
    }

    /// Like [`read`](Self::read), but appends `count` values to `to`, if possible in page-locked memory. New memory
    /// of a vector is written only once.
    pub(super) fn append<T: AnyBitPattern + NoUninit>(
        &mut self,
        stream: sys::CUstream,
        from: u64,
        count: usize,
        to: &mut HostMemory<T>,
    ) -> Result<(), DeviceError> {
        if let Some(target) = to.append_locked(count, |bytes| self.locked.take(bytes)) {
            // SAFETY: the caller has checked the source.
            return unsafe { copy(stream, from, bytemuck::cast_slice_mut(target)) };
        }
        let bytes = count * size_of::<T>();
        let buffers = if bytes < WORTH_STAGING { None } else { self.buffers()? };
        let Some(buffers) = buffers else {
            return self.read(stream, from, bytemuck::cast_slice_mut(to.append_zeros(count)));
        };
        let to = to.vec();
        to.reserve(count);
        let mut rest = &mut bytes_of(to.spare_capacity_mut())[..bytes];
        buffers.pieces(stream, from, bytes, |piece| {
            let (target, after) = std::mem::take(&mut rest).split_at_mut(piece.len());
            let parts = target.par_chunks_mut(COPIED_AT_ONCE).zip(piece.par_chunks(COPIED_AT_ONCE));
            threads::copy(|| parts.for_each(|(to, from)| _ = to.write_copy_of_slice(from)));
            rest = after;
        })?;
        // SAFETY: the pieces have initialized the values after the current length; any bytes are values.
        unsafe { to.set_len(to.len() + count) };
        Ok(())
    }
}

/// Returns the bytes of uninitialized values.
fn bytes_of<T: AnyBitPattern>(values: &mut [MaybeUninit<T>]) -> &mut [MaybeUninit<u8>] {
    // SAFETY: the same memory.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// # Safety
/// `from` is device memory of at least the length of `to`.
unsafe fn copy(stream: sys::CUstream, from: u64, to: &mut [u8]) -> Result<(), DeviceError> {
    // SAFETY: the caller has checked the source; the second call waits for the copy.
    unsafe {
        result::memcpy_dtoh_async(to, from, stream).called("cuMemcpyDtoHAsync")?;
        result::stream::synchronize(stream).called("cuStreamSynchronize")
    }
}

struct Buffers {
    memory: Locked,
    done: [sys::CUevent; 2],
}

impl Buffers {
    fn new(memory: Locked) -> Result<Self, DeviceError> {
        let event =
            || result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING).called("cuEventCreate");
        Ok(Self { memory, done: [event()?, event()?] })
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
                std::slice::from_raw_parts(self.buffer(half), length(piece))
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
            let target = std::slice::from_raw_parts_mut(self.buffer(half), length);
            result::memcpy_dtoh_async(target, from, stream).called("cuMemcpyDtoHAsync")?;
            result::event::record(self.done[half], stream).called("cuEventRecord")
        }
    }

    fn buffer(&self, half: usize) -> *mut u8 {
        self.memory.start().wrapping_add(half * BUFFER_BYTES)
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        for done in self.done {
            // SAFETY: created in `new`. After an error, a copy may still be running.
            unsafe {
                let _ = result::event::synchronize(done);
                let _ = result::event::destroy(done);
            }
        }
    }
}
