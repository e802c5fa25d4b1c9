//! Accounting sections that cover a warp more than once.
//!
//! The walk over accounts ([`crate::accounts`]) takes one account of each warp and leaves the others out.
//! Here the others are found, so that a trace cannot say two things about a warp without a report.

use warptrace_format::file::{AccountRun, Accounts};

use super::problem::{LaunchTrack, Problem, unbalanced};
use super::report::VerifyReport;
use crate::file::TraceFile;

/// Reports each accounting section that covers warps which sections before it cover, in order of warp, and
/// what does not add up in its accounts of them.
///
/// When the report's list of problems is full, sections are counted but not read: an index can list far more
/// warps twice than the file has bytes.
pub(super) fn check_overlaps(file: &TraceFile, launch: u32, track: u32, report: &mut VerifyReport) {
    let of = LaunchTrack { launch, track: Some(track) };
    // The first warp that no section so far covers. Sections are sorted by their first warp.
    let mut covered = 0;
    for section in file.account_sections(launch, track) {
        // A launch has less than 2^32 warps, so there is a number behind the last one.
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
            // One that reaches further is read, and reported, by the walk over accounts.
            Err(error) if overlap_end == end => report.add(Problem::Unreadable(error)),
            Err(_) => {}
        }
    }
}
