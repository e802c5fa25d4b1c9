//! Logs built by hand, and the expected results.

use warptrace_abi::log::{Entry, MAX_KEY_COUNT};

use crate::made_runs::{LANES, MadeRun, Numbers, lanes};

impl MadeRun {
    pub(crate) fn words(self) -> [u32; 4] {
        if self.count == 0 {
            // Without a run, an entry's other words are ignored.
            return [self.mask, 0, self.mask.wrapping_mul(0x9e37_79b9), 0];
        }
        assert!(self.count <= MAX_KEY_COUNT);
        let (mask, location, time) = (self.mask, self.location, self.time as u32);
        Entry { mask, location, time, ..Entry::from_words([0, self.count, 0, 0]) }.to_words()
    }

    pub(crate) fn merged(self) -> [u32; 4] {
        [self.mask, self.location.into(), self.count, self.time as u32]
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Logs {
    pub(crate) lanes: Vec<Vec<MadeRun>>,
    /// Time of the first lost run of each lane whose log was stopped.
    pub(crate) lost_from: Vec<Option<u64>>,
}

impl Logs {
    pub(crate) fn new(lanes: Vec<Vec<MadeRun>>) -> Self {
        Self { lanes, lost_from: vec![None; LANES] }
    }

    /// Returns the merged runs and the numbers of attempted and lost events.
    pub(crate) fn expected(&self) -> (Vec<[u32; 4]>, u64, u64) {
        let mut runs: Vec<_> = self
            .lanes
            .iter()
            .enumerate()
            .flat_map(|(lane, runs)| runs.iter().map(move |&run| ((run.time, lane), run)))
            .filter(|(_, run)| run.count != 0)
            .collect();
        runs.sort_by_key(|&(key, _)| key);
        let lost_from = self.lost_from.iter().flatten().min().map_or(u64::MAX, |time| time | 1);
        let (kept, lost): (Vec<_>, Vec<_>) = runs.into_iter().partition(|(_, run)| run.time < lost_from);
        let events =
            |runs: &[((u64, usize), MadeRun)]| runs.iter().map(|(_, run)| u64::from(run.count)).sum();
        let (kept_events, lost_events): (u64, u64) = (events(&kept), events(&lost));
        (kept.into_iter().map(|(_, run)| run.merged()).collect(), kept_events + lost_events, lost_events)
    }
}

pub(crate) fn logs(numbers: &mut Numbers, lengths: &[usize], start: u64, max_between: u64) -> Logs {
    Logs::new(lanes(numbers, lengths, start, max_between))
}

/// Inserts entries without a run: one in `rarity`, and one at each beginning.
pub(crate) fn with_gaps(numbers: &mut Numbers, mut logs: Logs, rarity: u64) -> Logs {
    for runs in &mut logs.lanes {
        let mut entries = Vec::new();
        for (number, &run) in runs.iter().enumerate() {
            while number == 0 && entries.is_empty() || numbers.below(rarity) == 0 {
                entries.push(MadeRun { location: 0, count: 0, ..run });
            }
            entries.push(run);
        }
        *runs = entries;
    }
    logs
}
