//! Visits of one location by lanes that have it on their stacks, and the trips of lanes that left it.
//!
//! The counts of the 32 lanes are bit-sliced: a word has digit `k` of all lanes. One addition counts for all.

use crate::distribution::Distribution;

const DIGITS: usize = u64::BITS as usize;
/// Numbers of trips below this have a counter each.
const SMALL: usize = 64;

#[derive(Debug)]
pub(crate) struct Visited {
    pub(crate) location: u16,
    /// Lanes that have the location on their stacks. The counts of other lanes are 0.
    on_stack: u32,
    /// Lanes that returned to the location. All others on the stack have a count of 1.
    came_back: u32,
    used: usize,
    /// Bit i of word k is digit k of the count of lane i.
    digits: [u32; DIGITS],
    small: [u64; SMALL],
    large: Distribution,
}

impl Visited {
    pub(crate) fn new(location: u16) -> Self {
        let (digits, small) = ([0; DIGITS], [0; SMALL]);
        Self { location, on_stack: 0, came_back: 0, used: 0, digits, small, large: Distribution::default() }
    }

    #[inline]
    pub(crate) fn of_stacks(&self, mask: u32) -> u32 {
        mask & self.on_stack
    }

    /// Counts `times` visits of lanes, for lanes on the stack or new ones.
    #[inline]
    pub(crate) fn visit(&mut self, lanes: u32, times: u64) {
        self.came_back |= if times > 1 { lanes } else { lanes & self.on_stack };
        self.on_stack |= lanes;
        self.add(lanes, times);
    }

    #[inline]
    pub(crate) fn add(&mut self, lanes: u32, times: u64) {
        if times == 1 {
            return self.add_one(lanes);
        }
        let (mut digit, mut carry, mut rest) = (0, 0, times);
        while (rest != 0 || carry != 0) && digit < DIGITS {
            let more = if rest & 1 == 1 { lanes } else { 0 };
            let before = self.digits[digit];
            self.digits[digit] = before ^ more ^ carry;
            carry = before & (more | carry) | more & carry;
            rest >>= 1;
            digit += 1;
        }
        self.used = self.used.max(digit);
        self.stay(carry);
    }

    #[inline]
    fn add_one(&mut self, lanes: u32) {
        let (mut digit, mut carry) = (0, lanes);
        while carry != 0 && digit < DIGITS {
            let before = self.digits[digit];
            self.digits[digit] = before ^ carry;
            carry &= before;
            digit += 1;
        }
        self.used = self.used.max(digit);
        self.stay(carry);
    }

    /// Saturates the counts of lanes that overflowed.
    #[inline]
    fn stay(&mut self, lanes: u32) {
        if lanes != 0 {
            self.digits.iter_mut().for_each(|digit| *digit |= lanes);
        }
    }

    /// Removes the location from the stacks of lanes. Their counts become trips that count `weight` times.
    #[inline(always)]
    pub(crate) fn take_off(&mut self, lanes: u32, weight: u64) {
        let once = u64::from((lanes & !self.came_back).count_ones());
        self.small[1] = self.small[1].saturating_add(once.saturating_mul(weight));
        self.on_stack &= !lanes;
        let often = lanes & self.came_back;
        if often != 0 {
            self.take_off_counts(often, weight);
        }
        self.digits[0] &= !lanes;
    }

    #[inline(never)]
    fn take_off_counts(&mut self, lanes: u32, weight: u64) {
        let digits = &mut self.digits[..self.used];
        let mut rest = lanes;
        while rest != 0 {
            let lane = rest.trailing_zeros();
            rest &= rest - 1;
            let trips = digits.iter().rev().fold(0_u64, |sum, digit| sum << 1 | u64::from(digit >> lane & 1));
            match usize::try_from(trips).ok().and_then(|trips| self.small.get_mut(trips)) {
                Some(counter) => *counter = counter.saturating_add(weight),
                None => self.large.add(trips, weight),
            }
        }
        digits.iter_mut().for_each(|digit| *digit &= !lanes);
        self.came_back &= !lanes;
    }

    pub(crate) fn is_head(&self) -> bool {
        self.large.count() > 0 || self.small[2..].iter().any(|times| *times > 0)
    }

    pub(crate) fn trips(&self) -> Distribution {
        let mut trips = self.large.clone();
        (0..).zip(&self.small).for_each(|(number, &times)| trips.add(number, times));
        trips
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (counter, more) in self.small.iter_mut().zip(&other.small) {
            *counter = counter.saturating_add(*more);
        }
        self.large.merge(&other.large);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_each_lanes_own() {
        let mut visited = Visited::new(1);
        let mut counts = [0_u64; 32];
        let steps = [(0xff, 1), (0xf0, 1), (0x3c, 5), (0x81, 1 << 40), (0xff, 255), (0x10, 3)];
        for (lanes, times) in steps {
            visited.visit(lanes, times);
            (0..32).filter(|lane| lanes >> lane & 1 == 1).for_each(|lane| counts[lane] += times);
        }
        visited.visit(0xff00, 1);
        assert_eq!((visited.of_stacks(u32::MAX), visited.of_stacks(0xf00)), (0xffff, 0xf00));
        visited.take_off(0xffff, 2);
        let mut expected = Distribution::default();
        counts[..8].iter().for_each(|&count| expected.add(count, 2));
        expected.add(1, 16);
        assert_eq!((visited.trips(), visited.of_stacks(u32::MAX)), (expected, 0));
        assert!(visited.digits.iter().all(|digit| *digit == 0) && visited.came_back == 0);
    }

    #[test]
    fn counts_stay_at_the_greatest_number() {
        let mut visited = Visited::new(1);
        visited.visit(3, u64::MAX);
        visited.visit(1, 5);
        visited.take_off(3, 1);
        let trips = visited.trips();
        assert_eq!((trips.count(), trips.min(), trips.max()), (2, u64::MAX, u64::MAX));
    }
}
