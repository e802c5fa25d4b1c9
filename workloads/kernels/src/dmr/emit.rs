//! What a round leaves for the next: new bad triangles, and items that wait.
//!
//! Each slot has at most one entry on the worklist, which its [`QUEUED`] flag says. A triangle that is
//! replaced hands flag and entry over to the triangle that takes its slot.

use warptrace_device::{atomic, simt, trace_points};
use warptrace_macros::kernels;

use super::layout::{
    ALIVE, BAD, DmrMesh, DmrRound, DmrWork, QUEUED, SKIP_SHORT, SKIP_UNSURE, counter, scratch, state, unpack,
};
use super::scan::{Sums, before, over_lanes, tally};

trace_points! {
    /// The decisions of [`dmr_count`](super::dmr_count()) and [`dmr_emit`](super::dmr_emit()).
    pub mod at in "emit.rs" {
        COUNT = 150: "thread starts",
        COUNT_OUTSIDE = 151: "no item for this thread",
        COUNT_ITEM = 152: "the thread has an item",
        COUNT_WON = 153: "it won, and may have new entries",
        COUNT_TOO_LARGE = 154: "its cavity was too large",
        COUNT_SKIP = 155: "its triangle cannot be refined",
        COUNT_REPLACED = 156: "but has been replaced meanwhile",
        COUNT_SKIPPED = 161: "it is left alone for good",
        COUNT_OTHER = 157: "it waits or was dropped",
        COUNT_AGAIN = 158: "its slot stays on the worklist",
        COUNT_GONE = 159: "its slot leaves the worklist",
        COUNT_DONE = 160: "the warp counts its entries",
        EMIT = 165: "thread starts",
        EMIT_OUTSIDE = 166: "no item for this thread",
        EMIT_ITEM = 167: "the thread has an item",
        EMIT_WON = 168: "it won",
        EMIT_OTHER = 169: "it did not win",
        EMIT_FRESH = 170: "a new bad triangle goes on the worklist",
        EMIT_AGAIN = 171: "the slot goes back on the worklist",
        EMIT_DONE = 172: "the item is done",
    }
}

/// The slot of an item's entry.
///
/// # Safety
/// `item` is an item of the round.
#[inline(always)]
unsafe fn entry(work: &DmrWork, round: &DmrRound, item: u32) -> u32 {
    let mask = work.queue.len() as u32 - 1;
    // SAFETY: within the ring.
    unsafe { work.queue.get(u64::from(round.head.wrapping_add(item) & mask)) }
}

#[kernels(device = warptrace_device, hand_placed, first_id = 180, callees = { crate::dmr::scan::automatic::{before, tally} })]
mod kernels {
    use super::*;

    /// Takes slots that need no entry off the worklist, and counts the entries that each warp will append.
    ///
    /// Launched as `dmr_mark`.
    #[kernel]
    pub fn dmr_count(mesh: DmrMesh, work: DmrWork, round: DmrRound) {
        trace_loc(at::COUNT);
        let item = simt::global_thread_x();
        let mut entries = 0;
        // SAFETY: the item's own words; flags of a slot are written by the item that has its only entry.
        unsafe {
            if item >= round.items {
                trace_loc(at::COUNT_OUTSIDE);
            } else {
                trace_loc(at::COUNT_ITEM);
                let slot = u64::from(entry(&work, &round, item));
                let [a, b, c, old_flags] = unpack(mesh.triangles.get(slot));
                let mut flags = old_flags;
                let state = work.states.get(u64::from(item));
                if state == state::WON {
                    trace_loc(at::COUNT_WON);
                    [entries, ..] = unpack(work.metas.get(u64::from(item)));
                } else if state == state::TOO_LARGE {
                    trace_loc(at::COUNT_TOO_LARGE);
                    atomic::add_u32(work.counters.at(counter::TOO_LARGE), 1);
                } else if state == state::SHORT || state == state::UNSURE {
                    trace_loc(at::COUNT_SKIP);
                    // A triangle of this round has one of its new points.
                    if a.max(b).max(c) >= round.points {
                        trace_loc(at::COUNT_REPLACED);
                    } else {
                        trace_loc(at::COUNT_SKIPPED);
                        flags = flags & !BAD | if state == state::SHORT { SKIP_SHORT } else { SKIP_UNSURE };
                        atomic::add_u32(work.counters.at(counter::SKIPPED), 1);
                    }
                } else {
                    trace_loc(at::COUNT_OTHER);
                }
                if flags & (ALIVE | BAD) == ALIVE | BAD {
                    trace_loc(at::COUNT_AGAIN);
                    entries += 1;
                } else {
                    trace_loc(at::COUNT_GONE);
                    mesh.triangle_words.set(4 * slot + 3, flags & !QUEUED);
                }
            }
            trace_loc(at::COUNT_DONE);
            let (_, sum) = over_lanes(entries);
            tally(&work, Sums::Entries, sum, counter::EMITTED);
        }
    }

    /// Appends the entries to the worklist, in the order of the items.
    ///
    /// Launched as `dmr_mark`. The ring has room for them beside the entries of the round.
    #[kernel]
    pub fn dmr_emit(mesh: DmrMesh, work: DmrWork, round: DmrRound) {
        trace_loc(at::EMIT);
        let item = simt::global_thread_x();
        let mask = work.queue.len() as u32 - 1;
        let (mut slot, mut fresh, mut again) = (0, 0, false);
        // SAFETY: the item's own words; flags are only read in this launch; each entry has a place of its
        // own.
        unsafe {
            if item >= round.items {
                trace_loc(at::EMIT_OUTSIDE);
            } else {
                trace_loc(at::EMIT_ITEM);
                slot = entry(&work, &round, item);
                let flags = mesh.triangle_words.get(4 * u64::from(slot) + 3);
                again = flags & (ALIVE | BAD) == ALIVE | BAD;
                if work.states.get(u64::from(item)) == state::WON {
                    trace_loc(at::EMIT_WON);
                    [fresh, ..] = unpack(work.metas.get(u64::from(item)));
                } else {
                    trace_loc(at::EMIT_OTHER);
                }
            }
            let (lanes_before, _) = over_lanes(fresh + again as u32);
            let mut place = round.tail.wrapping_add(before(&work, Sums::Entries)).wrapping_add(lanes_before);
            let mut i = 0;
            let mut appended = trace_loop(at::EMIT_FRESH);
            while i < fresh {
                appended.tick();
                let position = u64::from(scratch::triangle(i)) * u64::from(round.items) + u64::from(item);
                work.queue.set(u64::from(place & mask), work.scratch.get(position));
                place = place.wrapping_add(1);
                i += 1;
            }
            drop(appended);
            if again {
                trace_loc(at::EMIT_AGAIN);
                work.queue.set(u64::from(place & mask), slot);
            }
            trace_loc(at::EMIT_DONE);
        }
    }
}

pub use kernels::*;
