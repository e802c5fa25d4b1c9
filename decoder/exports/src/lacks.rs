//! What the selected part of a trace lacks.

use std::collections::BTreeMap;

use warptrace_analysis::{Selection, words};
use warptrace_decoder::{DecodeError, LossyWarps, TraceFile, Untimed};
use warptrace_format::file::{LaunchInfo, LossReason};

/// Sums that are said one by one.
const MAX_LINES: usize = 20;

/// Warps that lack events for the same reason, each as many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lack {
    /// Number of the launch.
    pub launch: u32,
    /// First of the warps, by linear index in the launch.
    pub first: u32,
    /// Last of the warps; not all between were selected and chosen to be recorded.
    pub last: u32,
    /// How many warps.
    pub warps: u64,
    /// Why.
    pub reason: LossReason,
    /// How many events all of them together; `None` if that is not known.
    pub events: Option<u64>,
}

/// What the selected part of a trace lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lacks {
    /// Why the file is not whole; `None` if it is.
    pub cut_off: Option<String>,
    /// Sums by launch and reason, counted and not: the first and last warp of each are the ones of the whole
    /// sum.
    pub sums: Vec<Lack>,
    /// Which times of the selected launches are missing, of those that were recorded.
    pub untimed: Untimed,
    /// Selected warps that were chosen not to be recorded. That is no loss.
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
            // A launch that failed may have accounts of all its warps, and one of which nothing is there has none.
            found.cut_off.clone_from(&trace.state().lacks);
        }
        Ok(found)
    }

    /// Whether all events of all selected warps are there, as far as they were chosen to be recorded, with
    /// the times that were recorded.
    pub const fn is_whole(&self) -> bool {
        let Untimed { events, warps } = self.untimed;
        self.cut_off.is_none() && self.sums.is_empty() && events == 0 && warps == 0
    }

    /// Says what is missing: the lines of [`describe_events`](Self::describe_events), and one of times. Empty
    /// if nothing is.
    pub fn describe(&self) -> Vec<String> {
        self.describe_events().into_iter().chain(self.untimed.describe()).collect()
    }

    /// Says which events are missing, a line for each launch and reason, and how many more there are.
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
