//! Counts of a value.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use warptrace_decoder::VectorRun;
use warptrace_format::data::LaneRun;

use super::number::{Number, Progression, ValueReading, float_text, progressions};
use super::{Bucket, Odd};

pub(super) const MAX_DISTINCT: usize = 1 << 12;
const STEPS_PER_FLOAT: u64 = 8;
/// Offset that makes the exponent of a float positive.
const EXPONENT: i32 = 1100;

/// Sum of floats that does not depend on their order: the sum of the mantissas of each exponent.
#[derive(Clone, Debug, Default)]
struct FloatSum(BTreeMap<i32, i128>);

impl FloatSum {
    fn add(&mut self, number: f64, times: u64) {
        let bits = number.to_bits();
        let exponent = (bits >> 52 & 0x7ff) as i32;
        let mantissa = (bits & ((1 << 52) - 1)) | if exponent == 0 { 0 } else { 1 << 52 };
        let signed = i128::from(mantissa) * if number.is_sign_negative() { -1 } else { 1 };
        *self.0.entry(exponent.max(1)).or_default() += signed * i128::from(times);
    }

    /// Returns the sum divided by `count`, to within rounding.
    fn over(&self, count: u64) -> f64 {
        // Largest first: each later term is exact, or smaller than the rounding error so far.
        let of =
            |(exponent, sum): (&i32, &i128)| (*sum as f64 / count as f64) * power_of_two(exponent - 1075);
        self.0.iter().rev().map(of).sum()
    }
}

#[derive(Clone, Debug)]
pub(super) struct Tally {
    pub(super) reading: ValueReading,
    pub(super) accesses: u64,
    pub(super) vectors: u64,
    pub(super) uniform: u64,
    pub(super) zeros: u64,
    pub(super) nan: u64,
    pub(super) infinite: u64,
    /// Bits of the lowest and the highest finite number.
    pub(super) least: Option<u64>,
    pub(super) most: Option<u64>,
    sum: i128,
    floats: FloatSum,
    buckets: BTreeMap<i32, u64>,
    /// Bits of the distinct values. More than [`MAX_DISTINCT`] mean that the number is unknown.
    distinct: FxHashSet<u64>,
    seen: FxHashSet<(u64, i32, u32)>,
    pub(super) first_nan: Option<Odd>,
    pub(super) first_infinite: Option<Odd>,
}

impl Tally {
    pub(super) fn new(reading: ValueReading) -> Self {
        Self {
            reading,
            accesses: 0,
            vectors: 0,
            uniform: 0,
            zeros: 0,
            nan: 0,
            infinite: 0,
            least: None,
            most: None,
            sum: 0,
            floats: FloatSum::default(),
            buckets: BTreeMap::new(),
            distinct: FxHashSet::default(),
            seen: FxHashSet::default(),
            first_nan: None,
            first_infinite: None,
        }
    }

    /// Counts the values of a group. Returns the work steps for values that are processed separately. Updates
    /// `before`, each lane's number of earlier values here. `odd` records a value that is not finite.
    pub(super) fn push(
        &mut self,
        vector: &VectorRun<'_>,
        before: &mut [u64; 32],
        odd: impl Fn(u32, u64, u64) -> Odd,
    ) -> u64 {
        let mut steps = 0;
        let vectors = u64::from(vector.vectors());
        self.vectors += vectors;
        if vector.group.spread == Some(0) || vector.group.mask.is_power_of_two() {
            self.uniform += vectors;
        }
        for lane in 0..32 {
            let Some(run) = vector.run(lane) else { continue };
            self.accesses += u64::from(run.count);
            let number = &mut before[lane as usize];
            if matches!(self.reading, ValueReading::F32 | ValueReading::F64) {
                steps += self.floats(run, |nth, bits| odd(lane, *number + u64::from(nth), bits));
            } else {
                progressions(run, self.reading, |of| {
                    self.integers(of);
                    steps += 1;
                });
            }
            steps += self.distinct(run);
            *number += u64::from(run.count);
        }
        steps
    }

    fn integers(&mut self, of: Progression) {
        let (low, high) = of.ends();
        let bits = |number: i128| number as u64;
        self.ends(bits(low), bits(high));
        self.sum += of.sum();
        self.zeros += of.within(0, 0);
        for bucket in bucket_of(low)..=bucket_of(high) {
            let (from, to) = integers_of(bucket);
            let count = of.within(from, to);
            if count > 0 {
                *self.buckets.entry(bucket).or_default() += count;
            }
        }
    }

    fn floats(&mut self, run: LaneRun, odd: impl Fn(u32, u64) -> Odd) -> u64 {
        // Equal steps of the bits are not equal steps of the numbers.
        let (different, times) =
            if run.step == 0 { (run.count.min(1), run.count.into()) } else { (run.count, 1) };
        for nth in 0..different {
            let bits = run.nth(nth);
            let Number::Float(number) = self.reading.number(bits) else { continue };
            if !number.is_finite() {
                *(if number.is_nan() { &mut self.nan } else { &mut self.infinite }) += times;
                self.remember(number.is_nan(), odd(nth, bits));
                continue;
            }
            self.ends(bits, bits);
            self.floats.add(number, times);
            self.zeros += if number == 0.0 { times } else { 0 };
            *self.buckets.entry(float_bucket(number)).or_default() += times;
        }
        STEPS_PER_FLOAT * u64::from(different)
    }

    fn remember(&mut self, is_nan: bool, odd: Odd) {
        let first = if is_nan { &mut self.first_nan } else { &mut self.first_infinite };
        if first.as_ref().is_none_or(|first| odd.order() < first.order()) {
            *first = Some(odd);
        }
    }

    fn ends(&mut self, low: u64, high: u64) {
        let reading = self.reading;
        let below = |a: u64, b: u64| match (reading.number(a), reading.number(b)) {
            (Number::Integer(a), Number::Integer(b)) => a < b,
            (Number::Float(a), Number::Float(b)) => a.total_cmp(&b).is_lt(),
            _ => false,
        };
        self.least = Some(self.least.filter(|least| !below(low, *least)).unwrap_or(low));
        self.most = Some(self.most.filter(|most| !below(*most, high)).unwrap_or(high));
    }

    /// Adds values to the distinct ones. Returns the number of values that were processed.
    fn distinct(&mut self, run: LaneRun) -> u64 {
        let key = (run.base, run.step, run.count);
        if self.distinct.len() > MAX_DISTINCT || self.seen.contains(&key) {
            return 0;
        }
        if self.seen.len() < MAX_DISTINCT {
            self.seen.insert(key);
        }
        let different = if run.step == 0 { run.count.min(1) } else { run.count };
        for nth in 0..different {
            self.distinct.insert(run.nth(nth));
            if self.distinct.len() > MAX_DISTINCT {
                self.seen.clear();
                break;
            }
        }
        different.into()
    }

    pub(super) fn add(&mut self, other: Self) {
        self.accesses += other.accesses;
        self.vectors += other.vectors;
        self.uniform += other.uniform;
        self.zeros += other.zeros;
        self.nan += other.nan;
        self.infinite += other.infinite;
        if let Some((low, high)) = other.least.zip(other.most) {
            self.ends(low, high);
        }
        self.sum += other.sum;
        for (exponent, sum) in other.floats.0 {
            *self.floats.0.entry(exponent).or_default() += sum;
        }
        for (bucket, count) in other.buckets {
            *self.buckets.entry(bucket).or_default() += count;
        }
        for bits in other.distinct {
            if self.distinct.len() <= MAX_DISTINCT {
                self.distinct.insert(bits);
            }
        }
        for (is_nan, odd) in [(true, other.first_nan), (false, other.first_infinite)] {
            if let Some(odd) = odd {
                self.remember(is_nan, odd);
            }
        }
    }

    pub(super) fn different(&self) -> Option<u64> {
        Some(self.distinct.len()).filter(|count| *count <= MAX_DISTINCT).map(|count| count as u64)
    }

    pub(super) fn mean(&self) -> Option<f64> {
        let finite = self.accesses - self.nan - self.infinite;
        match self.reading {
            _ if finite == 0 => None,
            ValueReading::F32 | ValueReading::F64 => Some(self.floats.over(finite)),
            _ => Some(self.sum as f64 / finite as f64),
        }
    }

    pub(super) fn histogram(&self) -> Vec<Bucket> {
        let bucket = |(bucket, count): (&i32, &u64)| {
            let [from, to] = match self.reading {
                ValueReading::F32 | ValueReading::F64 => floats_of(*bucket).map(float_text),
                _ => <[i128; 2]>::from(integers_of(*bucket)).map(|end| end.to_string()),
            };
            Bucket { from, to, count: *count }
        };
        self.buckets.iter().map(bucket).collect()
    }
}

/// Returns a power of two, exactly; infinity if it is too large, 0 if it is too small.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(match exponent {
        1024.. => 0x7ff << 52,
        -1022..1024 => u64::from((exponent + 1023).unsigned_abs()) << 52,
        -1074..-1022 => 1 << (exponent + 1074),
        _ => 0,
    })
}

/// Returns the bucket of an integer: its number of bits, negative for negative numbers.
fn bucket_of(number: i128) -> i32 {
    let bits = (128 - number.unsigned_abs().leading_zeros()).cast_signed();
    if number < 0 { -bits } else { bits }
}

fn integers_of(bucket: i32) -> (i128, i128) {
    let Some(bits) = bucket.unsigned_abs().checked_sub(1) else { return (0, 0) };
    let (low, high) = (1_i128 << bits, (2_i128 << bits) - 1);
    if bucket < 0 { (-high, -low) } else { (low, high) }
}

fn float_bucket(number: f64) -> i32 {
    if number == 0.0 {
        return 0;
    }
    let bits = number.abs().to_bits();
    let exponent = match (bits >> 52) as i32 {
        0 => 63 - bits.leading_zeros().cast_signed() - 1074,
        exponent => exponent - 1023,
    };
    if number < 0.0 { -(exponent + EXPONENT) } else { exponent + EXPONENT }
}

/// Returns the ends of a bucket of floats. The end nearer to 0 belongs to it; both ends are 0 for 0.
fn floats_of(bucket: i32) -> [f64; 2] {
    let exponent = bucket.abs() - EXPONENT;
    match bucket {
        0 => [0.0, 0.0],
        1.. => [power_of_two(exponent), power_of_two(exponent + 1)],
        _ => [-power_of_two(exponent + 1), -power_of_two(exponent)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_their_numbers() {
        for number in [0, 1, -1, 2, 3, -4, 255, 256, i128::from(u64::MAX), i128::from(i64::MIN)] {
            let (low, high) = integers_of(bucket_of(number));
            assert!((low..=high).contains(&number), "{number}: {low} to {high}");
        }
        for number in [0.0, -0.0, 1.0, 1.5, -2.0, 1e300, -f64::MAX, f64::MIN_POSITIVE, 5e-324, -1e-310] {
            let [from, to] = floats_of(float_bucket(number));
            assert!(from <= number && number <= to, "{number}: {from} to {to}");
        }
        assert_eq!([0, -1, 1023, 1024].map(power_of_two), [1.0, 0.5, 2_f64.powi(1023), f64::INFINITY]);
        assert_eq!([-1022, -1074, -1075].map(power_of_two), [f64::MIN_POSITIVE, 5e-324, 0.0]);
        assert_eq!((bucket_of(-3), bucket_of(-4), float_bucket(0.75)), (-2, -3, EXPONENT - 1));
    }

    #[test]
    fn sums_of_floats_do_not_depend_on_their_order() {
        let numbers = [1e16, 1.0, -1e16, 0.1, 3e-320, -7.25, 1e-5];
        let sum = |order: &mut dyn Iterator<Item = &f64>| {
            let mut sum = FloatSum::default();
            order.for_each(|number| sum.add(*number, 3));
            sum.over(1)
        };
        let (one, other) = (sum(&mut numbers.iter()), sum(&mut numbers.iter().rev()));
        assert_eq!(one.to_bits(), other.to_bits());
        assert!((one - 3.0 * (1.0 + 0.1 - 7.25 + 1e-5)).abs() < 1e-12, "{one}");
    }

    #[test]
    fn distinct_values_are_counted_up_to_a_bound() {
        let mut tally = Tally::new(ValueReading::U32);
        for base in [0, 10, 0] {
            tally.distinct(LaneRun { base, step: 1, count: 20 });
        }
        assert_eq!(tally.different(), Some(30));
        for base in 0..5 {
            tally.distinct(LaneRun { base: 1000 * base, step: 1, count: 1000 });
        }
        assert_eq!(tally.different(), None);
    }
}
