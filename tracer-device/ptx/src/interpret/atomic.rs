//! Atomic operations on memory.

use super::op::{Atomic, Type};

impl Atomic {
    /// Returns the new value that replaces `old`.
    pub(super) fn apply(self, ty: Type, old: u64, [value, other]: [u64; 2]) -> u64 {
        let (held, given) = (ty.number(old), ty.number(value));
        let new = match self {
            Self::Compute(compute) => compute.apply(ty, &[old, value]).unwrap_or(old),
            Self::Float(step) => step.apply([old, value, 0]),
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
