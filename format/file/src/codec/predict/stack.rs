//! Stack of the masks around the current one: lanes diverge from them and reconverge to them.
//!
//! Structured control flow nests: the lanes that enter a branch are a subset of the outer mask, the other
//! side is the rest, and after the branch all reconverge. Deeper nesting replaces outer masks by all lanes.

use super::Slot;

/// Number of masks in the stack.
pub const DEPTH: usize = 4;

/// Relation of a mask to earlier masks. `level` 0 is the last mask, 1 to 4 are the stack's masks from the
/// innermost on, 5 is all lanes. `disjoint` excludes the lanes of the last mask: the other side of a branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Relation(u32);

impl Relation {
    /// Inside the last mask. As a prediction: the same mask.
    pub const SAME: Self = Self(0);
    /// One more than the largest relation number. Level 0 has no `disjoint`, so 1 is not a relation either.
    pub const END: u32 = 12;

    /// Creates the relation of a level (0 to 5). `disjoint` requires level 1 or more.
    #[inline(always)]
    pub const fn new(level: u32, disjoint: bool) -> Self {
        Self((level << 1) | disjoint as u32)
    }

    /// Returns the relation in the low four bits of a slot's field.
    #[inline(always)]
    pub const fn from_low_bits(bits: u32) -> Self {
        Self(bits & 15)
    }

    /// Returns twice the level, plus 1 if disjoint.
    #[inline(always)]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Returns 0 for the last mask, 1 to 4 for the stack's masks, 5 for all lanes.
    #[inline(always)]
    pub const fn level(self) -> u32 {
        self.0 >> 1
    }

    /// Returns true if the last mask's lanes are excluded.
    #[inline(always)]
    pub const fn disjoint(self) -> bool {
        self.0 & 1 != 0
    }
}

/// Set of relations: one bit each. The upper 16 bits are a copy: bits 16 to 20 of a slot select a bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relations(u32);

impl Relations {
    /// Returns the relations of a nonempty `mask` after `last`, from its nearest one: those with base `mask`
    /// if `exact`. Otherwise no base is `mask`, and all whose base contains it are returned.
    #[inline(always)]
    pub const fn new(nearest: Relation, exact: bool, mask: u32, last: u32) -> Self {
        // One bit for each level. Masks of outer levels are larger, unless they have all lanes.
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

    /// Returns true if the set contains the slot's relation.
    #[inline(always)]
    pub const fn has(self, slot: Slot) -> bool {
        self.0 >> (slot.expected >> 16 & 31) & 1 != 0
    }
}

/// Masks around the current one, innermost first. Each one contains the one before it and the current mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack(pub [u32; DEPTH]);

impl Stack {
    /// The stack of a full warp: all lanes at each level.
    pub const EMPTY: Self = Self([u32::MAX; DEPTH]);

    /// Returns the mask at a relation's level, without the current mask `last` if the relation is disjoint.
    #[inline(always)]
    pub const fn base(self, relation: Relation, last: u32) -> u32 {
        let [a, b, c, d] = self.0;
        // Selects. A `match` would become a jump through a table on a GPU.
        let level = relation.level();
        let outside = if level >= 1 { a } else { last };
        let outside = if level >= 2 { b } else { outside };
        let outside = if level >= 3 { c } else { outside };
        let outside = if level >= 4 { d } else { outside };
        let outside = if level >= 5 { u32::MAX } else { outside };
        if relation.disjoint() { outside & !last } else { outside }
    }

    /// Returns the relation of `mask` to the smallest mask that contains it, disjoint from `last` if they
    /// share no lane. If `mask` equals a stack mask or the rest of one, the relation's base is `mask`.
    #[inline(always)]
    pub const fn nearest(self, last: u32, mask: u32) -> Relation {
        let [a, b, c, d] = self.0;
        // Masks are nested, so this counts the masks before the first one that contains `mask`.
        let level = (mask & !last != 0) as u32
            + (mask & !a != 0) as u32
            + (mask & !b != 0) as u32
            + (mask & !c != 0) as u32
            + (mask & !d != 0) as u32;
        Relation::new(level, (level != 0) & (mask & last == 0))
    }

    /// Returns the stack after `mask` follows `last`. A strict subset of `last` pushes `last`. The same mask
    /// changes nothing. Any other mask pops the masks that do not strictly contain it.
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

#[inline(always)]
const fn leaves(outside: u32, mask: u32) -> u32 {
    ((mask & !outside != 0) | (mask == outside)) as u32
}
