//! `predict`: whole events predicted from the location before, runs of hits as one number, misses in a few
//! bits.
//!
//! After an event at location L, slot L mod S says which event is expected: a location, and a mask that is
//! either given by its relation to the masks before it (the same, the other side of a branch, back to those
//! outside of it) or the mask seen here last. A location that always follows another is thus predicted
//! whatever the masks are. A hit is counted. A miss writes the hits before it and what differs, as a code of
//! bits without padding.
//!
//! ```text
//! event ──slot of the last location──> hit: count it
//!                                 └──> miss: [hits] [location] [relation] [lanes] ──bits──> payload
//! ```
//!
//! The exact rules and the code's tables are in `docs/reference/codecs.md`, what else was tried in
//! `docs/contributors/decisions/predict.md`.
//!
//! - [`encoder`]: [`PredictState`], what a warp runs: on a hit one load of 16 bytes, one of 8 and one store
//!   of 16.
//! - [`decoder`]: [`PredictDecoder`], which takes any bytes (feature `std`). `fields` reads field by field,
//!   and says what is wrong; `fast` reads a miss at once, by `tables`; `output` is where events go.
//! - [`stack`]: the masks around the current one; [`lanes`]: a subset of lanes as few bits; [`mask`]: how a
//!   miss says its mask; [`code`]: the rest of the code's tables.

#[cfg(feature = "std")]
mod bits;
pub mod code;
#[cfg(feature = "std")]
pub mod decoder;
pub mod encoder;
#[cfg(feature = "std")]
mod fast;
#[cfg(feature = "std")]
mod fields;
pub mod lanes;
pub mod mask;
#[cfg(feature = "std")]
mod output;
mod params;
pub mod stack;
#[cfg(feature = "std")]
mod tables;

#[cfg(feature = "std")]
pub use decoder::PredictDecoder;
pub use encoder::PredictState;
pub use params::PredictParams;

/// Most events of a chunk. A chunk of a few bytes can announce as many, so this bounds a decoder's work.
pub const MAX_CHUNK_EVENTS: u32 = 1 << 24;

/// What a slot expects, in its first word; the second is the mask seen here last.
///
/// ```text
/// bit 0   16 bits  expected location, xor the location before it: 0 is the same again
/// bit 16   4 bits  expected relation (see `stack`): 0 is the same mask
/// bit 20   1 bit   the mask seen here last is expected, whatever the relation
/// ```
///
/// An empty slot, all zero, expects the event before once more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// The first word.
    pub expected: u32,
    /// The second word.
    pub seen: u32,
}

const SEEN_EXPECTED: u32 = 1 << 20;

impl Slot {
    /// Makes the slot after a miss: what happened is expected next time.
    #[inline(always)]
    pub const fn learned(step: u32, relation: stack::Relation, by_seen: bool, mask: u32) -> Self {
        let by_seen = if by_seen { SEEN_EXPECTED } else { 0 };
        Self { expected: step | (relation.number() << 16) | by_seen, seen: mask }
    }

    /// Makes the slot after a miss, with the relation of this slot if it is `kept`, else the nearest one.
    #[inline(always)]
    pub const fn learns(
        self,
        step: u32,
        nearest: stack::Relation,
        kept: bool,
        by_seen: bool,
        mask: u32,
    ) -> Self {
        let [kept_bits, other] = [self.expected & 15 << 16, nearest.number() << 16];
        let by_seen = if by_seen { SEEN_EXPECTED } else { 0 };
        Self { expected: step | if kept { kept_bits } else { other } | by_seen, seen: mask }
    }

    /// The slot after an event that was that before once more, and was not expected.
    #[inline(always)]
    pub const fn same_again(mask: u32) -> Self {
        Self::learned(0, stack::Relation::SAME, false, mask)
    }

    /// Expected location, xor the location before it.
    #[inline(always)]
    pub const fn step(self) -> u32 {
        self.expected & 0xffff
    }

    /// Expected relation.
    #[inline(always)]
    pub const fn relation(self) -> stack::Relation {
        stack::Relation::from_low_bits(self.expected >> 16)
    }

    /// Whether the mask seen here last is expected, whatever the relation.
    #[inline(always)]
    pub const fn by_seen(self) -> bool {
        self.expected & SEEN_EXPECTED != 0
    }

    /// Expected mask, where `base` is what [`relation`](Self::relation) gives.
    #[inline(always)]
    pub const fn mask(self, base: u32) -> u32 {
        if self.by_seen() { self.seen } else { base }
    }
}
