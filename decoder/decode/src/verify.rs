//! Verification: everything that a trace says about itself, checked.
//!
//! A launch is checked in windows of warps ([`crate::window`]), both tracks side by side. In each window the
//! warps are decoded in parallel; then their accounting is compared with what was found.

mod launch;
mod overlaps;
mod problem;
mod report;
mod spoiled;
mod stream;
mod twin;

use warptrace_format::file::LaunchInfo;
use warptrace_format::file::limits::MAX_LOCATIONS;

use crate::all::WarpFilter;
use crate::count::count;
use crate::file::{Completeness, TraceFile};
use crate::items::WarpItem;
use launch::LaunchCheck;
pub use problem::{EventPosition, Problem};
pub use report::{LossTotal, TwinReport, VerifyReport};
pub use twin::LanesNext;

/// Warps that a problem names.
const MAX_NAMED: usize = 8;

impl TraceFile {
    /// Checks the whole trace:
    ///
    /// - the file is whole, every frame's and accounting section's checksum is right;
    /// - each chunk decodes to exactly the events it announces, and sequence numbers have no gap;
    /// - each event's location is in the table, its mask is not zero and names only lanes that the warp has;
    /// - for each warp that was chosen to be recorded there is one account, attempted = recorded + lost in
    ///   it, and the file holds as many events and chunks as accounted; the other warps have no event;
    /// - where times were recorded, there is one for each run of events of a chunk;
    /// - where it was recorded where and when warps ran, this is there for each warp that finished;
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
        for damage in [&self.code_damage, &self.label_damage].into_iter().flatten() {
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
        }
        report
    }

    /// Checks that each warp of a launch that finished says where and when it ran.
    fn check_spans(&self, launch: u32, report: &mut VerifyReport) {
        let Some(info) = self.launch(launch) else { return };
        let (mut warps, mut first_warps) = (0, Vec::new());
        for section in self.account_sections(launch, 0) {
            let spans = match self.load_spans(section) {
                Ok(spans) => spans,
                Err(error) => {
                    report.add(Problem::Unreadable(error));
                    continue;
                }
            };
            // Where accounts cannot be read, this has been said.
            let Ok(accounts) = self.load_accounts(section) else { continue };
            let finished = accounts.runs.iter().flat_map(|run| {
                // At most as many as the section's warps.
                std::iter::repeat_n(run.account.finished != 0, run.warps as usize)
            });
            for ((warp, span), finished) in (section.first_warp..).zip(&spans).zip(finished) {
                report.timed_warps += u64::from(span.has_ended());
                if finished && !span.has_ended() && info.is_chosen(warp) {
                    warps += 1;
                    if first_warps.len() < MAX_NAMED {
                        first_warps.push(warp);
                    }
                }
            }
        }
        if warps > 0 {
            report.add(Problem::NoSpan { launch, warps, first_warps });
        }
    }

    /// Checks that there is a time for each run of a launch's events.
    fn check_times(&self, launch: u32, report: &mut VerifyReport) {
        let mut bad = 0;
        for frame in self.frames(launch, 0) {
            if let Err(error) = self.load_times(frame, frame.chunks as usize) {
                report.add(Problem::Unreadable(error));
                bad += 1;
            }
        }
        /// Runs with times, events without, and the first of these.
        type Found = (u64, u64, Option<(u32, u64)>);
        let take = |(runs, untimed, first): &mut Found,
                    WarpItem { warp, first_event, item, begin }: WarpItem<'_>| {
            match begin {
                Some(_) => *runs += 1,
                None => {
                    *untimed += item.events();
                    first.get_or_insert((warp, first_event));
                }
            }
        };
        let merge = |a: Found, b: Found| (a.0 + b.0, a.1 + b.1, a.2.into_iter().chain(b.2).min());
        // Where events cannot be read, this has been said.
        let Ok(found) = self.fold_items(launch, 0, &WarpFilter::all(), Found::default, take, merge) else {
            return;
        };
        let (runs, untimed, first) = found;
        report.timed_runs += runs;
        if let Some((warp, event)) = first.filter(|_| bad == 0) {
            let first = EventPosition { launch, track: 0, warp, event };
            report.add(Problem::ForeignTimes { events: untimed, first });
        }
    }
}
