//! Counts of visits, lanes and slots.

#[cfg(feature = "bytes")]
use borsh::{BorshDeserialize, BorshSerialize};
use serde::Serialize;

/// Visits of warps, and their active and idle lanes, of up to 32. Lanes that have returned count as idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct Counts {
    /// Events: visits of a warp with some of its lanes.
    pub visits: u64,
    /// Active lanes, summed over the visits.
    pub lanes: u64,
    /// Idle slots: lanes of the warp that were not active, summed over the visits, with [weights](Weight).
    pub idle: u64,
    /// Active and idle slots, with the same weights.
    pub slots: u64,
}

/// Unit of slots: one slot for each lane of a visit, or one for each lane and instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Instruction slots. The trace has the number of instructions of every location.
    Instructions,
    /// Lane slots. Each event counts as one, independent of the code up to the next event.
    Events,
}

impl Weight {
    /// Returns the name of the unit.
    pub const fn slots(self) -> &'static str {
        match self {
            Self::Instructions => "instruction slots",
            Self::Events => "lane slots",
        }
    }
}

impl Counts {
    pub(crate) fn of_all(&self, warps: u64) -> Self {
        let [visits, lanes, idle, slots] =
            [self.visits, self.lanes, self.idle, self.slots].map(|count| count.saturating_mul(warps));
        Self { visits, lanes, idle, slots }
    }

    pub(crate) const fn new(visits: u64, lanes: u64, idle: u64, weight: u64) -> Self {
        let slots = lanes.saturating_add(idle).saturating_mul(weight);
        Self { visits, lanes, idle: idle.saturating_mul(weight), slots }
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &Self) {
        self.visits = self.visits.saturating_add(other.visits);
        self.lanes = self.lanes.saturating_add(other.lanes);
        self.idle = self.idle.saturating_add(other.idle);
        self.slots = self.slots.saturating_add(other.slots);
    }

    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            visits: self.visits.saturating_sub(before.visits),
            lanes: self.lanes.saturating_sub(before.lanes),
            idle: self.idle.saturating_sub(before.idle),
            slots: self.slots.saturating_sub(before.slots),
        }
    }

    /// Returns the idle share of the slots, 0 to 1; 0 if there are no slots.
    pub fn idle_share(&self) -> f64 {
        share(self.idle, self.slots)
    }

    /// Returns the mean number of active lanes per visit; 0 if there are no visits.
    pub fn mean_lanes(&self) -> f64 {
        share(self.lanes, self.visits)
    }
}

/// Returns `part` divided by `whole`; 0 if `whole` is 0.
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

pub(crate) fn median(numbers: &mut [u64]) -> u64 {
    match numbers.len().checked_sub(1) {
        None => 0,
        Some(last) => *numbers.select_nth_unstable(last / 2).1,
    }
}

/// Returns the lower median of pairs of number and multiplicity; 0 if there are none.
pub(crate) fn median_of_counted(mut numbers: Vec<(u64, u64)>) -> u64 {
    numbers.sort_unstable();
    let mut before = numbers.iter().map(|(_, times)| times).sum::<u64>().saturating_sub(1) / 2;
    let is_it = |(_, times): &&(u64, u64)| {
        let is_it = before < *times;
        before = before.saturating_sub(*times);
        is_it
    };
    numbers.iter().find(is_it).map_or(0, |(number, _)| *number)
}
