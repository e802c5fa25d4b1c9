//! Place and time of a warp's execution.

/// Begin and end of a warp, and its multiprocessor, as a traced kernel writes them. All fields are 0 before
/// the launch. 40 bytes, alignment 8. Begin and end are pairs of the multiprocessor's clock, which is exact
/// but local, and the global timer, which all multiprocessors share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct WarpSpan {
    /// Multiprocessor clock when the warp began, in cycles.
    pub begin_clock: u64,
    /// Global timer when the warp began, in nanoseconds.
    pub begin_timer: u64,
    /// Latest multiprocessor clock at which lanes began to leave the kernel, in cycles.
    pub end_clock: u64,
    /// Latest global timer at which lanes began to leave the kernel, in nanoseconds.
    pub end_timer: u64,
    /// Multiprocessor at the begin, plus 1; 0 if no begin is recorded.
    pub begin_sm: u32,
    /// Multiprocessor at the end, plus 1; 0 if no lane has left.
    pub end_sm: u32,
}

const _: () = assert!(size_of::<WarpSpan>() == 40);

impl WarpSpan {
    /// Returns true if the warp's begin is recorded.
    pub const fn has_begun(&self) -> bool {
        self.begin_sm != 0
    }

    /// Returns true if lanes of the warp have left the kernel. The end is the latest exit.
    pub const fn has_ended(&self) -> bool {
        self.has_begun() && self.end_sm != 0
    }

    /// Returns the multiprocessor on which the warp began.
    pub const fn sm(&self) -> Option<u32> {
        self.begin_sm.checked_sub(1)
    }

    /// Returns true if the warp ended on another multiprocessor, whose clock is unrelated.
    pub const fn has_moved(&self) -> bool {
        self.has_ended() && self.begin_sm != self.end_sm
    }

    /// Returns the duration in nanoseconds of the global timer, if the warp ended; 0 if negative.
    pub const fn nanoseconds(&self) -> Option<u64> {
        if !self.has_ended() {
            return None;
        }
        Some(self.end_timer.saturating_sub(self.begin_timer))
    }

    /// Returns the warp's duration in cycles, if it ended on the same multiprocessor.
    pub const fn cycles(&self) -> Option<u64> {
        if !self.has_ended() || self.has_moved() {
            return None;
        }
        Some(self.end_clock.wrapping_sub(self.begin_clock))
    }

    /// Returns the mapping from the warp's clock to the global timer, if the warp ended on the same
    /// multiprocessor and its clock advanced. `first` is the earliest time to map, in cycles. Its lower
    /// `bits` bits are extended to the clock nearest to the warp's begin. Later times continue from `first`.
    pub fn axis(&self, first: u64, bits: u32) -> Option<Axis> {
        let cycles = self.cycles().filter(|cycles| *cycles > 0)?;
        let mask = u64::MAX >> (64 - bits.clamp(1, 64));
        let after = first.wrapping_sub(self.begin_clock) & mask;
        let before = self.begin_clock.wrapping_sub(first) & mask;
        let since = if before < after { 0u64.wrapping_sub(before) } else { after };
        let nanoseconds = self.end_timer.saturating_sub(self.begin_timer);
        Some(Axis { begin: first.wrapping_sub(since), cycles, begin_timer: self.begin_timer, nanoseconds })
    }
}

/// Mapping from a warp's clock to the global timer. Returned by [`WarpSpan::axis`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    begin: u64,
    cycles: u64,
    nanoseconds: u64,
    begin_timer: u64,
}

impl Axis {
    /// Returns the global timer, in nanoseconds, at a time of the warp's clock.
    pub fn nanoseconds(&self, cycles: u64) -> u64 {
        let since = cycles.wrapping_sub(self.begin).cast_signed();
        let scaled =
            u128::from(since.unsigned_abs()) * u128::from(self.nanoseconds) / u128::from(self.cycles);
        let scaled = u64::try_from(scaled).unwrap_or(u64::MAX);
        if since < 0 {
            self.begin_timer.saturating_sub(scaled)
        } else {
            self.begin_timer.saturating_add(scaled)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: WarpSpan = WarpSpan {
        begin_clock: (5 << 36) - 100,
        begin_timer: 1_000_000,
        end_clock: (5 << 36) + 1_900,
        end_timer: 1_001_000,
        begin_sm: 4,
        end_sm: 4,
    };

    #[test]
    fn two_pairs_put_a_clock_on_the_axis_of_the_timer() {
        assert_eq!((SPAN.sm(), SPAN.nanoseconds(), SPAN.cycles()), (Some(3), Some(1_000), Some(2_000)));
        // All 64 bits, and the 36 bits of the times of runs.
        for (clock, timer) in [(0, 1_000_050), (900, 1_000_500), (1_900, 1_001_000)] {
            let whole = SPAN.axis((5 << 36) + clock, 64).unwrap();
            assert_eq!(whole.nanoseconds((5 << 36) + clock), timer);
            let axis = SPAN.axis(clock, 36).unwrap();
            assert_eq!(axis.nanoseconds(clock), timer);
            // Later times have more bits.
            assert_eq!(axis.nanoseconds(clock + (1 << 40)), timer + (1 << 39));
        }
        assert_eq!(SPAN.axis((1 << 36) - 110, 36).unwrap().nanoseconds((1 << 36) - 110), 999_995);
        assert_eq!(SPAN.axis((1 << 36) - 90, 36).unwrap().nanoseconds((1 << 36) + 10), 1_000_055);
    }

    #[test]
    fn what_is_not_known_is_not_told() {
        let begun = WarpSpan { end_sm: 0, ..SPAN };
        assert!(begun.has_begun() && !begun.has_ended() && begun.nanoseconds().is_none());
        assert!(begun.axis(0, 64).is_none());
        let moved = WarpSpan { end_sm: 9, ..SPAN };
        assert!(moved.has_moved() && moved.cycles().is_none() && moved.axis(0, 64).is_none());
        assert_eq!(moved.nanoseconds(), Some(1_000));
        let none = WarpSpan::default();
        assert!(!none.has_begun() && !none.has_ended() && none.sm().is_none());
        let still = WarpSpan { end_clock: SPAN.begin_clock, ..SPAN };
        assert_eq!((still.cycles(), still.axis(7, 36)), (Some(0), None));
    }
}
