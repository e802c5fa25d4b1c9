//! Decodes floating-point instructions.

use super::super::float::{Comparison, Conversion, Float, FloatCompute, FloatStep, Number, Rounding};
use super::super::op::{Compute, Op};
use super::super::operand::{Problem, register, value};
use super::Parts;

impl Parts<'_> {
    pub(super) fn is_float(&self) -> bool {
        self.modifiers.last().is_some_and(|last| Float::parse(last).is_some())
    }

    /// Returns the type and its number of elements. All other modifiers must be in `known`.
    fn float_type(&self, known: &[&str]) -> Result<(Float, u32), Problem> {
        let (last, others) = self.modifiers.split_last().ok_or("its type is missing")?;
        match others.iter().find(|modifier| !known.contains(*modifier)) {
            Some(modifier) => Err(format!("modifier `{modifier}`")),
            None => Float::parse(last).ok_or_else(|| format!("type `{last}`")),
        }
    }

    pub(super) fn compute_float(&self, name: &str) -> Result<Op, Problem> {
        let has = |modifier| self.modifiers.contains(&modifier);
        let compute = match name {
            "add" => FloatCompute::Add,
            "sub" => FloatCompute::Subtract,
            "mul" => FloatCompute::Multiply,
            "fma" | "mad" => FloatCompute::MultiplyAdd,
            "div" => FloatCompute::Divide,
            "rcp" => FloatCompute::Reciprocal,
            "sqrt" => FloatCompute::Root,
            "rsqrt" => FloatCompute::InverseRoot,
            "ex2" => FloatCompute::Exponential,
            "lg2" => FloatCompute::Logarithm,
            "sin" => FloatCompute::Sine,
            "cos" => FloatCompute::Cosine,
            "tanh" => FloatCompute::HyperbolicTangent,
            "neg" => FloatCompute::Negate,
            "abs" => FloatCompute::Absolute,
            "min" => FloatCompute::Minimum(has("NaN")),
            "max" => FloatCompute::Maximum(has("NaN")),
            "copysign" => FloatCompute::CopySign,
            _ => return Err("unknown opcode".to_owned()),
        };
        let (ty, count) = self.float_type(&["rn", "approx", "full", "ftz", "sat", "NaN"])?;
        let bits = ty.bits() * count;
        let from = self.operands.iter().skip(1).map(|text| value(self.decoder.names, text, bits, false));
        let from = from.collect::<Result<Vec<_>, _>>()?;
        if from.len() != compute.operands() {
            return Err(format!("it takes {} values and has {}", compute.operands(), from.len()));
        }
        let step = FloatStep { compute, ty, count, flush: has("ftz"), saturate: has("sat") };
        Ok(Op::Float { step, to: self.register(0, bits)?, from })
    }

    /// Decodes `setp`, which compares two values and optionally combines the result with a predicate.
    pub(super) fn set_predicate(&self) -> Result<Op, Problem> {
        let [compare, others @ .., ty] = &self.modifiers[..] else {
            return Err("this comparison".to_owned());
        };
        let compare = Comparison::parse(compare).ok_or_else(|| format!("comparison `{compare}`"))?;
        let of = Number::parse(ty).filter(|of| of.bits() > 1).ok_or_else(|| format!("type `{ty}`"))?;
        let (mut flush, mut joined) = (false, None);
        for other in others {
            match (of, *other) {
                (Number::Float(_), "ftz") => flush = true,
                (_, "and" | "or" | "xor") => joined = Compute::unordered(other).zip(Some(self.predicate(3)?)),
                _ => return Err(format!("modifier `{other}`")),
            }
        }
        if self.operands.len() != 3 + usize::from(joined.is_some()) {
            return Err("this comparison".to_owned());
        }
        let from = [self.value(1, of.bits())?, self.value(2, of.bits())?];
        let (to, other) = self.two(0, [1, 1])?;
        Ok(Op::SetPredicate { compare, of, flush, to, other, from, joined })
    }

    pub(super) fn test_float(&self) -> Result<Op, Problem> {
        let [test, _] = self.modifiers[..] else { return Err("this test".to_owned()) };
        let compare = match test {
            "number" => "num",
            "notanumber" => "nan",
            _ => return Err(format!("modifier `{test}`")),
        };
        let compare = Comparison::parse(compare).ok_or("this test")?;
        let (ty, _) = self.float_type(&[test])?;
        let (of, from) = (Number::Float(ty), [self.value(1, ty.bits())?; 2]);
        let to = self.register(0, 1)?;
        Ok(Op::SetPredicate { compare, of, flush: false, to, other: None, from, joined: None })
    }

    pub(super) fn convert_float(&self) -> Result<Op, Problem> {
        let [others @ .., to, from] = &self.modifiers[..] else { return Err("this conversion".to_owned()) };
        let mut conversion = Conversion {
            to: Number::Float(Float::Half),
            from: Number::parse(from).ok_or("this conversion")?,
            rounding: Rounding::Nearest,
            whole: false,
            saturate: false,
            flush: false,
        };
        for other in others {
            let (rounding, whole) = match *other {
                "rn" => (Rounding::Nearest, false),
                "rz" => (Rounding::Zero, false),
                "rm" => (Rounding::Down, false),
                "rp" => (Rounding::Up, false),
                "rni" => (Rounding::Nearest, true),
                "rzi" => (Rounding::Zero, true),
                "rmi" => (Rounding::Down, true),
                "rpi" => (Rounding::Up, true),
                "sat" => {
                    conversion.saturate = true;
                    continue;
                }
                "ftz" => {
                    conversion.flush = true;
                    continue;
                }
                other => return Err(format!("modifier `{other}`")),
            };
            (conversion.rounding, conversion.whole) = (rounding, whole);
        }
        let names = self.decoder.names;
        // Two numbers in one register.
        if let Some((ty, 2)) = Float::parse(to) {
            conversion.to = Number::Float(ty);
            let from = [2, 1].map(|at| self.value(at, 32));
            let [low, high] = from;
            return Ok(Op::Convert { conversion, to: self.register(0, 32)?, from: vec![low?, high?] });
        }
        conversion.to = Number::parse(to).ok_or("this conversion")?;
        let to = register(names, self.operand(0)?, conversion.to.bits(), true)?;
        let from = value(names, self.operand(1)?, conversion.from.bits(), true)?;
        Ok(Op::Convert { conversion, to, from: vec![from] })
    }
}
