//! The operations of [`super`] on the simulator.

use core::panic::Location;

use super::host::{Site, WarpOp, with_lane};

/// Returns the index of the thread in its block.
#[inline]
pub fn thread_idx() -> [u32; 3] {
    with_lane(|lane| lane.thread_index())
}

/// Returns the index of the block in its grid.
#[inline]
pub fn block_idx() -> [u32; 3] {
    with_lane(|lane| lane.block_index())
}

/// Returns the threads of a block along x, y and z.
#[inline]
pub fn block_size() -> [u32; 3] {
    with_lane(|lane| lane.block_size())
}

/// Returns the blocks of the grid along x, y and z.
#[inline]
pub fn grid_size() -> [u32; 3] {
    with_lane(|lane| lane.grid_size())
}

/// Returns the mask of lanes that execute this together.
#[inline]
#[track_caller]
pub fn active_mask() -> u32 {
    let site = Location::caller();
    with_lane(|lane| lane.warp_op(WarpOp::Converge, site))
}

/// Returns the mask of lanes that reach a location of `#[warptrace::kernels]` together.
#[inline]
pub(crate) fn located(location: u16, site: Site) -> u32 {
    with_lane(|lane| lane.warp_op(WarpOp::Located { location }, site))
}

/// Waits for lanes that are still in the loop body that ends at `site`.
#[inline]
pub(crate) fn join(site: Site) {
    with_lane(|lane| lane.warp_op(WarpOp::Join, site));
}

/// Returns the mask of lanes that have left a loop together. `site` is its trace point.
#[inline]
pub(crate) fn rejoin(site: Site) -> u32 {
    with_lane(|lane| lane.warp_op(WarpOp::Rejoin, site))
}

/// Waits for the lanes of `mask` and orders their memory accesses, like `__syncwarp(mask)`.
///
/// # Safety
/// This lane is in `mask`, and every lane of `mask` that has not left the kernel reaches this call with this
/// mask. Otherwise the behavior is undefined on the GPU, and the simulator stops the launch with an error.
#[inline]
#[track_caller]
pub unsafe fn sync_warp(mask: u32) {
    let site = Location::caller();
    with_lane(|lane| lane.warp_op(WarpOp::SyncWarp { mask }, site));
}

/// Waits for all threads of the block, like `__syncthreads()`.
///
/// # Safety
/// Every thread of the block that has not left the kernel reaches this call. Otherwise the behavior is
/// undefined on the GPU, and the simulator stops the launch with an error.
#[inline]
#[track_caller]
pub unsafe fn sync_threads() {
    let site = Location::caller();
    with_lane(|lane| lane.warp_op(WarpOp::SyncThreads, site));
}

/// Returns the lanes of `mask` whose predicate holds, like `__ballot_sync(mask, predicate)`.
///
/// # Safety
/// As for [`sync_warp`].
#[inline]
#[track_caller]
pub unsafe fn ballot(mask: u32, predicate: bool) -> u32 {
    let site = Location::caller();
    with_lane(|lane| lane.warp_op(WarpOp::Ballot { mask, predicate }, site))
}

/// Returns the value of lane `source` mod 32, like `__shfl_sync`. The source lane must be in `mask`.
///
/// # Safety
/// As for [`sync_warp`].
#[inline]
#[track_caller]
pub unsafe fn shuffle(mask: u32, value: u32, source: u32) -> u32 {
    let site = Location::caller();
    with_lane(|lane| lane.warp_op(WarpOp::Shuffle { mask, value, source: source % 32 }, site))
}

/// Returns the lanes of `mask` with the same value, like `__match_any_sync(mask, value)`.
///
/// # Safety
/// As for [`sync_warp`].
#[inline]
#[track_caller]
pub unsafe fn match_any(mask: u32, value: u32) -> u32 {
    let site = Location::caller();
    with_lane(|lane| lane.warp_op(WarpOp::MatchAny { mask, value }, site))
}

/// Call this in loops that wait for memory written by another thread. A short sleep on the GPU. On the
/// simulator, it lets other lanes run, so such a loop must call it.
#[inline]
#[track_caller]
pub fn spin_hint() {
    let site = Location::caller();
    with_lane(|lane| lane.warp_op(WarpOp::Yield, site));
}
