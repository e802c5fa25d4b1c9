//! Consequences of frames that cannot be read. They are only counted, because the frames are reported.

use std::ops::Range;

use super::problem::Problem;
use crate::losses::NAMED_WARPS;

/// Warps of a track in frames that cannot be read, and their missing events.
#[derive(Debug, Default)]
pub(super) struct Spoiled {
    /// Warps of such frames, in order; no two ranges touch.
    ranges: Vec<Range<u32>>,
    warps: u64,
    events: u64,
    first_warps: Vec<u32>,
}

impl Spoiled {
    pub(super) fn add_frame(&mut self, mut warps: Range<u32>) {
        let from = self.ranges.partition_point(|range| range.end < warps.start);
        let to = from + self.ranges[from..].partition_point(|range| range.start <= warps.end);
        if let [first, .., last] | [first @ last] = &self.ranges[from..to] {
            warps = warps.start.min(first.start)..warps.end.max(last.end);
        }
        self.ranges.splice(from..to, [warps]);
    }

    /// Removes the first part of `warps` inside or outside such frames. Returns it, and true if inside.
    pub(super) fn cut(&self, warps: &mut Range<u32>) -> (Range<u32>, bool) {
        let next = self.ranges.get(self.ranges.partition_point(|range| range.end <= warps.start));
        let (end, is_in) = match next {
            Some(range) if range.start <= warps.start => (range.end, true),
            Some(range) => (range.start, false),
            None => (warps.end, false),
        };
        let part = warps.start..end.min(warps.end);
        warps.start = part.end;
        (part, is_in)
    }

    pub(super) fn count(&mut self, warps: Range<u32>, events: u64) {
        let number = warps.len() as u64;
        self.warps += number;
        self.events = self.events.saturating_add(events.saturating_mul(number));
        let named = NAMED_WARPS.saturating_sub(self.first_warps.len());
        self.first_warps.extend(warps.take(named));
    }

    pub(super) fn problem(self, (launch, track): (u32, u32)) -> Option<Problem> {
        let Self { warps, events, first_warps, .. } = self;
        (warps > 0).then_some(Problem::Spoiled { launch, track, warps, events, first_warps })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_and_cut_at_their_ends() {
        let mut spoiled = Spoiled::default();
        for frame in [10..12, 20..30, 12..15, 40..41, 25..40, 0..1] {
            spoiled.add_frame(frame);
        }
        assert_eq!(spoiled.ranges, [0..1, 10..15, 20..41]);
        let mut rest = 5..50;
        let parts: Vec<_> =
            std::iter::from_fn(|| (!rest.is_empty()).then(|| spoiled.cut(&mut rest))).collect();
        assert_eq!(parts, [(5..10, false), (10..15, true), (15..20, false), (20..41, true), (41..50, false)]);
    }
}
