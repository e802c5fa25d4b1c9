//! Lookup tables for the first bits of the fields in [`fields`](super::fields) and [`lanes`](super::lanes).

use super::fields::{head_form, is_located, location_form, relation_form};

pub(super) const HEAD_BITS: u32 = 12;
const LOCATION_BITS: u32 = 9;
pub(super) const LOCATED: usize = 1 << LOCATION_BITS;
const MASK_BITS: u32 = 7;
/// Index in [`LANES`] of a mask without written lanes: it has all lanes of its base.
const ALL_UNSAID: u8 = 32;

/// Hits, and whether the location was expected. Length 0 if the head has more bits than the table.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) hits: u8,
    pub(super) located_and_length: u8,
}

impl Head {
    #[inline(always)]
    pub(super) const fn length(self) -> u32 {
        self.located_and_length as u32 & 15
    }

    #[inline(always)]
    pub(super) const fn located(self) -> bool {
        self.located_and_length & 16 != 0
    }
}

pub(super) static HEADS: [Head; 1 << HEAD_BITS] = {
    let mut heads = [Head { hits: 0, located_and_length: 0 }; 1 << HEAD_BITS];
    let mut bits = 0;
    while bits < heads.len() {
        let (hits, before) = head_form(bits as u32);
        if before < HEAD_BITS {
            let located = is_located(bits as u64, hits, before) as u32;
            heads[bits] =
                Head { hits: hits as u8, located_and_length: ((before + 1) | (located << 4)) as u8 };
        }
        bits += 1;
    }
    heads
};

/// A location is `last` xor the slot's step, plus a difference and the bits after the first five; all masked.
#[derive(Clone, Copy)]
pub(super) struct Location {
    pub(super) difference: i16,
    pub(super) last: u16,
    pub(super) number: u16,
    pub(super) step: bool,
    pub(super) length: u8,
}

pub(super) static LOCATIONS: [Location; 1 + LOCATED] = {
    let located = Location { difference: 0, last: u16::MAX, number: 0, step: true, length: 0 };
    let mut locations = [located; 1 + LOCATED];
    let mut bits = 0;
    while bits < LOCATED {
        let (difference, length) = location_form(bits as u32);
        let (last, number) = match length {
            13 => (0, 0xff),
            21 => (0, 0xffff),
            _ => (u16::MAX, 0),
        };
        locations[bits] =
            Location { difference: difference as i16, last, number, step: false, length: length as u8 };
        bits += 1;
    }
    locations
};

/// The relation is the slot's relation, masked by `of_slot`, or `relation`.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) length: u8,
    pub(super) relation: u8,
    pub(super) of_slot: u8,
    pub(super) by_seen: bool,
    /// Masks the next bits as an index of [`LANES`], or `no_lanes` replaces them.
    pub(super) lanes: u8,
    pub(super) no_lanes: u8,
}

/// Forms of a mask after an unexpected location, then after an expected one.
pub(super) static FORMS: [Form; 2 << MASK_BITS] = {
    let mut forms =
        [Form { length: 1, relation: 0, of_slot: 0, by_seen: false, lanes: 31, no_lanes: 0 }; 2 << MASK_BITS];
    let mut at = 0;
    while at < forms.len() {
        let (bits, located) = (at & ((1 << MASK_BITS) - 1), at >> MASK_BITS != 0);
        let form = &mut forms[at];
        if bits & 1 != 0 && !located {
            (form.lanes, form.no_lanes) = (0, ALL_UNSAID);
        } else if bits & 1 != 0 {
            form.of_slot = 15;
        } else if bits & 2 != 0 && located {
            *form =
                Form { length: 2, relation: 0, of_slot: 15, by_seen: true, lanes: 0, no_lanes: ALL_UNSAID };
        } else {
            let before = 1 + located as usize;
            let (relation, length) = relation_form((bits >> before) as u32);
            (form.relation, form.length) = (relation as u8, before as u8 + length as u8);
        }
        at += 1;
    }
    forms
};

/// A set of ranks: the terms, each masked by its field, or all other lanes if `others`.
#[derive(Clone, Copy)]
pub(super) struct Lanes {
    /// Mask of the form with one bit for each lane of the base.
    pub(super) each: u32,
    pub(super) first: u32,
    pub(super) second: u32,
    pub(super) others: u32,
    pub(super) length: u8,
}

pub(super) static LANES: [Lanes; 64] = {
    const ALL: u32 = u32::MAX;
    let unsaid = Lanes { each: 0, first: 0, second: 0, others: ALL, length: 0 };
    let mut lanes = [unsaid; 64];
    let mut bits = 0_u32;
    while bits < 32 {
        lanes[bits as usize] = match bits.trailing_zeros() {
            0 => Lanes { each: ALL, others: 0, length: 1, ..unsaid },
            1 => Lanes { length: 2, ..unsaid },
            2 => Lanes { first: ALL, length: 3, ..unsaid },
            3 => Lanes { first: ALL, others: 0, length: 4, ..unsaid },
            4 => Lanes { first: ALL, second: ALL, length: 5, ..unsaid },
            _ => Lanes { first: ALL, second: ALL, others: 0, length: 5, ..unsaid },
        };
        bits += 1;
    }
    lanes
};

/// For each number of lanes: one bit for each rank, and the width of a rank in bits.
#[derive(Clone, Copy)]
pub(super) struct Ranks {
    pub(super) all: u32,
    pub(super) width: u32,
}

pub(super) static RANKS: [Ranks; 64] = {
    let mut ranks = [Ranks { all: 0, width: 0 }; 64];
    let mut lanes = 1;
    while lanes <= 32 {
        ranks[lanes as usize] =
            Ranks { all: u32::MAX >> (32 - lanes), width: super::lanes::rank_bits(lanes) };
        lanes += 1;
    }
    ranks
};
