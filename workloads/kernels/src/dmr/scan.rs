//! Places by counting: each warp learns how many there are before it.

use warptrace_device::{atomic, simt};
use warptrace_macros::kernels;

use super::layout::DmrWork;

/// Which of the two sets of block sums a launch uses.
#[derive(Clone, Copy)]
pub(super) enum BlockSums {
    /// Winners (and bad triangles before the first round).
    Winners = 0,
    /// Entries for the worklist.
    Entries = 1,
}

/// Place of this block in a set of sums.
#[inline(always)]
fn place(sums: BlockSums, block: u32) -> u64 {
    u64::from(simt::grid_size()[0]) * sums as u64 + u64::from(block)
}

#[kernels(device = warptrace_device, only_marked, first_id = 230, automatic = 230)]
mod kernels {
    use super::*;

    /// Clears the block's sums, for the [`tally`] of later launches of the same shape.
    ///
    /// # Safety
    /// `work` is valid and has two places for each block of the launch.
    #[inline(always)]
    pub(in crate::dmr) unsafe fn clear(work: &DmrWork) {
        if simt::linear_thread() == 0 {
            trace!("CLEAR");
            let block = simt::linear_block();
            // SAFETY: the caller's promise; the places are this block's own.
            unsafe {
                work.block_counts.set(place(BlockSums::Winners, block), 0);
                work.block_counts.set(place(BlockSums::Entries, block), 0);
            }
        } else {
            trace!("CLEAR_NOT");
        }
    }

    /// Notes the warp's count for [`before`] of a later launch, and adds it to counter `which`.
    ///
    /// All lanes of the warp call it, with the same `count`.
    ///
    /// # Safety
    /// `work` is valid, has a place for each warp and two for each block of the launch; its sums are cleared.
    #[inline(always)]
    pub(in crate::dmr) unsafe fn tally(work: &DmrWork, sums: BlockSums, count: u32, which: u64) {
        if simt::lane() == 0 {
            trace!("TALLY");
            let block = simt::linear_block();
            let warps = simt::block_threads() / simt::WARP_LANES;
            let warp = u64::from(block) * u64::from(warps) + u64::from(simt::warp_in_block());
            // SAFETY: the caller's promise; the warp's place is its own, the sums are atomics.
            unsafe {
                work.warp_counts.set(warp, count);
                atomic::add_u32(work.block_counts.at(place(sums, block)), count);
                atomic::add_u32(work.counters.at(which), count);
            }
        } else {
            trace!("TALLY_NOT");
        }
    }

    /// The sum of the counts of all warps before this one, in every lane.
    ///
    /// All lanes of the warp call it together, in a later launch with the same grid and block as the launch
    /// that called [`tally`].
    ///
    /// # Safety
    /// As for [`tally`].
    #[inline(always)]
    pub(in crate::dmr) unsafe fn before(work: &DmrWork, sums: BlockSums) -> u32 {
        let block = simt::linear_block();
        let warps = simt::block_threads() / simt::WARP_LANES;
        let mut total = 0u32;
        let mut first = 0;
        let mut steps = trace_loop!("BLOCK_STEP");
        while first < block {
            steps.tick();
            let other = first + simt::lane();
            // A place that exists for every lane, so that there is no branch.
            // SAFETY: the caller's promise.
            let count = unsafe { work.block_counts.get(place(sums, other.min(block))) };
            total = total.wrapping_add(if other < block { count } else { 0 });
            first += simt::WARP_LANES;
        }
        drop(steps);
        let mut distance = 1;
        let mut steps = trace_loop!("LANE_STEP");
        while distance < simt::WARP_LANES {
            steps.tick();
            // SAFETY: all lanes of the warp take the same steps.
            total = total.wrapping_add(unsafe { simt::shuffle_xor(u32::MAX, total, distance) });
            distance *= 2;
        }
        drop(steps);
        let mut warp = 0;
        let mut steps = trace_loop!("WARP_STEP");
        while warp < simt::warp_in_block() {
            steps.tick();
            let warp_place = u64::from(block) * u64::from(warps) + u64::from(warp);
            // SAFETY: the caller's promise.
            total = total.wrapping_add(unsafe { work.warp_counts.get(warp_place) });
            warp += 1;
        }
        drop(steps);
        total
    }
}

pub(super) use kernels::*;

/// The sum of `count` over the lanes below this one, and over all lanes.
///
/// # Safety
/// All lanes of the warp call it together.
#[inline(always)]
pub(super) unsafe fn over_lanes(count: u32) -> (u32, u32) {
    let lane = simt::lane();
    let mut sum = count;
    // SAFETY: the caller's promise.
    unsafe {
        // Unrolled: five steps of a sum over a warp (Hillis and Steele).
        let below = simt::shuffle_up(u32::MAX, sum, 1);
        sum = sum.wrapping_add(if lane >= 1 { below } else { 0 });
        let below = simt::shuffle_up(u32::MAX, sum, 2);
        sum = sum.wrapping_add(if lane >= 2 { below } else { 0 });
        let below = simt::shuffle_up(u32::MAX, sum, 4);
        sum = sum.wrapping_add(if lane >= 4 { below } else { 0 });
        let below = simt::shuffle_up(u32::MAX, sum, 8);
        sum = sum.wrapping_add(if lane >= 8 { below } else { 0 });
        let below = simt::shuffle_up(u32::MAX, sum, 16);
        sum = sum.wrapping_add(if lane >= 16 { below } else { 0 });
        (sum.wrapping_sub(count), simt::shuffle(u32::MAX, sum, simt::WARP_LANES - 1))
    }
}
