//! State of warps at their end, from their accounts.

use std::ops::Range;

use serde::Serialize;
use warptrace_decoder::{DecodeError, TraceFile};
use warptrace_format::file::{LaunchInfo, LossReason};

use crate::figures::Losses;
use crate::selection::Selection;

/// State of a warp at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum WarpEnd {
    /// All lanes left the kernel, and all events are present.
    Whole,
    /// Events were lost.
    Lossy,
    /// The warp had not left the kernel when the recording ended.
    Unfinished,
    /// The file has no account of the warp: the recording was cut off.
    Unknown,
}

impl WarpEnd {
    /// Returns true if the last event in the trace is the last event of the warp.
    pub const fn is_whole(self) -> bool {
        matches!(self, Self::Whole)
    }
}

/// States of the warps of one launch. Warps that are not listed are whole.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    exceptions: Vec<(Range<u32>, WarpEnd)>,
}

impl Ends {
    /// Returns the end of a prefix of `warps` with the same state, and this state.
    pub(crate) fn end_of_first(&self, warps: &Range<u32>) -> (u32, WarpEnd) {
        let at = self.exceptions.partition_point(|(of, _)| of.end <= warps.start);
        match self.exceptions.get(at) {
            Some((of, end)) if of.start <= warps.start => (of.end.min(warps.end), *end),
            next => (next.map_or(warps.end, |(of, _)| of.start.min(warps.end)), WarpEnd::Whole),
        }
    }

    fn push(&mut self, warps: Range<u32>, end: WarpEnd) {
        match self.exceptions.last_mut() {
            Some((last, same)) if *same == end && last.end == warps.start => last.end = warps.end,
            _ => self.exceptions.push((warps, end)),
        }
    }
}

pub(crate) fn read(
    trace: &TraceFile,
    launch: &LaunchInfo,
    selection: &Selection,
) -> Result<(Ends, Losses), DecodeError> {
    let mut losses = Losses::default();
    for lacking in selection.lacking(trace, launch, 0)? {
        let lacking = lacking?;
        let warps = u64::from(lacking.chosen);
        match (lacking.total(), lacking.reason) {
            (Some(events), _) => {
                losses.lost_events = losses.lost_events.saturating_add(events);
                losses.lossy_warps += warps;
            }
            (None, LossReason::Died) => losses.unfinished_warps += warps,
            (None, _) => losses.unaccounted_warps += warps,
        }
    }
    let mut ends = Ends::default();
    for warps in trace.accounts(launch.number(), 0)? {
        let (warps, account) = warps?;
        let end = match account {
            None => WarpEnd::Unknown,
            Some(account) if account.finished == 0 => WarpEnd::Unfinished,
            Some(account) if account.lost > 0 => WarpEnd::Lossy,
            Some(_) => continue,
        };
        ends.push(warps, end);
    }
    Ok((ends, losses))
}
