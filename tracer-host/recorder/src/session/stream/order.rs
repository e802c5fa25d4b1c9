//! Orders the runs of a stream by time.
//!
//! A run arrives after lanes have left it, through the logs of the lanes that append it. So a run that began
//! earlier may arrive later, and some runs arrive more than once. The *predecessors* of a run are the runs
//! that began before it and share a lane with it. All predecessors of a run that one scan finds have arrived
//! by the next scan (`warptrace_abi::stream`). So each scan releases all runs of the previous scan, and the
//! runs of this scan that precede one of them. Runs without a common lane have no order.

use warptrace_abi::log::Entry;
use warptrace_encode::native::{RunWords, run};
use warptrace_format::LANES;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
struct Held {
    mask: u32,
    location: u16,
    /// Whether it has no copies.
    is_sole: bool,
    /// Whether an earlier scan found it.
    is_old: bool,
    count: u32,
    time: u32,
}

const _: () = assert!(size_of::<Held>() == 16);

/// Runs that have arrived and are not released, because a predecessor may not have arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    held: Vec<Held>,
    spare: Vec<Held>,
    /// Base for sorting, because times wrap: 2^31 units before the last released run, or the first run.
    base: Option<u32>,
    /// For each lane in `lanes`, the start time of its last released run.
    last: [u32; LANES as usize],
    lanes: u32,
}

impl Order {
    /// Adds a run. `is_sole` states that it has no copies.
    pub(super) fn take(&mut self, entry: Entry, is_sole: bool) {
        let Entry { mask, location, count, time } = entry;
        self.held.push(Held { mask, location, is_sole, is_old: false, count, time });
    }

    /// Releases runs after a scan of the warp's logs, with `is_last` all runs, and appends them to `ready`.
    pub(super) fn go_on(&mut self, is_last: bool, ready: &mut Vec<RunWords>) {
        let Some(first) = self.held.first() else { return };
        let base = self.base.unwrap_or(first.time.wrapping_sub(1 << 31));
        sort(&mut self.held, &mut self.spare, base);
        // From last to first: the lanes with a later released run.
        let mut lanes = 0;
        for held in self.held.iter_mut().rev() {
            if is_last || held.is_old || held.mask & lanes != 0 {
                held.is_old = true;
                lanes |= held.mask;
            }
        }
        let mut all = std::mem::take(&mut self.held);
        let mut last = base.wrapping_add(1 << 31);
        all.retain_mut(|held| {
            let goes = std::mem::replace(&mut held.is_old, true);
            if goes {
                last = held.time;
                if !self.has_gone(*held) {
                    let Held { mask, location, count, time, .. } = *held;
                    ready.push(run(Entry { mask, location, count, time }));
                }
            }
            !goes
        });
        self.held = all;
        self.base = Some(last.wrapping_sub(1 << 31));
    }

    /// Returns true if a run must be dropped, because a run of one of its lanes with the same or a later
    /// start time was released: it is a copy, or too late because its copy was lost. Otherwise registers its
    /// release. Never drops runs without copies: counted loops may arrive in any order.
    fn has_gone(&mut self, held: Held) -> bool {
        let Held { mask, time, is_sole, .. } = held;
        let mut later = 0;
        for (lane, last) in self.last.iter().enumerate() {
            later |= u32::from((time.wrapping_sub(*last) as i32) > 0) << lane;
        }
        later |= !self.lanes;
        if mask & !later != 0 && !is_sole {
            return true;
        }
        for (lane, last) in self.last.iter_mut().enumerate() {
            *last = if mask & later & 1 << lane != 0 { time } else { *last };
        }
        self.lanes |= mask;
        false
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}

/// Bits of a sort digit: the counters of a digit fit into the first-level cache.
const DIGIT_BITS: u32 = 9;
/// Fewer runs than this are sorted by comparison.
const WORTH_DIGITS: usize = 200;

/// Sorts runs by time since `base`. The sort is stable. Uses a radix sort, least significant digit first.
fn sort(held: &mut Vec<Held>, spare: &mut Vec<Held>, base: u32) {
    let since = |held: &Held| held.time.wrapping_sub(base);
    if held.is_sorted_by_key(since) {
        return;
    }
    if held.len() < WORTH_DIGITS {
        return held.sort_by_key(since);
    }
    let first = held.iter().map(since).min().unwrap_or_default();
    let range = held.iter().map(since).max().unwrap_or_default() - first;
    let digits = (u32::BITS - range.leading_zeros()).div_ceil(DIGIT_BITS);
    spare.clone_from(held);
    for digit in 0..digits {
        let digit_of =
            |held: &Held| ((since(held) - first) >> (digit * DIGIT_BITS)) as usize & ((1 << DIGIT_BITS) - 1);
        let mut places = [0_u32; 1 << DIGIT_BITS];
        held.iter().for_each(|held| places[digit_of(held)] += 1);
        let mut at = 0;
        for place in &mut places {
            at += std::mem::replace(place, at);
        }
        for run in held.iter() {
            let place = &mut places[digit_of(run)];
            spare[*place as usize] = *run;
            *place += 1;
        }
        std::mem::swap(held, spare);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(time: u32, mask: u32) -> Entry {
        Entry { mask, location: time as u16, count: 1, time }
    }

    fn scan(order: &mut Order, found: &[Entry], is_last: bool) -> Vec<u32> {
        let mut ready = Vec::new();
        found.iter().for_each(|entry| order.take(*entry, false));
        order.go_on(is_last, &mut ready);
        ready.iter().map(|run| run[1]).collect()
    }

    #[test]
    fn runs_go_on_a_scan_later() {
        let mut order = Order::default();
        assert_eq!(scan(&mut order, &[entry(5, 1), entry(9, 1)], false), [0_u32; 0]);
        // A run of another lane began earlier, but shares no lane with them.
        assert_eq!(scan(&mut order, &[entry(7, 2), entry(12, 1)], false), [5, 9]);
        assert_eq!(scan(&mut order, &[], false), [7, 12]);
        assert!(order.is_empty());
        assert_eq!(scan(&mut order, &[], false), [0_u32; 0]);
    }

    #[test]
    fn predecessors_that_come_late_go_before() {
        let mut order = Order::default();
        scan(&mut order, &[entry(20, 0b110)], false);
        // 10 shares a lane with 20, and 8 with 10; 15 shares none.
        let found = [entry(15, 0b1000), entry(8, 1), entry(10, 0b011)];
        assert_eq!(scan(&mut order, &found, false), [8, 10, 20]);
        assert_eq!(scan(&mut order, &[], true), [15]);
    }

    #[test]
    fn the_last_scan_lets_all_go() {
        let mut order = Order::default();
        scan(&mut order, &[entry(3, 1)], false);
        assert_eq!(scan(&mut order, &[entry(4, 2), entry(1, 4)], true), [1, 3, 4]);
    }

    #[test]
    fn times_may_begin_anew() {
        let mut order = Order::default();
        let times = [u32::MAX - 1, 2, u32::MAX, 1];
        scan(&mut order, &times.map(|time| entry(time, 1)), false);
        let expected = [u32::MAX - 1, u32::MAX, 1, 2].map(|time| u32::from(time as u16));
        assert_eq!(scan(&mut order, &[], false), expected);
    }

    #[test]
    fn copies_go_on_once_whenever_they_come() {
        let mut order = Order::default();
        let copy = entry(5, 0b101);
        // Lane 2 has left the run; lane 0 is still in it.
        assert_eq!(scan(&mut order, &[copy, entry(6, 0b100), copy], false), [0_u32; 0]);
        assert_eq!(scan(&mut order, &[], false), [5, 6]);
        // The original arrives late.
        assert_eq!(scan(&mut order, &[copy, entry(8, 1)], false), [0_u32; 0]);
        assert_eq!(scan(&mut order, &[], true), [8]);
        assert!(order.is_empty());
    }

    #[test]
    fn runs_without_copies_may_be_of_one_time() {
        let (mut order, mut ready) = (Order::default(), Vec::new());
        order.take(entry(5, 3), true);
        order.take(entry(5, 3), true);
        order.go_on(true, &mut ready);
        assert_eq!(ready.len(), 2);
    }

    #[test]
    fn many_runs_are_sorted_as_few_are() {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        };
        for (count, bits) in [(3, 4), (199, 8), (200, 6), (5_000, 10), (5_000, 24), (20_000, 19)] {
            let base = next() << 8;
            let held: Vec<Held> = (0..count)
                .map(|number| Held {
                    mask: number,
                    location: 1,
                    is_sole: false,
                    is_old: false,
                    count: 1,
                    time: base.wrapping_add(next() & ((1 << bits) - 1)),
                })
                .collect();
            let mut expected = held.clone();
            expected.sort_by_key(|held| held.time.wrapping_sub(base));
            let mut sorted = held;
            sort(&mut sorted, &mut Vec::new(), base);
            assert_eq!(sorted, expected, "{count} {bits}");
        }
    }

    #[test]
    fn what_comes_too_late_does_not_go_on() {
        let mut order = Order::default();
        // The copy of 5 was lost.
        assert_eq!(scan(&mut order, &[entry(6, 0b100)], true), [6]);
        assert_eq!(scan(&mut order, &[entry(5, 0b101), entry(7, 0b101)], true), [7]);
    }
}
