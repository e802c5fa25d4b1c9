//! Entries of a data track: the recorded addresses and values of a traced kernel. `docs/contributors/data.md`
//! defines sites, runs, headers and values. On the device, entries are in logs, and chunks of the data track
//! hold them unchanged, lane after lane. The file stores them in columns ([`crate::file::data`]).
//!
//! ```text
//! offset  size  header                           values
//!      0     4  mask: the lanes of the group     base, lower half
//!      4     4  key                              key
//!      8     4  time, in units of 16 cycles      step
//!     12     4  spread; 0 if generic             base, upper half
//! ```

#[cfg(feature = "std")]
pub mod native;
mod site;
pub mod tile;

pub use self::site::{Derived, SiteKind, SiteSpace, ValueType};

/// Largest site number; the smallest is 1.
pub const MAX_SITE: u16 = 0x7fff;
/// Most accesses of a run in one entry.
pub const MAX_COUNT: u32 = 1023;
/// Size of an entry, in bytes.
pub const ENTRY_BYTES: usize = 16;

/// Bit of a key: the entry holds values.
pub const VALUES: u32 = 1 << 31;
/// Bit position of the site in a key.
pub const SITE_SHIFT: u32 = 16;
/// Bit position of the count in the key of values.
pub const COUNT_SHIFT: u32 = 6;
/// Bit in the key of values: the values belong to the whole group.
pub const GROUP: u32 = 1 << 5;
/// Lower half of a header's key if the group's values are affine.
pub const AFFINE: u32 = 1;
/// Lower half of a header's key if each lane has its own values.
pub const GENERIC: u32 = 2;
/// Key of the entry that ends a stream with losses.
pub const CUT: u32 = 3;

/// An entry of a data track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataEntry {
    /// A group of lanes whose runs at a site ended together.
    Header {
        /// Lanes of the group, at least one.
        mask: u32,
        /// Site number, 1 to [`MAX_SITE`].
        site: u16,
        /// Time, in units of 16 cycles, modulo 2^32.
        time: u32,
        /// Base of the highest lane minus base of the lowest lane, if all bases lie on a line
        /// ([`lane_base`]): the next entry of the log has the values. `None` if each lane has its own.
        spread: Option<i32>,
    },
    /// A run.
    Values {
        /// Site number, 1 to [`MAX_SITE`].
        site: u16,
        /// Owner of the run.
        of: Owner,
        /// Number of accesses, 1 to [`MAX_COUNT`].
        count: u32,
        /// First access; for a group, the first access of its lowest lane.
        base: u64,
        /// Difference between consecutive accesses; 0 for a single access.
        step: i32,
    },
    /// End of a stream with losses: nothing is known from `time` on.
    Cut {
        /// Time at which the first log stopped, in units of 16 cycles, modulo 2^32.
        time: u32,
    },
}

/// Owner of the values in an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// One lane, 0 to 31.
    Lane(u32),
    /// A group of this many lanes, 1 to 32.
    Group(u32),
}

impl Owner {
    /// Returns the number of lanes.
    #[must_use]
    pub const fn lanes(self) -> u32 {
        match self {
            Self::Lane(_) => 1,
            Self::Group(lanes) => lanes,
        }
    }
}

/// Returns the number of accesses in the entry with this key; 0 if it holds no values.
#[inline(always)]
#[must_use]
pub const fn accesses(key: u32) -> u32 {
    if key & VALUES == 0 {
        return 0;
    }
    let count = key >> COUNT_SHIFT & MAX_COUNT;
    if key & GROUP == 0 { count } else { count * ((key & 0x1f) + 1) }
}

/// Returns true if every lane of `mask` has a base on the line ([`lane_base`] returns `Some`).
#[must_use]
pub const fn is_line(mask: u32, spread: i32) -> bool {
    let length = 31 - mask.leading_zeros().cast_signed() - mask.trailing_zeros().cast_signed();
    if length > 0 && spread % length == 0 {
        return true;
    }
    let mut rest = mask;
    while rest != 0 {
        if lane_base(mask, 0, spread, rest.trailing_zeros()).is_none() {
            return false;
        }
        rest &= rest - 1;
    }
    true
}

/// Returns the base of one lane of an affine group; `None` if the lane is not in `mask`, or if its share of
/// the spread is not a whole number, which no kernel writes.
#[must_use]
pub const fn lane_base(mask: u32, base: u64, spread: i32, lane: u32) -> Option<u64> {
    if lane > 31 || mask >> lane & 1 == 0 {
        return None;
    }
    let (lowest, highest) = (mask.trailing_zeros() as i64, 31 - mask.leading_zeros() as i64);
    let (rise, length) = (spread as i64 * (lane as i64 - lowest), highest - lowest);
    if length == 0 {
        return if spread == 0 { Some(base) } else { None };
    }
    if rise % length == 0 { Some(base.wrapping_add((rise / length) as u64)) } else { None }
}

impl DataEntry {
    /// Encodes the entry as words.
    #[must_use]
    pub const fn to_words(self) -> [u32; 4] {
        match self {
            Self::Header { mask, site, time, spread } => {
                let (form, spread) = match spread {
                    Some(spread) => (AFFINE, spread as u32),
                    None => (GENERIC, 0),
                };
                [mask, (site as u32) << SITE_SHIFT | form, time, spread]
            }
            Self::Values { site, of, count, base, step } => {
                let owner = match of {
                    Owner::Lane(lane) => lane & 0x1f,
                    Owner::Group(lanes) => GROUP | (lanes.wrapping_sub(1) & 0x1f),
                };
                let key = VALUES
                    | (site as u32 & MAX_SITE as u32) << SITE_SHIFT
                    | (count & MAX_COUNT) << COUNT_SHIFT
                    | owner;
                [base as u32, key, step as u32, (base >> 32) as u32]
            }
            Self::Cut { time } => [time, CUT, 0, 0],
        }
    }

    /// Decodes an entry. Returns `None` for words that no kernel writes.
    #[must_use]
    pub const fn from_words([first, key, third, fourth]: [u32; 4]) -> Option<Self> {
        let site = (key >> SITE_SHIFT) as u16 & MAX_SITE;
        if key == CUT {
            return if third == 0 && fourth == 0 { Some(Self::Cut { time: first }) } else { None };
        }
        if site == 0 {
            return None;
        }
        if key & VALUES == 0 {
            let spread = match key & 0xffff {
                AFFINE => Some(fourth as i32),
                GENERIC if fourth == 0 => None,
                _ => return None,
            };
            let is_line = match spread {
                Some(spread) => is_line(first, spread),
                None => true,
            };
            return if first == 0 || !is_line {
                None
            } else {
                Some(Self::Header { mask: first, site, time: third, spread })
            };
        }
        let of = if key & GROUP == 0 { Owner::Lane(key & 0x1f) } else { Owner::Group((key & 0x1f) + 1) };
        let count = key >> COUNT_SHIFT & MAX_COUNT;
        let base = first as u64 | (fourth as u64) << 32;
        if count == 0 || (count == 1 && third != 0) {
            None
        } else {
            Some(Self::Values { site, of, count, base, step: third as i32 })
        }
    }
}

/// Current run of a lane at a site, in local memory of a traced kernel. All zero before the first access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneRun {
    /// First access.
    pub base: u64,
    /// Difference between consecutive accesses.
    pub step: i32,
    /// Number of accesses, at most [`MAX_COUNT`].
    pub count: u32,
}

impl LaneRun {
    /// Returns the predicted next access of the run, modulo 2^64.
    #[must_use]
    pub const fn next(self) -> u64 {
        self.nth(self.count)
    }

    /// Returns access `number` of the run, from 0, modulo 2^64.
    #[must_use]
    pub const fn nth(self, number: u32) -> u64 {
        self.base.wrapping_add((self.step as i64).wrapping_mul(number as i64) as u64)
    }

    /// Adds an access. Returns the previous run if the access does not continue it.
    pub fn access(&mut self, access: u64) -> Option<Self> {
        if self.count < MAX_COUNT && access == self.next() {
            self.count += 1;
            return None;
        }
        let difference = access.wrapping_sub(self.base) as i64;
        if self.count == 1
            && let Ok(step) = i32::try_from(difference)
        {
            (self.step, self.count) = (step, 2);
            return None;
        }
        let ended = core::mem::replace(self, Self { base: access, step: 0, count: 1 });
        (ended.count != 0).then_some(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_their_words() {
        let entries = [
            DataEntry::Header { mask: 0xf0, site: 3, time: 9, spread: Some(-6) },
            DataEntry::Header { mask: 1, site: MAX_SITE, time: u32::MAX, spread: None },
            DataEntry::Values {
                site: 3,
                of: Owner::Group(32),
                count: MAX_COUNT,
                base: u64::MAX - 1,
                step: -7,
            },
            DataEntry::Values { site: 3, of: Owner::Lane(31), count: 1, base: 0x1_0000_0002, step: 0 },
            DataEntry::Cut { time: 77 },
        ];
        for entry in entries {
            assert_eq!(DataEntry::from_words(entry.to_words()), Some(entry));
            assert_ne!(entry.to_words()[1] & 0xffff, 0, "merging passes over keys whose lower half is 0");
        }
        assert_eq!(entries.map(|entry| accesses(entry.to_words()[1])), [0, 0, 32 * 1023, 1, 0]);
        assert_eq!(entries[0].to_words(), [0xf0, 3 << 16 | 1, 9, 0xffff_fffa]);
        for damaged in [
            [0, 3 << 16 | 1, 0, 0],
            [1, 1, 0, 0],
            [1, 3 << 16 | 4, 0, 0],
            [1, VALUES | 3 << 16, 0, 0],
            [1, VALUES | 3 << 16 | 1 << 6, 4, 0],
        ] {
            assert_eq!(DataEntry::from_words(damaged), None, "{damaged:x?}");
        }
    }

    #[test]
    fn bases_of_a_group_lie_on_a_line() {
        let bases = |mask, spread| [1, 3, 5].map(|lane| lane_base(mask, 100, spread, lane));
        assert_eq!(bases(0b10_1010, 16), [Some(100), Some(108), Some(116)]);
        assert_eq!(bases(0b10_1010, -4), [Some(100), Some(98), Some(96)]);
        assert_eq!(bases(0b10_1010, 3), [Some(100), None, Some(103)]);
        assert_eq!(bases(0b1000, 0), [None, Some(100), None]);
        assert_eq!(lane_base(8, 100, 1, 3), None);
        assert_eq!(lane_base(1 << 31 | 1, u64::MAX, 31, 31), Some(30));
        assert_eq!(lane_base(u32::MAX, 0, 31, 32), None);
    }

    #[test]
    fn a_lane_run_grows_by_equal_steps() {
        let mut run = LaneRun::default();
        assert_eq!(run.access(100), None);
        assert_eq!(run.access(96), None);
        assert_eq!(run.access(92), None);
        assert_eq!(run, LaneRun { base: 100, step: -4, count: 3 });
        assert_eq!(run.access(100), Some(LaneRun { base: 100, step: -4, count: 3 }));
        // The difference does not fit into a step.
        assert_eq!(run.access(1 << 40), Some(LaneRun { base: 100, step: 0, count: 1 }));
        assert_eq!(run, LaneRun { base: 1 << 40, step: 0, count: 1 });
        let mut zeros = LaneRun::default();
        for _ in 0..MAX_COUNT {
            assert_eq!(zeros.access(0), None);
        }
        assert_eq!(zeros.access(0), Some(LaneRun { base: 0, step: 0, count: MAX_COUNT }));
    }
}
