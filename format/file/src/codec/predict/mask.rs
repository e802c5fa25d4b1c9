//! Forms of a miss's mask.

use super::code::{self, Code};
use super::stack::Relation;
use super::{Slot, lanes};

/// Form in which a miss writes its mask, and the slot's update.
///
/// ```text
/// the location was not expected      the location was expected
/// 1          the same mask           1 l     lanes of the expected relation
/// 0 r l      relation, lanes         01      the mask last seen here
///                                    00 r l  relation, lanes
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaskForm {
    /// The location was expected.
    pub located: bool,
    /// The slot keeps its relation. Otherwise it learns the nearest relation.
    pub expected: bool,
    /// The mask is the one last seen here.
    pub by_seen: bool,
    /// The mask is the previous mask, and the location was not expected.
    pub same: bool,
}

impl MaskForm {
    /// Selects the form of a mask that a slot did not expect. `exact`: the mask is the base of its nearest
    /// relation. `is_seen`: it is the slot's last seen mask. `fits`: it lies in the base of the slot's
    /// relation. `same`: it is the previous mask.
    #[inline(always)]
    pub const fn new(located: bool, exact: bool, is_seen: bool, fits: bool, same: bool) -> Self {
        // The exact relation predicts better than a subset of the expected relation's lanes.
        let searched = located & !exact;
        let by_seen = searched & is_seen;
        Self { located, expected: by_seen | (searched & fits), by_seen, same: !located & same }
    }

    /// Returns the slot after the miss. `step` is the location, xor the location before it.
    #[inline(always)]
    pub const fn learned(self, step: u32, slot: Slot, nearest: Relation, mask: u32) -> Slot {
        slot.learns(step, nearest, self.expected, self.by_seen, mask)
    }

    /// Encodes the mask. `base` belongs to the slot's relation if `expected`, otherwise to the nearest one.
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
