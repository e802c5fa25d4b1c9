//! Comparison of a track's accounts with the contents of the file.

use std::ops::Range;

use warptrace_format::account::WarpAccount;
use warptrace_format::file::LaunchInfo;

use super::problem::{LaunchTrack, Problem, unbalanced};
use super::report::VerifyReport;
use super::spoiled::Spoiled;
use crate::accounts::{AccountCursor, Accounted};
use crate::file::TraceFile;
use crate::losses::chosen_within;

/// Warps with equal contents, and the file's events and chunks for each of them, on one track.
#[derive(Clone, Debug)]
pub(super) struct HeldWarps {
    pub(super) warps: Range<u32>,
    pub(super) events: u64,
    pub(super) chunks: u64,
    /// Whether missing data was reported before. Then differing counts are not reported again.
    pub(super) is_reported: bool,
}

pub(super) struct ComparedWarps<'a> {
    pub(super) warps: Range<u32>,
    pub(super) account: Option<&'a WarpAccount>,
    pub(super) held: Option<&'a HeldWarps>,
    pub(super) is_spoiled: bool,
}

pub(super) struct AccountsCheck<'a> {
    file: &'a TraceFile,
    info: &'a LaunchInfo,
    of: LaunchTrack,
    cursor: AccountCursor<'a>,
    next: u32,
    /// The last warps without accounts; the next range may extend them.
    missing: Option<Range<u32>>,
    pub(super) spoiled: Spoiled,
}

impl<'a> AccountsCheck<'a> {
    pub(super) fn new(file: &'a TraceFile, info: &'a LaunchInfo, track: u32) -> Self {
        let launch = info.number();
        let of = LaunchTrack { launch, track: (track != file.data_track()).then_some(track) };
        let cursor = AccountCursor::new(file, launch, track);
        Self { file, info, of, cursor, next: 0, missing: None, spoiled: Spoiled::default() }
    }

    /// Skips the accounts of the warps before `to`, whose accesses could not be read.
    pub(super) fn skip(&mut self, to: u32) {
        self.next = self.next.max(to);
    }

    /// Compares the accounts of the warps before `end` with the contents of the file, in ascending order.
    pub(super) fn check(
        &mut self,
        end: u32,
        held: impl IntoIterator<Item = HeldWarps>,
        report: &mut VerifyReport,
        each: &mut impl FnMut(ComparedWarps<'_>),
    ) {
        let mut held = held.into_iter();
        let mut found = held.next();
        while self.next < end {
            let (range, account) = match self.cursor.next(self.next..end) {
                Accounted::Account(range, account) => (range, Some(account)),
                Accounted::Damaged(range, error) => {
                    report.add(Problem::Unreadable(error));
                    (range, None)
                }
                Accounted::Missing(range) => {
                    // Warps that were not chosen, and launches that ended early, may lack accounts.
                    if self.file.early_end(self.of.launch).is_none()
                        && let Some(chosen) = chosen_within(self.info, &range)
                    {
                        self.add_missing(chosen, report);
                    }
                    (range, None)
                }
            };
            self.next = range.end;
            let mut rest = range;
            while !rest.is_empty() {
                while found.as_ref().is_some_and(|found| found.warps.end <= rest.start) {
                    found = held.next();
                }
                let of_warps = found.as_ref().filter(|found| found.warps.start <= rest.start);
                let end = match (of_warps, &found) {
                    (Some(held), _) => held.warps.end,
                    (None, Some(next)) => next.warps.start,
                    (None, None) => rest.end,
                };
                let mut warps = rest.start..end.min(rest.end);
                rest.start = warps.end;
                while !warps.is_empty() {
                    let (warps, is_in) = self.spoiled.cut(&mut warps);
                    let is_spoiled = account.as_ref().is_some_and(|account| {
                        self.compare((warps.clone(), is_in), account, of_warps, report)
                    });
                    each(ComparedWarps { warps, account: account.as_ref(), held: of_warps, is_spoiled });
                }
            }
        }
    }

    /// Notes a range without accounts. Extends the last one if no chosen warp lies between them.
    fn add_missing(&mut self, range: Range<u32>, report: &mut VerifyReport) {
        match &mut self.missing {
            Some(last) if self.info.chosen_in(&(last.end..range.start)) == 0 => last.end = range.end,
            _ => {
                self.report_missing(report);
                self.missing = Some(range);
            }
        }
    }

    pub(super) fn report_missing(&mut self, report: &mut VerifyReport) {
        if let Some(Range { start: first, end }) = self.missing.take() {
            report.add(Problem::MissingAccounting { of: self.of, first, last: end - 1 });
        }
    }

    /// Reports an account of some warps if its events do not add up or differ from the file. If unreadable
    /// frames cover these warps, counts the missing events instead and returns true.
    fn compare(
        &mut self,
        (warps, is_in): (Range<u32>, bool),
        account: &WarpAccount,
        held: Option<&HeldWarps>,
        report: &mut VerifyReport,
    ) -> bool {
        let of = self.of;
        let is_reported = held.is_some_and(|held| held.is_reported);
        let (events, chunks) = held.map_or((0, 0), |held| (held.events, held.chunks));
        let [of_events, of_chunks] = of.counted();
        let miscounted = [(of_events, account.recorded, events), (of_chunks, account.chunks.into(), chunks)]
            .into_iter()
            .filter(|(_, expected, found)| !is_reported && expected != found);
        let is_spoiled = is_in && miscounted.clone().next().is_some();
        if is_spoiled {
            self.spoiled.count(warps.clone(), account.recorded.saturating_sub(events));
        }
        report.add_for_each(warps, |warp| {
            let miscounted = miscounted.clone().filter(|_| !is_spoiled);
            let miscounted = miscounted.map(move |(what, expected, found)| Problem::Miscounted {
                of,
                warp,
                what,
                expected,
                found,
            });
            unbalanced(of, warp, account).into_iter().chain(miscounted)
        });
        is_spoiled
    }
}
