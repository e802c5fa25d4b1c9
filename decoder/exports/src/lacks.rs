//! Missing parts of the selected part of a trace.

use std::collections::BTreeMap;

use warptrace_analysis::{Selection, words};
use warptrace_decoder::{DecodeError, LossyWarps, TraceFile, Untimed};
use warptrace_format::file::{LaunchInfo, LossReason};

const MAX_LINES: usize = 20;

/// Warps of a launch that lack events for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lack {
    /// Number of the launch.
    pub launch: u32,
    /// Linear index of the first warp in the launch.
    pub first: u32,
    /// Linear index of the last warp. The range may include warps that were not selected or not chosen.
    pub last: u32,
    /// Number of warps.
    pub warps: u64,
    /// The reason.
    pub reason: LossReason,
    /// Events that the warps lack together; `None` if unknown.
    pub events: Option<u64>,
}

/// Missing parts of the selected part of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lacks {
    /// Why the file is incomplete; `None` if it is complete.
    pub cut_off: Option<String>,
    /// Sums by launch, reason, and whether events were counted. First and last warp refer to the whole sum.
    pub sums: Vec<Lack>,
    /// Missing times of the selected launches, among the times that were recorded.
    pub untimed: Untimed,
    /// Selected warps that were not chosen for recording. They are not a loss.
    pub unchosen_warps: u64,
}

impl Lacks {
    pub(crate) fn new(
        trace: &TraceFile,
        selection: &Selection,
        launches: impl Iterator<Item = LaunchInfo> + Clone,
    ) -> Result<Self, DecodeError> {
        let untimed = trace.untimed(launches.clone().map(|info| info.number()));
        let mut found = Self { cut_off: trace.completeness().cut_off(), untimed, ..Self::default() };
        for info in launches {
            let mut sums: BTreeMap<(LossReason, bool), Lack> = BTreeMap::new();
            for lossy in selection.lacking(trace, &info, 0)? {
                let lossy = lossy?;
                let LossyWarps { first, last, chosen, reason, .. } = lossy;
                let sum = sums.entry((reason, lossy.events.is_some())).or_insert(Lack {
                    launch: info.number(),
                    first,
                    last,
                    warps: 0,
                    reason,
                    events: lossy.events.map(|_| 0),
                });
                sum.last = last;
                sum.warps += u64::from(chosen);
                sum.events = sum.events.map(|sum| sum.saturating_add(lossy.total().unwrap_or(0)));
            }
            found.sums.extend(sums.into_values());
            if !trace.is_untraced(&info) {
                found.unchosen_warps += selection.unchosen(&info);
            }
        }
        if found.is_whole() && selection.is_everything() {
            // A failed launch may have accounts of all warps; one without any data has no accounts.
            found.cut_off.clone_from(&trace.state().lacks);
        }
        Ok(found)
    }

    /// Returns true if no events or recorded times of the selected, chosen warps are missing.
    pub const fn is_whole(&self) -> bool {
        let Untimed { events, warps } = self.untimed;
        self.cut_off.is_none() && self.sums.is_empty() && events == 0 && warps == 0
    }

    /// Describes missing events as [`describe_events`](Self::describe_events), and missing times on one line.
    pub fn describe(&self) -> Vec<String> {
        self.describe_events().into_iter().chain(self.untimed.describe()).collect()
    }

    /// Describes the missing events, one line for each launch and reason, and the number of further lines.
    pub fn describe_events(&self) -> Vec<String> {
        let cut_off = self.cut_off.iter().cloned();
        let sums = self.sums.iter().take(MAX_LINES).map(Lack::describe);
        let more = self.sums.len().saturating_sub(MAX_LINES);
        let more = (more > 0).then(|| format!("and {more} more; `warptrace info` lists them"));
        cut_off.chain(sums).chain(more).collect()
    }
}

impl Lack {
    fn describe(&self) -> String {
        let Self { launch, warps, reason, .. } = self;
        let number = words::many(*warps, "warp");
        match self.events {
            Some(events) => {
                let events = words::count(events);
                format!("launch {launch}: {events} events of {number} were lost: {}", reason.describe())
            }
            None if *reason == LossReason::Died => format!("launch {launch}: {number} did not finish"),
            None => format!("launch {launch}: {number} without an account of losses"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_few() {
        let sum =
            |launch| Lack { launch, first: 0, last: 1, warps: 2, reason: LossReason::Died, events: None };
        let lacks = Lacks { sums: (0..50).map(sum).collect(), ..Lacks::default() };
        let lines = lacks.describe();
        assert_eq!((lines.len(), lines[0].as_str()), (21, "launch 0: 2 warps did not finish"));
        assert_eq!(lines[20], "and 30 more; `warptrace info` lists them");
    }
}
