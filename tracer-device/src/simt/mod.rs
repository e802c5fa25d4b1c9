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

/// Index of the warp in the launch: those of each block follow each other.
#[cfg(recording)]
#[inline(always)]
pub(crate) fn warp_in_launch() -> u32 {
    let warps_per_block = block_threads().div_ceil(WARP_LANES);
    linear_block().wrapping_mul(warps_per_block).wrapping_add(warp_in_block())
}

/// This thread's lane, 0..32, as its linear index in the block gives it.
#[inline(always)]
pub fn lane() -> u32 {
    linear_thread() % WARP_LANES
}

/// The lanes with which this warp started: all 32, or fewer in a block's last warp.
#[cfg(recording)]
#[inline(always)]
pub(crate) fn starting_lanes() -> u32 {
    let left = block_threads() - warp_in_block() * WARP_LANES;
    if left >= WARP_LANES { u32::MAX } else { (1 << left) - 1 }
}

/// Whether this lane is the lowest of `mask`. On the GPU it must be in it.
#[cfg(all(recording, any(not(target_arch = "nvptx64"), feature = "counted")))]
#[inline(always)]
pub(crate) fn is_leader(mask: u32) -> bool {
    #[cfg(target_arch = "nvptx64")]
    return mask & nvptx::lower_lanes() == 0;
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let own = 1 << lane();
        mask & (own | (own - 1)) == own
    }
}

/// The highest lane of `mask`, which has one.
#[cfg(recording)]
#[inline(always)]
pub(crate) fn highest(mask: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    return nvptx::highest_bit(mask);
    #[cfg(not(target_arch = "nvptx64"))]
    mask.ilog2()
}

/// Whether `lane` is this one. On the simulator one lane stands for all of its group.
#[cfg(recording)]
#[inline(always)]
pub(crate) fn is_own(lane: u32) -> bool {
    cfg!(not(target_arch = "nvptx64")) || lane == own_lane()
}

/// Whether this lane acts for `group`: its highest does. On the simulator it is whoever asks.
#[cfg(recording)]
#[inline(always)]
pub(crate) fn leads(group: u32) -> bool {
    is_own(highest(group))
}

/// Does something for this lane; on the simulator, where one lane stands for all of its group, for each of them.
#[cfg(recording)]
#[inline(always)]
pub(crate) fn for_own_lanes(group: u32, mut each: impl FnMut(u32)) {
    #[cfg(target_arch = "nvptx64")]
    {
        let _ = group;
        each(own_lane());
    }
    #[cfg(not(target_arch = "nvptx64"))]
    (0..WARP_LANES).filter(|lane| group >> lane & 1 != 0).for_each(&mut each);
}

/// This thread's lane, as the hardware says: the number of [`lane`], without the arithmetic.
#[cfg(recording)]
#[inline(always)]
pub(crate) fn own_lane() -> u32 {
    #[cfg(target_arch = "nvptx64")]
    return nvptx::lane_id();
    #[cfg(not(target_arch = "nvptx64"))]
    lane()
}

/// Whether all lanes that are here have this value.
#[cfg(all(recording, target_arch = "nvptx64", feature = "counted"))]
pub(crate) use nvptx::agree_with;

#[cfg(all(recording, target_arch = "nvptx64", not(feature = "counted")))]
pub(crate) use nvptx::lower_lanes;
#[cfg(all(recording, target_arch = "nvptx64"))]
pub(crate) use nvptx::{fence_block_strictly, is_any, value_of};

/// Whether the condition holds for any of the lanes that are here. On the simulator they ask one by one.
#[cfg(all(recording, not(target_arch = "nvptx64")))]
pub(crate) fn is_any(condition: bool) -> bool {
    condition
}

/// The value that the lane `source` has, which is here: on the simulator the one that asks.
#[cfg(all(recording, not(target_arch = "nvptx64")))]
pub(crate) fn value_of(_source: u32, value: u32) -> u32 {
    value
}

/// Those of the lanes that are here for which the condition holds. On the simulator they ask one by one: `lane`.
#[cfg(recording)]
#[inline(always)]
pub(crate) fn those(condition: bool, lane: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let _ = lane;
        nvptx::those(condition)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        u32::from(condition) << lane
    }
}

/// Whether the lanes of `group` run together now.
#[cfg(recording)]
#[inline(always)]
pub(crate) fn is_together(group: u32) -> bool {
    #[cfg(target_arch = "nvptx64")]
    return active_mask() == group;
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = group;
        true
    }
}

/// Waits for the lanes of `group` if they have come apart. (`bar.warp.sync` with a mask in a register costs a `MATCH` and a branch on
/// sm_90, and does not bring separated lanes together again.) Answers which lanes are together then; what is read with it is read after that.
#[cfg(all(recording, target_arch = "nvptx64", feature = "counted"))]
#[inline(always)]
pub(crate) fn settle(group: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let here = active_mask();
        if here == group {
            return here;
        }
        sync_warp(group);
        active_mask()
    }
    #[cfg(not(target_arch = "nvptx64"))]
    group
}

/// Waits for the lanes of `group`, and brings them together. On the simulator one lane stands for all.
#[cfg(recording)]
#[inline(always)]
pub(crate) fn sync_group(group: u32) {
    #[cfg(target_arch = "nvptx64")]
    sync_warp(group);
    #[cfg(not(target_arch = "nvptx64"))]
    let _ = group;
}

/// Orders this lane's memory accesses for its block.
#[cfg(recording)]
#[inline(always)]
pub(crate) fn fence_block() {
    #[cfg(target_arch = "nvptx64")]
    nvptx::fence_block();
}

/// The time, in units of which two events of one lane are more than one apart: 16 cycles of the multiprocessor's clock. On the simulator it is the
/// number of the event in its warp.
#[cfg(recording)]
#[inline(always)]
pub(crate) fn now(state: crate::space::StateMemory) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let _ = state;
        nvptx::clock_by_16()
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        use warptrace_format::Memory;
        let mut state = state;
        let time = state.get32(crate::state::CLOCK).wrapping_add(1);
        state.set32(crate::state::CLOCK, time);
        time
    }
}

/// Value of the lane `delta` below in the group `mask`, as `__shfl_up_sync`; lanes without one keep their own.
#[inline(always)]
#[track_caller]
pub fn shuffle_up(mask: u32, value: u32, delta: u32) -> u32 {
    let lane = lane();
    shuffle(mask, value, if lane >= delta { lane - delta } else { lane })
}

/// As [`shuffle_up`], by all lanes of the warp. On the GPU it is the instruction of its own.
#[cfg(any(not(target_arch = "nvptx64"), feature = "codec-predict"))]
#[inline(always)]
#[track_caller]
pub(crate) fn shuffle_up_all(value: u32, delta: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    return nvptx::shuffle_up_all(value, delta);
    #[cfg(not(target_arch = "nvptx64"))]
    shuffle_up(u32::MAX, value, delta)
}

/// Value of the lane whose index differs by the bits of `lanes`, as `__shfl_xor_sync`.
#[inline(always)]
#[track_caller]
pub fn shuffle_xor(mask: u32, value: u32, lanes: u32) -> u32 {
    shuffle(mask, value, lane() ^ lanes)
}
