//! The masks around the current one: where a warp comes from when lanes part, and goes back to when they
//! meet.
//!
//! Structured control flow nests: lanes that enter a branch are a subset of those outside, the other side of
//! the branch is the rest of those outside, and behind it they meet again. The stack holds the masks outside,
//! the innermost first. What a deeper nesting pushes out at the bottom is replaced by all lanes.

use super::Slot;

/// Masks that the stack holds.
pub const DEPTH: usize = 4;

/// How a mask lies to the masks before it: inside which of them, and whether disjoint from the last one.
///
/// `level` 0 is the last mask itself, 1 to 4 are the stack's masks from the innermost on, 5 is all lanes.
/// With `disjoint` the last mask's lanes are left out: that is the other side of a branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Relation(u32);

impl Relation {
    /// Inside the last mask; as a prediction: the same mask.
    pub const SAME: Self = Self(0);
    /// One more than the largest number of a relation; level 0 has no `disjoint`, so 1 is not one either.
    pub const END: u32 = 12;

    /// The relation with this level (0 to 5); `disjoint` only from level 1 on.
    #[inline(always)]
    pub const fn new(level: u32, disjoint: bool) -> Self {
        Self((level << 1) | disjoint as u32)
    }

    /// The relation in the low four bits of a slot's field.
    #[inline(always)]
    pub const fn from_low_bits(bits: u32) -> Self {
        Self(bits & 15)
    }

    /// Twice the level, plus 1 if disjoint.
    #[inline(always)]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// 0 for the last mask, 1 to 4 for the stack's, 5 for all lanes.
    #[inline(always)]
    pub const fn level(self) -> u32 {
        self.0 >> 1
    }

    /// Whether the last mask's lanes are left out.
    #[inline(always)]
    pub const fn disjoint(self) -> bool {
        self.0 & 1 != 0
    }
}

/// A set of relations: a bit for each, and the same 16 bits higher, so that the bits of a slot from 16 on
/// tell which to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relations(u32);

impl Relations {
    /// Relations to a mask that has lanes, after the mask `last`, by its nearest one. If that gives just this
    /// mask (`exact`): those that give it too. Else: those whose base holds it. (None gives it then.)
    #[inline(always)]
    pub const fn new(nearest: Relation, exact: bool, mask: u32, last: u32) -> Self {
        // A bit for each level from the nearest on, without `disjoint` or with it. Masks of other levels are
        // larger, unless they have all lanes.
        const LEVELS: u32 = 0b0101_0101_0101;
        let (first, disjoint) = (nearest.number(), nearest.disjoint());
        let all = if exact {
            let levels = if mask | last == u32::MAX { LEVELS } else { 1 };
            levels << first
        } else {
            let levels = if disjoint { 3 * LEVELS } else { LEVELS };
            levels << (first & !1)
        };
        Self((all & 0xfff) * 0x1_0001)
    }

    /// Whether that of a slot is among them.
    #[inline(always)]
    pub const fn has(self, slot: Slot) -> bool {
        self.0 >> (slot.expected >> 16 & 31) & 1 != 0
    }
}

/// The masks outside the current one, innermost first. Each holds the one before it, and the first the
/// current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack(pub [u32; DEPTH]);

impl Stack {
    /// All lanes, all the way.
    pub const EMPTY: Self = Self([u32::MAX; DEPTH]);

    /// The mask that a relation speaks of, or all it can have lanes of; `last` is the current mask.
    #[inline(always)]
    pub const fn base(self, relation: Relation, last: u32) -> u32 {
        let [a, b, c, d] = self.0;
        // Selects, which a `match` would not become: a GPU would jump through a table.
        let level = relation.level();
        let outside = if level >= 1 { a } else { last };
        let outside = if level >= 2 { b } else { outside };
        let outside = if level >= 3 { c } else { outside };
        let outside = if level >= 4 { d } else { outside };
        let outside = if level >= 5 { u32::MAX } else { outside };
        if relation.disjoint() { outside & !last } else { outside }
    }

    /// The relation of `mask` to the smallest mask that holds it, disjoint from `last` if they share no lane.
    ///
    /// If `mask` is one of the stack's or the rest of one, this is the relation whose base it is.
    #[inline(always)]
    pub const fn nearest(self, last: u32, mask: u32) -> Relation {
        let [a, b, c, d] = self.0;
        // Each mask holds the one before it, so counting those that do not hold `mask` gives the first that
        // does.
        let level = (mask & !last != 0) as u32
            + (mask & !a != 0) as u32
            + (mask & !b != 0) as u32
            + (mask & !c != 0) as u32
            + (mask & !d != 0) as u32;
        Relation::new(level, (level != 0) & (mask & last == 0))
    }

    /// The stack when `mask` follows `last`.
    ///
    /// A strict subset goes inside: `last` is pushed. Anything else comes out of what does not hold it
    /// strictly. The same mask changes nothing.
    #[inline(always)]
    pub const fn after(self, last: u32, mask: u32) -> Self {
        const ALL: u32 = u32::MAX;
        let [a, b, c, d] = self.0;
        if mask == last {
            return self;
        }
        if mask & !last == 0 {
            return Self([last, a, b, c]);
        }
        let out = leaves(a, mask) + leaves(b, mask) + leaves(c, mask) + leaves(d, mask);
        let [a, b, c, d] = if out & 1 != 0 { [b, c, d, ALL] } else { [a, b, c, d] };
        let [a, b, c, d] = if out & 2 != 0 { [c, d, ALL, ALL] } else { [a, b, c, d] };
        if out & 4 != 0 { Self::EMPTY } else { Self([a, b, c, d]) }
    }
}

/// 1 if `mask` lies not strictly inside `outside`.
#[inline(always)]
const fn leaves(outside: u32, mask: u32) -> u32 {
    ((mask & !outside != 0) | (mask == outside)) as u32
}
