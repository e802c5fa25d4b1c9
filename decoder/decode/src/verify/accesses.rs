//! Verification of addresses and values.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use warptrace_format::file::{LaunchInfo, LossReason};

use super::accounts::{AccountsCheck, HeldWarps};
use super::overlaps::check_overlaps;
use super::problem::Problem;
use super::report::VerifyReport;
use crate::accesses::WarpAccesses;
use crate::error::DecodeError;
use crate::file::TraceFile;

/// A problem with the addresses and values of a launch.
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
        /// Number of entries.
        entries: u32,
    },
    /// Accesses that no header names, or headers whose lanes have no accesses.
    #[error(
        "warp {warp}: {accesses} accesses, or the lanes of some group, belong to nothing although none was lost"
    )]
    Unmatched {
        /// The warp.
        warp: u32,
        /// Accesses that no header names.
        accesses: u64,
    },
    /// A site that is not in the table.
    #[error("warp {warp}: site {site} is not in the table of sites")]
    UnknownSite {
        /// The first warp with accesses at the site.
        warp: u32,
        /// The site.
        site: u16,
    },
    /// Accesses of lanes that the warp does not have.
    #[error("warp {warp}, site {site}: accesses of lanes that the warp does not have, {lanes:#010x}")]
    LaneOutside {
        /// The warp.
        warp: u32,
        /// The site.
        site: u16,
        /// The lanes.
        lanes: u32,
    },
    /// A warp that was not chosen has accesses.
    #[error("warp {warp} was not chosen, but has accesses")]
    NotChosen {
        /// The warp.
        warp: u32,
    },
    /// Accesses were lost and counted.
    #[error(
        "lost {accesses} of {attempted} accesses{} in {warps} warps: {}",
        if *followed { ", and with them what follows from them," } else { "" },
        reason.describe_with_remedy()
    )]
    Lost {
        /// The reason.
        reason: LossReason,
        /// Accesses lost.
        accesses: u64,
        /// Accesses, lost or not.
        attempted: u64,
        /// Warps that lost some.
        warps: u64,
        /// Whether the trace has derived sites. Their lost accesses are not counted.
        followed: bool,
    },
}

const WARPS_AT_ONCE: usize = 1 << 16;

impl TraceFile {
    pub(super) fn check_accesses(&self, info: &LaunchInfo, report: &mut VerifyReport) {
        let launch = info.number();
        let mut accounts = AccountsCheck::new(self, info, self.data_track());
        let (mut unknown, mut held) = (BTreeMap::new(), Vec::new());
        // Warps after an unreadable one are still checked.
        let _ =
            self.look_at_accesses(info, |accesses| Seen::new(self, info, &accesses), &mut |warps,
                                                                                           read: Result<
                Seen,
                DecodeError,
            >| {
                let is_over = matches!(read, Err(DecodeError::TooMuchWork { .. }));
                match read {
                    Ok(seen) => {
                        seen.report(info, &mut unknown, report);
                        let Seen { warp, recorded: events, chunks, .. } = seen;
                        held.push(HeldWarps { warps: warp..warp + 1, events, chunks, is_reported: false });
                        if held.len() == WARPS_AT_ONCE {
                            accounts.check(warps.end, held.drain(..), report, &mut |_| {});
                        }
                    }
                    Err(error) => {
                        report.add(Problem::Unreadable(error));
                        // Their accounts would differ from the file for a known reason.
                        accounts.check(warps.start, held.drain(..), report, &mut |_| {});
                        accounts.skip(if is_over { info.warps() } else { warps.end });
                    }
                }
                if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        accounts.check(info.warps(), held, report, &mut |_| {});
        accounts.report_missing(report);
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

struct Seen {
    warp: u32,
    recorded: u64,
    derived: u64,
    left_out: u64,
    unmatched: u64,
    has_gaps: bool,
    damaged: u32,
    chunks: u64,
    /// Faulty sites: number, whether the table has it, and accessing lanes that the warp does not have.
    odd_sites: Vec<(u16, bool, u32)>,
}

impl Seen {
    fn new(file: &TraceFile, info: &LaunchInfo, accesses: &WarpAccesses) -> Self {
        let &WarpAccesses { warp, left_out, unmatched, has_gaps, damaged, chunks, recorded, derived, .. } =
            accesses;
        let known = info.lane_mask(warp).unwrap_or(0);
        let sites = accesses.sites.iter().map(|site| site.site).filter(|site| !file.is_derived(*site));
        let odd = sites.map(|site| (site, file.site(site).is_some(), accesses.lanes(site) & !known));
        let odd_sites = odd.filter(|(_, is_known, lanes)| !is_known || *lanes != 0).collect();
        Self { warp, recorded, derived, left_out, unmatched, has_gaps, damaged, chunks, odd_sites }
    }

    /// Reports the findings, and notes the first warp of each unknown site.
    fn report(&self, info: &LaunchInfo, unknown: &mut BTreeMap<u16, u32>, report: &mut VerifyReport) {
        let warp = self.warp;
        report.accesses = report.accesses.saturating_add(self.recorded);
        report.derived_accesses = report.derived_accesses.saturating_add(self.derived);
        report.unmatched_accesses = report.unmatched_accesses.saturating_add(self.left_out);
        let mut add = |problem| report.add(Problem::Accesses { launch: info.number(), problem });
        if self.damaged > 0 {
            add(AccessProblem::Damaged { warp, entries: self.damaged });
        }
        if self.unmatched > 0 || self.has_gaps {
            add(AccessProblem::Unmatched { warp, accesses: self.unmatched });
        }
        if !info.is_chosen(warp) {
            add(AccessProblem::NotChosen { warp });
        }
        for &(site, is_known, lanes) in &self.odd_sites {
            if !is_known {
                unknown.entry(site).or_insert(warp);
            }
            if lanes != 0 {
                add(AccessProblem::LaneOutside { warp, site, lanes });
            }
        }
    }
}
