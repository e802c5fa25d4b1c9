//! Packs the used parts of chunks on the device, so that one plain copy transfers them to the host.
//!
//! Each warp owns a chunk that may hold only a few bytes. Copies of whole chunks would transfer mostly unused
//! bytes, and a copy of rows (`cuMemcpy2D`) would transfer each row separately. The kernel packs chunks at
//! the speed of device memory. It is written in PTX, so that the host needs no device compiler and no kernel
//! of the program.

use std::ffi::c_void;

use cudarc::driver::{result, sys};
use warptrace_encode::{PACK_THREADS, PackJob, pack_call, place_call};
use warptrace_format::chunk::CHUNK_HEADER_BYTES;
use warptrace_format::data::tile::MAX_TILE_CHUNKS;

use super::driver::{Called, PtxKernel, Waits};
use super::launch::pointers;
use super::staging::Staging;
use crate::{Allocation, DeviceError, HostMemory, packed};

/// Planned fill of the buffer by one run of the kernel, in eighths, if chunks are as full as in the last run.
const PLANNED_EIGHTHS: u64 = 7;
/// Bytes before the table of streams and the packed chunks, for the counter of packed bytes.
const CURSOR_BYTES: u64 = 256;
/// The table has a multiple of these streams, so that the packed chunks after it are aligned.
const TABLE_ALIGN: u64 = 4;
/// Maximum bytes packed by one run: the counter has 32 bits.
const MAX_BUFFER_BYTES: u64 = 1 << 31;
/// Minimum chunks of the data track for a block of threads.
const LEAST_PACKED: u32 = 8;
/// Warps per block; each packs one chunk.
const BLOCK_WARPS: u32 = 8;

/// Each warp reads the header of one chunk. If the chunk was used, its leader reserves space for header and
/// payload in the buffer, and all lanes copy, 16 bytes each at a time. The length is clamped to the chunk;
/// the host reports invalid lengths. Chunks of the data track are left out. Chunks that do not fit are counted
/// but not copied: the host sees this and packs fewer chunks.
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
    .param .u32 capacity,
    .param .u32 data_track
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
    ld.param.u32 %offset, [data_track];
    ld.global.u32 %used, [%from+20];
    setp.eq.u32 %done, %used, %offset;
    setp.ne.and.u32 %done, %offset, 0, %done;
    @%done ret;

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

/// How chunks of the data track become tiles.
pub(super) struct Packing {
    pub(super) functions: [sys::CUfunction; 2],
    pub(super) track: u32,
    /// Number of streams of all launches.
    pub(super) streams: u32,
    /// Number of blocks that occupy the device.
    pub(super) blocks: u32,
}

pub(super) struct Gather {
    kernel: PtxKernel,
    /// Average packed bytes per chunk in the last run, or 0.
    each: u64,
}

impl Gather {
    pub(super) fn new(waits: &Waits) -> Result<Self, DeviceError> {
        Ok(Self { kernel: PtxKernel::load("warptrace_gather", PTX, waits)?, each: 0 })
    }

    /// Appends the used chunks of the first of `count` chunks at `first` to `to`; returns the number of examined
    /// chunks. Chunks of a data track become tiles. The caller has checked that chunks and `scratch` lie in
    /// allocations. Fails if `scratch` is too small for a chunk.
    pub(super) fn collect(
        &mut self,
        staging: &mut Staging,
        (first, chunk_bytes, count): (u64, u32, u32),
        data: Option<&Packing>,
        scratch: Allocation,
        stream: sys::CUstream,
        to: &mut HostMemory<u8>,
    ) -> Result<u32, DeviceError> {
        let each = if data.is_some() { packed::most_bytes(chunk_bytes) } else { chunk_bytes };
        // Streams without a place in the table are packed in the order of their chunks.
        let room = scratch.bytes.saturating_sub(CURSOR_BYTES + u64::from(each)) / 4;
        let in_table = data.map_or(0, |data| u64::from(data.streams).next_multiple_of(TABLE_ALIGN));
        let in_table = in_table.min(room / TABLE_ALIGN * TABLE_ALIGN);
        let head_bytes = CURSOR_BYTES + 4 * in_table;
        let buffer_bytes = scratch.bytes.saturating_sub(head_bytes).min(MAX_BUFFER_BYTES);
        // This number of chunks fits even if all are full.
        let safe = (buffer_bytes / u64::from(each)) as u32;
        if safe == 0 {
            return Err(DeviceError::Unsupported {
                problem: format!(
                    "chunks of {chunk_bytes} bytes do not fit into {buffer_bytes} bytes of scratch"
                ),
            });
        }
        // Limit so that the counter of packed bytes does not overflow.
        let most = count.min(u32::MAX / each);
        let planned_bytes = buffer_bytes / 8 * PLANNED_EIGHTHS;
        loop {
            let planned =
                planned_bytes.checked_div(self.each).map_or(most, |planned| planned.min(most.into()) as u32);
            let batch = planned.max(safe).min(most);
            let packed = self.pack(
                (first, chunk_bytes, batch),
                data,
                [scratch.address, head_bytes, buffer_bytes],
                stream,
            )?;
            // Rounded up, so that the next run takes fewer chunks if these were too many.
            self.each = packed.div_ceil(u64::from(batch.max(1)));
            if packed <= buffer_bytes {
                staging.append(stream, scratch.address + head_bytes, packed as usize, to)?;
                return Ok(batch);
            }
        }
    }

    /// Packs chunks into a buffer; returns the bytes of all used chunks. If they exceed it, some are missing.
    fn pack(
        &mut self,
        (mut first, mut chunk_bytes, mut count): (u64, u32, u32),
        data: Option<&Packing>,
        [buffer, head_bytes, bytes]: [u64; 3],
        stream: sys::CUstream,
    ) -> Result<u64, DeviceError> {
        let (mut cursor, table, mut target) = (buffer, buffer + CURSOR_BYTES, buffer + head_bytes);
        let mut capacity = bytes as u32;
        let mut data_track = data.map_or(0, |data| data.track);
        let mut arguments: [*mut c_void; 7] = [
            (&raw mut first).cast(),
            (&raw mut cursor).cast(),
            (&raw mut target).cast(),
            (&raw mut chunk_bytes).cast(),
            (&raw mut count).cast(),
            (&raw mut capacity).cast(),
            (&raw mut data_track).cast(),
        ];
        let blocks = count.div_ceil(BLOCK_WARPS);
        let mut packed = [0u32];
        // SAFETY: the caller provides the buffer. The arguments match the kernels' parameters in order and
        // size, and the kernels write at most `capacity` bytes.
        unsafe {
            result::memset_d8_async(buffer, 0, size_of::<u32>(), stream).called("cuMemsetD8Async")?;
            if let Some(data) = data {
                result::memset_d8_async(table, 0xff, (head_bytes - CURSOR_BYTES) as usize, stream)
                    .called("cuMemsetD8Async")?;
                let each = count.max(data.streams).div_ceil(data.blocks).clamp(LEAST_PACKED, MAX_TILE_CHUNKS);
                let job = PackJob {
                    chunks: first,
                    cursor,
                    target,
                    table,
                    chunk_bytes,
                    count,
                    each,
                    data_track,
                    capacity,
                    streams: ((head_bytes - CURSOR_BYTES) / 4) as u32,
                };
                let grids = [count.div_ceil(PACK_THREADS), count.max(data.streams).div_ceil(each)];
                for ((call, function), grid) in
                    [place_call(&job), pack_call(&job)].iter().zip(data.functions).zip(grids)
                {
                    let (grid, block) = ((grid, 1, 1), (PACK_THREADS, 1, 1));
                    result::launch_kernel(function, grid, block, 0, stream, &mut pointers(call))
                        .called_for("cuLaunchKernel", call.name())?;
                }
            }
            self.kernel.run([blocks, BLOCK_WARPS * 32], stream, &mut arguments, &mut packed, buffer)?;
        }
        Ok(packed[0].into())
    }
}
