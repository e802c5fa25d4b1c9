//! The result of a verification.

use std::fmt;
use std::ops::Range;

use warptrace_format::file::LossReason;

use super::problem::Problem;
use crate::file::{Completeness, TraceFile};
use crate::state::FileState;

const MAX_PROBLEMS: usize = 100;

/// Result of comparing the two tracks of a dual recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TwinReport {
    /// Warps whose tracks are equal: the same events, in the same order for each lane.
    pub equal_warps: u64,
    /// Warps with an incomplete track. The common parts of both tracks are equal for each lane.
    pub prefix_warps: u64,
    /// Warps whose tracks differ.
    pub different_warps: u64,
    /// Warps that could not be compared, because a track cannot be decoded or the orders differ too much.
    pub unreadable_warps: u64,
    /// Number of events matched in both tracks.
    pub events: u64,
}

/// Events lost for one reason, in all launches and tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LossTotal {
    /// The reason.
    pub reason: LossReason,
    /// Number of events.
    pub events: u64,
    /// Warps that lost some, counted separately for each launch and track.
    pub warps: u64,
}

/// The result of a verification. `Display` formats it for reading.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Completeness of the file.
    pub completeness: Completeness,
    /// Missing parts of the file.
    pub state: FileState,
    /// Bytes of the file.
    pub bytes: u64,
    /// Number of launches.
    pub launches: u64,
    /// Launches with warps chosen for recording.
    pub recorded_launches: u64,
    /// Warps of all launches.
    pub launch_warps: u64,
    /// Warps chosen for recording.
    pub chosen_warps: u64,
    /// Frames that could be read.
    pub frames: u64,
    /// Chunks decoded, in all tracks.
    pub chunks: u64,
    /// Events decoded in track 0.
    pub events: u64,
    /// Runs of track 0 with a start time.
    pub timed_runs: u64,
    /// Warps with a complete span.
    pub timed_warps: u64,
    /// Recorded accesses: addresses and values.
    pub accesses: u64,
    /// Accesses at derived sites, computed from recorded accesses.
    pub derived_accesses: u64,
    /// Accesses that readers leave out, because others were lost at the time.
    pub unmatched_accesses: u64,
    /// Accesses that were lost.
    pub lost_accesses: u64,
    /// Warps with events in track 0.
    pub warps: u64,
    /// Chosen warps whose accounts were checked, in all tracks.
    pub accounts: u64,
    /// Events lost, in all tracks.
    pub lost_events: u64,
    /// Lost events with their reason. A recording has one policy, so all losses have the same reason.
    pub lost: Option<LossTotal>,
    /// Warps that did not finish, in all tracks.
    pub unfinished_warps: u64,
    /// Comparison of the tracks of a dual recording.
    pub twin: Option<TwinReport>,
    /// The first problems found, at most 100.
    pub problems: Vec<Problem>,
    /// Number of problems that are not listed.
    pub problems_left_out: u64,
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

    /// Returns an empty report for some launches, to be [added](Self::add_part) to this one.
    pub(super) fn part(&self, file: &TraceFile) -> Self {
        let most_problems = self.most_problems - self.problems.len();
        Self { most_problems, ..Self::new(file, self.twin.is_some()) }
    }

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

    /// Adds the problems of warps with equal problems. When the list is full, counts the rest at once.
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

    pub(super) fn is_full(&self) -> bool {
        self.problems.len() >= self.most_problems
    }

    /// Returns true if verification found no problem.
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns the number of problems, listed or not.
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
