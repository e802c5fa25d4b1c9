//! SIMT operations, with the same meaning on the GPU and on the simulator.
//!
//! Indices and sizes are in threads and blocks as CUDA counts them. Masks have bit *i* for lane *i*.

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

/// The thread's index in the whole grid along x: `blockIdx.x * blockDim.x + threadIdx.x`.
#[inline(always)]
pub fn global_thread_x() -> u32 {
    block_idx()[0].wrapping_mul(block_size()[0]).wrapping_add(thread_idx()[0])
}

/// Threads of the grid along x.
#[inline(always)]
pub fn grid_threads_x() -> u32 {
    grid_size()[0].wrapping_mul(block_size()[0])
}

/// Linear index of the thread in its block: x fastest, then y, then z.
#[inline(always)]
pub fn linear_thread() -> u32 {
    let (thread, size) = (thread_idx(), block_size());
    thread[0] + size[0] * (thread[1] + size[1] * thread[2])
}

/// Linear index of the block in its grid: x fastest, then y, then z. Grids of 2^32 blocks or more wrap; the
/// host refuses to trace them.
#[inline(always)]
pub fn linear_block() -> u32 {
    let (block, size) = (block_idx(), grid_size());
    block[0].wrapping_add(size[0].wrapping_mul(block[1].wrapping_add(size[1].wrapping_mul(block[2]))))
}

/// Threads of a block.
#[inline(always)]
pub fn block_threads() -> u32 {
    let size = block_size();
    size[0] * size[1] * size[2]
}

/// Index of the warp in its block.
#[inline(always)]
pub fn warp_in_block() -> u32 {
    linear_thread() / WARP_LANES
}

/// This thread's lane, 0..32, as its linear index in the block gives it.
#[inline(always)]
pub fn lane() -> u32 {
    linear_thread() % WARP_LANES
}

/// Whether this lane is the lowest of `mask`.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn is_leader(mask: u32) -> bool {
    let own = 1 << lane();
    mask & (own | (own - 1)) == own
}

/// Value of the lane `delta` below in the group `mask`, as `__shfl_up_sync`; lanes without one keep their
/// own.
///
/// # Safety
/// As of [`shuffle`].
#[inline(always)]
#[track_caller]
pub unsafe fn shuffle_up(mask: u32, value: u32, delta: u32) -> u32 {
    let lane = lane();
    // SAFETY: the caller's promise.
    unsafe { shuffle(mask, value, if lane >= delta { lane - delta } else { lane }) }
}

/// As [`shuffle_up`], by all lanes of the warp. On the GPU it is the instruction of its own.
///
/// # Safety
/// All lanes of the warp come to this call, and none has left the kernel.
#[inline(always)]
#[track_caller]
pub unsafe fn shuffle_up_all(value: u32, delta: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: the caller's promise.
    return unsafe { nvptx::shuffle_up_all(value, delta) };
    #[cfg(not(target_arch = "nvptx64"))]
    // SAFETY: the caller's promise.
    unsafe {
        shuffle_up(u32::MAX, value, delta)
    }
}

/// Value of the lane whose index differs by the bits of `lanes`, as `__shfl_xor_sync`.
///
/// # Safety
/// As of [`shuffle`].
#[inline(always)]
#[track_caller]
pub unsafe fn shuffle_xor(mask: u32, value: u32, lanes: u32) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { shuffle(mask, value, lane() ^ lanes) }
}
