//! SIMT operations with the same semantics on the GPU and on the simulator. Indices and sizes count threads
//! and blocks as in CUDA. In masks, bit *i* is lane *i*.

#[cfg(not(target_arch = "nvptx64"))]
pub mod host;
#[cfg(target_arch = "nvptx64")]
pub(crate) mod nvptx;

#[cfg(not(target_arch = "nvptx64"))]
mod host_ops;
#[cfg(not(target_arch = "nvptx64"))]
use host_ops as ops;
#[cfg(target_arch = "nvptx64")]
use nvptx as ops;

pub use ops::{
    active_mask, ballot, block_idx, block_size, grid_size, match_any, shuffle, spin_hint, sync_threads,
    sync_warp, thread_idx,
};
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use ops::{join, located, rejoin};

/// Lanes of a warp.
pub const WARP_LANES: u32 = 32;

/// Returns the thread's index in the grid along x: `blockIdx.x * blockDim.x + threadIdx.x`.
#[inline(always)]
pub fn global_thread_x() -> u32 {
    block_idx()[0].wrapping_mul(block_size()[0]).wrapping_add(thread_idx()[0])
}

/// Returns the number of threads in the grid along x.
#[inline(always)]
pub fn grid_threads_x() -> u32 {
    grid_size()[0].wrapping_mul(block_size()[0])
}

/// Returns the linear index of the thread in its block. It counts x first, then y, then z.
#[inline(always)]
pub fn linear_thread() -> u32 {
    let (thread, size) = (thread_idx(), block_size());
    thread[0] + size[0] * (thread[1] + size[1] * thread[2])
}

/// Returns the linear index of the block in its grid. It counts x first, then y, then z. Grids of 2^32 blocks
/// or more wrap; the host refuses to trace them.
#[inline(always)]
pub fn linear_block() -> u32 {
    let (block, size) = (block_idx(), grid_size());
    block[0].wrapping_add(size[0].wrapping_mul(block[1].wrapping_add(size[1].wrapping_mul(block[2]))))
}

/// Returns the number of threads in a block.
#[inline(always)]
pub fn block_threads() -> u32 {
    let size = block_size();
    size[0] * size[1] * size[2]
}

/// Returns the index of the warp in its block.
#[inline(always)]
pub fn warp_in_block() -> u32 {
    linear_thread() / WARP_LANES
}

/// Returns this thread's lane, 0..32, from its linear index in the block.
#[inline(always)]
pub fn lane() -> u32 {
    linear_thread() % WARP_LANES
}

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn is_leader(mask: u32) -> bool {
    let own = 1 << lane();
    mask & (own | (own - 1)) == own
}

/// Returns the value of the lane `delta` below, or this lane's in the lowest `delta`, like `__shfl_up_sync`.
///
/// # Safety
/// As for [`shuffle`].
#[inline(always)]
#[track_caller]
pub unsafe fn shuffle_up(mask: u32, value: u32, delta: u32) -> u32 {
    let lane = lane();
    // SAFETY: guaranteed by the caller.
    unsafe { shuffle(mask, value, if lane >= delta { lane - delta } else { lane }) }
}

/// Like [`shuffle_up`], for all lanes of the warp. A single instruction on the GPU.
///
/// # Safety
/// All lanes of the warp are still in the kernel and reach this call.
#[inline(always)]
#[track_caller]
pub unsafe fn shuffle_up_all(value: u32, delta: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: guaranteed by the caller.
    return unsafe { nvptx::shuffle_up_all(value, delta) };
    #[cfg(not(target_arch = "nvptx64"))]
    // SAFETY: guaranteed by the caller.
    unsafe {
        shuffle_up(u32::MAX, value, delta)
    }
}

/// Returns the value of the lane whose index is this lane's, XOR `lanes`, like `__shfl_xor_sync`.
///
/// # Safety
/// As for [`shuffle`].
#[inline(always)]
#[track_caller]
pub unsafe fn shuffle_xor(mask: u32, value: u32, lanes: u32) -> u32 {
    // SAFETY: guaranteed by the caller.
    unsafe { shuffle(mask, value, lane() ^ lanes) }
}
