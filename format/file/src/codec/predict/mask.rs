//! How a miss says its mask.

use super::code::{self, Code};
use super::stack::Relation;
use super::{Slot, lanes};

/// What a miss writes of its mask, and what its slot learns of it.
///
/// ```text
/// the location was not expected      the location was expected
/// 1          the same mask           1 l     lanes of the expected relation
/// 0 r l      relation, lanes         01      the mask seen here last
///                                    00 r l  relation, lanes
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaskForm {
    /// The location is the expected one.
    pub located: bool,
    /// The slot keeps its relation; else it learns the nearest one.
    pub expected: bool,
    /// It is the mask seen here last.
    pub by_seen: bool,
    /// It is the same mask once more, and the location is not the expected one.
    pub same: bool,
}

impl MaskForm {
    /// Finds the form of a mask that a slot did not expect.
    ///
    /// - `located`: the location is the expected one.
    /// - `exact`: the mask is the base of its nearest relation.
    /// - `is_seen`: it is the one that the slot has seen last.
    /// - `fits`: it lies in the base of the slot's relation.
    /// - `same`: it is the mask before.
    #[inline(always)]
    pub const fn new(located: bool, exact: bool, is_seen: bool, fits: bool, same: bool) -> Self {
        // A mask with a relation of its own is worth more as a prediction than some lanes of the expected
        // one.
        let searched = located & !exact;
        let by_seen = searched & is_seen;
        Self { located, expected: by_seen | (searched & fits), by_seen, same: !located & same }
    }

    /// Gives what the slot learns. `step` is the location, xor the location before it.
    #[inline(always)]
    pub const fn learned(self, step: u32, slot: Slot, nearest: Relation, mask: u32) -> Slot {
        slot.learns(step, nearest, self.expected, self.by_seen, mask)
    }

    /// Gives what is written. `base` is that of the slot's relation if `expected`, else that of the nearest
    /// one.
    #[inline(always)]
    pub const fn code(self, nearest: Relation, mask: u32, base: u32) -> Code {
        if self.by_seen {
            return Code::new(0b10, 2);
        }
        if self.same {
            return Code::new(1, 1);
        }
        let prefix = if self.expected {
            Code::new(1, 1)
        } else {
            Code::new(0, 1 + self.located as u32).then(code::relation(nearest))
        };
        prefix.then(lanes::encode(mask, base))
    }
}
