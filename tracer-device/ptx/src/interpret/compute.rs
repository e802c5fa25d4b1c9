//! What a lane computes of its operands.

use super::op::{Compare, Compute, Type};

impl Compute {
    /// The result; `None` for a division by zero. Operands are as their registers hold them; missing ones
    /// count as 0.
    pub(super) fn apply(self, ty: Type, operands: &[u64]) -> Option<u64> {
        let operand = |index: usize| operands.get(index).copied().unwrap_or_default();
        let number = |index: usize| ty.number(operand(index));
        let (a, b) = (number(0), number(1));
        // Bits of a two's complement number.
        let low = |value: i128| value as u64;
        let result = match self {
            Self::Move => operand(0),
            Self::Convert { from } => return Some(ty.truncate(low(from.number(operand(0))))),
            Self::Not => !operand(0),
            Self::Negate => low(-a),
            Self::HighestBit => return Some(highest_bit(a)),
            Self::CountBits => return Some(u64::from(ty.truncate(operand(0)).count_ones())),
            Self::Add => low(a + b),
            Self::Subtract => low(a - b),
            Self::Multiply => low(a.wrapping_mul(b)),
            Self::MultiplyHigh => low(a.wrapping_mul(b) >> ty.bits),
            Self::MultiplyWide => return Some(wide(ty, a.wrapping_mul(b))),
            Self::MultiplyAdd => low(a.wrapping_mul(b)).wrapping_add(operand(2)),
            Self::MultiplyAddWide => return Some(wide(ty, a.wrapping_mul(b) + i128::from(operand(2)))),
            Self::Minimum => low(a.min(b)),
            Self::Maximum => low(a.max(b)),
            Self::Divide => low(a.checked_div(b)?),
            Self::Remainder => low(a.checked_rem(b)?),
            Self::And => operand(0) & operand(1),
            Self::Or => operand(0) | operand(1),
            Self::Xor => operand(0) ^ operand(1),
            // The amount has 32 bits, whatever the type.
            Self::ShiftLeft => match operand(1) as u32 {
                amount if amount < ty.bits => operand(0) << amount,
                _ => 0,
            },
            Self::ShiftRight => low(a >> (operand(1) as u32).min(ty.bits)),
            Self::FunnelLeft => funnel(operand(0), operand(1)) << (operand(2) & 31) >> 32,
            Self::FunnelRight => funnel(operand(0), operand(1)) >> (operand(2) & 31),
            Self::Select => operand(if operand(2) == 1 { 0 } else { 1 }),
            Self::Set(compare) => return Some(u64::from(compare.holds(a, b))),
            Self::SetAnd(compare) => return Some(u64::from(compare.holds(a, b)) & operand(2)),
            Self::SetOr(compare) => return Some(u64::from(compare.holds(a, b)) | operand(2)),
            Self::SetXor(compare) => return Some(u64::from(compare.holds(a, b)) ^ operand(2)),
        };
        Some(ty.truncate(result))
    }
}

/// The position of the highest bit that differs from the sign; all ones if there is none.
fn highest_bit(value: i128) -> u64 {
    let bits = if value < 0 { !value } else { value };
    if bits == 0 { u64::from(u32::MAX) } else { u64::from(127 - bits.leading_zeros()) }
}

/// Makes one value of 64 bits of two of 32.
fn funnel(low: u64, high: u64) -> u64 {
    high << 32 | low & u64::from(u32::MAX)
}

fn wide(ty: Type, value: i128) -> u64 {
    Type { bits: (2 * ty.bits).min(64), signed: false }.truncate(value as u64)
}

impl Compare {
    fn holds(self, a: i128, b: i128) -> bool {
        match self {
            Self::Equal => a == b,
            Self::NotEqual => a != b,
            Self::Less => a < b,
            Self::LessOrEqual => a <= b,
            Self::Greater => a > b,
            Self::GreaterOrEqual => a >= b,
        }
    }
}
