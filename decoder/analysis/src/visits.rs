//! Visits of one location, and the time of warps there, as counted by one thread.
//!
//! Events count for one warp of the current class, until its end multiplies by the number of warps.

use crate::counts::Counts;
use crate::distribution::Distribution;
use crate::figures::LANE_COUNTS;
use crate::times::Time;

/// Entries of the table in front of a distribution of cycles.
const RECENT: usize = 1 << RECENT_BITS;
const RECENT_BITS: u32 = 6;

pub(crate) type Locations = Vec<Option<Box<AtLocation>>>;

pub(crate) struct AtLocation {
    current: Current,
    pub(crate) active: [u64; LANE_COUNTS],
    /// Idle lanes, summed over the visits of warps that have ended.
    idle: u64,
    /// Instructions that a visit stands for, or 1.
    weight: u64,
    pub(crate) warp_visits: Distribution,
    pub(crate) time: Option<TimeAt>,
    /// Bit i is set if a warp with the number i in its block visited it, in this launch.
    pub(crate) numbers: u32,
    published: Counts,
}

#[derive(Default)]
struct Current {
    visits: u64,
    /// Active lanes of the warp, summed over visits. `others` are lanes that only malformed traces have.
    lanes: u64,
    others: u64,
    has_time: bool,
    /// As in [`Time`].
    lane_cycles: u64,
    warp_cycles: u64,
    timed_visits: u64,
    /// Warp-cycles of each run times its active lanes that the warp has, summed over the runs.
    active_lane_cycles: u64,
}

#[derive(Default)]
pub(crate) struct TimeAt {
    pub(crate) time: Time,
    visits: Distribution,
    /// Direct-mapped table of cycles and their counts that are not in `visits` yet.
    recent: Vec<(u64, u64)>,
}

impl TimeAt {
    #[inline(always)]
    fn visit(&mut self, cycles: u64, times: u64) {
        if self.recent.is_empty() {
            self.recent.resize(RECENT, (0, 0));
        }
        // Fibonacci hashing: the upper bits of the product with 2^64 divided by the golden ratio.
        let at = cycles.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - RECENT_BITS);
        let entry = &mut self.recent[at as usize % RECENT];
        if entry.0 == cycles {
            entry.1 = entry.1.saturating_add(times);
        } else {
            let (number, times) = std::mem::replace(entry, (cycles, times));
            self.visits.add(number, times);
        }
    }

    /// Returns the warp-cycles of each visit. The cycles of a run are divided among its visits.
    pub(crate) fn visits(&self) -> Distribution {
        let mut visits = self.visits.clone();
        self.recent.iter().for_each(|&(number, times)| visits.add(number, times));
        visits
    }

    fn settle(&mut self) {
        for (number, times) in std::mem::take(&mut self.recent) {
            self.visits.add(number, times);
        }
    }

    fn merge(&mut self, mut other: Self) {
        self.settle();
        other.settle();
        self.time.add(&other.time);
        self.visits.merge(&other.visits);
    }
}

impl AtLocation {
    pub(crate) fn new(weight: u64) -> Self {
        Self {
            current: Current::default(),
            active: [0; LANE_COUNTS],
            idle: 0,
            weight,
            warp_visits: Distribution::default(),
            time: None,
            numbers: 0,
            published: Counts::default(),
        }
    }

    /// Counts visits by `mask`, for each of `warps` warps with `lanes`. Returns true for the class's first.
    #[inline(always)]
    pub(crate) fn visit(&mut self, mask: u32, lanes: u32, times: u64, warps: u64) -> bool {
        let active = &mut self.active[mask.count_ones() as usize];
        *active = active.saturating_add(times.saturating_mul(warps));
        let current = &mut self.current;
        let is_first = current.visits == 0;
        current.visits = current.visits.saturating_add(times);
        let own = u64::from((mask & lanes).count_ones());
        current.lanes = current.lanes.saturating_add(own.saturating_mul(times));
        if mask & !lanes != 0 {
            let others = u64::from((mask & !lanes).count_ones());
            current.others = current.others.saturating_add(others.saturating_mul(times));
        }
        is_first
    }

    #[inline(always)]
    pub(crate) fn spend_lanes(&mut self, cycles: u64) {
        self.current.has_time = true;
        self.current.lane_cycles = self.current.lane_cycles.saturating_add(cycles);
    }

    #[inline(always)]
    pub(crate) fn spend(&mut self, mask: u32, lanes: u32, visits: u64, cycles: u64) {
        let current = &mut self.current;
        current.has_time = true;
        current.warp_cycles = current.warp_cycles.saturating_add(cycles);
        current.timed_visits = current.timed_visits.saturating_add(visits);
        let of = |lanes: u32| cycles.saturating_mul(lanes.count_ones().into());
        current.active_lane_cycles = current.active_lane_cycles.saturating_add(of(mask & lanes));
        let at = self.time.get_or_insert_default();
        if mask & !lanes != 0 {
            let sum = &mut at.time.active_lane_cycles;
            *sum = sum.saturating_add(of(mask & !lanes));
        }
        if visits == 1 {
            return at.visit(cycles, 1);
        }
        let (each, more) = (cycles / visits, cycles % visits);
        at.visit(each, visits - more);
        at.visit(each.saturating_add(1), more);
    }

    /// Ends the current class: `warps` warps of `width` lanes with visits, whose numbers in their blocks are
    /// bits of `numbers`. Returns the counts and the warp-cycles of each warp.
    pub(crate) fn end_class(&mut self, width: u32, numbers: u32, warps: u64) -> (Counts, u64) {
        let width = u64::from(width);
        let current = std::mem::take(&mut self.current);
        let idle = current.idle(width);
        self.idle = self.idle.saturating_add(idle.saturating_mul(warps));
        self.warp_visits.add(current.visits, warps);
        self.numbers |= numbers;
        if current.has_time {
            let Current { lane_cycles, warp_cycles, timed_visits, active_lane_cycles, .. } = current;
            let idle_lane_cycles = warp_cycles.saturating_mul(width).saturating_sub(active_lane_cycles);
            let time = Time { lane_cycles, warp_cycles, active_lane_cycles, idle_lane_cycles, timed_visits };
            self.time.get_or_insert_default().time.add(&time);
        }
        let lanes = current.lanes.saturating_add(current.others);
        (Counts::new(current.visits, lanes, idle, self.weight), current.warp_cycles)
    }

    /// Returns the counts since the last call. The current class has `warps` warps of `width` lanes.
    pub(crate) fn publish(&mut self, width: u32, warps: u64) -> Counts {
        let idle = self.idle.saturating_add(self.current.idle(width.into()).saturating_mul(warps));
        let counts = self.counts_with(idle);
        let more = counts.since(&self.published);
        self.published = counts;
        more
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts_with(self.idle)
    }

    fn counts_with(&self, idle: u64) -> Counts {
        let (mut visits, mut lanes) = (0_u64, 0_u64);
        for (active, &times) in (0_u64..).zip(&self.active) {
            visits = visits.saturating_add(times);
            lanes = lanes.saturating_add(times.saturating_mul(active));
        }
        Counts::new(visits, lanes, idle, self.weight)
    }

    /// Adds the counts of another thread. No class may be open.
    pub(crate) fn merge(&mut self, other: Self) {
        for (count, more) in self.active.iter_mut().zip(other.active) {
            *count = count.saturating_add(more);
        }
        self.idle = self.idle.saturating_add(other.idle);
        self.published.add(&other.published);
        self.warp_visits.merge(&other.warp_visits);
        self.numbers |= other.numbers;
        if let Some(more) = other.time {
            self.time.get_or_insert_default().merge(more);
        }
    }
}

impl Current {
    const fn idle(&self, width: u64) -> u64 {
        self.visits.saturating_mul(width).saturating_sub(self.lanes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_of_visits_are_counted_whatever_came_before() {
        let numbers = (0..2000_u64).map(|at| (at * at % 97, at % 3 + 1));
        let (mut times, mut expected) = ([(); 2].map(|()| TimeAt::default()), Distribution::default());
        for (at, (cycles, visits)) in numbers.enumerate() {
            times[at % 2].visit(cycles, visits);
            expected.add(cycles, visits);
        }
        let [mut time, other] = times;
        time.merge(other);
        time.visit(7, 2);
        expected.add(7, 2);
        assert_eq!(time.visits(), expected);
    }

    #[test]
    fn idle_lanes_are_those_that_the_warp_has() {
        let mut at = AtLocation::new(3);
        assert!(at.visit(0b11, 0b111, 2, 1));
        assert!(!at.visit(0b1001, 0b111, 1, 1));
        at.spend(0b1001, 0b111, 1, 10);
        assert_eq!(at.publish(3, 1), Counts::new(3, 6, 4, 3));
        let (counts, cycles) = at.end_class(3, 1, 1);
        assert_eq!((counts, cycles), (Counts::new(3, 6, 4, 3), 10));
        let time = at.time.as_ref().expect("there is time").time;
        assert_eq!((time.active_lane_cycles, time.idle_lane_cycles), (20, 20));
        assert_eq!((at.publish(0, 0), at.counts()), (Counts::default(), counts));
    }
}
