//! What atomics do to memory.

use super::op::{Atomic, Type};

impl Atomic {
    /// Returns what is stored in the place of `old`.
    pub(super) fn apply(self, ty: Type, old: u64, [value, other]: [u64; 2]) -> u64 {
        let (held, given) = (ty.number(old), ty.number(value));
        let new = match self {
            Self::Add => old.wrapping_add(value),
            Self::AddFloat { ty, count } => {
                let bits = ty.bits();
                (0..count).fold(0, |all, part| {
                    let number = |of: u64| ty.number(of >> (bits * part));
                    all | ty.nearest(number(old) + number(value)) << (bits * part)
                })
            }
            Self::Minimum => held.min(given) as u64,
            Self::Maximum => held.max(given) as u64,
            Self::And => old & value,
            Self::Or => old | value,
            Self::Xor => old ^ value,
            Self::Exchange => value,
            Self::CompareAndSwap if held == given => other,
            Self::CompareAndSwap => old,
            Self::Increment if held >= given => 0,
            Self::Increment => old.wrapping_add(1),
            Self::Decrement if held == 0 || held > given => value,
            Self::Decrement => old.wrapping_sub(1),
        };
        ty.truncate(new)
    }
}
