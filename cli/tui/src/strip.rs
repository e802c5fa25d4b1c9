//! Runs of one warp.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use warptrace_analysis::WarpRuns;

/// Maximum number of stored runs. The first runs are stored.
pub(crate) const MAX_RUNS: usize = 1 << 16;

#[derive(Debug)]
pub(crate) struct Strip {
    pub(crate) launch: u32,
    pub(crate) warp: u32,
    /// `None` until they are read.
    pub(crate) runs: Option<Result<WarpRuns, String>>,
    pub(crate) at: usize,
    /// Locations of the stored runs, most events first.
    pub(crate) locations: Vec<u16>,
    marks: BTreeMap<u16, usize>,
}

impl Strip {
    pub(crate) fn new(launch: u32, warp: u32) -> Self {
        Self { launch, warp, runs: None, at: 0, locations: Vec::new(), marks: BTreeMap::new() }
    }

    pub(crate) fn fill(&mut self, runs: Result<WarpRuns, String>) {
        let mut events: BTreeMap<u16, u64> = BTreeMap::new();
        for run in runs.iter().flat_map(|runs| &runs.first) {
            let sum = events.entry(run.location).or_default();
            *sum = sum.saturating_add(run.times);
        }
        self.locations = events.keys().copied().collect();
        self.locations.sort_by_key(|location| Reverse(events[location]));
        self.marks = self.locations.iter().enumerate().map(|(mark, &location)| (location, mark)).collect();
        self.runs = Some(runs);
    }

    pub(crate) fn read(&self) -> Option<&WarpRuns> {
        self.runs.as_ref()?.as_ref().ok()
    }

    /// Returns the mark of a location: 0 for the location with the most events.
    pub(crate) fn mark(&self, location: u16) -> usize {
        self.marks.get(&location).copied().unwrap_or(usize::MAX)
    }

    /// Returns the index of the selected run's first event, from 0.
    pub(crate) fn first_event(&self) -> u64 {
        let before = self.read().map_or(&[][..], |runs| &runs.first[..self.at]);
        before.iter().fold(0, |sum, run| sum.saturating_add(run.times))
    }
}
