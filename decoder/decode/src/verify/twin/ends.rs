//! Alignment of tracks whose ends are recorded.
//!
//! Such a track holds the last events of each lane, and one track may hold more than the other. The first
//! events of the longer track are lost in the other. The event counts of each lane give their number, because
//! an event is lost for all of its lanes or for none.

use super::EventTimes;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::verify) struct LaneEvents([u64; 32]);

impl LaneEvents {
    pub(in crate::verify) fn new(runs: impl Iterator<Item = EventTimes>) -> Self {
        let mut lanes = Self::default();
        for run in runs {
            lanes.of_mask(run.event.mask).for_each(|events| *events += u64::from(run.times));
        }
        lanes
    }

    /// Returns how many more events each lane has here than in another track.
    pub(in crate::verify) fn more_than(&self, other: &Self) -> Surplus {
        let Self(lanes) = self;
        let more = std::array::from_fn(|lane| lanes[lane].saturating_sub(other.0[lane]));
        Surplus { lanes: Self(more), taken: 0 }
    }

    fn of_mask(&mut self, mask: u32) -> impl Iterator<Item = &mut u64> {
        self.0.iter_mut().enumerate().filter(move |(lane, _)| mask >> lane & 1 != 0).map(|(_, events)| events)
    }
}

/// The first events of a track that another track lacks.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::verify) struct Surplus {
    lanes: LaneEvents,
    pub(in crate::verify) taken: u64,
}

impl Surplus {
    /// Returns how many events of the track's next run belong to the surplus.
    pub(super) fn take(&mut self, run: EventTimes) -> u32 {
        let least = self.lanes.of_mask(run.event.mask).map(|events| *events).min().unwrap_or(0);
        let taken = u64::from(run.times).min(least);
        for events in self.lanes.of_mask(run.event.mask) {
            // After an event of both tracks, all events are in both, or the tracks differ.
            *events = if taken < u64::from(run.times) { 0 } else { *events - taken };
        }
        self.taken += taken;
        u32::try_from(taken).unwrap_or(run.times)
    }
}

#[cfg(test)]
mod tests {
    use warptrace_format::Event;

    use super::super::{TwinComparison, Verdict};
    use super::*;

    const fn run(location: u16, mask: u32, times: u32) -> EventTimes {
        EventTimes { event: Event { location, mask }, times }
    }

    fn compare(trace: &[EventTimes], twin: &[EventTimes]) -> (Verdict, u64, [u64; 2]) {
        let [of_trace, of_twin] = [trace, twin].map(|runs| LaneEvents::new(runs.iter().copied()));
        let surplus = [of_trace.more_than(&of_twin), of_twin.more_than(&of_trace)];
        let mut comparison = TwinComparison::of_ends(twin.iter().copied(), surplus);
        trace.iter().for_each(|run| comparison.push(*run));
        let (verdict, matched) = comparison.finish();
        (verdict, matched, comparison.passed_over())
    }

    const EQUAL: Verdict = Verdict::Fits { trace_left: false, twin_left: None };

    #[test]
    fn the_longer_ends_first_events_are_passed_over() {
        let whole = [run(1, 3, 5), run(2, 4, 1), run(3, 7, 2), run(4, 1, 100), run(5, 6, 3)];
        assert_eq!(compare(&whole, &whole), (EQUAL, 111, [0, 0]));
        let end = [run(3, 7, 1), run(4, 1, 100), run(5, 6, 3)];
        assert_eq!(compare(&whole, &end), (EQUAL, 104, [7, 0]));
        assert_eq!(compare(&end, &whole), (EQUAL, 104, [0, 7]));
        // Each track may reach further back for some lanes, because a run stands where it began.
        let [one, other] =
            [[run(1, 1, 9), run(2, 2, 1), run(3, 3, 1)], [run(2, 2, 5), run(1, 1, 2), run(3, 3, 1)]];
        assert_eq!(compare(&one, &other), (EQUAL, 4, [7, 4]));
        assert_eq!(compare(&whole, &[]), (EQUAL, 0, [111, 0]));
    }

    #[test]
    fn what_lacks_in_the_middle_or_at_the_end_is_a_difference() {
        let whole = [run(1, 3, 5), run(2, 1, 1), run(3, 3, 2)];
        for other in [
            &[run(1, 3, 5), run(3, 3, 2)][..],
            &[run(2, 1, 1), run(3, 3, 1)],
            &[run(1, 3, 5), run(2, 1, 1)],
            &[run(1, 1, 4), run(2, 1, 1), run(3, 3, 2)],
            &[run(2, 1, 1), run(4, 3, 2)],
        ] {
            let (verdict, ..) = compare(&whole, other);
            assert_ne!(verdict, EQUAL, "{other:?}");
            let (verdict, ..) = compare(other, &whole);
            assert_ne!(verdict, EQUAL, "{other:?}");
        }
    }
}
