//! Verification of when runs began, and of where and when warps ran.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use warptrace_format::span::WarpSpan;

use super::problem::{EventPosition, Problem, SpanFault};
use super::report::VerifyReport;
use crate::all::WarpFilter;
use crate::file::TraceFile;
use crate::items::WarpItem;

/// Warps that a problem names.
const MAX_NAMED: usize = 8;

/// Some warps: how many, and the first of them.
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

/// What cannot be of a warp's span, if it was chosen and its account says whether it finished.
fn fault(span: &WarpSpan, is_chosen: bool, is_finished: bool) -> Option<SpanFault> {
    // Modulo 2^64, half of all differences are before.
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
    /// Reports sections of times that stand where none belongs.
    pub(super) fn check_strays(&self, report: &mut VerifyReport) {
        for (kind, stray) in &self.strays {
            let (section, offset, count) = (kind.name(), stray.first, stray.count);
            report.add(Problem::StrayTimes { section, offset, count });
        }
    }

    /// Checks that each warp of a launch that finished says where and when it ran, and no warp what cannot
    /// be.
    pub(super) fn check_spans(&self, launch: u32, report: &mut VerifyReport) {
        let Some(info) = self.launch(launch) else { return };
        let (mut missing, mut wrong) = (Named::default(), BTreeMap::<SpanFault, Named>::new());
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

    /// Checks that there is a time for each run of a launch's events.
    pub(super) fn check_times(&self, launch: u32, report: &mut VerifyReport) {
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
                    WarpItem { warp, first_event, item, begin, .. }: WarpItem<'_>| {
            match begin {
                Some(_) => *runs += 1,
                None => {
                    *untimed += item.events();
                    first.get_or_insert((warp, first_event));
                }
            }
            ControlFlow::Continue(())
        };
        let merge = |a: Found, b: Found| (a.0 + b.0, a.1 + b.1, a.2.into_iter().chain(b.2).min());
        // Where events cannot be read, this has been said.
        let Ok(Some(found)) = self.fold_items(launch, 0, &WarpFilter::all(), Found::default, take, merge) else {
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
