//! Problems that verification reports.

use std::fmt;

use warptrace_format::Event;
use warptrace_format::account::WarpAccount;
use warptrace_format::file::{EarlyEnd, LossReason};
use warptrace_format::on_one_line;

use super::accesses::AccessProblem;
use super::twin::LanesNext;
use crate::error::DecodeError;
use crate::file::Completeness;

/// The position of an event in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventPosition {
    /// Launch number.
    pub launch: u32,
    /// Track.
    pub track: u32,
    /// Linear index of the warp.
    pub warp: u32,
    /// Number of the event in the warp's stream, from 0.
    pub event: u64,
}

impl fmt::Display for EventPosition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { launch, track, warp, event } = self;
        write!(out, "launch {launch}, track {track}, warp {warp}, event {event}")
    }
}

/// A track of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchTrack {
    /// Launch number.
    pub launch: u32,
    /// Track of events; `None` for the track of addresses and values.
    pub track: Option<u32>,
}

impl LaunchTrack {
    pub(super) const fn counted(self) -> [&'static str; 2] {
        match self.track {
            Some(_) => ["events", "chunks"],
            None => ["accesses", "chunks of accesses"],
        }
    }

    fn warp(self, warp: u32) -> String {
        format!("{self}{} warp {warp}", if self.track.is_some() { "," } else { ":" })
    }
}

impl fmt::Display for LaunchTrack {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { launch, track: Some(track) } => write!(out, "launch {launch}, track {track}"),
            Self { launch, track: None } => write!(out, "launch {launch}, addresses and values"),
        }
    }
}

/// An impossible value in a warp's span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SpanFault {
    /// A warp that was not chosen for recording has a span.
    NotChosen,
    /// The span begins at global timer 0, a value that the timer never has.
    NoBegin,
    /// The span has an end, but by the account the warp did not finish.
    Unfinished,
    /// The span ends before it begins, by the global timer or, on a single multiprocessor, by its clock.
    EndsBefore,
}

impl fmt::Display for SpanFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::NotChosen => "they were not chosen to be recorded",
            Self::NoBegin => "they begin when the timer is 0, which it never is",
            Self::Unfinished => "they have an end, but by their accounts they did not finish",
            Self::EndsBefore => "they end before they begin",
        })
    }
}

fn all_next(expected: &[LanesNext]) -> String {
    let words = expected.iter().map(|LanesNext { lanes, event }| match event {
        Some(Event { location, mask }) => {
            format!("lanes {lanes:#010x} come to location {location} mask {mask:#010x}")
        }
        None => format!("lanes {lanes:#010x} have no event left"),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn ended(end: &EarlyEnd) -> String {
    match end {
        EarlyEnd::Failed { message, .. } => format!("failed: {}", on_one_line(message)),
        end => end.verb().to_owned(),
    }
}

fn not_sound(found: &Completeness) -> String {
    match found.cut_off() {
        Some(words) => format!("the file is not whole: {words}"),
        None => format!("the file has {found}"),
    }
}

fn named(first: &[u32], warps: u64) -> String {
    let names = first.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let word = if warps == 1 { "warp" } else { "warps" };
    match warps.saturating_sub(first.len() as u64) {
        0 => format!("{word} {names}"),
        more => format!("{word} {names} and {more} more"),
    }
}

pub(super) fn unbalanced(of: LaunchTrack, warp: u32, account: &WarpAccount) -> Option<Problem> {
    let &WarpAccount { attempted, recorded, lost, .. } = account;
    let is_sum = recorded.checked_add(lost) == Some(attempted);
    (!is_sum).then_some(Problem::Unbalanced { of, warp, attempted, recorded, lost })
}

/// A problem in a trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file is not [complete](Completeness::Complete).
    #[error("{}", not_sound(.0))]
    Incomplete(Completeness),
    /// A section or a chunk cannot be read or decoded.
    #[error(transparent)]
    Unreadable(DecodeError),
    /// Events at a location that the metadata does not describe.
    #[error(
        "location {location} is not in the location table; {events} events name it, the first at {first}"
    )]
    UnknownLocation {
        /// The location.
        location: u16,
        /// Number of these events in this launch and track.
        events: u64,
        /// The first of them, in order of warp.
        first: EventPosition,
    },
    /// Events with lanes that their warp does not have.
    #[error(
        "{events} events name lanes that their warp does not have, the first at {first}: \
         mask {mask:#010x}, lanes {lanes:#010x}"
    )]
    LaneOutside {
        /// Number of these events in this launch and track.
        events: u64,
        /// The first of them, in order of warp.
        first: EventPosition,
        /// Its mask.
        mask: u32,
        /// The lanes that the warp has.
        lanes: u32,
    },
    /// Events without a start time, in a trace with start times of runs.
    #[error("{events} events have no time, although each run was recorded with one; the first at {first}")]
    ForeignTimes {
        /// Number of events without a time in this launch.
        events: u64,
        /// The first of them, in order of warp.
        first: EventPosition,
    },
    /// Warps that finished, but have no complete span.
    #[error(
        "launch {launch}: of {warps} warps that finished there is no time at which they began or ended ({}); the kernel, \
         or another program, wrote into the tracer's memory",
        named(first_warps, *warps)
    )]
    NoSpan {
        /// The launch.
        launch: u32,
        /// Number of these warps.
        warps: u64,
        /// The first of them, at most 8.
        first_warps: Vec<u32>,
    },
    /// Warps with impossible spans.
    #[error(
        "launch {launch}: where and when {} ran cannot be: {fault}; the file was damaged, or a program wrote into the \
         tracer's memory: record again",
        named(first_warps, *warps)
    )]
    WrongSpan {
        /// The launch.
        launch: u32,
        /// The fault.
        fault: SpanFault,
        /// Number of these warps.
        warps: u64,
        /// The first of them, at most 8.
        first_warps: Vec<u32>,
    },
    /// Sections of times or spans that do not directly follow the section to which they belong, or that are in a trace
    /// without such data.
    #[error(
        "{section} at offset {offset} belongs to no section before it{}: it counts for nothing; the file was changed: \
         record again",
        match count - 1 { 0 => String::new(), 1 => ", and 1 more".to_owned(), more => format!(", and {more} more") }
    )]
    StrayTimes {
        /// Tag of the sections.
        section: &'static str,
        /// File offset of the first one.
        offset: u64,
        /// Number of sections, at least 1.
        count: u64,
    },
    /// Warps without accounts.
    #[error(
        "{of}: no {} warps {first} to {last}; losses there are not known",
        if of.track.is_some() { "accounting for" } else { "accounts of the accesses of" }
    )]
    MissingAccounting {
        /// The track.
        of: LaunchTrack,
        /// First of the warps.
        first: u32,
        /// Last of the warps.
        last: u32,
    },
    /// An accounting section for warps that another accounting section already covers.
    #[error(
        "launch {launch}, track {track}: the section at offset {offset} accounts for warps {first} to {last} a second time; \
         which of the accounts is right is not known: record again"
    )]
    AccountedTwice {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// File offset of the later section in the order of first warp and offset.
        offset: u64,
        /// First of the warps covered twice.
        first: u32,
        /// Last of the warps covered twice.
        last: u32,
    },
    /// Warps that were not chosen have events, or accounts of events or of an unfinished warp.
    #[error(
        "launch {launch}, track {track}: {warps} warps were not chosen, but have events or accounts of them, the first warp {first}"
    )]
    NotChosen {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// Number of these warps.
        warps: u64,
        /// The first of them.
        first: u32,
    },
    /// A warp's account does not add up.
    #[error(
        "{}: {attempted} {} attempted, but {recorded} recorded and {lost} lost",
        of.warp(*warp), of.counted()[0]
    )]
    Unbalanced {
        /// The track.
        of: LaunchTrack,
        /// The warp.
        warp: u32,
        /// Events that reached a trace point, or accesses.
        attempted: u64,
        /// Those counted as recorded.
        recorded: u64,
        /// Those counted as lost.
        lost: u64,
    },
    /// The contents of the file differ from a warp's account.
    #[error("{}: {expected} {what} accounted for, {found} found in the file", of.warp(*warp))]
    Miscounted {
        /// The track.
        of: LaunchTrack,
        /// The warp.
        warp: u32,
        /// "events", "chunks", "accesses" or "chunks of accesses".
        what: &'static str,
        /// Number in the account.
        expected: u64,
        /// Number in the file.
        found: u64,
    },
    /// Warps lack chunks of unreadable frames, which are also reported as [`Unreadable`](Self::Unreadable).
    #[error(
        "launch {launch}, track {track}: {events} events of {warps} warps are in frames that cannot be read, or behind \
         them ({})",
        named(first_warps, *warps)
    )]
    Spoiled {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// Number of these warps.
        warps: u64,
        /// Events that they lack, according to their accounts.
        events: u64,
        /// The first of the warps, at most 8.
        first_warps: Vec<u32>,
    },
    /// A launch did not run to its end.
    #[error("launch {launch} of kernel `{kernel}` {}", ended(end))]
    EndedEarly {
        /// The launch.
        launch: u32,
        /// Name of its kernel.
        kernel: String,
        /// The reason.
        end: EarlyEnd,
    },
    /// A problem with addresses and values.
    #[error("launch {launch}, addresses and values: {problem}")]
    Accesses {
        /// The launch.
        launch: u32,
        /// The problem.
        problem: AccessProblem,
    },
    /// Events were lost and counted.
    #[error(
        "launch {launch}, track {track}: lost {events} of {attempted} events in {warps} of {chosen_warps} warps ({}): {}",
        named(first_warps, *warps), reason.describe_with_remedy()
    )]
    Lost {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// The reason.
        reason: LossReason,
        /// Events lost.
        events: u64,
        /// Events that reached a trace point, lost or not.
        attempted: u64,
        /// Warps that lost some.
        warps: u64,
        /// Warps that were chosen for recording.
        chosen_warps: u32,
        /// The first of the warps that lost some, at most 8.
        first_warps: Vec<u32>,
    },
    /// Warps without a recorded end.
    #[error(
        "launch {launch}, track {track}: {warps} of {chosen_warps} warps did not finish ({}); how many of their last \
         events are missing is not known",
        named(first_warps, *warps)
    )]
    Unfinished {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// Number of these warps.
        warps: u64,
        /// Warps that were chosen for recording.
        chosen_warps: u32,
        /// The first of the warps that did not finish, at most 8.
        first_warps: Vec<u32>,
    },
    /// In a dual recording, the lanes of a warp have different events in the two tracks.
    #[error(
        "launch {launch}, warp {warp}: event {event} of track 1, location {} mask {:#010x}, does not fit track 0, \
         where {}",
        twin.location, twin.mask, all_next(expected)
    )]
    TracksDiffer {
        /// The launch.
        launch: u32,
        /// The warp.
        warp: u32,
        /// Number of the first event in track 1 that does not fit.
        event: u64,
        /// That event.
        twin: Event,
        /// The next events in track 0 of the lanes that disagree.
        expected: Vec<LanesNext>,
    },
    /// In a dual recording, the orders of a warp's tracks differ too much for a comparison in bounded memory.
    #[error(
        "launch {launch}, warp {warp}: {waiting} runs of track 0 stand before event {event} of track 1, and none \
         of them shares a lane with it; the tracks are too far apart to be compared"
    )]
    TracksTooFarApart {
        /// The launch.
        launch: u32,
        /// The warp.
        warp: u32,
        /// Number of the event in track 1.
        event: u64,
        /// Runs of track 0 before it, not yet found in track 1.
        waiting: usize,
    },
    /// In a dual recording, one track of a warp has more events than the other, which lost none: after the
    /// end of the other or, with the policy `ring`, possibly before its beginning.
    #[error(
        "launch {launch}, warp {warp}: track 0 has {trace} events, track 1 has {twin}, and the one that ends first \
         lost none; they are equal as far as both go"
    )]
    LengthsDiffer {
        /// The launch.
        launch: u32,
        /// The warp.
        warp: u32,
        /// Events in track 0.
        trace: u64,
        /// Events in track 1.
        twin: u64,
    },
}
