//! Verification of a whole trace.
//!
//! A launch is checked in windows of warps ([`crate::window`]), with both tracks of a dual recording
//! together. The warps of a window are decoded in parallel and compared with their accounting.

mod accesses;
mod accounts;
mod launch;
mod overlaps;
mod problem;
mod report;
mod spoiled;
mod stream;
mod times;
mod twin;

use std::ops::Range;

use rayon::prelude::*;
use warptrace_format::file::LaunchInfo;
use warptrace_format::file::limits::MAX_LOCATIONS;

use crate::count::count;
use crate::file::{Completeness, Damage, TraceFile, is_of_data};
pub use accesses::AccessProblem;
use launch::LaunchCheck;
pub use problem::{EventPosition, LaunchTrack, Problem, SpanFault};
pub use report::{LossTotal, TwinReport, VerifyReport};
pub use twin::LanesNext;

/// Limits for launches checked side by side: total frames, total chunks and entries of accesses.
const FRAMES_AT_ONCE: u64 = 32;
const CHUNKS_AT_ONCE: u64 = 1 << 18;
const LAUNCHES_AT_ONCE: usize = 64;

impl TraceFile {
    /// Checks the whole trace:
    ///
    /// - the file is complete, and the checksum of every frame and accounting section is right;
    /// - each chunk decodes to exactly the events that it announces, and sequence numbers have no gap;
    /// - each event's location is in the table; its mask is not zero and names only lanes that the warp has;
    /// - each warp that was chosen for recording has one account, with attempted = recorded + lost; the file
    ///   holds as many events and chunks as accounted; other warps have no events;
    /// - each run of a chunk has a start time, and each finished warp a valid span, if these were recorded;
    /// - sections of times directly follow the sections to which they belong, and appear nowhere else;
    /// - each address or value belongs to a known site, to lanes of the warp, and to a group; accounts agree;
    /// - every launch ran to its end, no event was lost, and every warp finished;
    /// - in a dual recording, both tracks hold the same events, in the same order for each lane (events
    ///   without a common lane may be reordered). If a track lost events, the comparison covers the common
    ///   part: from the beginning or, with the policy `ring`, backwards from the end.
    ///
    /// Never fails: errors become [`Problem`]s in the report. Memory: see the [crate's docs](crate#memory).
    pub fn verify(&self) -> VerifyReport {
        self.verify_with_progress(&mut |_, _| {})
    }

    /// Like [`TraceFile::verify`]. Calls `progress` from time to time with the events checked so far and the
    /// events announced by the index, over all tracks.
    pub fn verify_with_progress(&self, progress: &mut dyn FnMut(u64, u64)) -> VerifyReport {
        let tracks = count(self.metadata().tracks.len());
        let total = (self.launches())
            .flat_map(|launch| (0..tracks).map(|track| self.totals(launch.number(), track).events))
            .fold(0, u64::saturating_add);
        let mut report = VerifyReport::new(self, tracks > 1);
        if *self.completeness() != Completeness::Complete {
            report.add(Problem::Incomplete(self.completeness().clone()));
        }
        let mut known = vec![false; MAX_LOCATIONS + 1];
        for location in &self.metadata().locations {
            known[usize::from(location.id)] = true;
        }
        for text in &self.texts {
            self.check_text(text).unwrap_or_else(|error| report.add(Problem::Unreadable(error)));
        }
        let (of_data, others): (Vec<_>, Vec<_>) =
            self.damage.iter().partition(|damage| is_of_data(damage.kind));
        let unreadable = |damage: &Damage| Problem::Unreadable(damage.error.clone().into());
        others.into_iter().for_each(|damage| report.add(unreadable(damage)));
        self.check_strays(&mut report);
        of_data.into_iter().for_each(|damage| report.add(unreadable(damage)));
        let mut checked = 0;
        let launches: Vec<&LaunchInfo> = self.launches().collect();
        for group in self.side_by_side(launches.iter().map(|launch| launch.number())) {
            let group = &launches[group];
            if let [launch] = *group {
                self.check_launch(launch, &known, &mut report, &mut |events| {
                    checked += events;
                    progress(checked, total);
                });
                continue;
            }
            let check = |&launch: &&LaunchInfo| {
                let (mut part, mut events) = (report.part(self), 0);
                self.check_launch(launch, &known, &mut part, &mut |more| events += more);
                (part, events)
            };
            let parts: Vec<_> = group.par_iter().map(check).collect();
            for (part, events) in parts {
                report.add_part(part);
                checked += events;
            }
            progress(checked, total);
        }
        report
    }

    fn check_launch(
        &self,
        launch: &LaunchInfo,
        known: &[bool],
        report: &mut VerifyReport,
        checked: &mut dyn FnMut(u64),
    ) {
        report.launches += 1;
        LaunchCheck::new(self, launch, known).run(report, checked);
        if self.has_spans() {
            self.check_spans(launch, report);
        }
        if self.has_accesses() {
            self.check_accesses(launch, report);
        }
    }

    /// Divides launches into groups to process side by side: one small launch does not occupy all cores.
    pub fn side_by_side(&self, launches: impl ExactSizeIterator<Item = u32>) -> Vec<Range<usize>> {
        let (mut groups, mut from, mut sums) = (Vec::new(), 0, (0, 0));
        let count = launches.len();
        for (at, launch) in launches.enumerate() {
            let of_track = (0..=self.data_track()).map(|track| self.totals(launch, track));
            let more = of_track
                .fold((0, 0), |(frames, chunks), totals| (frames + totals.frames, chunks + totals.chunks));
            sums = (sums.0 + more.0, sums.1 + more.1);
            if at > from
                && (sums.0 > FRAMES_AT_ONCE || sums.1 > CHUNKS_AT_ONCE || at - from == LAUNCHES_AT_ONCE)
            {
                groups.push(from..at);
                (from, sums) = (at, more);
            }
        }
        groups.extend((from < count).then_some(from..count));
        groups
    }
}
