//! Arrays that the kernels share, and the bits in them.

use warptrace_device::Global;
#[cfg(not(target_arch = "nvptx64"))]
use warptrace_device::KernelArg;

/// No triangle across this edge.
pub const NO_LINK: u32 = u32::MAX;
/// Most triangles that links can name: `triangle << 2 | edge` must stay under [`NO_LINK`].
pub const MAX_TRIANGLES: u32 = (1 << 30) - 1;
/// Most points: bit 31 of a frontier's node says that its edge is a segment.
pub const MAX_POINTS: u32 = 1 << 31;

/// In a triangle's flags, bit `e` (0 to 2): edge `e` is a segment, which is kept (it may be split).
pub const SEGMENT_BITS: u32 = 0b111;
/// The slot holds a triangle.
pub const ALIVE: u32 = 1 << 3;
/// It has an angle under the bound and is to be refined.
pub const BAD: u32 = 1 << 4;
/// The worklist has an entry for this slot (exactly one).
pub const QUEUED: u32 = 1 << 5;
/// Left alone although an angle is under the bound: an edge is shorter than the floor, or a segment would
/// have to be split to less.
pub const SKIP_SHORT: u32 = 1 << 6;
/// Left alone: each angle under the bound lies between two segments, so that the input demands it.
pub const SKIP_CORNER: u32 = 1 << 7;
/// Left alone: rounding allows no cavity that is certainly star-shaped.
pub const SKIP_UNSURE: u32 = 1 << 8;

/// What has become of an item of the round.
pub mod state {
    /// The entry's triangle is not bad (any more).
    pub const DROPPED: u32 = 0;
    /// Its cavity is claimed.
    pub const CLAIMED: u32 = 1;
    /// It held its claim at the first check.
    pub const HELD: u32 = 2;
    /// It lost, but touches no winner, and has claimed again.
    pub const CONTENDER: u32 = 3;
    /// It waits for another round.
    pub const LOST: u32 = 4;
    /// Its cavity has more triangles than the scratch takes.
    pub const TOO_LARGE: u32 = 5;
    /// See [`SKIP_SHORT`](super::SKIP_SHORT).
    pub const SHORT: u32 = 6;
    /// See [`SKIP_UNSURE`](super::SKIP_UNSURE).
    pub const UNSURE: u32 = 7;
    /// It has won and retriangulates its cavity.
    pub const WON: u32 = 8;
}

/// Indices into [`DmrWork::counters`].
pub mod counter {
    /// Items that won: as many new points, and twice as many new slots for triangles.
    pub const WINNERS: u64 = 0;
    /// Entries appended to the worklist.
    pub const EMITTED: u64 = 1;
    /// Items whose cavity was too large.
    pub const TOO_LARGE: u64 = 2;
    /// Items left alone for good.
    pub const SKIPPED: u64 = 3;
    /// Items whose triangle was no longer bad.
    pub const DROPPED: u64 = 4;
    /// Winners that found no room and wait.
    pub const NO_ROOM: u64 = 5;
    /// Segments split.
    pub const SPLITS: u64 = 6;
    /// Winners of the second claim.
    pub const SECOND: u64 = 7;
    /// Number of counters.
    pub const COUNT: usize = 8;
}

/// The mesh on the device. The arrays' lengths are the capacities.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DmrMesh {
    /// x and y of each point.
    pub points: Global<u128>,
    /// Bit `i % 32` of word `i / 32`: two segments meet at input point `i` at under 60 degrees. Points past
    /// the end have no such corner.
    pub acute: Global<u32>,
    /// Corners and flags.
    pub triangles: Global<u128>,
    /// `triangles` in words: flags of `t` at `4 t + 3`.
    pub triangle_words: Global<u32>,
    /// Triangles across.
    pub links: Global<u128>,
    /// `links` in words: the link of edge `e` of `t` at `4 t + e`.
    pub link_words: Global<u32>,
    /// Who claims a triangle: `stage << 32 | priority`, see [`stage`]. Starts as all ones.
    pub owners: Global<u64>,
}

/// The worklist and what the items of a round keep between its launches.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DmrWork {
    /// The worklist: a ring whose length is a power of two.
    pub queue: Global<u32>,
    /// State of each item, see [`state`].
    pub states: Global<u32>,
    /// The point that each item will put in.
    pub centres: Global<u128>,
    /// Of each item: triangles in the cavity, edges of its frontier, and the ends of the segment that it
    /// splits (or [`NO_LINK`] twice). After the commit the first is the number of fresh entries for the
    /// worklist.
    pub metas: Global<u128>,
    /// The cavities, `word * items + item`, so that the lanes of a warp touch consecutive words. See
    /// [`scratch`].
    pub scratch: Global<u32>,
    /// A count per warp.
    pub warp_counts: Global<u32>,
    /// The sum of the counts of each block's warps.
    pub block_counts: Global<u32>,
    /// See [`counter`].
    pub counters: Global<u32>,
}

/// Numbers of one round.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DmrRound {
    /// Square of the cosine of the angle bound.
    pub cos_squared: f64,
    /// Square of the shortest edge that is still refined.
    pub floor_squared: f64,
    /// First worklist entry of the round, as a position in the ring.
    pub head: u32,
    /// Where the worklist ends, as a position in the ring.
    pub tail: u32,
    /// Items of the round: that many threads work. (For `dmr_enqueue`: rounds among which the worklist is
    /// dealt.)
    pub items: u32,
    /// Most triangles of a cavity.
    pub bound: u32,
    /// Number of the round, from 0.
    pub round: u32,
    /// Points in use.
    pub points: u32,
    /// Slots of triangles in use.
    pub triangles: u32,
    /// Makes the size a multiple of 8; 0.
    pub unused: u32,
}

macro_rules! words {
    ($($type:ty { $($field:ident),* })*) => {$(
        // SAFETY: `#[repr(C)]`, fields in this order, none needs padding before it, and the whole none after
        // it.
        #[cfg(not(target_arch = "nvptx64"))]
        unsafe impl KernelArg for $type {
            fn to_bytes(&self) -> Vec<u8> {
                let bytes: Vec<u8> = [$(self.$field.to_bytes()),*].concat();
                assert_eq!(bytes.len(), size_of::<Self>(), "an argument has padding");
                bytes
            }
        }
    )*};
}
words! {
    DmrMesh { points, acute, triangles, triangle_words, links, link_words, owners }
    DmrWork { queue, states, centres, metas, scratch, warp_counts, block_counts, counters }
    DmrRound { cos_squared, floor_squared, head, tail, items, bound, round, points, triangles, unused }
}

/// Words of an item's scratch, by kind. The kinds follow each other, each `items` words a position.
pub mod scratch {
    /// Position of triangle `i` of the cavity.
    #[inline(always)]
    pub const fn triangle(i: u32) -> u32 {
        i
    }
    /// Position of the node at which edge `i` of the frontier starts (`i` up to the number of edges, where it
    /// ends); bit 31: the edge is a segment.
    #[inline(always)]
    pub const fn node(bound: u32, i: u32) -> u32 {
        bound + i
    }
    /// Position of the link across edge `i` of the frontier. While a cavity grows, the edges that are still
    /// to be looked at stand at the end of this part, growing down: together they are never more than `bound
    /// + 2`.
    #[inline(always)]
    pub const fn link(bound: u32, i: u32) -> u32 {
        2 * bound + 3 + i
    }
    /// Words that an item needs.
    pub const fn words(bound: u32) -> u32 {
        3 * bound + 5
    }
}

/// Upper half of a claim: later claims are smaller, so that a minimum replaces what earlier rounds left
/// behind. `phase` is 0 for the first claim of a round, 1 for the second, 2 for a claim that has won.
#[inline(always)]
pub const fn stage(round: u32, phase: u32) -> u64 {
    ((u32::MAX - round.wrapping_mul(4).wrapping_add(phase)) as u64) << 32
}

/// Priority of an item in a round; the smallest wins. A bijection of the item for each round (the finaliser
/// of MurmurHash3), so no two are equal, and neighbours in the worklist get unrelated ones.
#[inline(always)]
pub const fn priority(item: u32, round: u32) -> u64 {
    let mut x = item ^ round.wrapping_mul(0x9e37_79b9);
    x = (x ^ (x >> 16)).wrapping_mul(0x85eb_ca6b);
    x = (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35);
    (x ^ (x >> 16)) as u64
}

/// Four words as a record.
#[inline(always)]
pub const fn pack(words: [u32; 4]) -> u128 {
    words[0] as u128 | (words[1] as u128) << 32 | (words[2] as u128) << 64 | (words[3] as u128) << 96
}

/// A record as four words.
#[inline(always)]
pub const fn unpack(record: u128) -> [u32; 4] {
    [record as u32, (record >> 32) as u32, (record >> 64) as u32, (record >> 96) as u32]
}

/// A point as a record.
#[inline(always)]
pub const fn pack_point(point: [f64; 2]) -> u128 {
    point[0].to_bits() as u128 | (point[1].to_bits() as u128) << 64
}

/// A record as a point.
#[inline(always)]
pub const fn unpack_point(record: u128) -> [f64; 2] {
    [f64::from_bits(record as u64), f64::from_bits((record >> 64) as u64)]
}

/// The edge after `edge` (0 to 2) in its triangle.
#[inline(always)]
pub const fn next(edge: u32) -> u32 {
    if edge >= 2 { 0 } else { edge + 1 }
}

/// The edge before `edge` (0 to 2) in its triangle.
#[inline(always)]
pub const fn previous(edge: u32) -> u32 {
    if edge == 0 { 2 } else { edge - 1 }
}

/// Word `i` (0 to 2) of three, without an array in memory.
#[inline(always)]
pub const fn pick(words: [u32; 4], i: u32) -> u32 {
    if i == 0 {
        words[0]
    } else if i == 1 {
        words[1]
    } else {
        words[2]
    }
}
