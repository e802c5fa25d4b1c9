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
use crate::all::WarpFilter;
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

/// Of each warp that was read what it has: accesses and chunks.
type Found = BTreeMap<u32, (u64, u64)>;

impl TraceFile {
    /// Checks the addresses and values of a launch.
    pub(super) fn check_accesses(&self, launch: u32, report: &mut VerifyReport) {
        let Some(info) = self.launch(launch) else { return };
        let track = self.data_track();
        let mut check =
            Check { file: self, info, launch, cursor: AccountCursor::new(self, launch, track), next: 0 };
        let mut unknown = BTreeMap::new();
        for (_, warps) in self.clusters(launch, &(0..info.warps())) {
            check.accounts(check.next..warps.start, &Found::new(), report);
            let (mut found, mut is_over) = (Found::new(), false);
            let mut rest = warps.clone();
            // What stands behind a warp that cannot be read is read all the same.
            while !is_over {
                let filter = WarpFilter::warps(rest.clone());
                let read = self.accesses_in_order(launch, &filter, &mut |accesses| {
                    rest.start = accesses.warp.saturating_add(1);
                    check.warp(&accesses, &mut unknown, report);
                    found.insert(accesses.warp, (accesses.recorded, accesses.chunks));
                    ControlFlow::Continue(())
                });
                is_over = true;
                if let Err(error) = read {
                    let bad = match error {
                        DecodeError::DataSequence { warp, .. } | DecodeError::TooManyEntries { warp, .. } => {
                            Some(warp)
                        }
                        _ => None,
                    };
                    report.add(Problem::Unreadable(error));
                    // Its account says more than what was found, which is no news.
                    let end = bad.map_or(rest.end, |warp| warp.saturating_add(1));
                    check.accounts(check.next..bad.unwrap_or(rest.start), &found, report);
                    check.skip(end);
                    (is_over, rest.start) = (bad.is_none(), end);
                    is_over |= rest.is_empty();
                }
            }
            check.accounts(check.next.min(warps.end)..warps.end, &found, report);
        }
        check.accounts(check.next..info.warps(), &Found::new(), report);
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

struct Check<'a> {
    file: &'a TraceFile,
    info: &'a LaunchInfo,
    launch: u32,
    cursor: AccountCursor<'a>,
    /// Accounts before this warp have been looked at.
    next: u32,
}

impl Check<'_> {
    fn add(&self, problem: AccessProblem, report: &mut VerifyReport) {
        report.add(Problem::Accesses { launch: self.launch, problem });
    }

    /// Checks what a warp has; notes the first warp of each site that is in no table.
    fn warp(&self, found: &WarpAccesses, unknown: &mut BTreeMap<u16, u32>, report: &mut VerifyReport) {
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
        let known = self.info.lane_mask(warp).unwrap_or(0);
        for site in found.sites.iter().filter(|site| !self.file.is_derived(site.site)) {
            if self.file.site(site.site).is_none() {
                unknown.entry(site.site).or_insert(warp);
            }
            let lanes = found.lanes(site.site) & !known;
            if lanes != 0 {
                self.add(AccessProblem::LaneOutside { warp, site: site.site, lanes }, report);
            }
        }
    }

    /// Passes over the accounts of warps that could not be read.
    const fn skip(&mut self, to: u32) {
        self.next = if to > self.next { to } else { self.next };
    }

    /// Compares the accounts of some warps with what was found of them.
    fn accounts(&mut self, mut warps: Range<u32>, found: &Found, report: &mut VerifyReport) {
        self.next = self.next.max(warps.end);
        while !warps.is_empty() {
            match self.cursor.next(warps.clone()) {
                Accounted::Missing(range) => {
                    warps.start = range.end;
                    if self.file.early_end(self.launch).is_none()
                        && let Some(chosen) = chosen_within(self.info, &range)
                    {
                        let (first, last) = (chosen.start, chosen.end - 1);
                        self.add(AccessProblem::Unaccounted { first, last }, report);
                    }
                }
                Accounted::Damaged(range, error) => {
                    warps.start = range.end;
                    report.add(Problem::Unreadable(error));
                }
                Accounted::Account(range, account) => {
                    warps.start = range.end;
                    let mut rest = range.start;
                    for (&warp, &(accesses, chunks)) in found.range(range.clone()) {
                        self.account(rest..warp, &account, (0, 0), report);
                        self.account(warp..warp + 1, &account, (accesses, chunks), report);
                        rest = warp + 1;
                    }
                    self.account(rest..range.end, &account, (0, 0), report);
                }
            }
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
