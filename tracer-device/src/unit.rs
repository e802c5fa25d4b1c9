//! A run as it stands in a log, and its key, which is half of a lane's record.
//!
//! A unit of a log is 16 bytes:
//!
//! ```text
//! offset  size  field
//!      0     4  mask
//!      4     4  key
//!      8     4  count, if the key says so; else it means nothing
//!     12     4  time of its beginning, modulo 2^32
//! ```
//!
//! The key:
//!
//! ```text
//! bits    field
//!  0..8   location
//!     8   in modules with counted loops: this lane keeps the run
//!     9   the count is not here but in a word of its own
//! 10..32  count; if its highest bit is set, nobody counts further
//! ```
//!
//! So the next event of the same kind adds [`ONE`], and whether it is of the same kind takes one comparison of the bits in [`COMPARED`].

/// What an event adds to a key.
pub(crate) const ONE: u32 = 1 << COUNT_BIT;
/// In a key: this lane keeps the run. Otherwise it is the lowest lane of the mask that does.
#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
pub(crate) const KEEPS: u32 = 1 << 8;
/// Bits of a key that are those of the next event if that is one more of the run.
pub(crate) const COMPARED: u32 = LOCATION | STOP;
/// The most that one event, or several in a row, may add to a key's count at once.
pub(crate) const MOST_AT_ONCE: u32 = (1 << (31 - COUNT_BIT)) - 1;

const LOCATION: u32 = 0xff;
const APART: u32 = 1 << 9;
const COUNT_BIT: u32 = 10;
const STOP: u32 = 1 << 31;

/// A key that no event repeats.
pub(crate) const NOWHERE: u32 = STOP;

/// The key of a run of `count` events, of which there are at most [`MOST_AT_ONCE`].
#[inline(always)]
pub(crate) const fn key(location: u32, count: u32) -> u32 {
    count << COUNT_BIT | location
}

/// The key of a run whose count has a word of its own. Nobody counts it further.
#[inline(always)]
pub(crate) const fn key_apart(location: u32) -> u32 {
    STOP | APART | location
}

/// A run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) mask: u32,
    pub(crate) location: u32,
    pub(crate) count: u32,
    /// When it began; see `log`.
    pub(crate) time: u32,
}

impl Run {
    /// What a unit of a log holds.
    #[inline(always)]
    pub(crate) fn of_unit([mask, key, apart, time]: [u32; 4]) -> Self {
        let count = if key & APART != 0 { apart } else { key >> COUNT_BIT };
        Self { mask, location: key & LOCATION, count, time }
    }

    /// As it stands in a log.
    #[inline(always)]
    pub(crate) fn unit(self) -> [u32; 4] {
        [self.mask, key_apart(self.location), self.count, self.time]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_holds_a_run_either_way() {
        let run = Run { mask: 0x8000_0001, location: 255, count: u32::MAX, time: 7 };
        assert_eq!(Run::of_unit(run.unit()), run);
        for count in [1, MOST_AT_ONCE, 2 * MOST_AT_ONCE] {
            let unit = [3, key(200, 1).wrapping_add((count - 1) * ONE), 0xdead_beef, 9];
            assert_eq!(Run::of_unit(unit), Run { mask: 3, location: 200, count, time: 9 });
        }
    }

    #[test]
    fn a_key_stops_counting_before_it_overflows() {
        let counts = |key: u32| key & COMPARED == 77;
        assert!(counts(key(77, MOST_AT_ONCE)));
        assert!(!counts(key(77, MOST_AT_ONCE) + ONE), "2^21 events");
        assert!(!counts(key(77, MOST_AT_ONCE) + MOST_AT_ONCE * ONE), "the most that can come");
        assert!(!counts(key_apart(77)));
        assert!(!counts(key(78, 1)));
    }
}
