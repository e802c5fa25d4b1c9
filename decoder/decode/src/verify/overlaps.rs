//! Accounting sections that cover a warp more than once. The walk over accounts ([`crate::accounts`]) uses
//! one account of each warp; this check finds the others, so that contradictory accounts are reported.

use warptrace_format::file::{AccountRun, Accounts};

use super::problem::{LaunchTrack, Problem, unbalanced};
use super::report::VerifyReport;
use crate::file::TraceFile;

/// Reports each accounting section that covers warps of earlier sections, and accounts of those warps that do
/// not add up. When the report is full, only counts sections: an index can list warps many times.
pub(super) fn check_overlaps(file: &TraceFile, launch: u32, track: u32, report: &mut VerifyReport) {
    let of = LaunchTrack { launch, track: Some(track) };
    // First warp that no section so far covers. Sections are sorted by first warp.
    let mut covered = 0;
    for section in file.account_sections(launch, track) {
        // A launch has fewer than 2^32 warps, so the sum does not overflow.
        let end = section.last_warp.saturating_add(1);
        let (first, overlap_end) = (section.first_warp, covered.min(end));
        covered = covered.max(end);
        if first >= overlap_end {
            continue;
        }
        report.add(Problem::AccountedTwice {
            launch,
            track,
            offset: section.offset,
            first,
            last: overlap_end - 1,
        });
        if report.is_full() {
            continue;
        }
        match file.load_accounts(section) {
            Ok(Accounts { header, runs, .. }) => {
                let mut warp = header.first_warp;
                for AccountRun { warps, account } in runs {
                    let end = warp.saturating_add(warps);
                    let warps = warp..end.min(overlap_end);
                    report.add_for_each(warps, |warp| unbalanced(of, warp, &account));
                    warp = end;
                }
            }
            // The walk over accounts reads and reports a section that reaches further.
            Err(error) if overlap_end == end => report.add(Problem::Unreadable(error)),
            Err(_) => {}
        }
    }
}
