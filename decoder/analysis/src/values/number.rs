//! Values as numbers, and runs of values as arithmetic progressions.

use warptrace_format::data::LaneRun;
use warptrace_format::file::{SiteInfo, SiteKind, SiteNumber};

/// Limit up to which an `f64` represents all whole numbers.
const MAX_WHOLE: u64 = 1 << 53;

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueReading {
    /// `u32`.
    U32,
    /// `i32`.
    I32,
    /// `u64`.
    U64,
    /// `i64`.
    I64,
    /// `f32`.
    F32,
    /// `f64`.
    F64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Integer(i128),
    Float(f64),
}

impl ValueReading {
    /// Returns the type of a site's values; `None` for addresses. Unusual sizes count as 64-bit integers.
    #[must_use]
    pub fn new(site: &SiteInfo) -> Option<Self> {
        (site.kind == SiteKind::Value).then_some(match (site.number_is, site.bytes) {
            (SiteNumber::Float, 4) => Self::F32,
            (SiteNumber::Float, 8) => Self::F64,
            (SiteNumber::Signed, 4) => Self::I32,
            (SiteNumber::Signed, _) => Self::I64,
            (_, 4) => Self::U32,
            _ => Self::U64,
        })
    }

    /// Returns the kind of the numbers: `unsigned`, `signed` or `float`.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::U32 | Self::U64 => "unsigned",
            Self::I32 | Self::I64 => "signed",
            Self::F32 | Self::F64 => "float",
        }
    }

    /// Returns the number of these bits; `None` if an `f64` cannot represent it exactly.
    #[must_use]
    pub fn exact(self, bits: u64) -> Option<f64> {
        match self.number(bits) {
            Number::Float(number) => Some(number),
            Number::Integer(number) if number.unsigned_abs() > MAX_WHOLE.into() => None,
            Number::Integer(number) => Some(number as f64),
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    pub(super) fn number(self, bits: u64) -> Number {
        match self {
            Self::U32 => Number::Integer((bits as u32).into()),
            Self::I32 => Number::Integer((bits as u32).cast_signed().into()),
            Self::U64 => Number::Integer(bits.into()),
            Self::I64 => Number::Integer(bits.cast_signed().into()),
            Self::F32 => Number::Float(f32::from_bits(bits as u32).into()),
            Self::F64 => Number::Float(f64::from_bits(bits)),
        }
    }

    /// Returns the number as text, as the source would write it.
    #[must_use]
    pub fn text(self, bits: u64) -> String {
        match (self, self.number(bits)) {
            (_, Number::Integer(number)) => number.to_string(),
            (Self::F32, _) => short(format!("{:?}", f32::from_bits(bits as u32))),
            (_, Number::Float(number)) => float_text(number),
        }
    }
}

fn short(text: String) -> String {
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Returns a float as text that can be read back, with an exponent if that is shorter.
pub(super) fn float_text(number: f64) -> String {
    short(format!("{number:?}"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progression {
    pub(super) first: i128,
    pub(super) step: i128,
    /// At least 1.
    pub(super) count: u64,
}

impl Progression {
    pub(super) const fn last(self) -> i128 {
        self.first + self.step * (self.count as i128 - 1)
    }

    pub(super) fn ends(self) -> (i128, i128) {
        (self.first.min(self.last()), self.first.max(self.last()))
    }

    pub(super) const fn sum(self) -> i128 {
        let count = self.count as i128;
        count * self.first + self.step * (count * (count - 1) / 2)
    }

    pub(super) fn within(self, low: i128, high: i128) -> u64 {
        let (start, end) = self.ends();
        let (low, high) = (low.max(start), high.min(end));
        match self.step.abs() {
            _ if low > high => 0,
            0 => self.count,
            step => {
                let from = (low - start + step - 1) / step;
                u64::try_from((high - start) / step - from + 1).unwrap_or(0)
            }
        }
    }
}

/// Calls `each` with the progressions of the integers in a run: one, or one per number if they wrap around.
pub(super) fn progressions(run: LaneRun, reading: ValueReading, mut each: impl FnMut(Progression)) {
    let number = |nth: u32| match reading.number(run.nth(nth)) {
        Number::Integer(number) => number,
        Number::Float(_) => 0,
    };
    let Some(last) = run.count.checked_sub(1) else { return };
    let whole = Progression { first: number(0), step: run.step.into(), count: run.count.into() };
    // The numbers of a run are monotonic, and the difference grows with each wrap-around.
    if whole.last() == number(last) {
        return each(whole);
    }
    for nth in 0..run.count {
        each(Progression { first: number(nth), step: 0, count: 1 });
    }
}

#[cfg(test)]
mod tests {
    use warptrace_format::file::SiteSpace;

    use super::*;

    fn expanded(run: LaneRun, reading: ValueReading) -> Vec<i128> {
        let number = |nth| match reading.number(run.nth(nth)) {
            Number::Integer(number) => number,
            Number::Float(_) => panic!("an integer"),
        };
        (0..run.count).map(number).collect()
    }

    #[test]
    fn bits_are_read_as_the_site_says() {
        let of = |kind, number_is, bytes, bits| {
            let site = SiteInfo { number_is, ..SiteInfo::new(1, kind, SiteSpace::None, bytes) };
            ValueReading::new(&site).map(|reading| (reading.kind(), reading.exact(bits), reading.text(bits)))
        };
        let (unsigned, signed, float) = (SiteNumber::Unsigned, SiteNumber::Signed, SiteNumber::Float);
        for (number_is, bytes, bits, kind, number, text) in [
            (float, 4, 0x3f80_0000, "float", Some(1.0), "1"),
            (float, 8, 2.5f64.to_bits(), "float", Some(2.5), "2.5"),
            (signed, 4, 0xffff_fffe, "signed", Some(-2.0), "-2"),
            (signed, 8, u64::MAX, "signed", Some(-1.0), "-1"),
            (unsigned, 4, 0xffff_fffe, "unsigned", Some(4_294_967_294.0), "4294967294"),
            (unsigned, 8, 1 << 53, "unsigned", Some(9_007_199_254_740_992.0), "9007199254740992"),
            (unsigned, 8, (1 << 53) + 1, "unsigned", None, "9007199254740993"),
            (signed, 8, 1 << 63, "signed", None, "-9223372036854775808"),
            (float, 2, 7, "unsigned", Some(7.0), "7"),
        ] {
            let read = of(SiteKind::Value, number_is, bytes, bits);
            assert_eq!(read, Some((kind, number, text.to_owned())), "{number_is:?} {bytes} {bits:#x}");
        }
        assert_eq!(of(SiteKind::Load, unsigned, 4, 1), None, "an address is no value");
    }

    #[test]
    fn progressions_are_the_numbers_of_runs() {
        let bases =
            [0, 5, 0x7fff_fff0, 0xffff_fff8, u64::MAX - 3, 1 << 63, (1 << 63) - 2, 0xffff_ffff_8000_0000];
        for (base, step) in
            bases.into_iter().flat_map(|base| [0, 1, -1, 7, -4096, i32::MAX, i32::MIN].map(|it| (base, it)))
        {
            for reading in [ValueReading::U32, ValueReading::I32, ValueReading::U64, ValueReading::I64] {
                let run = LaneRun { base, step, count: 20 };
                let numbers = expanded(run, reading);
                let (mut sum, mut count, mut low, mut high, mut within) = (0, 0, i128::MAX, i128::MIN, 0);
                progressions(run, reading, |of| {
                    (sum, count, within) = (sum + of.sum(), count + of.count, within + of.within(-9, 100));
                    (low, high) = (low.min(of.ends().0), high.max(of.ends().1));
                });
                let context = format!("{run:?} {reading:?}");
                assert_eq!(sum, numbers.iter().sum::<i128>(), "{context}");
                assert_eq!(count, 20, "{context}");
                assert_eq!(
                    (Some(&low), Some(&high)),
                    (numbers.iter().min(), numbers.iter().max()),
                    "{context}"
                );
                let expected = numbers.iter().filter(|number| (-9..=100).contains(*number)).count();
                assert_eq!(within, expected as u64, "{context}");
            }
        }
    }
}
