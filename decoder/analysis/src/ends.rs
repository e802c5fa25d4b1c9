//! How warps ended, by their accounts.

use serde::Serialize;
use warptrace_decoder::{DecodeError, TraceFile};
use warptrace_format::file::{LaunchInfo, LossReason};

use crate::figures::{Losses, StandingWarp};
use crate::selection::Selection;

/// What a warp's account says of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum WarpEnd {
    /// Its lanes left the kernel, and all of its events are there.
    Whole,
    /// Events of it were lost.
    Lossy,
    /// It had not left the kernel when the recording ended.
    Unfinished,
    /// The file has no account of it: the recording was cut off.
    Unknown,
}

impl WarpEnd {
    /// Whether its last event is known to be the last that it made.
    pub const fn is_whole(self) -> bool {
        matches!(self, Self::Whole)
    }
}

/// How the warps of one launch ended. Those that are not listed are whole.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    /// Ranges of warps that ended in the same way, first and last, in order.
    exceptions: Vec<(u32, u32, WarpEnd)>,
}

impl Ends {
    pub(crate) fn end_of(&self, warp: u32) -> WarpEnd {
        let at = self.exceptions.partition_point(|(_, last, _)| *last < warp);
        let found = self.exceptions.get(at).filter(|(first, ..)| *first <= warp);
        found.map_or(WarpEnd::Whole, |(.., end)| *end)
    }

    /// Notes how a warp ended, after those before it.
    fn push(&mut self, warp: u32, end: WarpEnd) {
        match self.exceptions.last_mut() {
            Some((_, last, same)) if *same == end && *last + 1 == warp => *last = warp,
            _ => self.exceptions.push((warp, warp, end)),
        }
    }
}

/// Unfinished warps without events.
#[derive(Debug)]
pub(crate) struct Silent {
    pub(crate) first: StandingWarp,
    pub(crate) warps: u64,
}

/// Reads the accounts of a launch; adds what they say of the selected warps to `losses`, and the launch's
/// unfinished warps without events, if there are any, to `silent`.
pub(crate) fn read(
    trace: &TraceFile,
    launch: &LaunchInfo,
    selection: &Selection,
    losses: &mut Losses,
    silent: &mut Vec<Silent>,
) -> Result<Ends, DecodeError> {
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
    let (mut ends, mut without) = (Ends::default(), None);
    for stream in trace.streams(launch.number(), 0)? {
        let stream = stream?;
        let warp = stream.warp;
        if !selection.has_warp(launch, warp) {
            continue;
        }
        let Some(account) = stream.account else {
            ends.push(warp, WarpEnd::Unknown);
            continue;
        };
        if account.finished == 0 {
            if account.recorded == 0 {
                let first = StandingWarp { launch: launch.number(), warp };
                without.get_or_insert(Silent { first, warps: 0 }).warps += 1;
            }
            ends.push(warp, WarpEnd::Unfinished);
        } else if account.lost > 0 {
            ends.push(warp, WarpEnd::Lossy);
        }
    }
    silent.extend(without);
    Ok(ends)
}
