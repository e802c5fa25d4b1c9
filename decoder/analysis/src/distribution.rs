//! Distribution of numbers in bounded memory.

use std::collections::BTreeMap;

#[cfg(feature = "bytes")]
use borsh::{BorshDeserialize, BorshSerialize};
use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

/// Limit of distinct numbers that are kept exactly. Above it, numbers from [`EXACT`] on are kept by bucket.
const MOST: usize = 4096;
/// Buckets below this number contain one number each. Others have a width of at most 1/128 of their numbers.
const EXACT: u64 = 256;
const SUB_BITS: u32 = 7;

/// A multiset of numbers. Count, sum, minimum and maximum are exact. Quantiles are exact for up to 4,096
/// distinct numbers; with more, numbers from 256 on are up to 1/128 too low.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct Distribution {
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
    /// Number of ones, the most frequent number, which need no look-up.
    ones: u64,
    /// True if the other numbers are kept by the lowest number of their bucket.
    is_rough: bool,
    buckets: BTreeMap<u64, u64>,
}

fn bucket(number: u64) -> u16 {
    if number < EXACT {
        return number as u16;
    }
    let octave = number.ilog2() - SUB_BITS;
    // The SUB_BITS bits after the leading one, for each octave from 1 on. At most 2^13 buckets in all.
    let within = (number >> octave) - (1 << SUB_BITS);
    ((u64::from(octave) + 1) << SUB_BITS) as u16 + within as u16
}

fn least(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    if bucket < EXACT {
        return bucket;
    }
    let octave = (bucket >> SUB_BITS) - 1;
    ((bucket & ((1 << SUB_BITS) - 1)) | (1 << SUB_BITS)) << octave
}

impl Distribution {
    /// Adds `number`, `times` times.
    pub fn add(&mut self, number: u64, times: u64) {
        if times == 0 {
            return;
        }
        (self.min, self.max) = match self.count {
            0 => (number, number),
            _ => (self.min.min(number), self.max.max(number)),
        };
        self.count = self.count.saturating_add(times);
        self.sum = self.sum.saturating_add(number.saturating_mul(times));
        let counter = match number {
            1 => &mut self.ones,
            _ if self.is_rough => self.buckets.entry(least(bucket(number))).or_default(),
            _ => self.buckets.entry(number).or_default(),
        };
        *counter = counter.saturating_add(times);
        self.limit();
    }

    fn limit(&mut self) {
        if !self.is_rough && self.buckets.len() > MOST {
            self.make_rough();
        }
    }

    fn make_rough(&mut self) {
        self.is_rough = true;
        for (number, count) in std::mem::take(&mut self.buckets) {
            let counter = self.buckets.entry(least(bucket(number))).or_default();
            *counter = counter.saturating_add(count);
        }
    }

    /// Adds all numbers of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        (self.min, self.max) = match self.count {
            0 => (other.min, other.max),
            _ => (self.min.min(other.min), self.max.max(other.max)),
        };
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.ones = self.ones.saturating_add(other.ones);
        if other.is_rough && !self.is_rough {
            self.make_rough();
        }
        for (&number, &count) in &other.buckets {
            let number = if self.is_rough { least(bucket(number)) } else { number };
            let counter = self.buckets.entry(number).or_default();
            *counter = counter.saturating_add(count);
        }
        self.limit();
    }

    /// Returns true if quantiles are exact.
    pub const fn is_exact(&self) -> bool {
        !self.is_rough
    }

    /// Returns how many numbers there are.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum.
    pub const fn sum(&self) -> u64 {
        self.sum
    }

    /// Returns the minimum; 0 if there are no numbers.
    pub const fn min(&self) -> u64 {
        self.min
    }

    /// Returns the maximum; 0 if there are no numbers.
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// Returns the mean; 0 if there are no numbers.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// Returns the maximum divided by the mean: 1 if all are equal; 0 if all are 0 or there are none.
    pub fn imbalance(&self) -> f64 {
        if self.sum == 0 { 0.0 } else { self.max as f64 / self.mean() }
    }

    /// Returns the lowest number that at least `percent` percent of all numbers do not exceed; 0 without any.
    pub fn percentile(&self, percent: u8) -> u64 {
        let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100).max(1);
        let mut seen = 0;
        for (number, count) in self.buckets() {
            seen += u128::from(count);
            if seen >= rank {
                return number.clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// Counts the numbers that are 0, 1, 2 to 3, 4 to 7, 8 to 15 and so on, up to the maximum.
    pub fn powers_of_two(&self) -> Vec<u64> {
        let mut counts = Vec::new();
        for (number, count) in self.buckets() {
            let at = (u64::BITS - number.leading_zeros()) as usize;
            if counts.len() <= at {
                counts.resize(at + 1, 0_u64);
            }
            counts[at] = counts[at].saturating_add(count);
        }
        counts
    }

    fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let below = self.buckets.range(..1).map(|(&number, &count)| (number, count));
        let ones = (self.ones > 0).then_some((1, self.ones));
        below.chain(ones).chain(self.buckets.range(1..).map(|(&number, &count)| (number, count)))
    }
}

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Distribution", 10)?;
        fields.serialize_field("count", &self.count)?;
        fields.serialize_field("sum", &self.sum)?;
        fields.serialize_field("min", &self.min)?;
        fields.serialize_field("exact", &self.is_exact())?;
        fields.serialize_field("median", &self.percentile(50))?;
        fields.serialize_field("p95", &self.percentile(95))?;
        fields.serialize_field("max", &self.max)?;
        fields.serialize_field("mean", &self.mean())?;
        fields.serialize_field("imbalance", &self.imbalance())?;
        fields.serialize_field("powers_of_two", &self.powers_of_two())?;
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_hold_what_is_near() {
        let mut last = 0;
        for number in (0..70_000).chain((17..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1])) {
            let low = least(bucket(number));
            assert!(low <= number && number - low <= low / 128, "{number} is in the bucket of {low}");
            assert!(bucket(number) >= last, "{number}");
            last = bucket(number);
        }
        assert_eq!(bucket(u64::MAX), (56 << 7) + 127 + 128);
    }

    #[test]
    fn many_different_numbers_are_kept_by_bucket_whatever_their_order() {
        let numbers = |from: u64| (from..).step_by(3).take(MOST / 2 + 100);
        let (mut one, mut other) = (Distribution::default(), Distribution::default());
        numbers(0).for_each(|number| one.add(number, 2));
        numbers(1).for_each(|number| other.add(number, 1));
        assert!(one.is_exact() && other.is_exact());
        let mut merged = one.clone();
        merged.merge(&other);
        let mut back = other;
        back.merge(&one);
        assert!(!merged.is_exact() && merged == back);
        let mut all = Distribution::default();
        numbers(1).for_each(|number| all.add(number, 1));
        numbers(0).for_each(|number| all.add(number, 2));
        assert_eq!(all, merged);
    }

    #[test]
    fn sums_do_not_overflow() {
        let mut all = Distribution::default();
        for _ in 0..3 {
            all.add(u64::MAX, u64::MAX);
        }
        all.merge(&all.clone());
        assert_eq!((all.count(), all.sum(), all.percentile(50)), (u64::MAX, u64::MAX, u64::MAX));
    }

    proptest! {
        #[test]
        fn figures_are_those_of_the_sorted_numbers(
            numbers in proptest::collection::vec(prop_oneof![0_u64..4, 0_u64..300, 0_u64..1 << 40], 1..200),
            split in 0_usize..200,
        ) {
            let mut parts = [Distribution::default(), Distribution::default()];
            for (at, &number) in numbers.iter().enumerate() {
                parts[usize::from(at < split)].add(number, 1);
            }
            let [mut all, other] = parts;
            all.merge(&other);
            let mut sorted = numbers;
            sorted.sort_unstable();
            let mut rough = all.clone();
            rough.make_rough();
            prop_assert!(all.is_exact() && !rough.is_exact());
            prop_assert_eq!(rough.powers_of_two(), all.powers_of_two());
            prop_assert_eq!(all.count(), sorted.len() as u64);
            prop_assert_eq!(all.sum(), sorted.iter().sum::<u64>());
            prop_assert_eq!((all.min(), all.max()), (sorted[0], sorted[sorted.len() - 1]));
            for percent in [1, 50, 95, 100] {
                let exact = sorted[(sorted.len() * percent).div_ceil(100) - 1];
                prop_assert_eq!(all.percentile(percent as u8), exact);
                let found = rough.percentile(percent as u8);
                prop_assert!(found <= exact && exact - found <= exact / 128, "{found} for {exact}");
                prop_assert!(exact >= 256 || found == exact);
            }
            for (at, count) in all.powers_of_two().into_iter().enumerate() {
                let has = |number: &&u64| (64 - number.leading_zeros()) as usize == at;
                prop_assert_eq!(sorted.iter().filter(has).count() as u64, count);
            }
        }
    }
}
