//! Numbers of warp and lane executions of each trace point.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    /// Name of the kernel; the original name for a traced copy as well.
    pub(crate) kernel: String,
    pub(crate) location: u16,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passed {
    /// Events: warp executions of the trace point.
    pub(crate) events: u64,
    /// Sum of active lanes over these events.
    pub(crate) lanes: u64,
}

impl Passed {
    pub(crate) fn lanes_an_event(self) -> f64 {
        self.lanes as f64 / self.events as f64
    }
}

impl AddAssign for Passed {
    fn add_assign(&mut self, other: Self) {
        self.events += other.events;
        self.lanes += other.lanes;
    }
}

/// Counts of all trace points of a program, without points that were never passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    passed: BTreeMap<Point, Passed>,
    /// Points with an upper bound: their mark is conditional and also counts warps without an active lane.
    bounds: BTreeSet<Point>,
}

impl Counts {
    pub(crate) fn add(&mut self, kernel: &str, location: u16, passed: Passed) {
        if passed != Passed::default() {
            *self.passed.entry(Point { kernel: kernel.to_owned(), location }).or_default() += passed;
        }
    }

    /// Marks the events of a trace point as an upper bound.
    pub(crate) fn set_bound(&mut self, kernel: &str, location: u16) {
        self.bounds.insert(Point { kernel: kernel.to_owned(), location });
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        for (point, passed) in &other.passed {
            self.add(&point.kernel, point.location, *passed);
        }
        self.bounds.extend(other.bounds.iter().cloned());
    }

    pub(crate) fn at(&self, point: &Point) -> Passed {
        self.passed.get(point).copied().unwrap_or_default()
    }

    pub(crate) fn points(&self) -> impl Iterator<Item = &Point> {
        self.passed.keys()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.passed.is_empty()
    }

    pub(crate) fn total(&self) -> Passed {
        let mut total = Passed::default();
        for passed in self.passed.values() {
            total += *passed;
        }
        total
    }

    /// Trace points whose events are an upper bound, in order.
    pub(crate) fn bounds(&self) -> impl ExactSizeIterator<Item = &Point> {
        self.bounds.iter()
    }

    /// Sums the events of trace points without an upper bound in `self` or `other`.
    pub(crate) fn events_beside(&self, other: &Self) -> u64 {
        let is_exact = |point: &Point| !self.bounds.contains(point) && !other.bounds.contains(point);
        self.passed.iter().filter(|(point, _)| is_exact(point)).map(|(_, passed)| passed.events).sum()
    }

    /// Returns the trace points with different numbers of events, and both numbers. Ignores upper bounds.
    pub(crate) fn event_differences(&self, other: &Self) -> Vec<(Point, u64, u64)> {
        let mut differences = self.differences(other, |passed| passed.events);
        differences.retain(|(point, ..)| !self.bounds.contains(point) && !other.bounds.contains(point));
        differences
    }

    /// Returns the trace points with different numbers of lanes, and both numbers.
    pub(crate) fn lane_differences(&self, other: &Self) -> Vec<(Point, u64, u64)> {
        self.differences(other, |passed| passed.lanes)
    }

    fn differences(&self, other: &Self, number: fn(Passed) -> u64) -> Vec<(Point, u64, u64)> {
        union([self, other])
            .into_iter()
            .map(|point| {
                let (one, two) = (number(self.at(&point)), number(other.at(&point)));
                (point, one, two)
            })
            .filter(|(_, one, two)| one != two)
            .collect()
    }

    /// Returns the sum of the absolute differences of events over all points but upper bounds, divided by the
    /// events of `self`. 0 if all numbers are equal; infinite if only `other` has events.
    pub(crate) fn distance(&self, other: &Self) -> f64 {
        let differences = self.event_differences(other);
        let different: u64 = differences.iter().map(|(_, one, two)| one.abs_diff(*two)).sum();
        if different == 0 { 0.0 } else { different as f64 / self.events_beside(other) as f64 }
    }
}

pub(crate) fn union<'a>(counts: impl IntoIterator<Item = &'a Counts>) -> Vec<Point> {
    let points: BTreeSet<&Point> = counts.into_iter().flat_map(Counts::points).collect();
    points.into_iter().cloned().collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn counts(rows: &[(u16, u64, u64)]) -> Counts {
        let mut counts = Counts::default();
        for &(location, events, lanes) in rows {
            counts.add("walk", location, Passed { events, lanes });
        }
        counts
    }

    #[test]
    fn a_distance_is_over_the_events_of_the_first() {
        let (one, two) = (counts(&[(1, 10, 320), (2, 30, 90)]), counts(&[(1, 14, 320), (3, 6, 6)]));
        assert_eq!(one.distance(&one), 0.0);
        // Differences of 4 at location 1, 30 at location 2 and 6 at location 3.
        assert_eq!(one.distance(&two), 1.0);
        assert_eq!(two.distance(&one), 2.0);
        assert_eq!(Counts::default().distance(&Counts::default()), 0.0);
        assert_eq!(Counts::default().distance(&one), f64::INFINITY);
    }

    #[test]
    fn differences_name_the_points() {
        let (one, two) = (counts(&[(1, 10, 320), (2, 30, 90)]), counts(&[(1, 10, 319), (3, 6, 6)]));
        let point = |location| Point { kernel: "walk".to_owned(), location };
        assert_eq!(one.event_differences(&two), [(point(2), 30, 0), (point(3), 0, 6)]);
        assert_eq!(one.lane_differences(&two)[0], (point(1), 320, 319));
        assert_eq!(union([&one, &two]), [point(1), point(2), point(3)]);
    }

    #[test]
    fn counts_add_up() {
        let mut sum = counts(&[(1, 1, 2), (2, 3, 4), (9, 0, 0)]);
        sum.add_all(&counts(&[(2, 5, 60)]));
        assert_eq!(sum, counts(&[(1, 1, 2), (2, 8, 64)]));
        assert_eq!(sum.total(), Passed { events: 9, lanes: 66 });
        assert_eq!(sum.at(&Point { kernel: "other".to_owned(), location: 1 }), Passed::default());
        assert_eq!(sum.points().count(), 2);
        assert!((sum.total().lanes_an_event() - 66.0 / 9.0).abs() < 1e-12);
    }
    #[test]
    fn events_that_are_an_upper_bound_are_not_compared() {
        let (mut one, other) = (counts(&[(1, 10, 320), (2, 30, 90)]), counts(&[(1, 11, 320), (2, 5, 90)]));
        one.set_bound("walk", 2);
        assert_eq!(one.event_differences(&other).len(), 1);
        assert_eq!(other.distance(&one), 1.0 / 11.0);
        assert_eq!((one.events_beside(&other), other.events_beside(&one)), (10, 11));
        let mut sum = counts(&[]);
        sum.add_all(&one);
        assert_eq!((sum.bounds().len(), sum.lane_differences(&other).len()), (1, 0));
    }
}
