//! Before the first round: finds the bad triangles and adds them to the worklist.

use warptrace_device::simt;
use warptrace_macros::kernels;

use super::geometry::classify;
use super::layout::{
    ALIVE, BAD, DmrMesh, DmrRound, DmrWork, QUEUED, SEGMENT_BITS, counter, unpack, unpack_point,
};
use super::scan::{BlockSums, before, tally};

/// Returns the triangles `first..end` of this warp: equal shares, in the order of the warps.
#[inline(always)]
fn share(triangles: u32) -> (u32, u32) {
    let warps = simt::grid_threads_x() / simt::WARP_LANES;
    let warp = simt::global_thread_x() / simt::WARP_LANES;
    // Whole groups of 32 triangles, so that a warp's loads are aligned. `max` shows the compiler that the
    // division is not by 0.
    let groups = triangles.div_ceil(simt::WARP_LANES).div_ceil(warps.max(1));
    let size = u64::from(groups) * u64::from(simt::WARP_LANES);
    let first = (u64::from(warp) * size).min(u64::from(triangles));
    let end = (first + size).min(u64::from(triangles));
    (first as u32, end as u32)
}

/// Returns the place of card `index` of `cards` after dealing them to `hands` hands and joining the hands.
#[inline(always)]
fn deal(index: u32, cards: u32, hands: u32) -> u32 {
    let hands = hands.max(1);
    let (hand, before) = (index % hands, index / hands);
    hand * (cards / hands) + hand.min(cards % hands) + before
}

#[kernels(device = warptrace_device, only_marked, automatic = 1, callees = { crate::dmr::scan::automatic::{before, tally} })]
mod kernels {
    use super::*;

    /// Sets the flags of the first `round.triangles` triangles, whose segment bits are already set. Counts
    /// the bad triangles of each warp.
    ///
    /// One-dimensional grid with any number of blocks of whole warps. `block_counts` is zero.
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
                // SAFETY: a triangle in use, whose corners are points. One thread accesses it.
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
            // SAFETY: all lanes of a warp make the same iterations.
            count += unsafe { simt::ballot(u32::MAX, bad) }.count_ones();
            first += simt::WARP_LANES;
        }
        trace!("FIND_DONE" = 7);
        // SAFETY: the host has allocated places for the warps and blocks of this launch.
        unsafe { tally(&work, BlockSums::Winners, count, counter::EMITTED) };
    }

    /// Writes the numbers of the bad triangles to the worklist, dealt like cards to `round.items` rounds.
    /// Triangles with close numbers tend to be neighbours, and neighbours in the same round only compete with
    /// each other.
    ///
    /// Launched with the same shape after `dmr_find_bad`, which has counted `round.tail` bad triangles.
    #[kernel]
    pub fn dmr_enqueue(mesh: DmrMesh, work: DmrWork, round: DmrRound) {
        // SAFETY: same as `dmr_find_bad`.
        let mut place = unsafe { before(&work, BlockSums::Winners) };
        let (mut first, end) = share(round.triangles);
        while first < end {
            trace!("ENQUEUE");
            let triangle = first + simt::lane();
            let mut bad = false;
            if triangle < end {
                trace!("ENQUEUE_TRIANGLE");
                // SAFETY: a triangle in use. This launch does not write flags.
                bad = unsafe { mesh.triangle_words.get(4 * u64::from(triangle) + 3) } & BAD != 0;
            } else {
                trace!("ENQUEUE_PAST");
            }
            // SAFETY: all lanes of a warp make the same iterations.
            let votes = unsafe { simt::ballot(u32::MAX, bad) };
            if bad {
                trace!("ENQUEUE_BAD");
                let below = votes & ((1u32 << simt::lane()) - 1);
                let to = deal(place + below.count_ones(), round.tail, round.items);
                // SAFETY: the ring has a place for each triangle, and each bad triangle a separate place.
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
