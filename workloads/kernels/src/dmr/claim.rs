//! Phases 2 and 3 of a round: who has won?
//!
//! An item wins if it owns every triangle of its cavity, and if no triangle across its frontier is claimed
//! with a smaller key. Two winners are then neither overlapping nor adjacent: were they adjacent, each would
//! see the other's claim across its frontier, and one of the two keys is smaller. Winners may share a
//! triangle outside of both: each writes another of its links, and the mesh stays Delaunay, since only edges
//! between two new triangles of different winners could fail, and there are none.
//!
//! The item with the smallest key of a round always wins, so that a round with a cavity makes progress.

use warptrace_device::{atomic, simt};
use warptrace_macros::kernels;

use super::layout::{DmrMesh, DmrRound, DmrWork, NO_LINK, counter, priority, scratch, stage, state, unpack};
use super::scan::{BlockSums, tally};

#[kernels(device = warptrace_device, only_marked, first_id = 60, automatic = 90, callees = { crate::dmr::scan::automatic::tally })]
mod kernels {
    use super::*;

    /// Whether the item with `key` wins.
    ///
    /// # Safety
    /// The item has a cavity in its scratch, and its arrays are valid.
    #[inline(always)]
    unsafe fn holds(mesh: &DmrMesh, work: &DmrWork, round: &DmrRound, item: u32, key: u64) -> bool {
        let word = |position: u32| u64::from(position) * u64::from(round.items) + u64::from(item);
        // SAFETY: the cavity's words were written by the item itself and name living triangles; the owners
        // are read with atomics.
        unsafe {
            let [triangles, edges, ..] = unpack(work.metas.get(u64::from(item)));
            let mut i = 0;
            while i < triangles {
                trace!("OWN");
                let triangle = work.scratch.get(word(scratch::triangle(i)));
                if atomic::load_u64(mesh.owners.at(u64::from(triangle))) != key {
                    trace!("OWN_TAKEN");
                    return false;
                }
                i += 1;
            }
            let mut i = 0;
            while i < edges {
                trace!("RING");
                let link = work.scratch.get(word(scratch::link(round.bound, i)));
                if link == NO_LINK {
                    trace!("RING_OUTSIDE");
                } else if atomic::load_u64(mesh.owners.at(u64::from(link >> 2))) < key {
                    trace!("RING_TAKEN");
                    return false;
                }
                i += 1;
            }
            trace!("HOLDS");
            true
        }
    }

    /// First check: items that hold their claim win, and mark their triangles as taken.
    ///
    /// The mark is smaller than any claim of the round. An item that reads it instead of the claim loses
    /// either way: a winner's key is smaller than those of the items that touch it.
    ///
    /// Launched as `dmr_mark`.
    #[kernel]
    pub fn dmr_check(mesh: DmrMesh, work: DmrWork, round: DmrRound) {
        trace!("CHECK" = 70);
        let item = simt::global_thread_x();
        // SAFETY: the item's own words, and owners by atomics.
        unsafe {
            if item >= round.items || work.states.get(u64::from(item)) != state::CLAIMED {
                trace!("CHECK_IDLE");
                return;
            }
            trace!("CHECK_ITEM");
            let priority = priority(item, round.round);
            if holds(&mesh, &work, &round, item, stage(round.round, 0) | priority) {
                trace!("CHECK_HELD");
                work.states.set(u64::from(item), state::HELD);
                let [triangles, ..] = unpack(work.metas.get(u64::from(item)));
                let mut i = 0;
                let mut marked = trace_loop!("FIRM");
                while i < triangles {
                    marked.tick();
                    let position = u64::from(scratch::triangle(i)) * u64::from(round.items) + u64::from(item);
                    let triangle = work.scratch.get(position);
                    atomic::store_u64(mesh.owners.at(u64::from(triangle)), stage(round.round, 2) | priority);
                    i += 1;
                }
                drop(marked);
            } else {
                trace!("CHECK_LOST");
                work.states.set(u64::from(item), state::LOST);
            }
        }
    }

    /// Second claim, of the losers that touch no winner. Without it, a lane that lost to a loser would wait.
    ///
    /// Claims of this launch are smaller than those of the first, which therefore do not stand in the way any
    /// more; they are larger than a winner's mark.
    ///
    /// Launched as `dmr_mark`.
    #[kernel]
    pub fn dmr_reclaim(mesh: DmrMesh, work: DmrWork, round: DmrRound) {
        trace!("RECLAIM" = 80);
        let item = simt::global_thread_x();
        let word = |position: u32| u64::from(position) * u64::from(round.items) + u64::from(item);
        // A mark of this round is below, anything older is not, and so are the claims of this round.
        let firm_below = stage(round.round, 1);
        // SAFETY: as in `dmr_check`.
        unsafe {
            if item >= round.items || work.states.get(u64::from(item)) != state::LOST {
                trace!("RECLAIM_IDLE");
                return;
            }
            trace!("RECLAIM_ITEM");
            let [triangles, edges, ..] = unpack(work.metas.get(u64::from(item)));
            let mut blocked = false;
            let mut i = 0;
            while i < triangles && !blocked {
                trace!("RECLAIM_OWN");
                let triangle = work.scratch.get(word(scratch::triangle(i)));
                if atomic::load_u64(mesh.owners.at(u64::from(triangle))) < firm_below {
                    trace!("RECLAIM_OWN_FIRM");
                    blocked = true;
                }
                i += 1;
            }
            let mut i = 0;
            while i < edges && !blocked {
                trace!("RECLAIM_RING");
                let link = work.scratch.get(word(scratch::link(round.bound, i)));
                if link == NO_LINK {
                    trace!("RECLAIM_RING_OUTSIDE");
                } else if atomic::load_u64(mesh.owners.at(u64::from(link >> 2))) < firm_below {
                    trace!("RECLAIM_RING_FIRM");
                    blocked = true;
                }
                i += 1;
            }
            if blocked {
                trace!("RECLAIM_BLOCKED");
                return;
            }
            trace!("RECLAIM_FREE");
            work.states.set(u64::from(item), state::CONTENDER);
            let key = stage(round.round, 1) | priority(item, round.round);
            let mut i = 0;
            let mut claimed = trace_loop!("RECLAIM_CLAIM");
            while i < triangles {
                claimed.tick();
                let triangle = work.scratch.get(word(scratch::triangle(i)));
                atomic::min_u64(mesh.owners.at(u64::from(triangle)), key);
                i += 1;
            }
            drop(claimed);
            trace!("RECLAIM_DONE");
        }
    }

    /// Second check; then each warp counts its winners.
    ///
    /// Launched as `dmr_mark`.
    #[kernel]
    pub fn dmr_verify(mesh: DmrMesh, work: DmrWork, round: DmrRound) {
        trace!("VERIFY" = 95);
        let item = simt::global_thread_x();
        let mut won = false;
        // SAFETY: as in `dmr_check`; nothing writes owners in this launch.
        unsafe {
            let mut was = state::DROPPED;
            if item < round.items {
                trace!("VERIFY_ITEM" = 102);
                was = work.states.get(u64::from(item));
            } else {
                trace!("VERIFY_OUTSIDE");
            }
            if was == state::HELD {
                trace!("VERIFY_FIRST" = 96);
                won = true;
            } else if was == state::CONTENDER {
                trace!("VERIFY_CONTENDER");
                let key = stage(round.round, 1) | priority(item, round.round);
                if holds(&mesh, &work, &round, item, key) {
                    trace!("VERIFY_HELD");
                    won = true;
                    atomic::add_u32(work.counters.at(counter::SECOND), 1);
                } else {
                    trace!("VERIFY_LOST");
                    work.states.set(u64::from(item), state::LOST);
                }
            } else {
                trace!("VERIFY_IDLE");
            }
            trace!("VERIFY_DONE");
            let winners = simt::ballot(u32::MAX, won);
            tally(&work, BlockSums::Winners, winners.count_ones(), counter::WINNERS);
        }
    }
}

pub use kernels::*;
