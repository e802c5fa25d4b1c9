//! Checks addresses and values.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use warptrace_format::account::WarpAccount;
use warptrace_format::file::{LaunchInfo, LossReason};

use super::overlaps::check_overlaps;
use super::problem::{Problem, remedy};
use super::report::VerifyReport;
use crate::accesses::WarpAccesses;
use crate::accounts::{AccountCursor, Accounted};
use crate::error::DecodeError;
use crate::file::TraceFile;
use crate::losses::chosen_within;

/// What is not as it should be with the addresses and values of a launch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccessProblem {
    /// Entries that no kernel writes.
    #[error(
        "warp {warp}: {entries} entries that no kernel writes; the program, or another, wrote into the tracer's memory"
    )]
    Damaged {
        /// The warp.
        warp: u32,
        /// How many.
        entries: u32,
    },
    /// Accesses that no header names, or headers whose lanes have none.
    #[error(
        "warp {warp}: {accesses} accesses, or the lanes of some group, belong to nothing although none was lost"
    )]
    Unmatched {
        /// The warp.
        warp: u32,
        /// Accesses that no header names.
        accesses: u64,
    },
    /// A site that is in no table.
    #[error("warp {warp}: site {site} is not in the table of sites")]
    UnknownSite {
        /// The first warp with it.
        warp: u32,
        /// The site.
        site: u16,
    },
    /// Lanes that the warp does not have.
    #[error("warp {warp}, site {site}: accesses of lanes that the warp does not have, {lanes:#010x}")]
    LaneOutside {
        /// The warp.
        warp: u32,
        /// The site.
        site: u16,
        /// The lanes.
        lanes: u32,
    },
    /// A warp that was not chosen.
    #[error("warp {warp} was not chosen, but has accesses")]
    NotChosen {
        /// The warp.
        warp: u32,
    },
    /// The file does not hold what an account says.
    #[error("warp {warp}: {expected} {what} accounted for, {found} found in the file")]
    Miscounted {
        /// The warp.
        warp: u32,
        /// "accesses" or "chunks of accesses".
        what: &'static str,
        /// What the account says.
        expected: u64,
        /// What the file holds.
        found: u64,
    },
    /// An account that does not add up.
    #[error("warp {warp}: {attempted} accesses attempted, but {recorded} recorded and {lost} lost")]
    Unbalanced {
        /// The warp.
        warp: u32,
        /// Accesses that lanes made at sites.
        attempted: u64,
        /// Of these, what is accounted as recorded.
        recorded: u64,
        /// And as lost.
        lost: u64,
    },
    /// Warps without accounts of accesses.
    #[error("no accounts of the accesses of warps {first} to {last}; losses there are not known")]
    Unaccounted {
        /// First of the warps.
        first: u32,
        /// Last of the warps.
        last: u32,
    },
    /// Accesses were lost, and counted.
    #[error(
        "lost {accesses} of {attempted} accesses{} in {warps} warps: {}{}",
        if *followed { ", and with them what follows from them," } else { "" },
        reason.describe(),
        remedy(*reason)
    )]
    Lost {
        /// Why.
        reason: LossReason,
        /// Accesses lost.
        accesses: u64,
        /// Accesses, lost or not.
        attempted: u64,
        /// Warps that lost some.
        warps: u64,
        /// Whether there are sites whose accesses follow from recorded ones, and were lost with them,
        /// uncounted.
        followed: bool,
    },
}

/// A warp that was read, and what it has: accesses and chunks.
type Found = (u32, (u64, u64));

/// Warps that are read before their accounts are looked at.
const WARPS_AT_ONCE: usize = 1 << 16;

impl TraceFile {
    /// Checks the addresses and values of a launch.
    pub(super) fn check_accesses(&self, launch: u32, report: &mut VerifyReport) {
        let Some(info) = self.launch(launch) else { return };
        let cursor = AccountCursor::new(self, launch, self.data_track());
        let mut check = Check { file: self, info, launch, cursor, next: 0, missing: None };
        let (mut unknown, mut found) = (BTreeMap::new(), Vec::new());
        // What stands behind a warp that cannot be read is read all the same.
        let _ =
            self.look_at_accesses(info, |accesses| Seen::of(self, info, &accesses), &mut |warps, read| {
                let is_over = matches!(read, Err(DecodeError::TooMuchWork { .. }));
                match read {
                    Ok(seen) => {
                        check.warp(&seen, &mut unknown, report);
                        found.push((seen.warp, (seen.recorded, seen.chunks)));
                        if found.len() == WARPS_AT_ONCE {
                            check.accounts(warps.end, &mut found, report);
                        }
                    }
                    Err(error) => {
                        report.add(Problem::Unreadable(error));
                        // Their accounts say more than what was found, which is no news.
                        check.accounts(warps.start, &mut found, report);
                        check.skip(if is_over { info.warps() } else { warps.end });
                    }
                }
                if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        check.accounts(info.warps(), &mut found, report);
        check.tell_missing(report);
        for (site, warp) in unknown {
            report.add(Problem::Accesses { launch, problem: AccessProblem::UnknownSite { warp, site } });
        }
        self.report_lost_accesses(launch, report);
    }

    fn report_lost_accesses(&self, launch: u32, report: &mut VerifyReport) {
        check_overlaps(self, launch, self.data_track(), report);
        let losses = match self.losses(launch, self.data_track()) {
            Ok(losses) => losses,
            Err(error) => return report.add(Problem::Unreadable(error)),
        };
        let attempted = losses.recorded.saturating_add(losses.lost());
        for loss in losses.losses {
            if let Some(accesses) = loss.events {
                report.lost_accesses = report.lost_accesses.saturating_add(accesses);
                let (reason, warps) = (loss.reason, loss.warps);
                let followed = self.derived_sites() > 0;
                let problem = AccessProblem::Lost { reason, accesses, attempted, warps, followed };
                report.add(Problem::Accesses { launch, problem });
            }
        }
    }
}

/// What a verification needs to know of a warp's accesses.
struct Seen {
    warp: u32,
    recorded: u64,
    derived: u64,
    left_out: u64,
    unmatched: u64,
    has_gaps: bool,
    damaged: u32,
    chunks: u64,
    /// Sites that no table has, or with lanes that the warp does not have: the site, whether a table has it, and
    /// these lanes.
    odd_sites: Vec<(u16, bool, u32)>,
}

impl Seen {
    fn of(file: &TraceFile, info: &LaunchInfo, accesses: &WarpAccesses) -> Self {
        let &WarpAccesses { warp, left_out, unmatched, has_gaps, damaged, chunks, recorded, derived, .. } =
            accesses;
        let known = info.lane_mask(warp).unwrap_or(0);
        let sites = accesses.sites.iter().map(|site| site.site).filter(|site| !file.is_derived(*site));
        let odd = sites.map(|site| (site, file.site(site).is_some(), accesses.lanes(site) & !known));
        let odd_sites = odd.filter(|(_, is_known, lanes)| !is_known || *lanes != 0).collect();
        Self { warp, recorded, derived, left_out, unmatched, has_gaps, damaged, chunks, odd_sites }
    }
}

struct Check<'a> {
    file: &'a TraceFile,
    info: &'a LaunchInfo,
    launch: u32,
    cursor: AccountCursor<'a>,
    /// Accounts before this warp have been looked at.
    next: u32,
    /// The last warps without accounts.
    missing: Option<Range<u32>>,
}

impl Check<'_> {
    fn add(&self, problem: AccessProblem, report: &mut VerifyReport) {
        report.add(Problem::Accesses { launch: self.launch, problem });
    }

    /// Reports what a warp has; notes the first warp of each site that is in no table.
    fn warp(&self, found: &Seen, unknown: &mut BTreeMap<u16, u32>, report: &mut VerifyReport) {
        let warp = found.warp;
        report.accesses = report.accesses.saturating_add(found.recorded);
        report.derived_accesses = report.derived_accesses.saturating_add(found.derived);
        report.unmatched_accesses = report.unmatched_accesses.saturating_add(found.left_out);
        if found.damaged > 0 {
            self.add(AccessProblem::Damaged { warp, entries: found.damaged }, report);
        }
        if found.unmatched > 0 || found.has_gaps {
            self.add(AccessProblem::Unmatched { warp, accesses: found.unmatched }, report);
        }
        if !self.info.is_chosen(warp) {
            self.add(AccessProblem::NotChosen { warp }, report);
        }
        for &(site, is_known, lanes) in &found.odd_sites {
            if !is_known {
                unknown.entry(site).or_insert(warp);
            }
            if lanes != 0 {
                self.add(AccessProblem::LaneOutside { warp, site, lanes }, report);
            }
        }
    }

    /// Passes over the accounts of warps that could not be read.
    fn skip(&mut self, to: u32) {
        self.next = self.next.max(to);
    }

    /// Compares the accounts of the warps before this one with what was found of them.
    fn accounts(&mut self, end: u32, found: &mut Vec<Found>, report: &mut VerifyReport) {
        let mut found = found.drain(..).peekable();
        while self.next < end {
            // What was found of warps without accounts is compared with nothing.
            while found.next_if(|(warp, _)| *warp < self.next).is_some() {}
            match self.cursor.next(self.next..end) {
                Accounted::Missing(range) => {
                    self.next = range.end;
                    if self.file.early_end(self.launch).is_none()
                        && let Some(chosen) = chosen_within(self.info, &range)
                    {
                        match &mut self.missing {
                            // None that was chosen lies between.
                            Some(last) if self.info.chosen_in(&(last.end..chosen.start)) == 0 => {
                                last.end = chosen.end;
                            }
                            _ => {
                                self.tell_missing(report);
                                self.missing = Some(chosen);
                            }
                        }
                    }
                }
                Accounted::Damaged(range, error) => {
                    self.next = range.end;
                    report.add(Problem::Unreadable(error));
                }
                Accounted::Account(range, account) => {
                    let mut rest = range.start;
                    self.next = range.end;
                    while let Some((warp, of_warp)) = found.next_if(|(warp, _)| *warp < range.end) {
                        self.account(rest..warp, &account, (0, 0), report);
                        self.account(warp..warp + 1, &account, of_warp, report);
                        rest = warp + 1;
                    }
                    self.account(rest..range.end, &account, (0, 0), report);
                }
            }
        }
    }

    /// Reports the warps that have no accounts, so far.
    fn tell_missing(&mut self, report: &mut VerifyReport) {
        if let Some(Range { start: first, end }) = self.missing.take() {
            self.add(AccessProblem::Unaccounted { first, last: end - 1 }, report);
        }
    }

    fn account(
        &self,
        warps: Range<u32>,
        account: &WarpAccount,
        found: (u64, u64),
        report: &mut VerifyReport,
    ) {
        let &WarpAccount { attempted, recorded, lost, chunks, .. } = account;
        let launch = self.launch;
        let is_balanced = recorded.checked_add(lost) == Some(attempted);
        let counts = [("accesses", recorded, found.0), ("chunks of accesses", chunks.into(), found.1)];
        if is_balanced && counts.iter().all(|(_, expected, found)| expected == found) {
            return;
        }
        report.add_for_each(warps, |warp| {
            let unbalanced = AccessProblem::Unbalanced { warp, attempted, recorded, lost };
            let unbalanced = (!is_balanced).then_some(unbalanced);
            let miscounted = counts.into_iter().filter(|(_, expected, found)| expected != found);
            let miscounted = miscounted.map(move |(what, expected, found)| AccessProblem::Miscounted {
                warp,
                what,
                expected,
                found,
            });
            let problems = unbalanced.into_iter().chain(miscounted);
            problems.map(move |problem| Problem::Accesses { launch, problem })
        });
    }
}
