//! Phase 1 of a round: grow cavities and claim them.

use warptrace_device::{atomic, simt, trace_points};
use warptrace_macros::kernels;

use super::geometry::{circumcentre, distance_squared, encroaches, is_in_circle, is_left, split_point};
use super::layout::{
    ALIVE, BAD, DmrMesh, DmrRound, DmrWork, NO_LINK, counter, next, pack, pack_point, pick, previous,
    priority, scratch, stage, state, unpack, unpack_point,
};
use super::scan::clear;

trace_points! {
    /// The decisions of [`dmr_mark`](super::dmr_mark()).
    pub mod at in "mark.rs" {
        ENTER = 20: "thread starts",
        OUTSIDE = 21: "no item for this thread",
        DROP = 22: "the entry's triangle is not bad any more",
        REFINE = 23: "the triangle is bad",
        TRY_CENTRE = 24: "the cavity of the circumcentre is grown",
        TRY_SPLIT = 25: "the cavity of a segment's split point is grown",
        SPLIT_INSIDE = 26: "the segment has triangles on both sides",
        SPLIT_BOUNDARY = 27: "the segment is on the boundary",
        EDGE = 28: "an edge of the cavity is looked at",
        SEGMENT = 29: "it is a segment",
        ENCROACHED = 30: "the circumcentre encroaches upon it",
        HIDDEN = 31: "the split point does not certainly see it",
        SEGMENT_KEPT = 32: "it is kept as an edge of the frontier",
        INNER = 33: "it has a triangle across and is no segment",
        CROSS = 34: "the triangle across joins the cavity",
        FULL = 35: "there is no room for it",
        FRONTIER = 36: "the triangle across stays",
        GROWN = 37: "the cavity is whole",
        RETRY = 38: "the encroached segment is to be split",
        TOO_SHORT = 39: "it is too short to be split",
        CLAIM = 40: "a triangle of the cavity is claimed",
        TWICE = 41: "it was in the cavity already",
        CLAIMED = 42: "all are claimed",
        NO_CAVITY = 43: "there is no cavity to claim",
    }
}

/// A cavity that could not be grown, and why; else [`state::CLAIMED`].
struct Growth {
    state: u32,
    /// Triangles in the cavity.
    triangles: u32,
    /// Edges of its frontier.
    edges: u32,
    /// The encroached segment as `triangle << 2 | edge`, or [`NO_LINK`].
    encroached: u32,
}

/// Which points a segment's ends are, and where it is split.
struct Split {
    a: u32,
    b: u32,
    at: [f64; 2],
    length_squared: f64,
}

/// Reads whether two segments meet at an acute angle at input point `point`.
///
/// # Safety
/// `mesh` is valid.
#[inline(always)]
unsafe fn is_acute(mesh: &DmrMesh, point: u32) -> bool {
    let words = mesh.acute.len();
    // Past the end: a word that exists, and an answer of false. There is always one word.
    let word = u64::from(point / 32);
    // SAFETY: below the length.
    let bits = unsafe { mesh.acute.get(word.min(words - 1)) };
    word < words && bits >> (point % 32) & 1 != 0
}

/// Where edge `edge & 3` of triangle `edge >> 2` is split.
///
/// # Safety
/// `mesh` is valid and the triangle is alive.
#[inline(always)]
unsafe fn split_of(mesh: &DmrMesh, edge: u32) -> Split {
    // SAFETY: corners of living triangles are points.
    unsafe {
        let corners = unpack(mesh.triangles.get(u64::from(edge >> 2)));
        let (a, b) = (pick(corners, edge & 3), pick(corners, next(edge & 3)));
        let from = unpack_point(mesh.points.get(u64::from(a)));
        let to = unpack_point(mesh.points.get(u64::from(b)));
        let at = split_point(from, to, is_acute(mesh, a), is_acute(mesh, b));
        Split { a, b, at, length_squared: distance_squared(from, to) }
    }
}

#[kernels(device = warptrace_device, hand_placed, first_id = 40, callees = { crate::dmr::scan::automatic::clear })]
mod kernels {
    use super::*;

    /// Grows the cavity of point `p` into the scratch of `item`.
    ///
    /// Depth first, counter-clockwise, so that the frontier comes out in order. Starts from triangle `root >> 2`
    /// and looks at its three edges (`splitting` false), or from the triangles on both sides of segment `root`
    /// and looks at their other edges, from the segment's end `b` round to `a` and, if there is an other side,
    /// back to `b`.
    ///
    /// A triangle joins if `p` is certainly in its circle, or if `p` does not certainly lie to the left of the
    /// edge through which it is met: so every edge of the frontier is seen from `p`, whatever the rounding.
    ///
    /// # Safety
    /// `mesh` and `work` are valid and not written meanwhile but for this item's scratch.
    #[inline(always)]
    unsafe fn grow(
        mesh: &DmrMesh,
        work: &DmrWork,
        round: &DmrRound,
        item: u32,
        root: u32,
        splitting: bool,
        p: [f64; 2],
    ) -> Growth {
        let bound = round.bound;
        let word = |position: u32| u64::from(position) * u64::from(round.items) + u64::from(item);
        let top = scratch::link(bound, bound + 1);
        let mut growth = Growth { state: state::CLAIMED, triangles: 1, edges: 0, encroached: NO_LINK };
        let (triangle, edge) = (root >> 2, root & 3);
        let mut waiting;
        // SAFETY: scratch positions stay below `scratch::words(bound)`: a cavity of n triangles has at most n + 2
        // edges that wait or are on the frontier, and n stays within the bound. Links and corners of living
        // triangles name living triangles and points.
        unsafe {
            work.scratch.set(word(scratch::triangle(0)), triangle);
            if splitting {
                trace_loc(at::TRY_SPLIT);
                let twin = mesh.link_words.get(4 * u64::from(triangle) + u64::from(edge));
                waiting = 0;
                if twin != NO_LINK {
                    trace_loc(at::SPLIT_INSIDE);
                    work.scratch.set(word(scratch::triangle(1)), twin >> 2);
                    growth.triangles = 2;
                    work.scratch.set(word(top), twin & !3 | previous(twin & 3));
                    work.scratch.set(word(top - 1), twin & !3 | next(twin & 3));
                    waiting = 2;
                } else {
                    trace_loc(at::SPLIT_BOUNDARY);
                }
                work.scratch.set(word(top - waiting), root & !3 | previous(edge));
                work.scratch.set(word(top - waiting - 1), root & !3 | next(edge));
                waiting += 2;
            } else {
                trace_loc(at::TRY_CENTRE);
                work.scratch.set(word(top), root & !3 | 2);
                work.scratch.set(word(top - 1), root & !3 | 1);
                work.scratch.set(word(top - 2), root & !3);
                waiting = 3;
            }
            while waiting > 0 {
                trace_loc(at::EDGE);
                waiting -= 1;
                let at_edge = work.scratch.get(word(top - waiting));
                let (triangle, edge) = (u64::from(at_edge >> 2), at_edge & 3);
                let corners = unpack(mesh.triangles.get(triangle));
                let link = mesh.link_words.get(4 * triangle + u64::from(edge));
                let node = pick(corners, edge);
                let a = unpack_point(mesh.points.get(u64::from(node)));
                let b = unpack_point(mesh.points.get(u64::from(pick(corners, next(edge)))));
                let visible = is_left(a, b, p);
                let is_segment = corners[3] >> edge & 1;
                if is_segment != 0 {
                    trace_loc(at::SEGMENT);
                    if !splitting && (!visible || encroaches(a, b, p)) {
                        trace_loc(at::ENCROACHED);
                        growth.encroached = at_edge;
                        return growth;
                    }
                    if !visible {
                        trace_loc(at::HIDDEN);
                        growth.state = state::UNSURE;
                        return growth;
                    }
                    trace_loc(at::SEGMENT_KEPT);
                } else {
                    trace_loc(at::INNER);
                    let across = unpack(mesh.triangles.get(u64::from(link >> 2)));
                    let c = unpack_point(mesh.points.get(u64::from(pick(across, previous(link & 3)))));
                    if !visible || is_in_circle(b, a, c, p) {
                        trace_loc(at::CROSS);
                        if growth.triangles >= bound {
                            trace_loc(at::FULL);
                            growth.state = state::TOO_LARGE;
                            return growth;
                        }
                        work.scratch.set(word(scratch::triangle(growth.triangles)), link >> 2);
                        growth.triangles += 1;
                        work.scratch.set(word(top - waiting), link & !3 | previous(link & 3));
                        work.scratch.set(word(top - waiting - 1), link & !3 | next(link & 3));
                        waiting += 2;
                        continue;
                    }
                    trace_loc(at::FRONTIER);
                }
                work.scratch.set(word(scratch::node(bound, growth.edges)), node | is_segment << 31);
                work.scratch.set(word(scratch::link(bound, growth.edges)), link);
                growth.edges += 1;
            }
            trace_loc(at::GROWN);
            growth
        }
    }

    /// Grows the cavity of each item and claims its triangles.
    ///
    /// One-dimensional grid of at least `round.items` threads, blocks of whole warps. The scratch has
    /// `scratch::words(bound)` words an item; `bound` is at least 2.
    #[kernel]
    pub fn dmr_mark(mesh: DmrMesh, work: DmrWork, round: DmrRound) {
        trace_loc(at::ENTER);
        // SAFETY: the host has two places a block.
        unsafe { clear(&work) };
        let item = simt::global_thread_x();
        if item >= round.items {
            trace_loc(at::OUTSIDE);
            return;
        }
        let mask = work.queue.len() as u32 - 1;
        // SAFETY: entries of the worklist are triangles in use; in this launch the mesh is only read, but for
        // the owners, which are atomics; states, metas, centres and scratch are the item's own.
        unsafe {
            let bad = work.queue.get(u64::from(round.head.wrapping_add(item) & mask));
            let corners = unpack(mesh.triangles.get(u64::from(bad)));
            if corners[3] & (ALIVE | BAD) != ALIVE | BAD {
                trace_loc(at::DROP);
                work.states.set(u64::from(item), state::DROPPED);
                atomic::add_u32(work.counters.at(counter::DROPPED), 1);
                return;
            }
            trace_loc(at::REFINE);
            let mut p = circumcentre(
                unpack_point(mesh.points.get(u64::from(corners[0]))),
                unpack_point(mesh.points.get(u64::from(corners[1]))),
                unpack_point(mesh.points.get(u64::from(corners[2]))),
            );
            let mut root = bad << 2;
            let mut splitting = false;
            let mut ends = [NO_LINK; 2];
            let mut growth;
            loop {
                growth = grow(&mesh, &work, &round, item, root, splitting, p);
                // A second time at most: while a segment is split none is reported.
                if growth.encroached == NO_LINK {
                    break;
                }
                trace_loc(at::RETRY);
                root = growth.encroached;
                let split = split_of(&mesh, root);
                if split.length_squared < 4.0 * round.floor_squared {
                    trace_loc(at::TOO_SHORT);
                    growth.state = state::SHORT;
                    break;
                }
                p = split.at;
                ends = [split.a, split.b];
                splitting = true;
            }
            if growth.state == state::CLAIMED {
                let key = stage(round.round, 0) | priority(item, round.round);
                let mut i = 0;
                while i < growth.triangles {
                    trace_loc(at::CLAIM);
                    let position = u64::from(scratch::triangle(i)) * u64::from(round.items) + u64::from(item);
                    let triangle = work.scratch.get(position);
                    if atomic::min_u64(mesh.owners.at(u64::from(triangle)), key) == key {
                        trace_loc(at::TWICE);
                        growth.state = state::UNSURE;
                        break;
                    }
                    i += 1;
                }
                trace_loc(at::CLAIMED);
                // Where the frontier ends: where it started, or, on the boundary, at the segment's other end.
                let open = splitting && growth.edges == growth.triangles + 1;
                let start = work
                    .scratch
                    .get(u64::from(scratch::node(round.bound, 0)) * u64::from(round.items) + u64::from(item));
                let end = u64::from(scratch::node(round.bound, growth.edges)) * u64::from(round.items)
                    + u64::from(item);
                work.scratch.set(end, if open { ends[0] } else { start & !(1 << 31) });
                work.centres.set(u64::from(item), pack_point(p));
                work.metas.set(u64::from(item), pack([growth.triangles, growth.edges, ends[0], ends[1]]));
            } else {
                trace_loc(at::NO_CAVITY);
            }
            work.states.set(u64::from(item), growth.state);
        }
    }
}

pub use kernels::*;
