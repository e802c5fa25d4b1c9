//! `predict`: predicts whole events by the previous location. Consecutive correct predictions (*hits*) are
//! written as one count, and a wrong one (a *miss*) as the fields that differ.
//!
//! After an event at location L, slot L mod S holds the expected event. It gives the mask by its relation to
//! earlier masks (equal, the other side of a branch, back to an outer mask), or expects the mask last seen at
//! the slot. So a location that always follows another is predicted for any mask. A miss writes the number of
//! hits before it and the differing fields as bits, without padding.
//!
//! ```text
//! event ──slot of the last location──> hit: count it
//!                                 └──> miss: [hits] [location] [relation] [lanes] ──bits──> payload
//! ```
//!
//! `docs/reference/codecs.md` has the exact rules and the code's tables,
//! `docs/contributors/decisions/predict.md` the rejected alternatives.
//!
//! - [`encoder`]: [`PredictState`], which a warp runs. A hit loads 16 and 8 bytes and stores 16 bytes.
//! - [`decoder`]: [`PredictDecoder`], which accepts any bytes (feature `std`). `fields` reads field by field
//!   and finds errors; `fast` reads a miss at once, with `tables`.
//! - [`stack`]: outer masks; [`lanes`], [`mask`], [`code`]: the code.

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

/// Most events of a chunk. Bounds a decoder's work: a chunk of a few bytes can announce as many.
pub const MAX_CHUNK_EVENTS: u32 = 1 << 24;

/// Prediction of a slot. The first word holds the expected event, the second the mask last seen here.
///
/// ```text
/// bit 0   16 bits  expected location, xor the location before it: 0 for the same location
/// bit 16   4 bits  expected relation (see `stack`): 0 for the same mask
/// bit 20   1 bit   the mask last seen here is expected, whatever the relation
/// ```
///
/// An empty slot, all zero, expects the previous event again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// The first word.
    pub expected: u32,
    /// The second word.
    pub seen: u32,
}

const SEEN_EXPECTED: u32 = 1 << 20;

impl Slot {
    /// Creates the slot after a miss: it expects the event that happened.
    #[inline(always)]
    pub const fn learned(step: u32, relation: stack::Relation, by_seen: bool, mask: u32) -> Self {
        let by_seen = if by_seen { SEEN_EXPECTED } else { 0 };
        Self { expected: step | (relation.number() << 16) | by_seen, seen: mask }
    }

    /// Creates the slot after a miss. Keeps this slot's relation if `kept`, otherwise uses the nearest one.
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

    /// Creates the slot after an unexpected repetition of the previous event.
    #[inline(always)]
    pub const fn same_again(mask: u32) -> Self {
        Self::learned(0, stack::Relation::SAME, false, mask)
    }

    /// Returns the expected location, xor the location before it.
    #[inline(always)]
    pub const fn step(self) -> u32 {
        self.expected & 0xffff
    }

    /// Returns the expected relation.
    #[inline(always)]
    pub const fn relation(self) -> stack::Relation {
        stack::Relation::from_low_bits(self.expected >> 16)
    }

    /// Returns true if the mask last seen here is expected, whatever the relation.
    #[inline(always)]
    pub const fn by_seen(self) -> bool {
        self.expected & SEEN_EXPECTED != 0
    }

    /// Returns the expected mask. `base` is the mask of the slot's [`relation`](Self::relation).
    #[inline(always)]
    pub const fn mask(self, base: u32) -> u32 {
        if self.by_seen() { self.seen } else { base }
    }
}
