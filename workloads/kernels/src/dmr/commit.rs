//! Winners put their point in.

use warptrace_device::{atomic, simt};
use warptrace_macros::kernels;

use super::geometry::classify;
use super::layout::{
    ALIVE, BAD, DmrMesh, DmrRound, DmrWork, NO_LINK, QUEUED, counter, pack, scratch, state, unpack,
    unpack_point,
};
use super::scan::{BlockSums, before};

#[kernels(device = warptrace_device, only_marked, first_id = 120, automatic = 140, callees = { crate::dmr::scan::automatic::before })]
mod kernels {
    use super::*;

    /// Retriangulates the winners' cavities: a fan of triangles from the new point to the frontier, in the
    /// slots of the cavity's triangles and in up to two new ones. Flags, links and the entries for the
    /// worklist are set.
    ///
    /// Point and slots follow from the number of winners before. Where the arrays are full, nothing is
    /// written and the item waits. Launched as `dmr_mark`.
    #[kernel]
    pub fn dmr_commit(mesh: DmrMesh, work: DmrWork, round: DmrRound) {
        trace!("ENTER");
        let item = simt::global_thread_x();
        let word = |position: u32| u64::from(position) * u64::from(round.items) + u64::from(item);
        let mut won = false;
        if item < round.items {
            trace!("ITEM");
            // SAFETY: the item's own word.
            let state = unsafe { work.states.get(u64::from(item)) };
            won = state == state::HELD || state == state::CONTENDER;
        } else {
            trace!("OUTSIDE");
        }
        // SAFETY: all lanes of the warp come here.
        let winners = unsafe { simt::ballot(u32::MAX, won) };
        // SAFETY: the warps of this shape were counted.
        let rank = unsafe { before(&work, BlockSums::Winners) }
            + (winners & ((1u32 << simt::lane()) - 1)).count_ones();
        if !won {
            trace!("NOT_WON");
            return;
        }
        trace!("WINNER");
        let point = u64::from(round.points) + u64::from(rank);
        let first_new = u64::from(round.triangles) + 2 * u64::from(rank);
        // SAFETY: winners have disjoint cavities that are not adjacent, so each record and link is written by
        // one thread, and triangles of cavities are read by their winner only; frontier links lead to living
        // triangles; new slots are checked against the capacity.
        unsafe {
            if point >= mesh.points.len() || first_new + 1 >= mesh.triangles.len() {
                trace!("NO_ROOM");
                work.states.set(u64::from(item), state::LOST);
                atomic::add_u32(work.counters.at(counter::NO_ROOM), 1);
                return;
            }
            let [triangles, edges, end_a, end_b] = unpack(work.metas.get(u64::from(item)));
            let centre = work.centres.get(u64::from(item));
            mesh.points.set(point, centre);
            let p = unpack_point(centre);
            let is_split = end_a != NO_LINK;
            let open = is_split && edges == triangles + 1;
            if is_split {
                trace!("SPLIT");
                atomic::add_u32(work.counters.at(counter::SPLITS), 1);
            } else {
                trace!("INSERT");
            }
            // The cavity has one or two triangles less than the frontier has edges, so the last one is always
            // new.
            let slot_of = |i: u32| first_new as u32 + (i - triangles);
            let first_slot = work.scratch.get(word(scratch::triangle(0)));
            let mut last_link = if open { NO_LINK } else { slot_of(edges - 1) << 2 | 1 };
            let mut slot = first_slot;
            let mut node = work.scratch.get(word(scratch::node(round.bound, 0)));
            let mut from = unpack_point(mesh.points.get(u64::from(node & !(1 << 31))));
            let mut fresh = 0;
            let mut i = 0;
            while i < edges {
                trace!("FAN");
                let next_node = work.scratch.get(word(scratch::node(round.bound, i + 1)));
                let (a, b) = (node & !(1 << 31), next_node & !(1 << 31));
                let to = unpack_point(mesh.points.get(u64::from(b)));
                let mut old_flags = 0;
                if i < triangles {
                    trace!("FAN_REUSE");
                    old_flags = mesh.triangle_words.get(4 * u64::from(slot) + 3);
                } else {
                    trace!("FAN_NEW");
                }
                // Read before the list of fresh entries, which grows in the same place, can reach it.
                let after = i + 1;
                let listed = work.scratch.get(word(scratch::triangle(after.min(triangles - 1))));
                let next_slot = if after >= edges {
                    first_slot
                } else if after < triangles {
                    listed
                } else {
                    slot_of(after)
                };
                let segments = node >> 31
                    | ((b == end_a || b == end_b) as u32) << 1
                    | ((a == end_a || a == end_b) as u32) << 2;
                let class = classify([from, to, p], segments, round.cos_squared, round.floor_squared);
                let mut flags = segments | ALIVE | class | (old_flags & QUEUED);
                if flags & (BAD | QUEUED) == BAD {
                    trace!("FAN_BAD" = 133);
                    flags |= QUEUED;
                    work.scratch.set(word(scratch::triangle(fresh)), slot);
                    fresh += 1;
                } else {
                    trace!("FAN_OTHER");
                }
                let link = work.scratch.get(word(scratch::link(round.bound, i)));
                let next_link = if open && after == edges { NO_LINK } else { next_slot << 2 | 2 };
                let place = u64::from(slot);
                mesh.triangles.set(place, pack([a, b, point as u32, flags]));
                mesh.links.set(place, pack([link, next_link, last_link, 0]));
                if link != NO_LINK {
                    trace!("FAN_LINKED" = 131);
                    mesh.link_words.set(4 * u64::from(link >> 2) + u64::from(link & 3), slot << 2);
                } else {
                    trace!("FAN_BOUNDARY");
                }
                last_link = slot << 2 | 1;
                slot = next_slot;
                node = next_node;
                from = to;
                i += 1;
            }
            trace!("DONE" = 135);
            work.metas.set(u64::from(item), pack([fresh, 0, 0, 0]));
            work.states.set(u64::from(item), state::WON);
        }
    }
}

pub use kernels::*;
