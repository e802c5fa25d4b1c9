//! What a verification found.

use std::fmt;
use std::ops::Range;

use warptrace_format::file::LossReason;

use super::problem::Problem;
use crate::file::{Completeness, TraceFile};
use crate::state::FileState;

/// Problems that a report lists; more are only counted.
const MAX_PROBLEMS: usize = 100;

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

/// Events that were lost for one reason, in all launches and tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LossTotal {
    /// Why.
    pub reason: LossReason,
    /// Events.
    pub events: u64,
    /// Warps that lost some, counted anew for each launch and track.
    pub warps: u64,
}

/// What a verification found. `Display` is a page for people.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Whether the file is whole.
    pub completeness: Completeness,
    /// What the file lacks.
    pub state: FileState,
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
    /// Runs of track 0 of which the trace says when they began.
    pub timed_runs: u64,
    /// Warps of which the trace says where they ran, and when they began and ended.
    pub timed_warps: u64,
    /// Accesses at sites that the file has: addresses and values.
    pub accesses: u64,
    /// Accesses that follow from these, at sites of which nothing is recorded.
    pub derived_accesses: u64,
    /// Of both, those that readers leave out, since something was lost when they were made.
    pub unmatched_accesses: u64,
    /// Accesses that were lost.
    pub lost_accesses: u64,
    /// Warps with events in track 0.
    pub warps: u64,
    /// Chosen warps whose accounting was checked, in all tracks.
    pub accounts: u64,
    /// Events that were lost, in all tracks.
    pub lost_events: u64,
    /// The same by reason; a recording has one policy, so there is one reason at most.
    pub lost: Option<LossTotal>,
    /// Warps that did not finish, in all tracks.
    pub unfinished_warps: u64,
    /// The comparison of the tracks, in a dual recording.
    pub twin: Option<TwinReport>,
    /// The first problems found, at most 100.
    pub problems: Vec<Problem>,
    /// Problems that are not listed.
    pub problems_left_out: u64,
    /// Problems that may be listed.
    most_problems: usize,
}

impl VerifyReport {
    pub(super) fn new(file: &TraceFile, dual: bool) -> Self {
        Self {
            completeness: file.completeness().clone(),
            state: file.state().clone(),
            bytes: file.length(),
            twin: dual.then(TwinReport::default),
            most_problems: MAX_PROBLEMS,
            ..Self::default()
        }
    }

    /// Returns a report of some launches, which is to be [added](Self::add_part) to this one.
    pub(super) fn part(&self, file: &TraceFile) -> Self {
        let most_problems = self.most_problems - self.problems.len();
        Self { most_problems, ..Self::new(file, self.twin.is_some()) }
    }

    /// Adds what was found of launches behind those that this report has.
    pub(super) fn add_part(&mut self, part: Self) {
        self.launches += part.launches;
        self.recorded_launches += part.recorded_launches;
        self.launch_warps += part.launch_warps;
        self.chosen_warps += part.chosen_warps;
        self.frames += part.frames;
        self.chunks += part.chunks;
        self.events += part.events;
        self.timed_runs += part.timed_runs;
        self.timed_warps += part.timed_warps;
        self.accesses = self.accesses.saturating_add(part.accesses);
        self.derived_accesses = self.derived_accesses.saturating_add(part.derived_accesses);
        self.unmatched_accesses = self.unmatched_accesses.saturating_add(part.unmatched_accesses);
        self.lost_accesses = self.lost_accesses.saturating_add(part.lost_accesses);
        self.warps += part.warps;
        self.accounts += part.accounts;
        self.unfinished_warps += part.unfinished_warps;
        if let Some(LossTotal { reason, events, warps }) = part.lost {
            self.add_lost(reason, events, warps);
        }
        if let (Some(twin), Some(part)) = (&mut self.twin, part.twin) {
            twin.equal_warps += part.equal_warps;
            twin.prefix_warps += part.prefix_warps;
            twin.different_warps += part.different_warps;
            twin.unreadable_warps += part.unreadable_warps;
            twin.events += part.events;
        }
        part.problems.into_iter().for_each(|problem| self.add(problem));
        self.problems_left_out = self.problems_left_out.saturating_add(part.problems_left_out);
    }

    pub(super) fn add(&mut self, problem: Problem) {
        if !self.is_full() {
            self.problems.push(problem);
        } else {
            self.problems_left_out += 1;
        }
    }

    /// Adds the problems of warps that have the same ones each; when the list is full, they are counted at
    /// once.
    pub(super) fn add_for_each<P: IntoIterator<Item = Problem>>(
        &mut self,
        mut warps: Range<u32>,
        problems: impl Fn(u32) -> P,
    ) {
        while let Some(warp) = warps.next() {
            let (listed, before) = (self.is_full(), self.problem_count());
            problems(warp).into_iter().for_each(|problem| self.add(problem));
            let each = self.problem_count() - before;
            if listed || each == 0 {
                self.problems_left_out += each.saturating_mul(u64::from(warps.end - warps.start));
                return;
            }
        }
    }

    pub(super) fn add_lost(&mut self, reason: LossReason, events: u64, warps: u64) {
        self.lost_events = self.lost_events.saturating_add(events);
        let total = self.lost.get_or_insert(LossTotal { reason, events: 0, warps: 0 });
        total.events = self.lost_events;
        total.warps += warps;
    }

    /// Whether the list of problems is full: more are only counted.
    pub(super) fn is_full(&self) -> bool {
        self.problems.len() >= self.most_problems
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
        writeln!(out, "file      {} bytes, {}", self.bytes, self.state.sentence)?;
        let Self { launches, frames, chunks, .. } = self;
        writeln!(out, "contents  launches: {launches}, frames: {frames}, chunks: {chunks}")?;
        if self.chosen_warps < self.launch_warps {
            let Self { recorded_launches, chosen_warps, launch_warps, .. } = self;
            writeln!(
                out,
                "recorded  launches: {recorded_launches} of {launches}, warps: {chosen_warps} of {launch_warps}"
            )?;
        }
        writeln!(out, "decoded   events: {}, warps with events: {}", self.events, self.warps)?;
        match (self.timed_runs, self.timed_warps) {
            (0, 0) => {}
            (runs, 0) => writeln!(out, "times     runs: {runs}")?,
            (0, warps) => writeln!(out, "times     warps: {warps}")?,
            (runs, warps) => writeln!(out, "times     runs: {runs}; warps: {warps}")?,
        }
        let Self { accesses, derived_accesses, lost_accesses, unmatched_accesses, .. } = self;
        if accesses + lost_accesses > 0 {
            let derived = match derived_accesses {
                0 => String::new(),
                derived => format!(" and {derived} that follow from them"),
            };
            writeln!(
                out,
                "accesses  {accesses}{derived}, lost: {lost_accesses}, left out for that: {unmatched_accesses}"
            )?;
        }
        let Self { accounts, lost_events, unfinished_warps, .. } = self;
        writeln!(
            out,
            "accounts  checked: {accounts}, events lost: {lost_events}, warps not finished: {unfinished_warps}"
        )?;
        if let Some(LossTotal { reason, events, warps }) = &self.lost {
            let why = reason.describe_with_remedy();
            writeln!(out, "lost      {events} events in {warps} warps: {why}")?;
        }
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
