//! Phases 2 and 3 of a round: who has won?
//!
//! An item wins if it owns every triangle of its cavity, and if no triangle across its frontier is claimed
//! with a smaller key. Two winners are then neither overlapping nor adjacent: were they adjacent, each would
//! see the other's claim across its frontier, and one of the two keys is smaller. Winners may share a
//! triangle outside of both: each writes another of its links, and the mesh stays Delaunay, since only edges
//! between two new triangles of different winners could fail, and there are none.
//!
//! The item with the smallest key of a round always wins, so that a round with a cavity makes progress.

use warptrace_device::{atomic, simt, trace_points};
use warptrace_macros::kernels;

use super::layout::{DmrMesh, DmrRound, DmrWork, NO_LINK, counter, priority, scratch, stage, state, unpack};
use super::scan::{Sums, tally};

trace_points! {
    /// The decisions of [`dmr_check`](super::dmr_check()), [`dmr_reclaim`](super::dmr_reclaim()) and
    /// [`dmr_verify`](super::dmr_verify()).
    pub mod at in "claim.rs" {
        OWN = 60: "the owner of a triangle of the cavity is read",
        OWN_TAKEN = 61: "somebody else owns it",
        RING = 62: "the triangle across an edge of the frontier is looked at",
        RING_OUTSIDE = 63: "there is none",
        RING_TAKEN = 64: "it is claimed with a smaller key",
        HOLDS = 65: "the item holds its cavity",
        CHECK = 70: "thread starts",
        CHECK_IDLE = 71: "no item, or no cavity",
        CHECK_ITEM = 72: "the item has a cavity",
        CHECK_HELD = 73: "it has won",
        FIRM = 74: "a triangle of the winner is marked as taken",
        CHECK_LOST = 75: "it has lost the first claim",
        RECLAIM = 80: "thread starts",
        RECLAIM_IDLE = 81: "no item, or not one that lost",
        RECLAIM_ITEM = 82: "the item lost the first claim",
        RECLAIM_OWN = 83: "a triangle of its cavity is looked at",
        RECLAIM_OWN_FIRM = 84: "a winner has it",
        RECLAIM_RING = 85: "the triangle across an edge of the frontier is looked at",
        RECLAIM_RING_OUTSIDE = 86: "there is none",
        RECLAIM_RING_FIRM = 87: "a winner has it",
        RECLAIM_BLOCKED = 88: "the item waits for another round",
        RECLAIM_FREE = 89: "it touches no winner",
        RECLAIM_CLAIM = 90: "a triangle of its cavity is claimed again",
        RECLAIM_DONE = 91: "all are claimed",
        VERIFY = 95: "thread starts",
        VERIFY_FIRST = 96: "the item won the first claim",
        VERIFY_CONTENDER = 97: "the item has claimed a second time",
        VERIFY_HELD = 98: "it has won",
        VERIFY_LOST = 99: "it has lost again",
        VERIFY_IDLE = 100: "no item, or one without a claim",
        VERIFY_DONE = 101: "the warp counts its winners",
        VERIFY_ITEM = 102: "the thread has an item",
        VERIFY_OUTSIDE = 103: "it has none",
    }
}

#[kernels(device = warptrace_device, hand_placed, first_id = 90, callees = { crate::dmr::scan::automatic::tally })]
mod kernels {
    use super::*;

    /// Whether the item with `key` wins.
    ///
    /// # Safety
    /// The item has a cavity in its scratch, and its arrays are valid.
    #[inline(always)]
    unsafe fn holds(mesh: &DmrMesh, work: &DmrWork, round: &DmrRound, item: u32, key: u64) -> bool {
        let word = |position: u32| u64::from(position) * u64::from(round.items) + u64::from(item);
        // SAFETY: the cavity's words were written by the item itself and name living triangles; the owners are
        // read with atomics.
        unsafe {
            let [triangles, edges, ..] = unpack(work.metas.get(u64::from(item)));
            let mut i = 0;
            while i < triangles {
                trace_loc(at::OWN);
                let triangle = work.scratch.get(word(scratch::triangle(i)));
                if atomic::load_u64(mesh.owners.at(u64::from(triangle))) != key {
                    trace_loc(at::OWN_TAKEN);
                    return false;
                }
                i += 1;
            }
            let mut i = 0;
            while i < edges {
                trace_loc(at::RING);
                let link = work.scratch.get(word(scratch::link(round.bound, i)));
                if link == NO_LINK {
                    trace_loc(at::RING_OUTSIDE);
                } else if atomic::load_u64(mesh.owners.at(u64::from(link >> 2))) < key {
                    trace_loc(at::RING_TAKEN);
                    return false;
                }
                i += 1;
            }
            trace_loc(at::HOLDS);
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
        trace_loc(at::CHECK);
        let item = simt::global_thread_x();
        // SAFETY: the item's own words, and owners by atomics.
        unsafe {
            if item >= round.items || work.states.get(u64::from(item)) != state::CLAIMED {
                trace_loc(at::CHECK_IDLE);
                return;
            }
            trace_loc(at::CHECK_ITEM);
            let priority = priority(item, round.round);
            if holds(&mesh, &work, &round, item, stage(round.round, 0) | priority) {
                trace_loc(at::CHECK_HELD);
                work.states.set(u64::from(item), state::HELD);
                let [triangles, ..] = unpack(work.metas.get(u64::from(item)));
                let mut i = 0;
                let mut marked = trace_loop(at::FIRM);
                while i < triangles {
                    marked.tick();
                    let position = u64::from(scratch::triangle(i)) * u64::from(round.items) + u64::from(item);
                    let triangle = work.scratch.get(position);
                    atomic::store_u64(mesh.owners.at(u64::from(triangle)), stage(round.round, 2) | priority);
                    i += 1;
                }
                drop(marked);
            } else {
                trace_loc(at::CHECK_LOST);
                work.states.set(u64::from(item), state::LOST);
            }
        }
    }

    /// Second claim, of the losers that touch no winner. Without it, whoever lost to a loser would wait.
    ///
    /// Claims of this launch are smaller than those of the first, which therefore do not stand in the way any
    /// more; they are larger than a winner's mark.
    ///
    /// Launched as `dmr_mark`.
    #[kernel]
    pub fn dmr_reclaim(mesh: DmrMesh, work: DmrWork, round: DmrRound) {
        trace_loc(at::RECLAIM);
        let item = simt::global_thread_x();
        let word = |position: u32| u64::from(position) * u64::from(round.items) + u64::from(item);
        // A mark of this round is below, anything older is not, and so are the claims of this round.
        let firm_below = stage(round.round, 1);
        // SAFETY: as in `dmr_check`.
        unsafe {
            if item >= round.items || work.states.get(u64::from(item)) != state::LOST {
                trace_loc(at::RECLAIM_IDLE);
                return;
            }
            trace_loc(at::RECLAIM_ITEM);
            let [triangles, edges, ..] = unpack(work.metas.get(u64::from(item)));
            let mut blocked = false;
            let mut i = 0;
            while i < triangles && !blocked {
                trace_loc(at::RECLAIM_OWN);
                let triangle = work.scratch.get(word(scratch::triangle(i)));
                if atomic::load_u64(mesh.owners.at(u64::from(triangle))) < firm_below {
                    trace_loc(at::RECLAIM_OWN_FIRM);
                    blocked = true;
                }
                i += 1;
            }
            let mut i = 0;
            while i < edges && !blocked {
                trace_loc(at::RECLAIM_RING);
                let link = work.scratch.get(word(scratch::link(round.bound, i)));
                if link == NO_LINK {
                    trace_loc(at::RECLAIM_RING_OUTSIDE);
                } else if atomic::load_u64(mesh.owners.at(u64::from(link >> 2))) < firm_below {
                    trace_loc(at::RECLAIM_RING_FIRM);
                    blocked = true;
                }
                i += 1;
            }
            if blocked {
                trace_loc(at::RECLAIM_BLOCKED);
                return;
            }
            trace_loc(at::RECLAIM_FREE);
            work.states.set(u64::from(item), state::CONTENDER);
            let key = stage(round.round, 1) | priority(item, round.round);
            let mut i = 0;
            let mut claimed = trace_loop(at::RECLAIM_CLAIM);
            while i < triangles {
                claimed.tick();
                let triangle = work.scratch.get(word(scratch::triangle(i)));
                atomic::min_u64(mesh.owners.at(u64::from(triangle)), key);
                i += 1;
            }
            drop(claimed);
            trace_loc(at::RECLAIM_DONE);
        }
    }

    /// Second check; then each warp counts its winners.
    ///
    /// Launched as `dmr_mark`.
    #[kernel]
    pub fn dmr_verify(mesh: DmrMesh, work: DmrWork, round: DmrRound) {
        trace_loc(at::VERIFY);
        let item = simt::global_thread_x();
        let mut won = false;
        // SAFETY: as in `dmr_check`; nobody writes owners in this launch.
        unsafe {
            let mut was = state::DROPPED;
            if item < round.items {
                trace_loc(at::VERIFY_ITEM);
                was = work.states.get(u64::from(item));
            } else {
                trace_loc(at::VERIFY_OUTSIDE);
            }
            if was == state::HELD {
                trace_loc(at::VERIFY_FIRST);
                won = true;
            } else if was == state::CONTENDER {
                trace_loc(at::VERIFY_CONTENDER);
                let key = stage(round.round, 1) | priority(item, round.round);
                if holds(&mesh, &work, &round, item, key) {
                    trace_loc(at::VERIFY_HELD);
                    won = true;
                    atomic::add_u32(work.counters.at(counter::SECOND), 1);
                } else {
                    trace_loc(at::VERIFY_LOST);
                    work.states.set(u64::from(item), state::LOST);
                }
            } else {
                trace_loc(at::VERIFY_IDLE);
            }
            trace_loc(at::VERIFY_DONE);
            let winners = simt::ballot(u32::MAX, won);
            tally(&work, Sums::Winners, winners.count_ones(), counter::WINNERS);
        }
    }
}

pub use kernels::*;
