//! The operations of [`super`] on the GPU.
//!
//! Operations that depend on which lanes run together go through LLVM's intrinsics, which LLVM knows to be
//! convergent; inline assembly it would feel free to duplicate or to move over a branch.

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

/// Index of the thread in its block.
#[inline(always)]
pub fn thread_idx() -> [u32; 3] {
    // SAFETY: reads special registers.
    unsafe { [nvptx::_thread_idx_x() as u32, nvptx::_thread_idx_y() as u32, nvptx::_thread_idx_z() as u32] }
}

/// Index of the block in its grid.
#[inline(always)]
pub fn block_idx() -> [u32; 3] {
    // SAFETY: reads special registers.
    unsafe { [nvptx::_block_idx_x() as u32, nvptx::_block_idx_y() as u32, nvptx::_block_idx_z() as u32] }
}

/// Threads of a block along x, y and z.
#[inline(always)]
pub fn block_size() -> [u32; 3] {
    // SAFETY: reads special registers.
    unsafe { [nvptx::_block_dim_x() as u32, nvptx::_block_dim_y() as u32, nvptx::_block_dim_z() as u32] }
}

/// Blocks of the grid along x, y and z.
#[inline(always)]
pub fn grid_size() -> [u32; 3] {
    // SAFETY: reads special registers.
    unsafe { [nvptx::_grid_dim_x() as u32, nvptx::_grid_dim_y() as u32, nvptx::_grid_dim_z() as u32] }
}

/// The lanes that execute this together.
#[inline(always)]
pub fn active_mask() -> u32 {
    // SAFETY: reads which lanes are converged.
    unsafe { llvm_activemask() }
}

/// `__syncwarp(mask)`: waits for the lanes of `mask` and orders their memory accesses.
///
/// # Safety
/// This lane is one of `mask`, and every lane of `mask` that has not left the kernel comes to this call with
/// this mask. (Else the behaviour is undefined on the GPU; the simulator ends the launch with an error.)
#[inline(always)]
pub unsafe fn sync_warp(mask: u32) {
    // SAFETY: the caller's promise.
    unsafe { llvm_bar_warp_sync(mask) }
}

/// `__syncthreads()`: waits for all threads of the block.
///
/// # Safety
/// Every thread of the block that has not left the kernel comes to this call. (Else the behaviour is
/// undefined on the GPU; the simulator ends the launch with an error.)
#[inline(always)]
pub unsafe fn sync_threads() {
    // SAFETY: the caller's promise.
    unsafe { nvptx::_syncthreads() }
}

/// `__ballot_sync(mask, predicate)`: the lanes of `mask` whose predicate holds.
///
/// # Safety
/// This lane is one of `mask`, and every lane of `mask` that has not left the kernel comes to this call with
/// this mask. (Else the behaviour is undefined on the GPU; the simulator ends the launch with an error.)
#[inline(always)]
pub unsafe fn ballot(mask: u32, predicate: bool) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { llvm_vote_ballot_sync(mask, predicate) }
}

/// `__shfl_sync(mask, value, source)`: the value of lane `source` mod 32, which must be in `mask`.
///
/// # Safety
/// This lane is one of `mask`, and every lane of `mask` that has not left the kernel comes to this call with
/// this mask. (Else the behaviour is undefined on the GPU; the simulator ends the launch with an error.)
#[inline(always)]
pub unsafe fn shuffle(mask: u32, value: u32, source: u32) -> u32 {
    // SAFETY: the caller's promise; 31 keeps the whole warp as one segment.
    unsafe { llvm_shfl_sync_idx(mask, value, source, 31) }
}

/// `__shfl_up_sync(0xffffffff, value, delta)`.
///
/// # Safety
/// All lanes of the warp come to this call, and none has left the kernel.
#[inline(always)]
pub(crate) unsafe fn shuffle_up_all(value: u32, delta: u32) -> u32 {
    // SAFETY: the caller's promise; 0 keeps it as one segment.
    unsafe { llvm_shfl_sync_up(u32::MAX, value, delta, 0) }
}

/// `__match_any_sync(mask, value)`: the lanes of `mask` that brought the same value.
///
/// # Safety
/// This lane is one of `mask`, and every lane of `mask` that has not left the kernel comes to this call with
/// this mask. (Else the behaviour is undefined on the GPU; the simulator ends the launch with an error.)
#[inline(always)]
pub unsafe fn match_any(mask: u32, value: u32) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { llvm_match_any_sync(mask, value) }
}

/// Says that this lane waits for memory that another thread will write, perhaps one of its own warp: sleeps
/// for a moment, so that other groups of the warp get their turn.
#[inline(always)]
pub fn spin_hint() {
    // SAFETY: nothing but time passes.
    unsafe { core::arch::asm!("nanosleep.u32 50;", options(nomem, nostack, preserves_flags)) };
}
