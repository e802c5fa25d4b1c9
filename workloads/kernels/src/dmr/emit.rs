//! Fills the worklist for the next round: new bad triangles, and items that wait.
//!
//! The worklist has at most one entry for each slot, which the slot's [`QUEUED`] flag shows. A triangle that
//! is replaced passes flag and entry to the triangle that takes its slot.

use warptrace_device::{atomic, simt};
use warptrace_macros::kernels;

use super::layout::{
    ALIVE, BAD, DmrMesh, DmrRound, DmrWork, QUEUED, SKIP_SHORT, SKIP_UNSURE, counter, scratch, state, unpack,
};
use super::scan::{BlockSums, before, over_lanes, tally};

/// Returns the slot of an item's entry.
///
/// # Safety
/// `item` is an item of the round.
#[inline(always)]
unsafe fn entry(work: &DmrWork, round: &DmrRound, item: u32) -> u32 {
    let mask = work.queue.len() as u32 - 1;
    // SAFETY: the index is within the ring.
    unsafe { work.queue.get(u64::from(round.head.wrapping_add(item) & mask)) }
}

#[kernels(device = warptrace_device, only_marked, first_id = 150, automatic = 180, callees = { crate::dmr::scan::automatic::{before, tally} })]
mod kernels {
    use super::*;

    /// Removes slots that need no entry from the worklist. Counts the entries that each warp will append.
    ///
    /// Launched with the same shape as `dmr_mark`.
    #[kernel]
    pub fn dmr_count(mesh: DmrMesh, work: DmrWork, round: DmrRound) {
        trace!("COUNT");
        let item = simt::global_thread_x();
        let mut entries = 0;
        // SAFETY: the item's own words. Only the item with a slot's entry writes the slot's flags.
        unsafe {
            if item >= round.items {
                trace!("COUNT_OUTSIDE");
            } else {
                trace!("COUNT_ITEM");
                let slot = u64::from(entry(&work, &round, item));
                let [a, b, c, old_flags] = unpack(mesh.triangles.get(slot));
                let mut flags = old_flags;
                let state = work.states.get(u64::from(item));
                if state == state::WON {
                    trace!("COUNT_WON");
                    [entries, ..] = unpack(work.metas.get(u64::from(item)));
                } else if state == state::TOO_LARGE {
                    trace!("COUNT_TOO_LARGE");
                    atomic::add_u32(work.counters.at(counter::TOO_LARGE), 1);
                } else if state == state::SHORT || state == state::UNSURE {
                    trace!("COUNT_SKIP");
                    // A triangle that was made in this round has a new point of this round.
                    if a.max(b).max(c) >= round.points {
                        trace!("COUNT_REPLACED");
                    } else {
                        trace!("COUNT_SKIPPED" = 161);
                        flags = flags & !BAD | if state == state::SHORT { SKIP_SHORT } else { SKIP_UNSURE };
                        atomic::add_u32(work.counters.at(counter::SKIPPED), 1);
                    }
                } else {
                    trace!("COUNT_OTHER" = 157);
                }
                if flags & (ALIVE | BAD) == ALIVE | BAD {
                    trace!("COUNT_AGAIN");
                    entries += 1;
                } else {
                    trace!("COUNT_GONE");
                    mesh.triangle_words.set(4 * slot + 3, flags & !QUEUED);
                }
            }
            trace!("COUNT_DONE");
            let (_, sum) = over_lanes(entries);
            tally(&work, BlockSums::Entries, sum, counter::EMITTED);
        }
    }

    /// Appends the entries to the worklist, in the order of the items.
    ///
    /// Launched like `dmr_mark`. The ring has room for the new entries and the round's entries.
    #[kernel]
    pub fn dmr_emit(mesh: DmrMesh, work: DmrWork, round: DmrRound) {
        trace!("EMIT" = 165);
        let item = simt::global_thread_x();
        let mask = work.queue.len() as u32 - 1;
        let (mut slot, mut fresh, mut again) = (0, 0, false);
        // SAFETY: the item's own words. This launch only reads flags. Each entry has a separate place in the
        // ring.
        unsafe {
            if item >= round.items {
                trace!("EMIT_OUTSIDE");
            } else {
                trace!("EMIT_ITEM");
                slot = entry(&work, &round, item);
                let flags = mesh.triangle_words.get(4 * u64::from(slot) + 3);
                again = flags & (ALIVE | BAD) == ALIVE | BAD;
                if work.states.get(u64::from(item)) == state::WON {
                    trace!("EMIT_WON");
                    [fresh, ..] = unpack(work.metas.get(u64::from(item)));
                } else {
                    trace!("EMIT_OTHER");
                }
            }
            let (lanes_before, _) = over_lanes(fresh + again as u32);
            let mut place =
                round.tail.wrapping_add(before(&work, BlockSums::Entries)).wrapping_add(lanes_before);
            let mut i = 0;
            let mut appended = trace_loop!("EMIT_FRESH");
            while i < fresh {
                appended.tick();
                let position = u64::from(scratch::triangle(i)) * u64::from(round.items) + u64::from(item);
                work.queue.set(u64::from(place & mask), work.scratch.get(position));
                place = place.wrapping_add(1);
                i += 1;
            }
            drop(appended);
            if again {
                trace!("EMIT_AGAIN");
                work.queue.set(u64::from(place & mask), slot);
            }
            trace!("EMIT_DONE");
        }
    }
}

pub use kernels::*;
