//! The runs of one stream, from the order in which they come to an order in which they happened.
//!
//! A run comes when it has ended, by the log of the lane that kept it, so runs that began earlier may come later. But what
//! has come by one look has all its predecessors by the next one: runs that began before it and share a lane with it. So
//! after each look all runs of the look before can go on, and with them those of this look that precede one of them.
//! Runs without a common lane have no order.

use warptrace_encode::native::{Run, run};
use warptrace_format::log::Entry;

/// A run that has come.
#[derive(Clone, Copy, Debug)]
struct Held {
    entry: Entry,
    /// Whether a look before this one has found it.
    is_old: bool,
}

/// Runs that have come and may have predecessors that have not.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    held: Vec<Held>,
    /// A time half of all times before those that come. Times wrap; those that are here at once are close together.
    base: Option<u32>,
}

impl Order {
    /// Takes the runs that a look has found, and appends those that can go on to `ready`. With `is_last` all can.
    pub(super) fn look(&mut self, found: &[Entry], is_last: bool, ready: &mut Vec<Run>) {
        if found.is_empty() && self.held.is_empty() {
            return;
        }
        self.held.extend(found.iter().map(|&entry| Held { entry, is_old: false }));
        let base = match self.base {
            Some(base) => base,
            None => self.held[0].entry.time.wrapping_sub(1 << 31),
        };
        // Each lane's runs are in their order already: the standard sort makes use of that.
        self.held.sort_by_key(|held| held.entry.time.wrapping_sub(base));
        // From the last to the first: the lanes of which a later run goes on.
        let mut lanes = 0;
        for held in self.held.iter_mut().rev() {
            if is_last || held.is_old || held.entry.mask & lanes != 0 {
                held.is_old = true;
                lanes |= held.entry.mask;
            }
        }
        let mut last = None;
        self.held.retain_mut(|held| {
            let goes = std::mem::replace(&mut held.is_old, true);
            if goes {
                last = Some(held.entry.time);
                ready.push(run(held.entry));
            }
            !goes
        });
        self.base = last.map(|time| time.wrapping_sub(1 << 31)).or(Some(base));
    }

    /// Whether nothing is held.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(time: u32, mask: u32) -> Entry {
        Entry { mask, location: time as u16, count: 1, time }
    }

    fn look(order: &mut Order, found: &[Entry], is_last: bool) -> Vec<u32> {
        let mut ready = Vec::new();
        order.look(found, is_last, &mut ready);
        ready.iter().map(|run| run[1]).collect()
    }

    #[test]
    fn runs_go_on_a_look_later() {
        let mut order = Order::default();
        assert_eq!(look(&mut order, &[entry(5, 1), entry(9, 1)], false), [0_u32; 0]);
        // One of another lane began before them: it shares none with them.
        assert_eq!(look(&mut order, &[entry(7, 2), entry(12, 1)], false), [5, 9]);
        assert_eq!(look(&mut order, &[], false), [7, 12]);
        assert!(order.is_empty());
        assert_eq!(look(&mut order, &[], false), [0_u32; 0]);
    }

    #[test]
    fn predecessors_that_come_late_go_before() {
        let mut order = Order::default();
        look(&mut order, &[entry(20, 0b110)], false);
        // 10 shares a lane with 20, 8 with 10; 15 with none of them.
        let found = [entry(15, 0b1000), entry(8, 1), entry(10, 0b011)];
        assert_eq!(look(&mut order, &found, false), [8, 10, 20]);
        assert_eq!(look(&mut order, &[], true), [15]);
    }

    #[test]
    fn the_last_look_lets_all_go() {
        let mut order = Order::default();
        look(&mut order, &[entry(3, 1)], false);
        assert_eq!(look(&mut order, &[entry(4, 2), entry(1, 4)], true), [1, 3, 4]);
    }

    #[test]
    fn times_may_begin_anew() {
        let mut order = Order::default();
        let times = [u32::MAX - 1, 2, u32::MAX, 1];
        look(&mut order, &times.map(|time| entry(time, 1)), false);
        let expected = [u32::MAX - 1, u32::MAX, 1, 2].map(|time| u32::from(time as u16));
        assert_eq!(look(&mut order, &[], false), expected);
    }
}
