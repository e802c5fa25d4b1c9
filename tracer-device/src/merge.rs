//! The logs of a warp's lanes, merged into one sequence of runs by the time at which they began.
//!
//! One thread does it: it looks at the next run of each log and takes the earliest. As long as a log's next run comes before all others', it is taken
//! without another look. Times are compared from the last run taken on, so that they may go round.

use warptrace_format::Memory;
use warptrace_format::pool::LOG_UNIT_BYTES;

use crate::log::{Extent, SEGMENT_UNITS, at_unit};
use crate::simt::WARP_LANES;
use crate::unit::Run;

/// Bytes of memory that merging needs.
pub(crate) const MERGE_BYTES: u32 = HEAD_BYTES * WARP_LANES;

/// What is kept of each log that has runs left, in this order: the unit of the next run, of its segment's link, the one behind the last run, and the
/// time of the next.
const HEAD_BYTES: u32 = 16;
const TIME: u32 = 12;

/// Stands for "no other log".
const NEVER: u32 = u32::MAX;

/// The logs of one track of a warp, on their way into one sequence.
pub(crate) struct Merge<M> {
    heads: M,
    logs: u64,
    /// Units of log memory.
    units: u32,
    /// Logs that have runs left.
    left: u32,
    /// Time of the run that was taken last.
    last: u32,
    /// From which log.
    current: u32,
    /// How long after the last run the earliest of the other logs comes.
    other: u32,
    /// Time of the first run that found no room, if one did not.
    pub(crate) lost_from: Option<u32>,
}

impl<M: Memory + Copy> Merge<M> {
    /// The logs in the slice that begins at a unit. `heads` are [`MERGE_BYTES`] of memory.
    #[inline(always)]
    pub(crate) fn open(mut heads: M, logs: u64, units: u32, slice: u32) -> Self {
        let (mut left, mut lost, mut first_lost) = (0, false, 0);
        let mut lane = 0;
        while lane < WARP_LANES {
            let log = Extent::read(logs, slice, lane);
            if let Some(time) = log.lost_from {
                first_lost =
                    if !lost || (time.wrapping_sub(first_lost) as i32) < 0 { time } else { first_lost };
                lost = true;
            }
            if log.end != log.first && log.end < units {
                let time = at_unit(logs, log.first).get32(TIME);
                heads.set128(HEAD_BYTES * left, [log.first, log.link, log.end, time]);
                left += 1;
            }
            lane += 1;
        }
        // Some time before all of them.
        let last = if left == 0 { 0 } else { heads.get32(TIME).wrapping_sub(1 << 31) };
        let lost_from = if lost { Some(first_lost) } else { None };
        Self { heads, logs, units, left, last, current: NEVER, other: 0, lost_from }
    }

    /// How many runs there are.
    #[inline(always)]
    pub(crate) fn count(&self) -> u32 {
        let (mut head, mut runs) = (0, 0);
        while head < self.left {
            let [mut from, mut link, end, _] = self.heads.get128(HEAD_BYTES * head);
            // Of a log that is longer than memory something else is wrong.
            while (end < from || end > link) && runs < self.units {
                runs += link - from;
                from = self.follow(link);
                link = from + SEGMENT_UNITS - 1;
            }
            runs += end.wrapping_sub(from);
            head += 1;
        }
        runs
    }

    /// The number that the link at a unit has.
    #[inline(always)]
    fn follow(&self, link: u32) -> u32 {
        let segment = at_unit(self.logs, link).get32(0);
        if segment > self.units - SEGMENT_UNITS { 0 } else { segment }
    }

    /// The next run.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<Run> {
        if self.left == 0 {
            return None;
        }
        if self.current == NEVER {
            self.look();
        }
        let at = HEAD_BYTES * self.current;
        let [unit, mut link, end, time] = self.heads.get128(at);
        let run = Run::of_unit(at_unit(self.logs, unit).get128(0));
        let since = time.wrapping_sub(self.last);
        self.other = if self.other == NEVER { NEVER } else { self.other - since };
        self.last = time;
        let mut next = unit + 1;
        if next != end && next == link {
            next = self.follow(link);
            link = next + SEGMENT_UNITS - 1;
        }
        if next == end {
            self.left -= 1;
            let moved = self.heads.get128(HEAD_BYTES * self.left);
            self.heads.set128(at, moved);
            self.current = NEVER;
        } else {
            let time = at_unit(self.logs, next).get32(TIME);
            self.heads.set128(at, [next, link, end, time]);
            if self.other != NEVER && time.wrapping_sub(self.last) >= self.other {
                self.current = NEVER;
            }
        }
        Some(run)
    }

    /// Finds the earliest next run, and how much later the one after it comes.
    #[inline(always)]
    fn look(&mut self) {
        let (mut first, mut other, mut current) = (NEVER, NEVER, 0);
        let mut head = 0;
        while head < self.left {
            let after = self.heads.get32(HEAD_BYTES * head + TIME).wrapping_sub(self.last);
            if (after < first) | (head == 0) {
                other = first;
                (first, current) = (after, head);
            } else if after < other {
                other = after;
            }
            head += 1;
        }
        (self.current, self.other) = (current, other);
    }
}

/// Bytes of a run, in the logs and merged.
pub(crate) const RUN_BYTES: u32 = LOG_UNIT_BYTES;
