//! Where and when a warp ran.

/// When a warp began and ended, and on which multiprocessor, as a traced kernel writes it. Size 40 bytes,
/// alignment 8. All zero before the launch.
///
/// The two pairs of a multiprocessor's clock and the global timer are taken at one place each. So they put
/// what the clock tells, which is exact and the multiprocessor's own, on the axis that all of them share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct WarpSpan {
    /// The multiprocessor's clock when the warp began, in cycles.
    pub begin_clock: u64,
    /// The global timer then, in nanoseconds.
    pub begin_timer: u64,
    /// The latest clock at which lanes began to leave the kernel.
    pub end_clock: u64,
    /// The latest global timer at which they did.
    pub end_timer: u64,
    /// Number of the multiprocessor when the warp began, plus 1; 0: it has not begun, as far as is known.
    pub begin_sm: u32,
    /// The same for lanes that left; 0: none has.
    pub end_sm: u32,
}

const _: () = assert!(size_of::<WarpSpan>() == 40);

impl WarpSpan {
    /// Returns whether it is known that the warp began.
    pub const fn has_begun(&self) -> bool {
        self.begin_sm != 0
    }

    /// Returns whether lanes of the warp have left the kernel: then the end is that of the last of them.
    pub const fn has_ended(&self) -> bool {
        self.has_begun() && self.end_sm != 0
    }

    /// Returns the multiprocessor on which the warp began.
    pub const fn sm(&self) -> Option<u32> {
        self.begin_sm.checked_sub(1)
    }

    /// Returns whether the warp ended on another multiprocessor, as where a program is debugged, or shares the
    /// device: its two clocks have nothing to do with each other.
    pub const fn has_moved(&self) -> bool {
        self.has_ended() && self.begin_sm != self.end_sm
    }

    /// Returns how long the warp ran, in nanoseconds of the global timer, which goes in steps; `None` if it did
    /// not end. The timer never goes back; where it seems to, it is 0.
    pub const fn nanoseconds(&self) -> Option<u64> {
        if !self.has_ended() {
            return None;
        }
        Some(self.end_timer.saturating_sub(self.begin_timer))
    }

    /// Returns how long the warp ran, in cycles of its multiprocessor; `None` if it did not end, or not there.
    pub const fn cycles(&self) -> Option<u64> {
        if !self.has_ended() || self.has_moved() {
            return None;
        }
        Some(self.end_clock.wrapping_sub(self.begin_clock))
    }

    /// Returns when the multiprocessor's clock was `cycles` in nanoseconds of the global timer, by the warp's two
    /// pairs; `None` if the warp has not both, or the clock did not go on between them. The clock may have lost its
    /// upper bits: the lower `bits` count. A time that lies outside of the warp is one of a neighbouring period.
    pub fn timer_at(&self, cycles: u64, bits: u32) -> Option<u64> {
        let length = self.cycles().filter(|length| *length > 0)?;
        let nanoseconds = self.end_timer.saturating_sub(self.begin_timer);
        let mask = u64::MAX >> (64 - bits.clamp(1, 64));
        let since = cycles.wrapping_sub(self.begin_clock) & mask;
        // A little before the warp's own begin: times of runs are in units of several cycles.
        let before = self.begin_clock.wrapping_sub(cycles) & mask;
        let scaled = |cycles: u64| u128::from(cycles) * u128::from(nanoseconds) / u128::from(length);
        let scaled = |cycles: u64| u64::try_from(scaled(cycles)).unwrap_or(u64::MAX);
        Some(if before < since {
            self.begin_timer.saturating_sub(scaled(before))
        } else {
            self.begin_timer.saturating_add(scaled(since))
        })
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
        // With all bits, and with the 36 that times of runs have.
        for (clock, timer) in [(0, 1_000_050), (900, 1_000_500), (1_900, 1_001_000)] {
            assert_eq!(SPAN.timer_at((5 << 36) + clock, 64), Some(timer));
            assert_eq!(SPAN.timer_at(clock, 36), Some(timer));
        }
        assert_eq!(SPAN.timer_at((1 << 36) - 110, 36), Some(999_995));
    }

    #[test]
    fn what_is_not_known_is_not_told() {
        let begun = WarpSpan { end_sm: 0, ..SPAN };
        assert!(begun.has_begun() && !begun.has_ended() && begun.nanoseconds().is_none());
        assert!(begun.timer_at(0, 64).is_none());
        let moved = WarpSpan { end_sm: 9, ..SPAN };
        assert!(moved.has_moved() && moved.cycles().is_none() && moved.timer_at(0, 64).is_none());
        assert_eq!(moved.nanoseconds(), Some(1_000));
        let none = WarpSpan::default();
        assert!(!none.has_begun() && !none.has_ended() && none.sm().is_none());
        let still = WarpSpan { end_clock: SPAN.begin_clock, ..SPAN };
        assert_eq!((still.cycles(), still.timer_at(7, 36)), (Some(0), None));
    }
}
