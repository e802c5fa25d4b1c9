//! Packs the used parts of chunks on the device, so that one plain copy transfers them to the host.
//!
//! Each warp owns a chunk that may hold only a few bytes. Copies of whole chunks would transfer mostly unused
//! bytes, and a copy of rows (`cuMemcpy2D`) would transfer each row separately. The kernel packs chunks at
//! the speed of device memory. It is written in PTX, so that the host needs no device compiler and no kernel
//! of the program.

use std::ffi::c_void;

use cudarc::driver::{result, sys};
use warptrace_format::chunk::CHUNK_HEADER_BYTES;

use super::driver::{Called, PtxKernel, Waits};
use super::staging::{self, Staging};
use crate::{Allocation, DeviceError};

/// Planned fill of the buffer by one run of the kernel, in eighths, if chunks are as full as in the last run.
const PLANNED_EIGHTHS: u64 = 7;
/// Bytes before the packed chunks, for the counter of packed bytes.
const CURSOR_BYTES: u64 = 256;
/// Maximum bytes packed by one run: the counter has 32 bits.
const MAX_BUFFER_BYTES: u64 = 1 << 31;
/// Warps per block; each packs one chunk.
const BLOCK_WARPS: u32 = 8;

/// Each warp reads the header of one chunk. If the chunk was used, its leader reserves space for header and
/// payload in the buffer, and all lanes copy, 16 bytes each at a time. The length is clamped to the chunk;
/// the host reports invalid lengths. Chunks that do not fit are counted but not copied: the host sees this
/// and packs fewer chunks.
const PTX: &str = r#"
.version 7.0
.target sm_70
.address_size 64

.visible .entry warptrace_gather(
    .param .u64 chunks,
    .param .u64 cursor,
    .param .u64 target,
    .param .u32 chunk_bytes,
    .param .u32 count,
    .param .u32 capacity
)
{
    .reg .pred %unused, %follower, %done;
    .reg .u32 %block, %size, %thread, %lane, %index, %count, %bytes, %most, %at;
    .reg .u32 %warp, %sequence, %events, %length, %a, %b, %c, %d, %used, %offset, %capacity, %behind;
    .reg .u64 %from, %to, %cursor, %step;

    mov.u32 %block, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mov.u32 %thread, %tid.x;
    mad.lo.u32 %index, %block, %size, %thread;
    shr.u32 %index, %index, 5;
    and.b32 %lane, %thread, 31;
    ld.param.u32 %count, [count];
    setp.ge.u32 %done, %index, %count;
    @%done ret;

    ld.param.u64 %from, [chunks];
    ld.param.u32 %bytes, [chunk_bytes];
    mul.wide.u32 %step, %index, %bytes;
    add.u64 %from, %from, %step;
    ld.global.v4.u32 {%warp, %sequence, %events, %length}, [%from];
    or.b32 %used, %events, %length;
    setp.eq.u32 %unused, %used, 0;
    @%unused ret;

    sub.u32 %most, %bytes, 32;
    min.u32 %length, %length, %most;
    add.u32 %length, %length, 47;
    and.b32 %length, %length, 0xfffffff0;

    mov.u32 %at, 0;
    setp.ne.u32 %follower, %lane, 0;
    ld.param.u64 %cursor, [cursor];
    @!%follower atom.global.add.u32 %at, [%cursor], %length;
    shfl.sync.idx.b32 %at, %at, 0, 31, 0xffffffff;

    ld.param.u32 %capacity, [capacity];
    add.u32 %behind, %at, %length;
    setp.gt.u32 %done, %behind, %capacity;
    @%done ret;

    ld.param.u64 %to, [target];
    cvt.u64.u32 %step, %at;
    add.u64 %to, %to, %step;
    shl.b32 %offset, %lane, 4;
copy:
    setp.ge.u32 %done, %offset, %length;
    @%done bra end;
    cvt.u64.u32 %step, %offset;
    add.u64 %cursor, %from, %step;
    ld.global.v4.u32 {%a, %b, %c, %d}, [%cursor];
    add.u64 %cursor, %to, %step;
    st.global.v4.u32 [%cursor], {%a, %b, %c, %d};
    add.u32 %offset, %offset, 512;
    bra copy;
end:
    ret;
}
"#;

const _: () = assert!(CHUNK_HEADER_BYTES == 32, "the kernel's text has the header's size in it");

pub(super) struct Gather {
    kernel: PtxKernel,
    /// Average packed bytes per chunk in the last run, or 0.
    each: u64,
}

impl Gather {
    pub(super) fn new(waits: &Waits) -> Result<Self, DeviceError> {
        Ok(Self { kernel: PtxKernel::load("warptrace_gather", PTX, waits)?, each: 0 })
    }

    /// Appends the used chunks of the first of `count` chunks at `first` to `to`; returns the number of
    /// examined chunks. The caller has checked that chunks and `scratch` lie in allocations. Fails if
    /// `scratch` is too small for a chunk.
    pub(super) fn collect(
        &mut self,
        staging: &mut Option<Staging>,
        (first, chunk_bytes, count): (u64, u32, u32),
        scratch: Allocation,
        stream: sys::CUstream,
        to: &mut Vec<u8>,
    ) -> Result<u32, DeviceError> {
        let buffer_bytes = scratch.bytes.saturating_sub(CURSOR_BYTES).min(MAX_BUFFER_BYTES);
        // This number of chunks fits even if all are full.
        let safe = (buffer_bytes / u64::from(chunk_bytes)) as u32;
        if safe == 0 {
            return Err(DeviceError::Unsupported {
                problem: format!(
                    "chunks of {chunk_bytes} bytes do not fit into {buffer_bytes} bytes of scratch"
                ),
            });
        }
        // Limit so that the counter of packed bytes does not overflow.
        let most = count.min(u32::MAX / chunk_bytes);
        let planned_bytes = buffer_bytes / 8 * PLANNED_EIGHTHS;
        loop {
            let planned =
                planned_bytes.checked_div(self.each).map_or(most, |planned| planned.min(most.into()) as u32);
            let batch = planned.max(safe).min(most);
            let packed = self.pack(first, chunk_bytes, batch, [scratch.address, buffer_bytes], stream)?;
            // Rounded up, so that the next run takes fewer chunks if these were too many.
            self.each = packed.div_ceil(u64::from(batch.max(1)));
            if packed <= buffer_bytes {
                staging::append(staging, stream, scratch.address + CURSOR_BYTES, packed as usize, to)?;
                return Ok(batch);
            }
        }
    }

    /// Packs chunks into a buffer; returns the bytes of all used chunks. If they exceed it, some are missing.
    fn pack(
        &mut self,
        mut first: u64,
        mut chunk_bytes: u32,
        mut count: u32,
        [buffer, bytes]: [u64; 2],
        stream: sys::CUstream,
    ) -> Result<u64, DeviceError> {
        let (mut cursor, mut target) = (buffer, buffer + CURSOR_BYTES);
        let mut capacity = bytes as u32;
        let mut arguments: [*mut c_void; 6] = [
            (&raw mut first).cast(),
            (&raw mut cursor).cast(),
            (&raw mut target).cast(),
            (&raw mut chunk_bytes).cast(),
            (&raw mut count).cast(),
            (&raw mut capacity).cast(),
        ];
        let blocks = count.div_ceil(BLOCK_WARPS);
        let mut packed = [0u32];
        // SAFETY: the caller provides the buffer. The arguments match the kernel's parameters in order and
        // size, and the kernel writes at most `capacity` bytes.
        unsafe {
            result::memset_d8_async(buffer, 0, size_of::<u32>(), stream).called("cuMemsetD8Async")?;
            self.kernel.run([blocks, BLOCK_WARPS * 32], stream, &mut arguments, &mut packed, buffer)?;
        }
        let limit = u64::from(count) * u64::from(chunk_bytes);
        debug_assert!(u64::from(packed[0]) <= limit, "{} packed bytes of {limit}", packed[0]);
        Ok(limit.min(u64::from(packed[0])))
    }
}
