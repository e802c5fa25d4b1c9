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
    #[cfg(feature = "codec-predict")]
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
#[inline(always)]
pub fn sync_warp(mask: u32) {
    // SAFETY: the caller names a mask of lanes that all come here; a wrong one hangs but breaks no memory.
    unsafe { llvm_bar_warp_sync(mask) }
}

/// `__syncthreads()`: waits for all threads of the block.
#[inline(always)]
pub fn sync_threads() {
    // SAFETY: a barrier touches no memory.
    unsafe { nvptx::_syncthreads() }
}

/// `__ballot_sync(mask, predicate)`: the lanes of `mask` whose predicate holds.
#[inline(always)]
pub fn ballot(mask: u32, predicate: bool) -> u32 {
    // SAFETY: exchanges registers between the lanes of `mask`.
    unsafe { llvm_vote_ballot_sync(mask, predicate) }
}

/// `__shfl_sync(mask, value, source)`: the value of lane `source` mod 32, which must be in `mask`.
#[inline(always)]
pub fn shuffle(mask: u32, value: u32, source: u32) -> u32 {
    // SAFETY: exchanges registers between the lanes of `mask`; 31 keeps the whole warp as one segment.
    unsafe { llvm_shfl_sync_idx(mask, value, source, 31) }
}

/// `__shfl_up_sync(0xffffffff, value, delta)`.
#[cfg(feature = "codec-predict")]
#[inline(always)]
pub(crate) fn shuffle_up_all(value: u32, delta: u32) -> u32 {
    // SAFETY: exchanges registers between the lanes of the warp; 0 keeps it as one segment.
    unsafe { llvm_shfl_sync_up(u32::MAX, value, delta, 0) }
}

/// `__match_any_sync(mask, value)`: the lanes of `mask` that brought the same value.
#[inline(always)]
pub fn match_any(mask: u32, value: u32) -> u32 {
    // SAFETY: exchanges registers between the lanes of `mask`.
    unsafe { llvm_match_any_sync(mask, value) }
}

/// Says that this lane waits for memory that another thread will write, perhaps one of its own warp: sleeps for a moment, so that
/// other groups of the warp get their turn.
#[inline(always)]
pub fn spin_hint() {
    // SAFETY: nothing but time passes.
    unsafe { core::arch::asm!("nanosleep.u32 50;", options(nomem, nostack, preserves_flags)) };
}

/// The multiprocessor's clock, in units of 16 cycles.
#[cfg(recording)]
#[inline(always)]
pub(crate) fn clock_by_16() -> u32 {
    let clock: u64;
    // SAFETY: reads a special register; each time anew, and not before what comes before.
    unsafe { core::arch::asm!("mov.u64 {}, %clock64;", out(reg64) clock, options(nostack, preserves_flags)) };
    (clock >> 4) as u32
}

/// `__threadfence_block()`.
#[cfg(recording)]
#[inline(always)]
pub(crate) fn fence_block() {
    // SAFETY: a fence touches no memory.
    unsafe { core::arch::asm!("fence.acq_rel.cta;", options(nostack, preserves_flags)) };
}

/// Whether all lanes that are here have this value, and that of the lane `source`, which is here.
///
/// Without naming who is here, so that ptxas need not find out whether they are (see `space`). For lanes that have been asked for their mask, with no
/// branch since.
#[cfg(all(recording, feature = "counted"))]
#[inline(always)]
pub(crate) fn agree_with(value: u32, source: u32) -> (bool, u32) {
    let (theirs, agree): (u32, u32);
    // SAFETY: exchanges registers between lanes that are here.
    unsafe {
        core::arch::asm!("{{", ".reg .pred p;", "shfl.idx.b32 {theirs}, {value}, {source}, 31;",
            "setp.eq.u32 p, {theirs}, {value};", "vote.all.pred p, p;", "selp.u32 {agree}, 1, 0, p;", "}}",
            theirs = out(reg32) theirs, agree = out(reg32) agree, value = in(reg32) value, source = in(reg32) source,
            options(nostack, preserves_flags));
    }
    (agree != 0, theirs)
}

/// Whether the condition holds for any of the lanes that are here: an answer of which ptxas knows that it is the same for all, so that they stay together
/// at a branch on it. Without naming them, as [`agree_with`].
#[cfg(recording)]
#[inline(always)]
pub(crate) fn is_any(condition: bool) -> bool {
    let any: u32;
    // SAFETY: exchanges predicates between lanes that are here.
    unsafe {
        core::arch::asm!("{{", ".reg .pred p;", "setp.ne.u32 p, {condition}, 0;", "vote.any.pred p, p;",
            "selp.u32 {any}, 1, 0, p;", "}}", any = out(reg32) any, condition = in(reg32) condition as u32,
            options(nostack, preserves_flags));
    }
    any != 0
}

/// Those of the lanes that are here for which the condition holds.
#[cfg(recording)]
#[inline(always)]
pub(crate) fn those(condition: bool) -> u32 {
    let lanes: u32;
    // SAFETY: exchanges predicates between lanes that are here.
    unsafe {
        core::arch::asm!("{{", ".reg .pred p;", "setp.ne.u32 p, {condition}, 0;", "vote.ballot.b32 {lanes}, p;", "}}",
            lanes = out(reg32) lanes, condition = in(reg32) condition as u32, options(nostack, preserves_flags));
    }
    lanes
}

/// The value that the lane `source` has, which is here.
#[cfg(recording)]
#[inline(always)]
pub(crate) fn value_of(source: u32, value: u32) -> u32 {
    let theirs: u32;
    // SAFETY: exchanges registers between lanes that are here.
    unsafe {
        core::arch::asm!("shfl.idx.b32 {}, {}, {}, 31;", out(reg32) theirs, in(reg32) value, in(reg32) source,
            options(nostack, preserves_flags));
    }
    theirs
}

/// A fence that orders this lane's stores before its loads, for its block.
#[cfg(recording)]
#[inline(always)]
pub(crate) fn fence_block_strictly() {
    // SAFETY: a fence touches no memory.
    unsafe { core::arch::asm!("fence.sc.cta;", options(nostack, preserves_flags)) };
}

/// The hardware's number of this lane.
#[cfg(recording)]
#[inline(always)]
pub(crate) fn lane_id() -> u32 {
    let lane: u32;
    // SAFETY: reads a special register.
    unsafe {
        core::arch::asm!("mov.u32 {}, %laneid;", out(reg32) lane, options(pure, nomem, nostack, preserves_flags))
    };
    lane
}

/// The lanes below this one.
#[cfg(recording)]
#[inline(always)]
pub(crate) fn lower_lanes() -> u32 {
    let lanes: u32;
    // SAFETY: reads a special register.
    unsafe {
        core::arch::asm!("mov.u32 {}, %lanemask_lt;", out(reg32) lanes, options(pure, nomem, nostack, preserves_flags));
    }
    lanes
}

/// Number of the highest bit that is 1; all ones if none is.
#[cfg(recording)]
#[inline(always)]
pub(crate) fn highest_bit(word: u32) -> u32 {
    let bit: u32;
    // SAFETY: arithmetic.
    unsafe {
        core::arch::asm!("bfind.u32 {}, {};", out(reg32) bit, in(reg32) word,
            options(pure, nomem, nostack, preserves_flags));
    }
    bit
}
