//! Verification: everything that a trace says about itself, checked.
//!
//! A launch is checked in windows of warps ([`crate::window`]), both tracks side by side. In each window the
//! warps are decoded in parallel; then their accounting is compared with what was found.

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

/// What launches that are gone through side by side have together at most: frames, chunks and entries of accesses.
const FRAMES_AT_ONCE: u64 = 32;
const CHUNKS_AT_ONCE: u64 = 1 << 18;
/// And how many they are.
const LAUNCHES_AT_ONCE: usize = 64;

impl TraceFile {
    /// Checks the whole trace:
    ///
    /// - the file is whole, every frame's and accounting section's checksum is right;
    /// - each chunk decodes to exactly the events it announces, and sequence numbers have no gap;
    /// - each event's location is in the table, its mask is not zero and names only lanes that the warp has;
    /// - for each warp that was chosen to be recorded there is one account, attempted = recorded + lost in
    ///   it, and the file holds as many events and chunks as accounted; the other warps have no event;
    /// - where times were recorded, there is one for each run of events of a chunk;
    /// - where it was recorded where and when warps ran, this is there for each warp that finished, and can be;
    /// - sections of times stand behind those to which they belong, and nowhere else;
    /// - where addresses or values were recorded, each belongs to a site of the table, to lanes that the warp has, and to
    ///   a group; and accounts of them say the same;
    /// - every launch ran to its end, no event was lost, and every warp finished;
    /// - in a dual recording both tracks hold the same events, in the same order for each lane (events that
    ///   share no lane may change places); where a track lost events, as far as both go, from their beginnings
    ///   or, with the policy `ring`, from their ends back.
    ///
    /// Never fails: what cannot be read is a [`Problem`] in the report. Memory is bounded as the
    /// [crate's docs](crate#memory) say.
    pub fn verify(&self) -> VerifyReport {
        self.verify_with_progress(&mut |_, _| {})
    }

    /// Verifies like [`TraceFile::verify`]; `progress` is called now and then with the events checked so far
    /// and the events that the index announces, over all tracks.
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

    /// Cuts launches into those that are gone through side by side: small ones, which are too little for all cores.
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
