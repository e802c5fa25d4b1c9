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

    /// Returns whether the warp ended on another multiprocessor, as where a program is debugged, or shares
    /// the device: its two clocks have nothing to do with each other.
    pub const fn has_moved(&self) -> bool {
        self.has_ended() && self.begin_sm != self.end_sm
    }

    /// Returns how long the warp ran, in nanoseconds of the global timer, which goes in steps; `None` if it
    /// did not end. The timer never goes back; where it seems to, it is 0.
    pub const fn nanoseconds(&self) -> Option<u64> {
        if !self.has_ended() {
            return None;
        }
        Some(self.end_timer.saturating_sub(self.begin_timer))
    }

    /// Returns how long the warp ran, in cycles of its multiprocessor; `None` if it did not end, or not
    /// there.
    pub const fn cycles(&self) -> Option<u64> {
        if !self.has_ended() || self.has_moved() {
            return None;
        }
        Some(self.end_clock.wrapping_sub(self.begin_clock))
    }

    /// Puts times of the warp's clock on the axis of the global timer, by the warp's two pairs; `None` if it
    /// has not both, or the clock did not go on between them.
    ///
    /// `first` is the first of these times, in cycles, of which only the lower `bits` are the clock's: the
    /// clock is taken that is nearest to the warp's begin. Later times go on from there, and may need more
    /// bits.
    pub fn axis(&self, first: u64, bits: u32) -> Option<Axis> {
        let cycles = self.cycles().filter(|cycles| *cycles > 0)?;
        let mask = u64::MAX >> (64 - bits.clamp(1, 64));
        let after = first.wrapping_sub(self.begin_clock) & mask;
        let before = self.begin_clock.wrapping_sub(first) & mask;
        // The first run may seem to begin before the warp, as times of runs are in units of several cycles.
        let since = if before < after { 0u64.wrapping_sub(before) } else { after };
        let nanoseconds = self.end_timer.saturating_sub(self.begin_timer);
        Some(Axis { begin: first.wrapping_sub(since), cycles, begin_timer: self.begin_timer, nanoseconds })
    }
}

/// What puts times of a warp's clock on the axis of the global timer: [`WarpSpan::axis`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The warp's begin, in the times that are to be put on the axis.
    begin: u64,
    /// Cycles that the warp ran, and nanoseconds.
    cycles: u64,
    nanoseconds: u64,
    begin_timer: u64,
}

impl Axis {
    /// Returns the global timer, in nanoseconds, when the warp's clock was this.
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
        // With all bits, and with the 36 that times of runs have.
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
