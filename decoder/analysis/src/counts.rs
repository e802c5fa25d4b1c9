//! Counts of visits, lanes and slots.

#[cfg(feature = "bytes")]
use borsh::{BorshDeserialize, BorshSerialize};
use serde::Serialize;

/// How often warps came, and how well they were filled.
///
/// A warp's lanes are the threads of its block that it holds: 32, or fewer in the last warp of a block whose
/// thread count is no multiple of 32. Lanes that have returned count, too: their slots are idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct Counts {
    /// Events: times that a warp came, with some of its lanes.
    pub visits: u64,
    /// Active lanes, summed over the visits.
    pub lanes: u64,
    /// Idle slots: lanes that the warp has and that were not active, summed over the visits. Where visits are
    /// [weighed](Weight), those of a location count as many times as it has instructions.
    pub idle: u64,
    /// Slots, active and idle, weighed likewise.
    pub slots: u64,
}

/// What slots are: of a visit each lane has one, or one for each instruction that the visit stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Instruction slots: the trace says of each location how many instructions an event stands for.
    Instructions,
    /// Lane slots: each event counts as one, whatever stands between it and the next.
    Events,
}

impl Weight {
    /// The name of slots.
    pub const fn slots(self) -> &'static str {
        match self {
            Self::Instructions => "instruction slots",
            Self::Events => "lane slots",
        }
    }
}

impl Counts {
    /// The sum of these counts of each of some warps.
    pub(crate) fn of_all(&self, warps: u64) -> Self {
        let [visits, lanes, idle, slots] =
            [self.visits, self.lanes, self.idle, self.slots].map(|count| count.saturating_mul(warps));
        Self { visits, lanes, idle, slots }
    }

    /// Counts visits with their active and idle lanes, of which each stands for `weight`.
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

    /// What was counted after `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            visits: self.visits.saturating_sub(before.visits),
            lanes: self.lanes.saturating_sub(before.lanes),
            idle: self.idle.saturating_sub(before.idle),
            slots: self.slots.saturating_sub(before.slots),
        }
    }

    /// The part of the slots that is idle, 0 to 1; 0 if there are none.
    pub fn idle_share(&self) -> f64 {
        share(self.idle, self.slots)
    }

    /// Active lanes a visit; 0 if there are none.
    pub fn mean_lanes(&self) -> f64 {
        share(self.lanes, self.visits)
    }
}

/// `part` over `whole`; 0 if `whole` is.
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The lower median; 0 of nothing.
pub(crate) fn median(numbers: &mut [u64]) -> u64 {
    match numbers.len().checked_sub(1) {
        None => 0,
        Some(last) => *numbers.select_nth_unstable(last / 2).1,
    }
}

/// The lower median of numbers, each of which comes so often; 0 of nothing.
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
