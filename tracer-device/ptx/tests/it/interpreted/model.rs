//! Expected records, computed from the markers that the groups of a warp reached.

use std::collections::BTreeMap;

use warptrace_abi::log::{Entry, MAX_KEY_COUNT};
use warptrace_format::chosen::After;
use warptrace_ptx::interpret::MarkerEvent;
use warptrace_ptx::splice::Marker;

use super::program::{Sequence, push};

/// Events of one mask and location that form one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ModelRun {
    pub(crate) mask: u32,
    pub(crate) location: u16,
    pub(crate) count: u64,
}

/// Record of a group of lanes at a marker.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Events, on both tracks.
    Event(ModelRun),
    /// Iterations of a counted loop. Both tracks record them at the end of the loop.
    Tick(ModelRun),
    /// The end of a counted loop for these lanes.
    Leave { mask: u32, runs: Vec<ModelRun> },
}

pub(crate) fn steps(markers: impl Iterator<Item = MarkerEvent>, counted: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    // Each lane's count in each loop.
    let mut counts: BTreeMap<(u32, u16), u64> = BTreeMap::new();
    for MarkerEvent { mask, marker, .. } in markers {
        match marker {
            Marker::Event(location) => steps.push(Step::Event(ModelRun { mask, location, count: 1 })),
            Marker::Tick(location, count) if !counted => {
                steps.push(Step::Event(ModelRun { mask, location, count: u64::from(count) }));
            }
            Marker::Tick(location, count) => {
                let count = u64::from(count);
                lanes(mask).for_each(|lane| *counts.entry((lane, location)).or_default() += count);
                steps.push(Step::Tick(ModelRun { mask, location, count }));
            }
            Marker::Enter(location) => lanes(mask).for_each(|lane| {
                counts.insert((lane, location), 0);
            }),
            Marker::Leave(location) if counted => {
                let count = |lane| counts.get(&(lane, location)).copied().unwrap_or_default();
                steps.push(Step::Leave { mask, runs: leave(mask, location, count) });
            }
            Marker::Leave(_) => {}
        }
    }
    steps
}

/// Returns the events that are recorded after some visits. An event of several visits may be in part.
pub(crate) fn recorded_after(steps: Vec<Step>, after: After) -> Vec<Step> {
    let mut remaining = [u64::from(after.count.get()); 32];
    let mut recorded = |run: ModelRun| {
        let of = |lane: u32| remaining[lane as usize];
        let least = lanes(run.mask).map(of).min().unwrap_or_default();
        let visits = if run.location == after.location { run.count } else { 0 };
        let is_recorded = visits >= least;
        for lane in lanes(run.mask) {
            let remaining = &mut remaining[lane as usize];
            *remaining = if is_recorded { 0 } else { *remaining - visits };
        }
        is_recorded.then(|| ModelRun { count: run.count - least.saturating_sub(1), ..run })
    };
    let events = steps.into_iter().filter_map(|step| match step {
        Step::Event(run) => recorded(run).map(Step::Event),
        Step::Tick(_) | Step::Leave { .. } => unreachable!("loops are not counted"),
    });
    events.collect()
}

/// Returns the runs of a counted loop: one for each step of the lanes' counts.
fn leave(mask: u32, location: u16, count: impl Fn(u32) -> u64) -> Vec<ModelRun> {
    let mut numbers: Vec<u64> = lanes(mask).map(&count).filter(|count| *count > 0).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut before = 0;
    let mut runs = Vec::new();
    for number in numbers {
        let mask = lanes(mask).filter(|lane| count(*lane) >= number).fold(0, |mask, lane| mask | 1 << lane);
        runs.push(ModelRun { mask, location, count: number - before });
        before = number;
    }
    runs
}

/// The entries of both tracks, in the order in which they begin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) trace: Vec<ModelRun>,
    pub(crate) twin: Vec<ModelRun>,
    /// Each execution of an event marker.
    pub(crate) marks: Vec<ModelRun>,
}

impl Model {
    pub(crate) fn new(steps: &[Step]) -> Self {
        let mut model = Self::default();
        let mut runs = [None; 32];
        for step in steps {
            match step {
                Step::Event(run) => model.event(&mut runs, *run),
                Step::Tick(run) => model.marks.push(*run),
                Step::Leave { mask, runs: ended } => {
                    model.trace.extend(ended);
                    model.twin.extend(ended);
                    lanes(*mask).for_each(|lane| runs[lane as usize] = None);
                }
            }
        }
        model
    }

    fn event(&mut self, runs: &mut [Option<usize>; 32], event: ModelRun) {
        self.marks.push(event);
        self.twin.push(event);
        let first = runs[event.mask.trailing_zeros() as usize];
        let same = lanes(event.mask).all(|lane| runs[lane as usize] == first);
        if let Some(run) = first.filter(|_| same).map(|first| &mut self.trace[first])
            && (run.mask, run.location) == (event.mask, event.location)
            && run.count + event.count <= u64::from(MAX_KEY_COUNT)
        {
            run.count += event.count;
            return;
        }
        lanes(event.mask).for_each(|lane| runs[lane as usize] = Some(self.trace.len()));
        self.trace.push(event);
    }
}

pub(crate) fn lanes(mask: u32) -> impl Iterator<Item = u32> {
    (0..32).filter(move |lane| mask >> lane & 1 != 0)
}

impl From<&Entry> for ModelRun {
    fn from(entry: &Entry) -> Self {
        Self { mask: entry.mask, location: entry.location, count: u64::from(entry.count) }
    }
}

/// Returns a lane's runs. Adjacent runs with the same mask and location are merged.
pub(crate) fn of_lane(runs: &[ModelRun], lane: u32) -> Vec<ModelRun> {
    let mut found: Vec<ModelRun> = Vec::new();
    for run in runs.iter().filter(|run| run.mask >> lane & 1 != 0) {
        match found.last_mut() {
            Some(last) if (last.mask, last.location) == (run.mask, run.location) => last.count += run.count,
            _ => found.push(*run),
        }
    }
    found
}

pub(crate) fn sequence(runs: &[ModelRun], lane: u32) -> Sequence {
    let mut sequence = Sequence::new();
    runs.iter()
        .filter(|run| run.mask >> lane & 1 != 0)
        .for_each(|run| push(&mut sequence, run.location, run.count));
    sequence
}

pub(crate) fn events(runs: &[ModelRun]) -> u64 {
    runs.iter().map(|run| run.count).sum()
}

pub(crate) fn sorted(runs: &[ModelRun]) -> Vec<ModelRun> {
    let mut runs = runs.to_vec();
    runs.sort_unstable();
    runs
}
