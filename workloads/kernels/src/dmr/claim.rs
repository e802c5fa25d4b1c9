//! Phases 2 and 3 of a round: find the winners.
//!
//! An item wins if it owns every triangle of its cavity, and no triangle across its frontier has a claim with
//! a smaller key. Two winners neither overlap nor touch: if they touched, each would see the other's claim
//! across its frontier, and one of the two keys is smaller. Winners may have a common neighbour: each writes
//! another of its links. The mesh stays Delaunay: only an edge between new triangles of two winners could
//! violate it, and no such edge exists.
//!
//! Of the items that claimed a cavity, the one with the smallest key always wins. Therefore a round with a
//! cavity makes progress.

use warptrace_device::{atomic, simt};
use warptrace_macros::kernels;

use super::layout::{DmrMesh, DmrRound, DmrWork, NO_LINK, counter, priority, scratch, stage, state, unpack};
use super::scan::{BlockSums, tally};

#[kernels(device = warptrace_device, only_marked, first_id = 60, automatic = 90, callees = { crate::dmr::scan::automatic::tally })]
mod kernels {
    use super::*;

    /// Returns true if the item with `key` wins.
    ///
    /// # Safety
    /// The scratch of the item contains a cavity, and its arrays are valid.
    #[inline(always)]
    unsafe fn holds(mesh: &DmrMesh, work: &DmrWork, round: &DmrRound, item: u32, key: u64) -> bool {
        let word = |position: u32| u64::from(position) * u64::from(round.items) + u64::from(item);
        // SAFETY: the item itself has written the words of its cavity, which name living triangles. The
        // owners are read with atomics.
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

    /// First check. An item that still holds its claim wins, and marks its triangles as taken.
    ///
    /// The mark is smaller than any claim of the round. An item that reads the mark instead of the claim
    /// loses in both cases: a winner's key is smaller than the keys of all items that touch it.
    ///
    /// Launched with the same shape as `dmr_mark`.
    #[kernel]
    pub fn dmr_check(mesh: DmrMesh, work: DmrWork, round: DmrRound) {
        trace!("CHECK" = 70);
        let item = simt::global_thread_x();
        // SAFETY: the item's own words, and owners with atomics.
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

    /// Second claim, by losers that touch no winner. Without it, a lane that lost to a loser would wait.
    ///
    /// Claims of this launch are smaller than the first claims, which now have no effect, and larger than a
    /// mark.
    ///
    /// Launched with the same shape as `dmr_mark`.
    #[kernel]
    pub fn dmr_reclaim(mesh: DmrMesh, work: DmrWork, round: DmrRound) {
        trace!("RECLAIM" = 80);
        let item = simt::global_thread_x();
        let word = |position: u32| u64::from(position) * u64::from(round.items) + u64::from(item);
        // Marks of this round are below. Claims of this round and everything older are not.
        let firm_below = stage(round.round, 1);
        // SAFETY: same as `dmr_check`.
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

    /// Second check. Then each warp counts its winners.
    ///
    /// Launched with the same shape as `dmr_mark`.
    #[kernel]
    pub fn dmr_verify(mesh: DmrMesh, work: DmrWork, round: DmrRound) {
        trace!("VERIFY" = 95);
        let item = simt::global_thread_x();
        let mut won = false;
        // SAFETY: same as `dmr_check`. This launch does not write owners.
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
