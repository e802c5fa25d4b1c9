//! Arrays that the kernels share, and their bits.

use warptrace_device::Global;
#[cfg(not(target_arch = "nvptx64"))]
use warptrace_device::KernelArg;

/// Link of an edge without a triangle across it.
pub const NO_LINK: u32 = u32::MAX;
/// Limit on triangles that links can name: `triangle << 2 | edge` must be below [`NO_LINK`].
pub const MAX_TRIANGLES: u32 = (1 << 30) - 1;
/// Limit on points. Bit 31 of a frontier node marks its edge as a segment.
pub const MAX_POINTS: u32 = 1 << 31;

/// Bits 0 to 2 of a triangle's flags. Bit `e`: edge `e` is a segment, which is kept but may be split.
pub const SEGMENT_BITS: u32 = 0b111;
/// The slot contains a triangle.
pub const ALIVE: u32 = 1 << 3;
/// The triangle has an angle below the bound, and is to be refined.
pub const BAD: u32 = 1 << 4;
/// The worklist has one entry for this slot.
pub const QUEUED: u32 = 1 << 5;
/// Left alone despite an angle below the bound: an edge is shorter than the floor, or a split would make a
/// segment shorter than that.
pub const SKIP_SHORT: u32 = 1 << 6;
/// Left alone: each angle below the bound is between two segments, so the input requires it.
pub const SKIP_CORNER: u32 = 1 << 7;
/// Left alone: because of rounding, no cavity is certainly star-shaped.
pub const SKIP_UNSURE: u32 = 1 << 8;

/// State of an item of the round.
pub mod state {
    /// The triangle of the entry is no longer bad.
    pub const DROPPED: u32 = 0;
    /// The item has claimed its cavity.
    pub const CLAIMED: u32 = 1;
    /// The item held its claim at the first check.
    pub const HELD: u32 = 2;
    /// The item lost, touches no winner, and has claimed again.
    pub const CONTENDER: u32 = 3;
    /// The item waits for another round.
    pub const LOST: u32 = 4;
    /// The cavity has more triangles than the scratch can store.
    pub const TOO_LARGE: u32 = 5;
    /// See [`SKIP_SHORT`](super::SKIP_SHORT).
    pub const SHORT: u32 = 6;
    /// See [`SKIP_UNSURE`](super::SKIP_UNSURE).
    pub const UNSURE: u32 = 7;
    /// The item has won and retriangulates its cavity.
    pub const WON: u32 = 8;
}

/// Indices into [`DmrWork::counters`].
pub mod counter {
    /// Items that won. Each adds one point and two slots for triangles.
    pub const WINNERS: u64 = 0;
    /// Entries appended to the worklist.
    pub const EMITTED: u64 = 1;
    /// Items whose cavity was too large.
    pub const TOO_LARGE: u64 = 2;
    /// Items that are left alone permanently.
    pub const SKIPPED: u64 = 3;
    /// Items whose triangle was no longer bad.
    pub const DROPPED: u64 = 4;
    /// Winners that found no room, and wait.
    pub const NO_ROOM: u64 = 5;
    /// Segments that were split.
    pub const SPLITS: u64 = 6;
    /// Winners of the second claim.
    pub const SECOND: u64 = 7;
    /// Number of counters.
    pub const COUNT: usize = 8;
}

/// The mesh on the device. Array lengths are the capacities.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DmrMesh {
    /// x and y of each point.
    pub points: Global<u128>,
    /// Bit `i % 32` of word `i / 32`: two segments meet at input point `i` at less than 60 degrees. Later
    /// points have no such corner.
    pub acute: Global<u32>,
    /// Corners and flags.
    pub triangles: Global<u128>,
    /// `triangles` as words. The flags of triangle `t` are at `4 t + 3`.
    pub triangle_words: Global<u32>,
    /// Links to the triangles across the edges.
    pub links: Global<u128>,
    /// `links` as words. The link of edge `e` of triangle `t` is at `4 t + e`.
    pub link_words: Global<u32>,
    /// Claims of triangles: `stage << 32 | priority`, see [`stage`]. Initially all ones.
    pub owners: Global<u64>,
}

/// The worklist, and the items' data between launches of a round.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DmrWork {
    /// The worklist, a ring. Its length is a power of two.
    pub queue: Global<u32>,
    /// State of each item, see [`state`].
    pub states: Global<u32>,
    /// The point that each item inserts.
    pub centres: Global<u128>,
    /// For each item: triangles in the cavity, edges of its frontier, and the ends of the segment that it
    /// splits (or [`NO_LINK`] twice). After the commit, the first word is the number of new entries for the
    /// worklist.
    pub metas: Global<u128>,
    /// The cavities: `word * items + item`, so that the lanes of a warp access consecutive words. See
    /// [`scratch`].
    pub scratch: Global<u32>,
    /// A count for each warp.
    pub warp_counts: Global<u32>,
    /// For each block, the sum of the counts of its warps.
    pub block_counts: Global<u32>,
    /// See [`counter`].
    pub counters: Global<u32>,
}

/// Parameters of a round.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DmrRound {
    /// Square of the cosine of the angle bound.
    pub cos_squared: f64,
    /// Square of the length of the shortest edge that is refined.
    pub floor_squared: f64,
    /// Position of the round's first worklist entry in the ring.
    pub head: u32,
    /// Position of the worklist's end in the ring.
    pub tail: u32,
    /// Items of the round, one for each thread. For `dmr_enqueue`: number of rounds to which the worklist is
    /// dealt.
    pub items: u32,
    /// Limit on the triangles of a cavity.
    pub bound: u32,
    /// Number of the round, from 0.
    pub round: u32,
    /// Points in use.
    pub points: u32,
    /// Triangle slots in use.
    pub triangles: u32,
    /// Padding to a multiple of 8 bytes; 0.
    pub unused: u32,
}

macro_rules! words {
    ($($type:ty { $($field:ident),* })*) => {$(
        // SAFETY: `#[repr(C)]`, fields in this order, no padding between the fields or after them.
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

/// Words of an item's scratch, by kind. Each position has one word for each of the `items` items.
pub mod scratch {
    /// Returns the position of triangle `i` of the cavity.
    #[inline(always)]
    pub const fn triangle(i: u32) -> u32 {
        i
    }
    /// Returns the position of the node at which edge `i` of the frontier starts. `i` is at most the number
    /// of edges; that entry is the end. Bit 31: the edge is a segment.
    #[inline(always)]
    pub const fn node(bound: u32, i: u32) -> u32 {
        bound + i
    }
    /// Returns the position of the link across edge `i` of the frontier. While a cavity grows, pending edges
    /// are at the end of this part and grow down. Links and pending edges are never more than `bound + 2`.
    #[inline(always)]
    pub const fn link(bound: u32, i: u32) -> u32 {
        2 * bound + 3 + i
    }
    /// Returns the number of words for an item.
    pub const fn words(bound: u32) -> u32 {
        3 * bound + 5
    }
}

/// Returns the upper half of a claim. Later claims are smaller, so a minimum replaces claims of earlier
/// rounds. `phase` is 0 for the first claim of a round, 1 for the second, 2 for a winner's mark.
#[inline(always)]
pub const fn stage(round: u32, phase: u32) -> u64 {
    ((u32::MAX - round.wrapping_mul(4).wrapping_add(phase)) as u64) << 32
}

/// Returns the priority of an item in a round; the smallest wins. In each round this is a bijection (the
/// finaliser of MurmurHash3), so no two priorities are equal. Neighbours in the worklist get unrelated
/// priorities.
#[inline(always)]
pub const fn priority(item: u32, round: u32) -> u64 {
    let mut x = item ^ round.wrapping_mul(0x9e37_79b9);
    x = (x ^ (x >> 16)).wrapping_mul(0x85eb_ca6b);
    x = (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35);
    (x ^ (x >> 16)) as u64
}

/// Packs four words into a record.
#[inline(always)]
pub const fn pack(words: [u32; 4]) -> u128 {
    words[0] as u128 | (words[1] as u128) << 32 | (words[2] as u128) << 64 | (words[3] as u128) << 96
}

/// Unpacks a record into four words.
#[inline(always)]
pub const fn unpack(record: u128) -> [u32; 4] {
    [record as u32, (record >> 32) as u32, (record >> 64) as u32, (record >> 96) as u32]
}

/// Packs a point into a record.
#[inline(always)]
pub const fn pack_point(point: [f64; 2]) -> u128 {
    point[0].to_bits() as u128 | (point[1].to_bits() as u128) << 64
}

/// Unpacks a record into a point.
#[inline(always)]
pub const fn unpack_point(record: u128) -> [f64; 2] {
    [f64::from_bits(record as u64), f64::from_bits((record >> 64) as u64)]
}

/// Returns the edge after `edge` (0 to 2) in its triangle.
#[inline(always)]
pub const fn next(edge: u32) -> u32 {
    if edge >= 2 { 0 } else { edge + 1 }
}

/// Returns the edge before `edge` (0 to 2) in its triangle.
#[inline(always)]
pub const fn previous(edge: u32) -> u32 {
    if edge == 0 { 2 } else { edge - 1 }
}

/// Returns word `i` (0 to 2), without an array in memory.
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
