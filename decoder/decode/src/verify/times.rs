//! Verification of start times of runs, and of spans of warps.

use std::collections::BTreeMap;

use warptrace_format::file::LaunchInfo;
use warptrace_format::span::WarpSpan;

use super::problem::{EventPosition, Problem, SpanFault};
use super::report::VerifyReport;
use super::stream::{Count, StreamCheck};
use crate::error::DecodeError;
use crate::file::TraceFile;

const MAX_NAMED: usize = 8;

#[derive(Default)]
struct Named {
    warps: u64,
    first: Vec<u32>,
}

impl Named {
    fn add(&mut self, warp: u32) {
        self.warps += 1;
        if self.first.len() < MAX_NAMED {
            self.first.push(warp);
        }
    }
}

fn fault(span: &WarpSpan, is_chosen: bool, is_finished: bool) -> Option<SpanFault> {
    // Modulo 2^64, half of all differences are negative.
    let is_before = |end: u64, begin: u64| end.wrapping_sub(begin).cast_signed() < 0;
    if !span.has_begun() {
        return None;
    }
    if !is_chosen {
        return Some(SpanFault::NotChosen);
    }
    if span.begin_timer == 0 {
        return Some(SpanFault::NoBegin);
    }
    if !span.has_ended() {
        return None;
    }
    if !is_finished {
        return Some(SpanFault::Unfinished);
    }
    let is_clock_before = !span.has_moved() && is_before(span.end_clock, span.begin_clock);
    (is_clock_before || is_before(span.end_timer, span.begin_timer)).then_some(SpanFault::EndsBefore)
}

impl TraceFile {
    pub(super) fn check_strays(&self, report: &mut VerifyReport) {
        for (kind, stray) in &self.strays {
            let (section, offset, count) = (kind.name(), stray.first, stray.count);
            report.add(Problem::StrayTimes { section, offset, count });
        }
    }

    /// Checks that each finished warp of a launch has a complete span, and that no span is impossible.
    pub(super) fn check_spans(&self, info: &LaunchInfo, report: &mut VerifyReport) {
        let launch = info.number();
        let (mut missing, mut wrong) = (Named::default(), BTreeMap::<SpanFault, Named>::new());
        for section in self.account_sections(launch, 0) {
            let spans = match self.load_spans(section) {
                Ok(spans) => spans,
                Err(error) => {
                    report.add(Problem::Unreadable(error));
                    continue;
                }
            };
            // Unreadable accounts have been reported.
            let Ok(accounts) = self.load_accounts(section) else { continue };
            let finished = accounts.runs.iter().flat_map(|run| {
                // At most as many as the section's warps.
                std::iter::repeat_n(run.account.finished != 0, run.warps as usize)
            });
            for ((warp, span), finished) in (section.first_warp..).zip(&spans).zip(finished) {
                report.timed_warps += u64::from(span.has_ended());
                let is_chosen = info.is_chosen(warp);
                if let Some(fault) = fault(span, is_chosen, finished) {
                    wrong.entry(fault).or_default().add(warp);
                }
                if finished && !span.has_ended() && is_chosen {
                    missing.add(warp);
                }
            }
        }
        if missing.warps > 0 {
            let Named { warps, first: first_warps } = missing;
            report.add(Problem::NoSpan { launch, warps, first_warps });
        }
        for (fault, Named { warps, first: first_warps }) in wrong {
            report.add(Problem::WrongSpan { launch, fault, warps, first_warps });
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct TimesCheck {
    /// Errors of times that cannot be read, by first warp and offset of the frame.
    pub(super) bad: BTreeMap<(u32, u64), DecodeError>,
    /// Whether events cannot be read. This has been reported.
    pub(super) has_failed: bool,
    runs: u64,
    /// Number of events without times; warp and number of the first.
    untimed: u64,
    first: Option<(u32, u64)>,
}

impl TimesCheck {
    pub(super) fn add(&mut self, warp: u32, found: &StreamCheck) {
        self.has_failed |= found.failed;
        self.runs += found.timed_runs;
        if let Some(Count { events, first }) = found.untimed {
            self.untimed += events;
            self.first.get_or_insert((warp, first));
        }
    }

    pub(super) fn report(self, launch: u32, report: &mut VerifyReport) {
        let first = self.first.filter(|_| self.bad.is_empty());
        self.bad.into_values().for_each(|error| report.add(Problem::Unreadable(error)));
        if self.has_failed {
            return;
        }
        report.timed_runs += self.runs;
        if let Some((warp, event)) = first {
            let first = EventPosition { launch, track: 0, warp, event };
            report.add(Problem::ForeignTimes { events: self.untimed, first });
        }
    }
}
