//! Sums for ordered pairs of locations.

use rustc_hash::FxHashMap;

/// Limit of distinct pairs, which bounds memory: 2^32 pairs are possible.
const MAX_PAIRS: usize = 1 << 20;
/// Entries of the table in front of the map of all pairs.
const RECENT: usize = 1 << RECENT_BITS;
const RECENT_BITS: u32 = 10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) times: u64,
    /// Lanes, idle lane slots or events, depending on the owner of the pairs.
    pub(crate) amount: u64,
}

impl Sum {
    #[inline(always)]
    pub(crate) fn add(&mut self, other: Self) {
        self.times = self.times.saturating_add(other.times);
        self.amount = self.amount.saturating_add(other.amount);
    }
}

#[derive(Debug, Default)]
pub(crate) struct Pairs {
    all: FxHashMap<u32, Sum>,
    /// Direct-mapped table of recent pairs that are not in `all` yet. Unused entries have a `times` of 0.
    recent: Vec<(u32, Sum)>,
    /// True if there were too many pairs. Then no pairs are kept.
    is_full: bool,
}

impl Pairs {
    #[inline(always)]
    pub(crate) fn count(&mut self, from: u16, to: u16, sum: Sum) {
        let key = u32::from(from) << 16 | u32::from(to);
        // Fibonacci hashing by 2^32 over the golden ratio (Knuth, "Sorting and Searching", 6.4).
        let at = (key.wrapping_mul(0x9e37_79b9) >> (u32::BITS - RECENT_BITS)) as usize;
        match self.recent.get_mut(at) {
            Some((held, known)) if *held == key => known.add(sum),
            _ => self.replace(at, key, sum),
        }
    }

    #[cold]
    #[inline(never)]
    fn replace(&mut self, at: usize, key: u32, sum: Sum) {
        if self.recent.is_empty() {
            self.recent.resize(RECENT, (0, Sum::default()));
        }
        let (held, known) = std::mem::replace(&mut self.recent[at], (key, sum));
        if known.times > 0 {
            self.add(held, known);
        }
    }

    fn settle(&mut self) {
        let mut recent = std::mem::take(&mut self.recent);
        for (key, sum) in recent.iter_mut().filter(|(_, sum)| sum.times > 0) {
            self.add(*key, std::mem::take(sum));
        }
        self.recent = recent;
    }

    #[inline]
    fn add(&mut self, key: u32, sum: Sum) {
        if self.is_full {
            return;
        }
        self.all.entry(key).or_default().add(sum);
        if self.all.len() > MAX_PAIRS {
            (self.all, self.is_full) = (FxHashMap::default(), true);
        }
    }

    /// Returns the pairs, sorted by source and destination; `None` if there were more than 2^20.
    pub(crate) fn sorted(&mut self) -> Option<Vec<((u16, u16), Sum)>> {
        self.settle();
        if self.is_full {
            return None;
        }
        let all = self.all.iter();
        let mut all: Vec<_> = all.map(|(&key, &sum)| (((key >> 16) as u16, key as u16), sum)).collect();
        all.sort_unstable_by_key(|(ends, _)| *ends);
        Some(all)
    }

    pub(crate) fn merge(&mut self, mut other: Self) {
        self.settle();
        other.settle();
        if self.is_full || other.is_full {
            *self = Self { is_full: true, ..Self::default() };
            return;
        }
        if self.all.len() < other.all.len() {
            std::mem::swap(&mut self.all, &mut other.all);
        }
        for (key, sum) in other.all {
            self.add(key, sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(from: std::ops::Range<u16>) -> Pairs {
        let mut pairs = Pairs::default();
        for (from, to) in from.flat_map(|from| (0..1 << 10).map(move |to| (from, to))) {
            pairs.count(from, to, Sum { times: 1, amount: 2 });
        }
        pairs
    }

    #[test]
    fn too_many_pairs_are_none_and_take_no_memory() {
        let mut most = pairs(0..1 << 10);
        assert_eq!(most.sorted().map(|all| all.len()), Some(MAX_PAIRS));
        let mut many = pairs(0..(1 << 10) + 1);
        assert_eq!((many.sorted(), many.all.capacity()), (None, 0));
        let mut both = pairs(0..1 << 9);
        both.merge(pairs(1 << 9..(1 << 10) + 1));
        assert_eq!((both.sorted(), both.all.capacity()), (None, 0));
        most.merge(many);
        assert_eq!((most.sorted(), most.all.capacity()), (None, 0));
        most.merge(pairs(0..1));
        assert_eq!((most.sorted(), most.all.capacity()), (None, 0));
    }
}
