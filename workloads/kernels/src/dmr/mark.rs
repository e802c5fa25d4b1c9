//! Phase 1 of a round: grow cavities and claim them.

use warptrace_device::{atomic, simt};
use warptrace_macros::kernels;

use super::geometry::{circumcentre, distance_squared, encroaches, is_in_circle, is_left, split_point};
use super::layout::{
    ALIVE, BAD, DmrMesh, DmrRound, DmrWork, NO_LINK, counter, next, pack, pack_point, pick, previous,
    priority, scratch, stage, state, unpack, unpack_point,
};
use super::scan::clear;

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

#[kernels(device = warptrace_device, only_marked, first_id = 25, automatic = 40, callees = { crate::dmr::scan::automatic::clear })]
mod kernels {
    use super::*;

    /// Grows the cavity of point `p` into the scratch of `item`.
    ///
    /// Depth first, counter-clockwise, so that the frontier comes out in order. Starts from triangle
    /// `root >> 2` and looks at its three edges (`splitting` false), or from the triangles on both sides of
    /// segment `root` and looks at their other edges, from the segment's end `b` round to `a` and, if there
    /// is an other side, back to `b`.
    ///
    /// A triangle joins if `p` is certainly in its circle, or does not certainly lie to the left of the edge
    /// through which it is met: so every edge of the frontier is seen from `p`, whatever the rounding.
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
        // SAFETY: scratch positions stay below `scratch::words(bound)`: a cavity of n triangles has at most
        // n + 2 edges that wait or are on the frontier, and n stays within the bound. Links and corners of
        // living triangles name living triangles and points.
        unsafe {
            work.scratch.set(word(scratch::triangle(0)), triangle);
            if splitting {
                trace!("TRY_SPLIT");
                let twin = mesh.link_words.get(4 * u64::from(triangle) + u64::from(edge));
                waiting = 0;
                if twin != NO_LINK {
                    trace!("SPLIT_INSIDE");
                    work.scratch.set(word(scratch::triangle(1)), twin >> 2);
                    growth.triangles = 2;
                    work.scratch.set(word(top), twin & !3 | previous(twin & 3));
                    work.scratch.set(word(top - 1), twin & !3 | next(twin & 3));
                    waiting = 2;
                } else {
                    trace!("SPLIT_BOUNDARY");
                }
                work.scratch.set(word(top - waiting), root & !3 | previous(edge));
                work.scratch.set(word(top - waiting - 1), root & !3 | next(edge));
                waiting += 2;
            } else {
                trace!("TRY_CENTRE" = 24);
                work.scratch.set(word(top), root & !3 | 2);
                work.scratch.set(word(top - 1), root & !3 | 1);
                work.scratch.set(word(top - 2), root & !3);
                waiting = 3;
            }
            while waiting > 0 {
                trace!("EDGE" = 28);
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
                    trace!("SEGMENT");
                    if !splitting && (!visible || encroaches(a, b, p)) {
                        trace!("ENCROACHED");
                        growth.encroached = at_edge;
                        return growth;
                    }
                    if !visible {
                        trace!("HIDDEN");
                        growth.state = state::UNSURE;
                        return growth;
                    }
                    trace!("SEGMENT_KEPT");
                } else {
                    trace!("INNER");
                    let across = unpack(mesh.triangles.get(u64::from(link >> 2)));
                    let c = unpack_point(mesh.points.get(u64::from(pick(across, previous(link & 3)))));
                    if !visible || is_in_circle(b, a, c, p) {
                        trace!("CROSS");
                        if growth.triangles >= bound {
                            trace!("FULL");
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
                    trace!("FRONTIER");
                }
                work.scratch.set(word(scratch::node(bound, growth.edges)), node | is_segment << 31);
                work.scratch.set(word(scratch::link(bound, growth.edges)), link);
                growth.edges += 1;
            }
            trace!("GROWN");
            growth
        }
    }

    /// Grows the cavity of each item and claims its triangles.
    ///
    /// One-dimensional grid of at least `round.items` threads, blocks of whole warps. The scratch has
    /// `scratch::words(bound)` words an item; `bound` is at least 2.
    #[kernel]
    pub fn dmr_mark(mesh: DmrMesh, work: DmrWork, round: DmrRound) {
        trace!("ENTER" = 20);
        // SAFETY: the host has two places a block.
        unsafe { clear(&work) };
        let item = simt::global_thread_x();
        if item >= round.items {
            trace!("OUTSIDE");
            return;
        }
        let mask = work.queue.len() as u32 - 1;
        // SAFETY: entries of the worklist are triangles in use; in this launch the mesh is only read, but for
        // the owners, which are atomics; states, metas, centres and scratch are the item's own.
        unsafe {
            let bad = work.queue.get(u64::from(round.head.wrapping_add(item) & mask));
            let corners = unpack(mesh.triangles.get(u64::from(bad)));
            if corners[3] & (ALIVE | BAD) != ALIVE | BAD {
                trace!("DROP");
                work.states.set(u64::from(item), state::DROPPED);
                atomic::add_u32(work.counters.at(counter::DROPPED), 1);
                return;
            }
            trace!("REFINE");
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
                // At most a second time: while a segment is split, no segment is reported.
                if growth.encroached == NO_LINK {
                    break;
                }
                trace!("RETRY" = 38);
                root = growth.encroached;
                let split = split_of(&mesh, root);
                if split.length_squared < 4.0 * round.floor_squared {
                    trace!("TOO_SHORT");
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
                    trace!("CLAIM");
                    let position = u64::from(scratch::triangle(i)) * u64::from(round.items) + u64::from(item);
                    let triangle = work.scratch.get(position);
                    if atomic::min_u64(mesh.owners.at(u64::from(triangle)), key) == key {
                        trace!("TWICE");
                        growth.state = state::UNSURE;
                        break;
                    }
                    i += 1;
                }
                trace!("CLAIMED");
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
                trace!("NO_CAVITY");
            }
            work.states.set(u64::from(item), growth.state);
        }
    }
}

pub use kernels::*;
