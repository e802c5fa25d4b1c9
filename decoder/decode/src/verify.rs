//! Verification: everything that a trace says about itself, checked.
//!
//! A launch is checked in windows of warps ([`crate::window`]), both tracks side by side. In each window the
//! warps are decoded in parallel; then their accounting is compared with what was found.

mod accesses;
mod launch;
mod overlaps;
mod problem;
mod report;
mod spoiled;
mod stream;
mod times;
mod twin;

use warptrace_format::file::LaunchInfo;
use warptrace_format::file::limits::MAX_LOCATIONS;

use crate::count::count;
use crate::file::{Completeness, TraceFile};
pub use accesses::AccessProblem;
use launch::LaunchCheck;
pub use problem::{EventPosition, Problem, SpanFault};
pub use report::{LossTotal, TwinReport, VerifyReport};
pub use twin::LanesNext;

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
        let beside = [&self.code_damage, &self.wait_damage, &self.label_damage, &self.origin_damage];
        for damage in beside.into_iter().flatten() {
            report.add(Problem::Unreadable(damage.clone().into()));
        }
        if let Some(damage) = &self.host.damage {
            report.add(Problem::Unreadable(damage.clone().into()));
        }
        self.check_strays(&mut report);
        for damage in &self.data_damage {
            report.add(Problem::Unreadable(damage.clone().into()));
        }
        let mut checked = 0;
        for launch in self.launches().map(LaunchInfo::number) {
            report.launches += 1;
            LaunchCheck::new(self, launch, &known).run(&mut report, &mut |events| {
                checked += events;
                progress(checked, total);
            });
            if self.has_times() {
                self.check_times(launch, &mut report);
            }
            if self.has_spans() {
                self.check_spans(launch, &mut report);
            }
            if self.has_accesses() {
                self.check_accesses(launch, &mut report);
            }
        }
        report
    }
}
