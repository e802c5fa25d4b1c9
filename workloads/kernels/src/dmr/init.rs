//! Before the first round: find the bad triangles and put them on the worklist.

use warptrace_device::simt;
use warptrace_macros::kernels;

use super::geometry::classify;
use super::layout::{
    ALIVE, BAD, DmrMesh, DmrRound, DmrWork, QUEUED, SEGMENT_BITS, counter, unpack, unpack_point,
};
use super::scan::{BlockSums, before, tally};

/// The triangles `first..end` of this warp: equal shares, in the order of the warps.
#[inline(always)]
fn share(triangles: u32) -> (u32, u32) {
    let warps = simt::grid_threads_x() / simt::WARP_LANES;
    let warp = simt::global_thread_x() / simt::WARP_LANES;
    // Whole groups of 32, so that a warp's loads are aligned. `max` rules the division by 0 out for the
    // compiler.
    let groups = triangles.div_ceil(simt::WARP_LANES).div_ceil(warps.max(1));
    let size = u64::from(groups) * u64::from(simt::WARP_LANES);
    let first = (u64::from(warp) * size).min(u64::from(triangles));
    let end = (first + size).min(u64::from(triangles));
    (first as u32, end as u32)
}

/// Where card `index` of `cards` lies after they were dealt to `hands` hands, and the hands put together.
#[inline(always)]
fn deal(index: u32, cards: u32, hands: u32) -> u32 {
    let hands = hands.max(1);
    let (hand, before) = (index % hands, index / hands);
    hand * (cards / hands) + hand.min(cards % hands) + before
}

#[kernels(device = warptrace_device, only_marked, automatic = 1, callees = { crate::dmr::scan::automatic::{before, tally} })]
mod kernels {
    use super::*;

    /// Sets the flags of the first `round.triangles` triangles (their segment bits are there already) and
    /// counts the bad ones a warp.
    ///
    /// One-dimensional grid, blocks of whole warps, any number of them. `block_counts` is zero.
    #[kernel]
    pub fn dmr_find_bad(mesh: DmrMesh, work: DmrWork, round: DmrRound) {
        let (mut first, end) = share(round.triangles);
        let mut count = 0u32;
        while first < end {
            trace!("FIND");
            let triangle = u64::from(first + simt::lane());
            let mut bad = false;
            if triangle < u64::from(end) {
                trace!("FIND_TRIANGLE");
                // SAFETY: a triangle below the number in use, whose corners are points; one thread each.
                unsafe {
                    let [a, b, c, old] = unpack(mesh.triangles.get(triangle));
                    let corners = [
                        unpack_point(mesh.points.get(u64::from(a))),
                        unpack_point(mesh.points.get(u64::from(b))),
                        unpack_point(mesh.points.get(u64::from(c))),
                    ];
                    let segments = old & SEGMENT_BITS;
                    let class = classify(corners, segments, round.cos_squared, round.floor_squared);
                    let mut flags = segments | ALIVE | class;
                    if class == BAD {
                        trace!("FIND_BAD" = 4);
                        flags |= QUEUED;
                        bad = true;
                    } else if class != 0 {
                        trace!("FIND_SKIP");
                    } else {
                        trace!("FIND_GOOD");
                    }
                    mesh.triangle_words.set(4 * triangle + 3, flags);
                }
            } else {
                trace!("FIND_PAST" = 3);
            }
            // SAFETY: all lanes of a warp go through the same rounds.
            count += unsafe { simt::ballot(u32::MAX, bad) }.count_ones();
            first += simt::WARP_LANES;
        }
        trace!("FIND_DONE" = 7);
        // SAFETY: the host has places for the warps and blocks of this launch.
        unsafe { tally(&work, BlockSums::Winners, count, counter::EMITTED) };
    }

    /// Writes the numbers of the bad triangles to the worklist, dealt like cards to `round.items` rounds:
    /// triangles with near numbers tend to be neighbours, and neighbours in one round only stand in each
    /// other's way.
    ///
    /// A launch of the same shape, after `dmr_find_bad`, which counted `round.tail` bad triangles.
    #[kernel]
    pub fn dmr_enqueue(mesh: DmrMesh, work: DmrWork, round: DmrRound) {
        // SAFETY: as in the launch before.
        let mut place = unsafe { before(&work, BlockSums::Winners) };
        let (mut first, end) = share(round.triangles);
        while first < end {
            trace!("ENQUEUE");
            let triangle = first + simt::lane();
            let mut bad = false;
            if triangle < end {
                trace!("ENQUEUE_TRIANGLE");
                // SAFETY: a triangle in use; nothing writes flags in this launch.
                bad = unsafe { mesh.triangle_words.get(4 * u64::from(triangle) + 3) } & BAD != 0;
            } else {
                trace!("ENQUEUE_PAST");
            }
            // SAFETY: all lanes of a warp go through the same rounds.
            let votes = unsafe { simt::ballot(u32::MAX, bad) };
            if bad {
                trace!("ENQUEUE_BAD");
                let below = votes & ((1u32 << simt::lane()) - 1);
                let to = deal(place + below.count_ones(), round.tail, round.items);
                // SAFETY: the ring has a place for each triangle, and each bad triangle a place of its own.
                unsafe { work.queue.set(u64::from(to), triangle) };
            } else {
                trace!("ENQUEUE_GOOD");
            }
            place += votes.count_ones();
            first += simt::WARP_LANES;
        }
        trace!("ENQUEUE_DONE");
    }
}

pub use kernels::*;

#[cfg(test)]
mod tests {
    use super::deal;

    #[test]
    fn dealing_loses_no_card() {
        for (cards, hands) in [(1, 1), (10, 3), (12, 4), (5, 9), (7, 0)] {
            let mut places: Vec<u32> = (0..cards).map(|index| deal(index, cards, hands)).collect();
            places.sort_unstable();
            assert_eq!(places, (0..cards).collect::<Vec<_>>(), "{cards} cards, {hands} hands");
        }
        assert_eq!([0, 1, 2, 3].map(|index| deal(index, 10, 3)), [0, 4, 7, 1]);
    }
}
