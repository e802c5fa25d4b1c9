//! Integer operations of a lane.

use super::op::{Compute, Type};

impl Compute {
    /// Returns the result; `None` for a division by zero. Missing operands are 0.
    pub(super) fn apply(self, ty: Type, operands: &[u64]) -> Option<u64> {
        let operand = |index: usize| operands.get(index).copied().unwrap_or_default();
        let number = |index: usize| ty.number(operand(index));
        let (a, b) = (number(0), number(1));
        // The low bits of the two's complement representation.
        let low = |value: i128| value as u64;
        let result = match self {
            Self::Move => operand(0),
            Self::Convert { from } => return Some(ty.truncate(low(from.number(operand(0))))),
            Self::Not => !operand(0),
            Self::Negate => low(-a),
            Self::HighestBit => return Some(highest_bit(a)),
            Self::ShiftToHighestBit => {
                let bit = highest_bit(a);
                return Some(if bit < 64 { u64::from(ty.bits) - 1 - bit } else { bit });
            }
            Self::CountBits => return Some(u64::from(ty.truncate(operand(0)).count_ones())),
            Self::CountLeadingZeros => {
                return Some(u64::from(ty.truncate(operand(0)).leading_zeros() + ty.bits - 64));
            }
            Self::ReverseBits => ty.truncate(operand(0)).reverse_bits() >> (64 - ty.bits),
            Self::ExtractBits => extract(ty, operand(0), operand(1), operand(2)),
            Self::InsertBits => insert(ty, operand(0), operand(1), operand(2), operand(3)),
            Self::Permute => permute(funnel(operand(0), operand(1)), operand(2)),
            Self::Logic => logic([operand(0), operand(1), operand(2)], operand(3)),
            Self::Absolute => low(a.abs()),
            Self::AbsoluteDifference => low((a - b).abs() + number(2)),
            Self::DotProduct { signed } => dot_product(signed, [operand(0), operand(1), operand(2)]),
            Self::Add => low(a + b),
            Self::Subtract => low(a - b),
            Self::Multiply => low(a.wrapping_mul(b)),
            Self::MultiplyHigh => low(a.wrapping_mul(b) >> ty.bits),
            Self::MultiplyWide => return Some(wide(ty, a.wrapping_mul(b))),
            Self::MultiplyAdd => low(a.wrapping_mul(b)).wrapping_add(operand(2)),
            Self::MultiplyAddHigh => low((a.wrapping_mul(b) >> ty.bits) + number(2)),
            Self::MultiplyAddWide => return Some(wide(ty, a.wrapping_mul(b) + i128::from(operand(2)))),
            Self::Minimum => low(a.min(b)),
            Self::Maximum => low(a.max(b)),
            Self::Divide => low(a.checked_div(b)?),
            Self::Remainder => low(a.checked_rem(b)?),
            Self::And => operand(0) & operand(1),
            Self::Or => operand(0) | operand(1),
            Self::Xor => operand(0) ^ operand(1),
            // The shift amount has 32 bits for any type.
            Self::ShiftLeft => match operand(1) as u32 {
                amount if amount < ty.bits => operand(0) << amount,
                _ => 0,
            },
            Self::ShiftRight => low(a >> (operand(1) as u32).min(ty.bits)),
            Self::FunnelLeft { clamps } => {
                funnel(operand(0), operand(1)) << distance(clamps, operand(2)) >> 32
            }
            Self::FunnelRight { clamps } => funnel(operand(0), operand(1)) >> distance(clamps, operand(2)),
            Self::Select => operand(if operand(2) == 1 { 0 } else { 1 }),
            // The third value is a signed 32-bit number.
            Self::SelectBySign => operand(if operand(2) >> 31 & 1 == 0 { 0 } else { 1 }),
        };
        Some(ty.truncate(result))
    }
}

/// Returns the position of the highest bit that differs from the sign; all ones if none does.
fn highest_bit(value: i128) -> u64 {
    let bits = if value < 0 { !value } else { value };
    if bits == 0 { u64::from(u32::MAX) } else { u64::from(127 - bits.leading_zeros()) }
}

/// Extracts `length` bits from `position` on, with sign extension for signed types.
fn extract(ty: Type, value: u64, position: u64, length: u64) -> u64 {
    let (position, length) = ((position & 0xff) as u32, (length & 0xff) as u32);
    if length == 0 {
        return 0;
    }
    let number = ty.number(value) >> position.min(ty.bits);
    if length >= ty.bits {
        return number as u64;
    }
    let bits = number as u64 & ((1 << length) - 1);
    let sign = ty.number(value) >> (position + length - 1).min(ty.bits - 1) & 1;
    if ty.signed && sign != 0 { bits | u64::MAX << length } else { bits }
}

fn insert(ty: Type, value: u64, into: u64, position: u64, length: u64) -> u64 {
    let (position, length) = ((position & 0xff) as u32, (length & 0xff) as u32);
    if position >= ty.bits {
        return into;
    }
    let ones = if length >= 64 { u64::MAX } else { (1 << length) - 1 };
    into & !(ones << position) | (value & ones) << position
}

/// Selects four of eight bytes. Each digit gives a byte's number, and whether to replicate its sign.
fn permute(bytes: u64, digits: u64) -> u64 {
    (0..4).fold(0, |all, at| {
        let digit = digits >> (4 * at);
        let byte = bytes >> (8 * (digit & 7)) & 0xff;
        let byte = if digit & 8 == 0 { byte } else { (byte >> 7) * 0xff };
        all | byte << (8 * at)
    })
}

fn logic([a, b, c]: [u64; 3], table: u64) -> u64 {
    (0..8).filter(|row| table >> row & 1 != 0).fold(0, |all, row| {
        let of = |value: u64, bit: u32| if row >> bit & 1 != 0 { value } else { !value };
        all | of(a, 2) & of(b, 1) & of(c, 0)
    })
}

fn dot_product(signed: [bool; 2], [a, b, c]: [u64; 3]) -> u64 {
    let byte = |value: u64, at: u32, signed: bool| Type { bits: 8, signed }.number(value >> (8 * at));
    let sum: i128 = (0..4).map(|at| byte(a, at, signed[0]) * byte(b, at, signed[1])).sum();
    (sum as u64).wrapping_add(c)
}

fn funnel(low: u64, high: u64) -> u64 {
    high << 32 | low & u64::from(u32::MAX)
}

fn distance(clamps: bool, by: u64) -> u32 {
    if clamps { (by as u32).min(32) } else { by as u32 & 31 }
}

fn wide(ty: Type, value: i128) -> u64 {
    Type::unsigned((2 * ty.bits).min(64)).truncate(value as u64)
}
