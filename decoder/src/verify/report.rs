//! What a verification found.

use std::fmt;

use warptrace_format::Event;

use super::twin::LanesNext;
use crate::error::DecodeError;
use crate::file::Completeness;

/// Problems that a report lists; more are only counted.
const MAX_PROBLEMS: usize = 100;

/// An event's place in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// Launch number.
    pub launch: u32,
    /// Track.
    pub track: u32,
    /// Linear index of the warp.
    pub warp: u32,
    /// Number of the event in the warp's stream, from 0.
    pub event: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { launch, track, warp, event } = self;
        write!(out, "launch {launch}, track {track}, warp {warp}, event {event}")
    }
}

/// What lanes come to next, in words.
fn all_next(expected: &[LanesNext]) -> String {
    let words = expected.iter().map(|LanesNext { lanes, event }| match event {
        Some(Event { location, mask }) => {
            format!("lanes {lanes:#010x} come to location {location} mask {mask:#010x}")
        }
        None => format!("lanes {lanes:#010x} have no event left"),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Something that is not as it should be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file ends early, or its end is damaged.
    #[error("the file is not whole: {0}")]
    Incomplete(Completeness),
    /// A frame, a chunk or an accounting section cannot be decoded.
    #[error(transparent)]
    Unreadable(DecodeError),
    /// Events at a location that the metadata does not describe.
    #[error(
        "location {location} is not in the location table; {events} events name it, the first at {first}"
    )]
    UnknownLocation {
        /// The location.
        location: u16,
        /// Events that name it, in this launch and track.
        events: u64,
        /// The first of them, in order of warp.
        first: Place,
    },
    /// Events by lanes that their warp does not have.
    #[error(
        "{events} events name lanes that their warp does not have, the first at {first}: \
         mask {mask:#010x}, lanes {lanes:#010x}"
    )]
    LaneOutside {
        /// Such events in this launch and track.
        events: u64,
        /// The first of them, in order of warp.
        first: Place,
        /// Its mask.
        mask: u32,
        /// The lanes that the warp has.
        lanes: u32,
    },
    /// Warps without accounting.
    #[error(
        "launch {launch}, track {track}: no accounting for warps {first} to {last}; losses there are not known"
    )]
    MissingAccounting {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// First of the warps.
        first: u32,
        /// Last of the warps.
        last: u32,
    },
    /// An accounting section covers warps that another one covers, too.
    #[error(
        "launch {launch}, track {track}: ACCT at offset {offset} accounts for warps {first} to {last} a second time; \
         which of the accounts is right is not known: record again"
    )]
    AccountedTwice {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// File offset of the section: of those that cover the warps, one that does not begin at the lowest
        /// warp, or that stands later in the file.
        offset: u64,
        /// First of the warps that were covered before.
        first: u32,
        /// Last of them.
        last: u32,
    },
    /// Warps that were not chosen to be recorded hold events, or accounts of some.
    #[error(
        "launch {launch}, track {track}: {warps} warps were not chosen, but have events or accounts of them, the first warp {first}"
    )]
    NotChosen {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// Such warps.
        warps: u64,
        /// The first of them.
        first: u32,
    },
    /// A warp's accounting does not add up.
    #[error(
        "launch {launch}, track {track}, warp {warp}: {attempted} events attempted, but {recorded} recorded and {lost} lost"
    )]
    Unbalanced {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// The warp.
        warp: u32,
        /// Events that reached a trace point.
        attempted: u64,
        /// Events accounted as recorded.
        recorded: u64,
        /// Events accounted as lost.
        lost: u64,
    },
    /// The file does not hold what a warp's accounting says.
    #[error(
        "launch {launch}, track {track}, warp {warp}: {expected} {what} accounted for, {found} found in the file"
    )]
    Miscounted {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// The warp.
        warp: u32,
        /// "events" or "chunks".
        what: &'static str,
        /// What the accounting says.
        expected: u64,
        /// What the file holds.
        found: u64,
    },
    /// Events were lost, and counted.
    #[error(
        "launch {launch}, track {track}: {events} events of {warps} warps were lost; \
         record again with more memory"
    )]
    Lost {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// Events lost.
        events: u64,
        /// Warps that lost some.
        warps: u64,
    },
    /// Events were lost, and counted, because each lane keeps its latest ones (policy `ring`).
    #[error(
        "launch {launch}, track {track}: {events} events of {warps} warps were lost, all of them before what is \
         recorded of their warps; with more memory more of the end is recorded"
    )]
    Overwritten {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// Events lost.
        events: u64,
        /// Warps that lost some.
        warps: u64,
    },
    /// Warps whose end was never seen.
    #[error(
        "launch {launch}, track {track}: {warps} warps did not finish, the first is {first}; \
         their last events are missing"
    )]
    Unfinished {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// Number of them.
        warps: u64,
        /// The lowest of them.
        first: u32,
    },
    /// In a dual recording, lanes of a warp did different things in the two tracks.
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
        /// What its lanes come to in track 0 instead: those that are known to disagree.
        expected: Vec<LanesNext>,
    },
    /// In a dual recording, the two tracks of a warp stand in orders too different to compare them in bounded
    /// memory.
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
        /// Runs that track 0 has before it.
        waiting: usize,
    },
    /// In a dual recording, one track of a warp goes on where the other ends, and the other lost no event.
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

/// What the comparison of a dual recording's two tracks found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TwinReport {
    /// Warps whose tracks are equal: the same events, in the same order for each lane.
    pub equal_warps: u64,
    /// Warps of which one track lost events, or is not all there: equal as far as both go, for each lane.
    pub prefix_warps: u64,
    /// Warps whose tracks differ.
    pub different_warps: u64,
    /// Warps that could not be compared, because a track cannot be decoded, or their orders are too far
    /// apart.
    pub unreadable_warps: u64,
    /// Pairs of events that were found to be one, in both tracks.
    pub events: u64,
}

/// What a verification found. `Display` is a page for people.
#[derive(Debug)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Whether the file is whole.
    pub completeness: Completeness,
    /// Bytes of the file.
    pub bytes: u64,
    /// Launches.
    pub launches: u64,
    /// Of these, those of which warps were chosen to be recorded.
    pub recorded_launches: u64,
    /// Warps of all launches.
    pub launch_warps: u64,
    /// Of these, those that were chosen.
    pub chosen_warps: u64,
    /// Frames that could be read.
    pub frames: u64,
    /// Chunks decoded, in all tracks.
    pub chunks: u64,
    /// Events decoded in track 0.
    pub events: u64,
    /// Warps with events in track 0.
    pub warps: u64,
    /// Chosen warps whose accounting was checked, in all tracks.
    pub accounts: u64,
    /// Events that were lost, in all tracks.
    pub lost_events: u64,
    /// Warps that did not finish, in all tracks.
    pub unfinished_warps: u64,
    /// The comparison of the tracks, in a dual recording.
    pub twin: Option<TwinReport>,
    /// The first problems found, at most 100.
    pub problems: Vec<Problem>,
    /// Problems that are not listed.
    pub problems_left_out: u64,
}

impl VerifyReport {
    pub(super) fn new(completeness: &Completeness, bytes: u64, dual: bool) -> Self {
        Self {
            completeness: completeness.clone(),
            bytes,
            launches: 0,
            recorded_launches: 0,
            launch_warps: 0,
            chosen_warps: 0,
            frames: 0,
            chunks: 0,
            events: 0,
            warps: 0,
            accounts: 0,
            lost_events: 0,
            unfinished_warps: 0,
            twin: dual.then(TwinReport::default),
            problems: Vec::new(),
            problems_left_out: 0,
        }
    }

    pub(super) fn add(&mut self, problem: Problem) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        } else {
            self.problems_left_out += 1;
        }
    }

    /// Whether the list of problems is full: more are only counted.
    pub(super) fn is_full(&self) -> bool {
        self.problems.len() == MAX_PROBLEMS
    }

    /// Whether nothing is wrong: the file is whole, everything decodes, every count matches, nothing was
    /// lost, every warp finished, and the tracks of a dual recording are equal.
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }

    /// Problems found, listed or not.
    pub fn problem_count(&self) -> u64 {
        self.problems.len() as u64 + self.problems_left_out
    }
}

impl fmt::Display for VerifyReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "file      {} bytes, {}", self.bytes, self.completeness)?;
        let Self { launches, frames, chunks, .. } = self;
        writeln!(out, "contents  launches: {launches}, frames: {frames}, chunks: {chunks}")?;
        if self.chosen_warps < self.launch_warps {
            let Self { recorded_launches, chosen_warps, launch_warps, .. } = self;
            writeln!(
                out,
                "chosen    launches: {recorded_launches} of {launches}, warps: {chosen_warps} of {launch_warps}; \
                 the others were not to be recorded"
            )?;
        }
        writeln!(out, "decoded   events: {}, warps with events: {}", self.events, self.warps)?;
        let Self { accounts, lost_events, unfinished_warps, .. } = self;
        writeln!(
            out,
            "accounts  checked: {accounts}, events lost: {lost_events}, warps not finished: {unfinished_warps}"
        )?;
        if let Some(twin) = &self.twin {
            let TwinReport { equal_warps, prefix_warps, different_warps, unreadable_warps, events } = twin;
            writeln!(
                out,
                "tracks    pairs of events compared: {events}; warps equal: {equal_warps}, \
                 equal as far as both go: {prefix_warps}, different: {different_warps}, not comparable: {unreadable_warps}"
            )?;
        }
        if self.is_ok() {
            return write!(out, "result    no problem found");
        }
        write!(out, "result    problems: {}", self.problem_count())?;
        for problem in &self.problems {
            write!(out, "\n  - {problem}")?;
        }
        if self.problems_left_out > 0 {
            write!(out, "\n  - and {} more", self.problems_left_out)?;
        }
        Ok(())
    }
}
