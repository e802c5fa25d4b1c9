//! Where in an arena launches have their logs.
//!
//! ```text
//! whole:  fixed, claimed | fixed, claimed | ...   reserve: fixed of launches
//!         launches that began when none ran       that began when others ran
//! part:   claimed                                 fixed of all launches
//! ```
//! What a launch has from its start, its first segments, is fixed. What it claims is known when it has
//! ended: so in an arena that has all of log memory a launch that begins when none runs has its place behind
//! those before it. Launches that run at the same time claim from the same entries, and what is fixed lies
//! apart from these.

use warptrace_abi::log::{
    FirstSegments, Fixed, MAX_FIRST_ENTRIES, MAX_SEGMENT_ENTRIES, RESERVED_ENTRIES, SEGMENT_MULTIPLE,
};
use warptrace_format::LANES;

use super::super::memory::Division;
use super::arena::Arena;

/// Part of log memory that a launch's first segments take at most, if each stream has one: they are as long as fits
/// into that. So before the table of launches is full, log memory is not.
const STREAM_SHARE: u64 = 1024;
/// The same if each lane has one. Long ones get less, for all of them counts as taken, whatever is written: a
/// program of many small launches would be drained after a few of them.
const LANE_SHARE: u64 = 4;
const LONG_LANE_SHARE: u64 = 64;
/// Entries of a first segment from which on it is long.
const LONG_FIRST_ENTRIES: u32 = 64;
/// The same of a part of log memory that launches fill which overlap, wherever they have their place: how
/// much a launch claims depends on it.
const PART_LANE_SHARE: u64 = 16;
const LONG_PART_LANE_SHARE: u64 = 256;
/// Each lane may leave this part of its share of log memory unused, in its last segment.
const SEGMENT_SHARE: u64 = 4;

/// What a launch needs, as far as is known before it runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    /// Its recorded warps, once for each track.
    pub(super) streams: u64,
    pub(super) account_bytes: u64,
    /// Entries that it may claim: twice as many as a launch of its kernel before. (0 if that is not known.)
    pub(super) claims: u64,
    /// Whether the lanes of its warps part, if that is known.
    pub(super) parts: Option<bool>,
}

/// How a launch is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Effort {
    /// With first segments as long as they would be in an empty arena, and room for what all launches may
    /// claim.
    Ample,
    /// With what there is.
    Least,
}

/// An arena has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Short;

/// Where launches have what is fixed.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) places: Vec<(Fixed, FirstSegments)>,
    /// Whether it is among what is fixed of launches that overlap.
    pub(super) in_reserve: bool,
    /// Whether the launch has the entries of the reserve, too.
    pub(super) takes_all: bool,
}

/// Finds room for launches that begin at once. Changes nothing.
///
/// # Errors
/// If there is none.
pub(super) fn plan(
    arena: &Arena,
    division: &Division,
    needs: &[Need],
    effort: Effort,
) -> Result<Layout, Short> {
    let is_empty = arena.logged.is_empty();
    if arena.takes_all && !is_empty {
        // Next to a launch that has all, there is nothing.
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
        let wanted = wanted(arena, division, need);
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

/// Index of the entry after the last one that a launch with this many streams may claim.
pub(super) fn claims_end(arena: &Arena, division: &Division, streams: u64, takes_all: bool) -> u32 {
    let end = if arena.is_whole { division.logs_end(streams) } else { arena.logs.end };
    if arena.overlaps && !takes_all { end.min(arena.reserve) } else { end }
}

/// Entries of the segments that a launch with this many streams claims, where this many entries are free for
/// it.
pub(super) fn segment_entries(streams: u64, free: u64) -> u32 {
    let share = free / (streams * u64::from(LANES)).max(1) / SEGMENT_SHARE;
    let entries = share.clamp(u64::from(SEGMENT_MULTIPLE), u64::from(MAX_SEGMENT_ENTRIES)) as u32;
    // The largest power of two of at most this many.
    1 << entries.ilog2()
}

/// Returns where in a part of log memory the entries begin that are for what is fixed: launches like these
/// then fill both at the same time.
pub(super) fn boundary(logs: &std::ops::Range<u32>, division: &Division, needs: &[Need]) -> u32 {
    let length = u64::from(logs.end - logs.start);
    let fixed = |need: &Need| Fixed::place(0, need.streams, division.shortest).end;
    let fixed: u64 = needs.iter().map(fixed).sum();
    let claims: u64 = needs.iter().map(|need| need.claims).sum();
    let share = u128::from(length) * u128::from(claims) / u128::from((fixed + claims).max(1));
    let claimed = (share as u64).clamp(length / 16, length / 4 * 3) as u32;
    (logs.start + claimed) / MAX_SEGMENT_ENTRIES * MAX_SEGMENT_ENTRIES
}

/// Whether a launch with this many streams needs the reserve, too.
fn is_large(arena: &Arena, division: &Division, streams: u64) -> bool {
    let least = Fixed::place(RESERVED_ENTRIES.into(), streams, division.shortest);
    arena.overlaps && least.end > claims_end(arena, division, streams, false).into()
}

/// Whether behind logs that end there each stream can be merged, whose logs are rings of this many entries or
/// those of the launches before.
fn can_merge(arena: &Arena, division: &Division, end: u64, first_entries: u32) -> bool {
    let rings = arena.logged.iter().map(|launch| launch.first_entries);
    let longest = rings.fold(first_entries, u32::max);
    end + u64::from(LANES * longest) <= u64::from(division.log_entries)
}

/// The first segments of a launch, if all of the place's memory were free: for each lane, if the lanes of its warps part;
/// also if that is not known, and long ones fit.
fn wanted(arena: &Arena, division: &Division, need: &Need) -> FirstSegments {
    let (streams, end) = (need.streams, u64::from(division.logs_end(need.streams)));
    let (all, lane_shares) = if arena.overlaps {
        let parts = u64::from(division.arenas);
        (u64::from(division.logs_end(u64::MAX)) / parts, [PART_LANE_SHARE, LONG_PART_LANE_SHARE])
    } else {
        (end, [LANE_SHARE, LONG_LANE_SHARE])
    };
    let lanes = if need.parts == Some(false) { division.shortest.lanes } else { LANES };
    longest(division, lanes, |first| {
        if arena.ring {
            return Fixed::place(RESERVED_ENTRIES.into(), streams, first).end <= end;
        }
        if first.lanes == LANES && first.entries < LONG_FIRST_ENTRIES && need.parts.is_none() {
            return false;
        }
        let share = match first {
            FirstSegments { lanes: 1, .. } => STREAM_SHARE,
            FirstSegments { entries, .. } => lane_shares[usize::from(entries >= LONG_FIRST_ENTRIES)],
        };
        first.total(streams) <= all / share
    })
}

/// The longest first segments that fit, if it can be for this many lanes; the shortest where none do.
fn longest(division: &Division, lanes: u32, fits: impl Fn(FirstSegments) -> bool) -> FirstSegments {
    let shortest = division.shortest;
    let lengths =
        || (0..).map(|shift| MAX_FIRST_ENTRIES >> shift).take_while(|&entries| entries >= shortest.entries);
    let of = |lanes| lengths().map(move |entries| FirstSegments { lanes, entries });
    of(lanes).chain(of(shortest.lanes)).find(|first| fits(*first)).unwrap_or(shortest)
}
