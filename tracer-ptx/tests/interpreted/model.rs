//! What must be recorded of the markers that the groups of a warp came to.

use std::collections::BTreeMap;

use warptrace_format::log::{Entry, MAX_KEY_COUNT};
use warptrace_ptx::interpret::MarkerEvent;
use warptrace_ptx::splice::Marker;

use crate::program::{Sequence, push};

/// Events of one mask and location that are one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Run {
    pub(crate) mask: u32,
    pub(crate) location: u16,
    pub(crate) count: u64,
}

/// The entries of both tracks, in the order in which they begin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) trace: Vec<Run>,
    pub(crate) twin: Vec<Run>,
}

impl Model {
    /// Follows the markers of a warp.
    pub(crate) fn of(markers: impl Iterator<Item = MarkerEvent>, counted: bool) -> Self {
        let mut model = Self::default();
        // The run that each lane is in, and what it has counted of each loop.
        let mut runs = [None; 32];
        let mut counts: BTreeMap<(u32, u16), u64> = BTreeMap::new();
        for MarkerEvent { mask, marker, .. } in markers {
            match marker {
                Marker::Event(location) => model.event(&mut runs, mask, location, 1),
                Marker::Tick(location, count) if !counted => {
                    model.event(&mut runs, mask, location, u64::from(count));
                }
                Marker::Tick(location, count) => {
                    lanes(mask)
                        .for_each(|lane| *counts.entry((lane, location)).or_default() += u64::from(count));
                    model.twin.push(Run { mask, location, count: u64::from(count) });
                }
                Marker::Enter(location) => lanes(mask).for_each(|lane| {
                    counts.insert((lane, location), 0);
                }),
                Marker::Leave(location) if counted => {
                    let count = |lane| counts.get(&(lane, location)).copied().unwrap_or_default();
                    model.leave(mask, location, count);
                    lanes(mask).for_each(|lane| runs[lane as usize] = None);
                }
                Marker::Leave(_) => {}
            }
        }
        model
    }

    fn event(&mut self, runs: &mut [Option<usize>; 32], mask: u32, location: u16, count: u64) {
        self.twin.push(Run { mask, location, count });
        let first = runs[mask.trailing_zeros() as usize];
        let same = lanes(mask).all(|lane| runs[lane as usize] == first);
        if let Some(run) = first.filter(|_| same).map(|first| &mut self.trace[first])
            && (run.mask, run.location) == (mask, location)
            && run.count + count <= u64::from(MAX_KEY_COUNT)
        {
            run.count += count;
            return;
        }
        lanes(mask).for_each(|lane| runs[lane as usize] = Some(self.trace.len()));
        self.trace.push(Run { mask, location, count });
    }

    fn leave(&mut self, mask: u32, location: u16, count: impl Fn(u32) -> u64) {
        let mut numbers: Vec<u64> = lanes(mask).map(&count).filter(|count| *count > 0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut before = 0;
        for number in numbers {
            let mask =
                lanes(mask).filter(|lane| count(*lane) >= number).fold(0, |mask, lane| mask | 1 << lane);
            self.trace.push(Run { mask, location, count: number - before });
            before = number;
        }
    }
}

/// The lanes of a mask.
pub(crate) fn lanes(mask: u32) -> impl Iterator<Item = u32> {
    (0..32).filter(move |lane| mask >> lane & 1 != 0)
}

impl From<&Entry> for Run {
    fn from(entry: &Entry) -> Self {
        Self { mask: entry.mask, location: entry.location, count: entry.count }
    }
}

/// The runs of a lane: mask and location, neighbours that have both in common as one.
pub(crate) fn of_lane(runs: &[Run], lane: u32) -> Vec<Run> {
    let mut found: Vec<Run> = Vec::new();
    for run in runs.iter().filter(|run| run.mask >> lane & 1 != 0) {
        match found.last_mut() {
            Some(last) if (last.mask, last.location) == (run.mask, run.location) => last.count += run.count,
            _ => found.push(*run),
        }
    }
    found
}

/// A lane's locations.
pub(crate) fn sequence(runs: &[Run], lane: u32) -> Sequence {
    let mut sequence = Sequence::new();
    runs.iter()
        .filter(|run| run.mask >> lane & 1 != 0)
        .for_each(|run| push(&mut sequence, run.location, run.count));
    sequence
}

/// Events of runs.
pub(crate) fn events(runs: &[Run]) -> u64 {
    runs.iter().map(|run| run.count).sum()
}
