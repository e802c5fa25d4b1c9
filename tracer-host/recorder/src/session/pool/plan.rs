//! Placement of launches' logs in an arena.
//!
//! An arena has all of log memory (`whole`) or one part of it (`part`):
//!
//! ```text
//! whole:  fixed, claimed | fixed, claimed | ...   reserve: fixed
//! part:   claimed                                 reserve: fixed
//! ```
//!
//! *Fixed* entries are the first segments of a launch, which it has from its start. *Claimed* entries are the
//! entries that it takes while it runs; their number is known when it has ended. Concurrent launches claim
//! from the same entries. The *reserve* is the end of an arena that overlapping launches use. In a part, it
//! holds the fixed entries of all launches. In a whole arena, it holds the fixed entries of launches that
//! began while others ran; other launches are placed after earlier ones.

use warptrace_abi::log::{
    FirstSegments, Fixed, MAX_FIRST_ENTRIES, MAX_SEGMENT_ENTRIES, RESERVED_ENTRIES, SEGMENT_MULTIPLE,
};
use warptrace_format::LANES;

use super::super::memory::Division;
use super::arena::Arena;

/// If each stream has one first segment, the first segments of a launch take at most a 1,024th of log memory,
/// and are as long as this limit allows. So the table of launches is full before log memory is full.
const STREAM_SHARE: u64 = 1024;
/// The same if each lane has a first segment. The share of long segments is smaller, because fixed segments
/// count as used even if nothing is written. With a larger share, a program with many small launches would be
/// drained after a few launches.
const LANE_SHARE: u64 = 4;
const LONG_LANE_SHARE: u64 = 64;
const LONG_FIRST_ENTRIES: u32 = 64;
/// If launches may overlap, the shares refer to one part. They apply in whole arenas too, because a kernel's
/// claims depend on the length of its first segments.
const PART_LANE_SHARE: u64 = 16;
const LONG_PART_LANE_SHARE: u64 = 256;
/// A lane's last segment may leave at most this share of the lane's log memory unused.
const SEGMENT_SHARE: u64 = 4;

/// The need of a launch, as far as known before it runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    /// Recorded warps on all tracks.
    pub(super) streams: u64,
    pub(super) account_bytes: u64,
    /// Entries that it may claim: at least twice the maximum of earlier launches of its kernel.
    pub(super) claims: u64,
    /// First segments in otherwise free memory.
    pub(super) wanted: FirstSegments,
}

/// How to place a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Effort {
    /// First segments have their full length, and all launches have room for their claims.
    Ample,
    /// First segments are as long as the free space allows.
    Least,
}

/// The arena has too little free memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Short;

#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) places: Vec<(Fixed, FirstSegments)>,
    /// Whether they are in the reserve.
    pub(super) in_reserve: bool,
    /// Whether the launch also uses the reserve.
    pub(super) takes_all: bool,
}

/// Plans the placement of launches that begin together. Fails if the arena has too little free memory.
pub(super) fn plan(
    arena: &Arena,
    division: &Division,
    needs: &[Need],
    effort: Effort,
) -> Result<Layout, Short> {
    let is_empty = arena.logged.is_empty();
    if arena.takes_all && !is_empty {
        // A launch that uses everything leaves no space for others.
        return Err(Short);
    }
    let takes_all =
        is_empty && matches!(needs, [need] if is_large(arena, division, need.streams)) && arena.is_whole;
    let in_reserve = arena.overlaps && !takes_all && (arena.unsettled > 0 || !arena.is_whole);
    let (mut accounts, mut claimed, mut from) = (arena.accounts_used, arena.ahead, None);
    let mut places = Vec::with_capacity(needs.len());
    for need in needs {
        let claims_end = claims_end(arena, division, need.streams, takes_all);
        let (start, end) = match in_reserve {
            true => (u64::from(arena.reserve_next), u64::from(arena.logs.end)),
            false => (arena.taken(), u64::from(claims_end)),
        };
        let from = from.get_or_insert(start);
        let wanted = need.wanted;
        let place = |first| Fixed::place(*from, need.streams, first);
        let fits = |first: FirstSegments| {
            let is_wanted = first.lanes <= wanted.lanes && first.total(1) <= wanted.total(1);
            is_wanted && place(first).end <= end
        };
        let first = match effort {
            Effort::Ample => wanted,
            Effort::Least => longest(division, wanted.lanes, fits),
        };
        let fixed = place(first);
        (accounts, claimed) = (accounts + need.account_bytes, claimed + need.claims);
        let claims_from = if in_reserve { arena.taken() } else { fixed.end };
        let is_ample = takes_all
            || claims_from + claimed <= u64::from(claims_end)
                && (!arena.ring || can_merge(arena, division, fixed.end, wanted.entries));
        if fixed.end > end || accounts > arena.account_bytes() || effort == Effort::Ample && !is_ample {
            return Err(Short);
        }
        *from = fixed.end;
        places.push((fixed, first));
    }
    if arena.logged.len() + needs.len() > division.launches() {
        return Err(Short);
    }
    Ok(Layout { places, in_reserve, takes_all })
}

/// Returns the end of the entries that a launch with this many streams may claim.
pub(super) fn claims_end(arena: &Arena, division: &Division, streams: u64, takes_all: bool) -> u32 {
    let end = if arena.is_whole { division.logs_end(streams) } else { arena.logs.end };
    if arena.overlaps && !takes_all { end.min(arena.reserve) } else { end }
}

/// Returns the segment length in entries for a launch with this many streams and `free` free entries.
pub(super) fn segment_entries(streams: u64, free: u64) -> u32 {
    let share = free / (streams * u64::from(LANES)).max(1) / SEGMENT_SHARE;
    let entries = share.clamp(u64::from(SEGMENT_MULTIPLE), u64::from(MAX_SEGMENT_ENTRIES)) as u32;
    // The largest power of two up to this number.
    1 << entries.ilog2()
}

/// Returns the start of a part's reserve, so that launches like these fill claims and reserve equally fast.
pub(super) fn boundary(logs: &std::ops::Range<u32>, needs: &[Need]) -> u32 {
    let length = u64::from(logs.end - logs.start);
    let fixed = |need: &Need| Fixed::place(0, need.streams, need.wanted).end;
    let fixed: u64 = needs.iter().map(fixed).sum();
    // A need is twice the claims of earlier launches.
    let claims: u64 = needs.iter().map(|need| need.claims / 2).sum();
    let share = u128::from(length) * u128::from(claims) / u128::from((fixed + claims).max(1));
    let claimed = (share as u64).clamp(length / 16, length / 4 * 3) as u32;
    (logs.start + claimed) / MAX_SEGMENT_ENTRIES * MAX_SEGMENT_ENTRIES
}

/// Returns true if a launch with this many streams also needs the reserve.
fn is_large(arena: &Arena, division: &Division, streams: u64) -> bool {
    let least = Fixed::place(RESERVED_ENTRIES.into(), streams, division.shortest);
    arena.overlaps && least.end > claims_end(arena, division, streams, false).into()
}

/// Returns true if each stream, with rings of `first_entries` entries or the lengths of earlier launches, can
/// be merged after logs up to `end`.
fn can_merge(arena: &Arena, division: &Division, end: u64, first_entries: u32) -> bool {
    let rings = arena.logged.iter().map(|launch| launch.first_entries);
    let longest = rings.fold(first_entries, u32::max);
    end + u64::from(LANES * longest) <= u64::from(division.log_entries)
}

/// Returns the first segments of a launch in otherwise free memory: one per lane if the lanes of its warps
/// diverge (`parts`), or if that is unknown; with times, only if long segments fit.
pub(super) fn wanted(
    [overlaps, ring]: [bool; 2],
    division: &Division,
    (streams, parts): (u64, Option<bool>),
) -> FirstSegments {
    let end = u64::from(division.logs_end(streams));
    let (all, lane_shares) = if overlaps {
        let arenas = u64::from(division.arenas);
        (u64::from(division.logs_end(u64::MAX)) / arenas, [PART_LANE_SHARE, LONG_PART_LANE_SHARE])
    } else {
        (end, [LANE_SHARE, LONG_LANE_SHARE])
    };
    let lanes = if parts == Some(false) { division.shortest.lanes } else { LANES };
    longest(division, lanes, |first| {
        if ring {
            return Fixed::place(RESERVED_ENTRIES.into(), streams, first).end <= end;
        }
        // With times, no search for classes shows whether lanes diverge.
        let stays_unknown = parts.is_none() && division.times != 0;
        if first.lanes == LANES && first.entries < LONG_FIRST_ENTRIES && stays_unknown {
            return false;
        }
        let share = match first {
            FirstSegments { lanes: 1, .. } => STREAM_SHARE,
            FirstSegments { entries, .. } => lane_shares[usize::from(entries >= LONG_FIRST_ENTRIES)],
        };
        first.total(streams) <= all / share
    })
}

/// Returns the longest first segments that fit, for `lanes` lanes if possible; the shortest if none fit.
fn longest(division: &Division, lanes: u32, fits: impl Fn(FirstSegments) -> bool) -> FirstSegments {
    let shortest = division.shortest;
    let lengths =
        || (0..).map(|shift| MAX_FIRST_ENTRIES >> shift).take_while(|&entries| entries >= shortest.entries);
    let of = |lanes| lengths().map(move |entries| FirstSegments { lanes, entries });
    of(lanes).chain(of(shortest.lanes)).find(|first| fits(*first)).unwrap_or(shortest)
}
