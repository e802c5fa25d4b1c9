//! Load of each multiprocessor, in stretches of the shared time.

use std::collections::BTreeMap;
use std::ops::Range;

const STRETCHES: u64 = 1_024;
/// Maximum number of multiprocessors with a load. No device has more.
const MULTIPROCESSORS: usize = 1_024;

#[derive(Clone, Debug)]
pub(super) struct Load {
    /// Nanoseconds of a stretch, and the end of the last one.
    width: u64,
    until: u64,
    /// Running warps, times nanoseconds.
    warps: Vec<u64>,
    /// Active lanes, times nanoseconds; empty if runs have no times.
    lanes: Vec<u64>,
}

impl Load {
    pub(super) const fn width(&self) -> u64 {
        self.width
    }

    /// Returns the mean number of warps, at each change and at the end of the axis.
    pub(super) fn warps(&self) -> Vec<(u64, f64)> {
        self.means(&self.warps)
    }

    pub(super) fn lanes(&self) -> Vec<(u64, f64)> {
        self.means(&self.lanes)
    }

    fn means(&self, sums: &[u64]) -> Vec<(u64, f64)> {
        let mut means: Vec<(u64, f64)> = Vec::new();
        for (begin, sum) in (0..).map(|stretch: u64| stretch * self.width).zip(sums) {
            let width = self.width.min(self.until.saturating_sub(begin)).max(1);
            let mean = *sum as f64 / width as f64;
            if means.last().is_none_or(|(_, last)| *last != mean) {
                means.push((begin, mean));
            }
        }
        if !means.is_empty() {
            means.push((self.until, 0.0));
        }
        means
    }
}

pub(super) struct Loads {
    until: u64,
    has_lanes: bool,
    of: BTreeMap<u32, Load>,
}

impl Loads {
    pub(super) const fn new(until: u64, has_lanes: bool) -> Self {
        Self { until, has_lanes, of: BTreeMap::new() }
    }

    pub(super) fn warp(&mut self, sm: u32, lasts: &Range<u64>) {
        if let Some(load) = self.load(sm) {
            spread(&mut load.warps, load.width, lasts, 1);
        }
    }

    pub(super) fn run(&mut self, sm: u32, lasts: &Range<u64>, lanes: u32) {
        if let Some(load) = self.load(sm) {
            spread(&mut load.lanes, load.width, lasts, lanes.into());
        }
    }

    fn load(&mut self, sm: u32) -> Option<&mut Load> {
        if self.of.len() >= MULTIPROCESSORS && !self.of.contains_key(&sm) {
            return None;
        }
        let (until, width) = (self.until, self.until.div_ceil(STRETCHES).max(1));
        let none = || vec![0; usize::try_from(until.div_ceil(width)).unwrap_or(0)];
        let has_lanes = self.has_lanes;
        let load =
            || Load { width, until, warps: none(), lanes: if has_lanes { none() } else { Vec::new() } };
        Some(self.of.entry(sm).or_insert_with(load))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&u32, &Load)> {
        self.of.iter()
    }
}

fn spread(sums: &mut [u64], width: u64, lasts: &Range<u64>, weight: u64) {
    let mut from = lasts.start;
    while from < lasts.end {
        let stretch = from / width;
        let to = lasts.end.min((stretch + 1).saturating_mul(width));
        let Some(sum) = usize::try_from(stretch).ok().and_then(|at| sums.get_mut(at)) else { return };
        *sum = sum.saturating_add((to - from).saturating_mul(weight));
        from = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_those_of_what_ran_in_each_stretch() {
        let mut loads = Loads::new(STRETCHES * 3 - 1, true);
        loads.warp(7, &(0..9));
        loads.warp(7, &(2..4));
        loads.run(7, &(1..3), 32);
        loads.run(7, &(STRETCHES * 3 - 3..STRETCHES * 3 - 1), 5);
        let (sm, load) = loads.iter().next().unwrap();
        assert_eq!((*sm, load.width()), (7, 3));
        let until = STRETCHES * 3 - 1;
        assert_eq!(load.warps(), [(0, 4.0 / 3.0), (6, 1.0), (9, 0.0), (until, 0.0)]);
        assert_eq!(load.lanes(), [(0, 64.0 / 3.0), (3, 0.0), (until - 2, 5.0), (until, 0.0)]);
    }

    #[test]
    fn without_times_of_runs_there_are_no_lanes() {
        let mut loads = Loads::new(10, false);
        loads.warp(0, &(2..4));
        let (_, load) = loads.iter().next().unwrap();
        assert!(load.lanes().is_empty());
        assert_eq!(load.warps(), [(0, 0.0), (2, 1.0), (4, 0.0), (10, 0.0)]);
    }
}
