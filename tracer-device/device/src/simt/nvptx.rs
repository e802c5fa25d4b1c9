//! The operations of [`super`] on the GPU. Operations that depend on convergence use LLVM's intrinsics, which
//! LLVM treats as convergent. LLVM could duplicate inline assembly or move it across a branch.

use core::arch::nvptx;

unsafe extern "C" {
    #[link_name = "llvm.nvvm.activemask"]
    fn llvm_activemask() -> u32;
    #[link_name = "llvm.nvvm.bar.warp.sync"]
    fn llvm_bar_warp_sync(mask: u32);
    #[link_name = "llvm.nvvm.vote.ballot.sync"]
    fn llvm_vote_ballot_sync(mask: u32, predicate: bool) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.idx.i32"]
    fn llvm_shfl_sync_idx(mask: u32, value: u32, source: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.up.i32"]
    fn llvm_shfl_sync_up(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.match.any.sync.i32"]
    fn llvm_match_any_sync(mask: u32, value: u32) -> u32;
}

/// Returns the index of the thread in its block.
#[inline(always)]
pub fn thread_idx() -> [u32; 3] {
    // SAFETY: reads special registers.
    unsafe { [nvptx::_thread_idx_x() as u32, nvptx::_thread_idx_y() as u32, nvptx::_thread_idx_z() as u32] }
}

/// Returns the index of the block in its grid.
#[inline(always)]
pub fn block_idx() -> [u32; 3] {
    // SAFETY: reads special registers.
    unsafe { [nvptx::_block_idx_x() as u32, nvptx::_block_idx_y() as u32, nvptx::_block_idx_z() as u32] }
}

/// Returns the threads of a block along x, y and z.
#[inline(always)]
pub fn block_size() -> [u32; 3] {
    // SAFETY: reads special registers.
    unsafe { [nvptx::_block_dim_x() as u32, nvptx::_block_dim_y() as u32, nvptx::_block_dim_z() as u32] }
}

/// Returns the blocks of the grid along x, y and z.
#[inline(always)]
pub fn grid_size() -> [u32; 3] {
    // SAFETY: reads special registers.
    unsafe { [nvptx::_grid_dim_x() as u32, nvptx::_grid_dim_y() as u32, nvptx::_grid_dim_z() as u32] }
}

/// Returns the mask of lanes that execute this together.
#[inline(always)]
pub fn active_mask() -> u32 {
    // SAFETY: reads the mask of converged lanes.
    unsafe { llvm_activemask() }
}

/// Waits for the lanes of `mask` and orders their memory accesses, like `__syncwarp(mask)`.
///
/// # Safety
/// This lane is in `mask`, and every lane of `mask` still in the kernel reaches this call with this mask.
#[inline(always)]
pub unsafe fn sync_warp(mask: u32) {
    // SAFETY: guaranteed by the caller.
    unsafe { llvm_bar_warp_sync(mask) }
}

/// Waits for all threads of the block, like `__syncthreads()`.
///
/// # Safety
/// Every thread of the block that has not left the kernel reaches this call.
#[inline(always)]
pub unsafe fn sync_threads() {
    // SAFETY: guaranteed by the caller.
    unsafe { nvptx::_syncthreads() }
}

/// Returns the lanes of `mask` whose predicate holds, like `__ballot_sync(mask, predicate)`.
///
/// # Safety
/// As for [`sync_warp`].
#[inline(always)]
pub unsafe fn ballot(mask: u32, predicate: bool) -> u32 {
    // SAFETY: guaranteed by the caller.
    unsafe { llvm_vote_ballot_sync(mask, predicate) }
}

/// Returns the value of lane `source` mod 32, like `__shfl_sync`. The source lane must be in `mask`.
///
/// # Safety
/// As for [`sync_warp`].
#[inline(always)]
pub unsafe fn shuffle(mask: u32, value: u32, source: u32) -> u32 {
    // SAFETY: guaranteed by the caller. The clamp 31 makes the whole warp one segment.
    unsafe { llvm_shfl_sync_idx(mask, value, source, 31) }
}

/// Like `__shfl_up_sync(0xffffffff, value, delta)`.
///
/// # Safety
/// All lanes of the warp are still in the kernel and reach this call.
#[inline(always)]
pub(crate) unsafe fn shuffle_up_all(value: u32, delta: u32) -> u32 {
    // SAFETY: guaranteed by the caller. The clamp 0 makes the whole warp one segment.
    unsafe { llvm_shfl_sync_up(u32::MAX, value, delta, 0) }
}

/// Returns the lanes of `mask` with the same value, like `__match_any_sync(mask, value)`.
///
/// # Safety
/// As for [`sync_warp`].
#[inline(always)]
pub unsafe fn match_any(mask: u32, value: u32) -> u32 {
    // SAFETY: guaranteed by the caller.
    unsafe { llvm_match_any_sync(mask, value) }
}

/// Call this in loops that wait for another thread's write. Sleeps briefly, so that other lanes can run.
#[inline(always)]
pub fn spin_hint() {
    // SAFETY: only delays the thread.
    unsafe { core::arch::asm!("nanosleep.u32 50;", options(nomem, nostack, preserves_flags)) };
}
