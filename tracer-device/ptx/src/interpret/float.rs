//! Floating-point types and operations.

use std::cmp::Ordering;

use half::{bf16, f16};

use super::op::Type;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Float {
    Half,
    /// `bf16`
    Brain,
    Single,
    Double,
}

impl Float {
    /// Parses a modifier such as `f32` or `f16x2`: the type and its number of elements.
    pub(super) fn parse(modifier: &str) -> Option<(Self, u32)> {
        let (name, count) = modifier.strip_suffix("x2").map_or((modifier, 1), |name| (name, 2));
        match (name, count) {
            ("f16", _) => Some((Self::Half, count)),
            ("bf16", _) => Some((Self::Brain, count)),
            ("f32", 1) => Some((Self::Single, 1)),
            ("f64", 1) => Some((Self::Double, 1)),
            _ => None,
        }
    }

    pub(super) fn bits(self) -> u32 {
        match self {
            Self::Half | Self::Brain => 16,
            Self::Single => 32,
            Self::Double => 64,
        }
    }

    pub(super) fn number(self, bits: u64) -> f64 {
        match self {
            Self::Half => f16::from_bits(bits as u16).to_f64(),
            Self::Brain => bf16::from_bits(bits as u16).to_f64(),
            Self::Single => f32::from_bits(bits as u32).into(),
            Self::Double => f64::from_bits(bits),
        }
    }

    pub(super) fn nearest(self, number: f64) -> u64 {
        match self {
            Self::Half if number.is_nan() => 0x7fff,
            Self::Brain if number.is_nan() => 0x7fff,
            Self::Single if number.is_nan() => 0x7fff_ffff,
            Self::Double if number.is_nan() => 0xfff8_0000_0000_0000,
            Self::Half => f16::from_f64(number).to_bits().into(),
            Self::Brain => bf16::from_f64(number).to_bits().into(),
            Self::Single => (number as f32).to_bits().into(),
            Self::Double => number.to_bits(),
        }
    }

    /// Returns the bits of a number after rounding. The number must be exact.
    fn rounded(self, number: f64, rounding: Rounding) -> u64 {
        if self != Self::Single || number.is_nan() {
            return self.nearest(number);
        }
        let nearest = number as f32;
        let up = match rounding {
            Rounding::Nearest => return self.nearest(number),
            Rounding::Down => false,
            Rounding::Up => true,
            Rounding::Zero => number < 0.0,
        };
        let single = match f64::from(nearest) {
            found if up && found < number => nearest.next_up(),
            found if !up && found > number => nearest.next_down(),
            _ => nearest,
        };
        single.to_bits().into()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    Nearest,
    Zero,
    Down,
    Up,
}

impl Rounding {
    pub(super) fn whole(self, number: f64) -> f64 {
        match self {
            Self::Nearest => number.round_ties_even(),
            Self::Zero => number.trunc(),
            Self::Down => number.floor(),
            Self::Up => number.ceil(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FloatCompute {
    Add,
    Subtract,
    Multiply,
    MultiplyAdd,
    Divide,
    Reciprocal,
    Root,
    InverseRoot,
    Exponential,
    Logarithm,
    Sine,
    Cosine,
    HyperbolicTangent,
    Negate,
    Absolute,
    /// `true`: the result is NaN if an operand is NaN.
    Minimum(bool),
    Maximum(bool),
    CopySign,
}

impl FloatCompute {
    pub(super) fn operands(self) -> usize {
        match self {
            Self::MultiplyAdd => 3,
            Self::Add | Self::Subtract | Self::Multiply | Self::Divide => 2,
            Self::Minimum(_) | Self::Maximum(_) | Self::CopySign => 2,
            _ => 1,
        }
    }

    fn result(self, ty: Float, [a, b, c]: [f64; 3]) -> f64 {
        let of_numbers =
            |nan: bool, found: f64| if nan && (a.is_nan() || b.is_nan()) { f64::NAN } else { found };
        match self {
            Self::Add => a + b,
            Self::Subtract => a - b,
            Self::Multiply => a * b,
            Self::MultiplyAdd if ty == Float::Single => (a as f32).mul_add(b as f32, c as f32).into(),
            Self::MultiplyAdd => a.mul_add(b, c),
            Self::Divide => a / b,
            Self::Reciprocal => 1.0 / a,
            Self::Root => a.sqrt(),
            Self::InverseRoot => 1.0 / a.sqrt(),
            Self::Exponential => a.exp2(),
            Self::Logarithm => a.log2(),
            Self::Sine => a.sin(),
            Self::Cosine => a.cos(),
            Self::HyperbolicTangent => a.tanh(),
            Self::Negate => -a,
            Self::Absolute => a.abs(),
            Self::Minimum(nan) => of_numbers(nan, a.min(b)),
            Self::Maximum(nan) => of_numbers(nan, a.max(b)),
            // The first operand gives the sign.
            Self::CopySign => b.copysign(a),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FloatStep {
    pub(super) compute: FloatCompute,
    pub(super) ty: Float,
    /// 2 for two independent numbers in one register.
    pub(super) count: u32,
    /// Whether subnormal numbers are flushed to 0.
    pub(super) flush: bool,
    /// Whether results are clamped to 0 to 1.
    pub(super) saturate: bool,
}

impl FloatStep {
    pub(super) fn apply(&self, operands: [u64; 3]) -> u64 {
        let bits = self.ty.bits();
        (0..self.count).fold(0, |all, part| {
            let number = |operand: u64| self.flushed(self.ty.number(operand >> (bits * part)));
            let mut result = self.compute.result(self.ty, operands.map(number));
            if self.saturate {
                result = if result.is_nan() { 0.0 } else { result.clamp(0.0, 1.0) };
            }
            let found = self.ty.nearest(self.flushed(result));
            all | found << (bits * part)
        })
    }

    fn flushed(&self, number: f64) -> f64 {
        flushed(self.ty, self.flush, number)
    }
}

pub(super) fn flushed(ty: Float, flush: bool, number: f64) -> f64 {
    let is_small = flush && ty == Float::Single && number.abs() < f64::from(f32::MIN_POSITIVE);
    if is_small { 0.0_f64.copysign(number) } else { number }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Comparison {
    /// Whether the comparison holds for less, equal, greater and unordered.
    holds: [bool; 4],
}

impl Comparison {
    /// Parses a modifier such as `lt` or `ltu`.
    pub(super) fn parse(modifier: &str) -> Option<Self> {
        let (name, unordered) = match modifier {
            "num" => return Some(Self { holds: [true, true, true, false] }),
            "nan" => return Some(Self { holds: [false, false, false, true] }),
            _ => modifier.strip_suffix('u').map_or((modifier, false), |name| (name, true)),
        };
        let [less, equal, greater] = match name {
            "eq" => [false, true, false],
            "ne" => [true, false, true],
            "lt" | "lo" => [true, false, false],
            "le" | "ls" => [true, true, false],
            "gt" | "hi" => [false, false, true],
            "ge" | "hs" => [false, true, true],
            _ => return None,
        };
        Some(Self { holds: [less, equal, greater, unordered] })
    }

    /// Returns true if the comparison holds for an order. `None` is unordered, because an operand is NaN.
    pub(super) fn holds(self, order: Option<Ordering>) -> bool {
        let [less, equal, greater, unordered] = self.holds;
        match order {
            Some(Ordering::Less) => less,
            Some(Ordering::Equal) => equal,
            Some(Ordering::Greater) => greater,
            None => unordered,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Integer(Type),
    Float(Float),
}

impl Number {
    pub(super) fn parse(modifier: &str) -> Option<Self> {
        match Float::parse(modifier) {
            Some((ty, 1)) => Some(Self::Float(ty)),
            _ => Type::parse(modifier).map(Self::Integer),
        }
    }

    pub(super) fn bits(self) -> u32 {
        match self {
            Self::Integer(ty) => ty.bits,
            Self::Float(ty) => ty.bits(),
        }
    }

    pub(super) fn order(self, flush: bool, [a, b]: [u64; 2]) -> Option<Ordering> {
        match self {
            Self::Integer(ty) => Some(ty.number(a).cmp(&ty.number(b))),
            Self::Float(ty) => {
                let [a, b] = [a, b].map(|value| flushed(ty, flush, ty.number(value)));
                a.partial_cmp(&b)
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Conversion {
    pub(super) to: Number,
    pub(super) from: Number,
    pub(super) rounding: Rounding,
    pub(super) whole: bool,
    pub(super) saturate: bool,
    pub(super) flush: bool,
}

impl Conversion {
    pub(super) fn apply(&self, value: u64) -> u64 {
        let mut number = match self.from {
            Number::Integer(ty) => ty.number(value) as f64,
            Number::Float(ty) => flushed(ty, self.flush, ty.number(value)),
        };
        match self.to {
            Number::Float(ty) => {
                if self.whole {
                    number = self.rounding.whole(number);
                }
                if self.saturate {
                    number = if number.is_nan() { 0.0 } else { number.clamp(0.0, 1.0) };
                }
                let rounding = if self.whole { Rounding::Nearest } else { self.rounding };
                ty.rounded(flushed(ty, self.flush, number), rounding)
            }
            Number::Integer(ty) => {
                let (least, most) = match (ty.signed, ty.bits) {
                    (false, bits) => (0, (1_i128 << bits) - 1),
                    (true, bits) => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
                };
                // Casts saturate, and turn NaN into 0.
                (self.rounding.whole(number) as i128).clamp(least, most) as u64
            }
        }
    }
}
