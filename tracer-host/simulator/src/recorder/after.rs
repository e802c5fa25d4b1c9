//! Start of recording in each lane (`warptrace_format::chosen::After`).

use warptrace_format::chosen::After;

use crate::context::LANES;
use crate::warp::bits;

/// Remaining visits of each lane of a warp until it is recorded.
pub(super) struct Awaited {
    location: u16,
    /// 0 if the lane is recorded.
    remaining: [u32; LANES],
}

impl Awaited {
    pub(super) fn new(after: After) -> Self {
        Self { location: after.location, remaining: [after.count.get(); LANES] }
    }

    /// Returns how many of `count` events of the lanes of `mask` are recorded. These are the last events.
    pub(super) fn recorded(&mut self, location: u16, mask: u32, count: u32) -> u32 {
        let least = bits(mask).map(|lane| self.remaining[lane]).min().unwrap_or_default();
        let visits = if location == self.location { count } else { 0 };
        let is_recorded = least <= visits;
        for lane in bits(mask) {
            self.remaining[lane] = if is_recorded { 0 } else { self.remaining[lane] - visits };
        }
        if is_recorded { count - least.saturating_sub(1) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn awaited(location: u16, count: u32) -> Awaited {
        Awaited::new(After { location, count: NonZeroU32::new(count).expect("not 0") })
    }

    #[test]
    fn lanes_begin_with_the_first_that_has_come_often_enough() {
        let mut awaited = awaited(5, 3);
        assert_eq!([awaited.recorded(5, 0b11, 1), awaited.recorded(4, 0b11, 9)], [0, 0]);
        assert_eq!([awaited.recorded(5, 0b01, 1), awaited.recorded(5, 0b11, 1)], [0, 1]);
        assert_eq!([awaited.recorded(4, 0b10, 7), awaited.recorded(4, 0b100, 7)], [7, 0]);
        // A lane starts recording through an event shared with a recorded lane.
        assert_eq!([awaited.recorded(4, 0b110, 1), awaited.recorded(4, 0b100, 2)], [1, 2]);
    }

    #[test]
    fn of_many_visits_at_once_the_last_ones_are_recorded() {
        assert_eq!(awaited(5, 3).recorded(5, 1, 10), 8);
        assert_eq!(awaited(5, 10).recorded(5, 1, 10), 1);
        assert_eq!(awaited(5, 11).recorded(5, 1, 10), 0);
        assert_eq!(awaited(5, 1).recorded(5, 1, 10), 10);
        let mut most = awaited(5, u32::MAX);
        assert_eq!([most.recorded(5, 1, u32::MAX - 1), most.recorded(5, 1, 1)], [0, 1]);
    }
}
