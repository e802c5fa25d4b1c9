//! The operations of [`super`] on the simulator.

use core::panic::Location;

use super::host::{Site, WarpOp, with_lane};

/// Index of the thread in its block.
#[inline]
pub fn thread_idx() -> [u32; 3] {
    with_lane(|lane| lane.thread_index())
}

/// Index of the block in its grid.
#[inline]
pub fn block_idx() -> [u32; 3] {
    with_lane(|lane| lane.block_index())
}

/// Threads of a block along x, y and z.
#[inline]
pub fn block_size() -> [u32; 3] {
    with_lane(|lane| lane.block_size())
}

/// Blocks of the grid along x, y and z.
#[inline]
pub fn grid_size() -> [u32; 3] {
    with_lane(|lane| lane.grid_size())
}

/// The lanes that execute this together.
#[inline]
#[track_caller]
pub fn active_mask() -> u32 {
    let site = Location::caller();
    with_lane(|lane| lane.warp_op(WarpOp::Converge, site))
}

/// The lanes that come to a location of `#[warptrace::kernels]` together.
#[inline]
pub(crate) fn located(location: u16, site: Site) -> u32 {
    with_lane(|lane| lane.warp_op(WarpOp::Located { location }, site))
}

/// Waits for the lanes that are still in the body of a loop which ends at `site`.
#[inline]
pub(crate) fn join(site: Site) {
    with_lane(|lane| lane.warp_op(WarpOp::Join, site));
}

/// The lanes that have left a loop together, whose trace point is at `site`.
#[inline]
pub(crate) fn rejoin(site: Site) -> u32 {
    with_lane(|lane| lane.warp_op(WarpOp::Rejoin, site))
}

/// `__syncwarp(mask)`: waits for the lanes of `mask` and orders their memory accesses.
///
/// # Safety
/// This lane is one of `mask`, and every lane of `mask` that has not left the kernel comes to this call with
/// this mask. (Else the behaviour is undefined on the GPU; the simulator ends the launch with an error.)
#[inline]
#[track_caller]
pub unsafe fn sync_warp(mask: u32) {
    let site = Location::caller();
    with_lane(|lane| lane.warp_op(WarpOp::SyncWarp { mask }, site));
}

/// `__syncthreads()`: waits for all threads of the block.
///
/// # Safety
/// Every thread of the block that has not left the kernel comes to this call. (Else the behaviour is
/// undefined on the GPU; the simulator ends the launch with an error.)
#[inline]
#[track_caller]
pub unsafe fn sync_threads() {
    let site = Location::caller();
    with_lane(|lane| lane.warp_op(WarpOp::SyncThreads, site));
}

/// `__ballot_sync(mask, predicate)`: the lanes of `mask` whose predicate holds.
///
/// # Safety
/// This lane is one of `mask`, and every lane of `mask` that has not left the kernel comes to this call with
/// this mask. (Else the behaviour is undefined on the GPU; the simulator ends the launch with an error.)
#[inline]
#[track_caller]
pub unsafe fn ballot(mask: u32, predicate: bool) -> u32 {
    let site = Location::caller();
    with_lane(|lane| lane.warp_op(WarpOp::Ballot { mask, predicate }, site))
}

/// `__shfl_sync(mask, value, source)`: the value of lane `source` mod 32, which must be in `mask`.
///
/// # Safety
/// This lane is one of `mask`, and every lane of `mask` that has not left the kernel comes to this call with
/// this mask. (Else the behaviour is undefined on the GPU; the simulator ends the launch with an error.)
#[inline]
#[track_caller]
pub unsafe fn shuffle(mask: u32, value: u32, source: u32) -> u32 {
    let site = Location::caller();
    with_lane(|lane| lane.warp_op(WarpOp::Shuffle { mask, value, source: source % 32 }, site))
}

/// `__match_any_sync(mask, value)`: the lanes of `mask` that brought the same value.
///
/// # Safety
/// This lane is one of `mask`, and every lane of `mask` that has not left the kernel comes to this call with
/// this mask. (Else the behaviour is undefined on the GPU; the simulator ends the launch with an error.)
#[inline]
#[track_caller]
pub unsafe fn match_any(mask: u32, value: u32) -> u32 {
    let site = Location::caller();
    with_lane(|lane| lane.warp_op(WarpOp::MatchAny { mask, value }, site))
}

/// Says that this lane waits for memory that another thread will write. Free on the GPU; on the simulator it
/// lets the others run, so a loop that waits must call it.
#[inline]
#[track_caller]
pub fn spin_hint() {
    let site = Location::caller();
    with_lane(|lane| lane.warp_op(WarpOp::Yield, site));
}
