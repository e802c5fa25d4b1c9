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

/// Words of a [packed](WarpSpan::pack) span.
pub const PACKED_SPAN_WORDS: usize = 5;

impl WarpSpan {
    /// Returns words relative to the clock and the timer at which another warp of the launch began, and whether
    /// they hold the span: the differences are small.
    #[must_use]
    #[inline(always)]
    pub fn pack(&self, [clock, timer]: [u64; 2]) -> ([u32; PACKED_SPAN_WORDS], bool) {
        // Begins may be earlier; adding makes the differences positive.
        let begin_clock = self.begin_clock.wrapping_sub(clock).wrapping_add(1 << 31);
        let begin_timer = self.begin_timer.wrapping_sub(timer).wrapping_add(1 << 31);
        let cycles = self.end_clock.wrapping_sub(self.begin_clock);
        let nanoseconds = self.end_timer.wrapping_sub(self.begin_timer);
        let fits = ((begin_clock | begin_timer | cycles | nanoseconds) >> 32 == 0)
            & ((self.begin_sm | self.end_sm) >> 16 == 0);
        let sms = self.begin_sm | self.end_sm << 16;
        ([begin_clock as u32, begin_timer as u32, cycles as u32, nanoseconds as u32, sms], fits)
    }

    /// Returns the span that [`pack`](Self::pack) has packed.
    #[must_use]
    pub fn unpack(words: [u32; PACKED_SPAN_WORDS], [clock, timer]: [u64; 2]) -> Self {
        let [begin_clock, begin_timer, cycles, nanoseconds, sms] = words;
        let begin = |from: u64, since: u32| from.wrapping_add(since.into()).wrapping_sub(1 << 31);
        let (begin_clock, begin_timer) = (begin(clock, begin_clock), begin(timer, begin_timer));
        Self {
            begin_clock,
            begin_timer,
            end_clock: begin_clock.wrapping_add(cycles.into()),
            end_timer: begin_timer.wrapping_add(nanoseconds.into()),
            begin_sm: sms & 0xffff,
            end_sm: sms >> 16,
        }
    }

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
    fn a_packed_span_is_the_span_or_does_not_fit() {
        let (clock, timer) = (SPAN.begin_clock, SPAN.begin_timer);
        let far = 1 << 31;
        for base in [[clock, timer], [clock + far, timer], [clock - far + 1, timer + far]] {
            let (words, fits) = SPAN.pack(base);
            assert!(fits);
            assert_eq!(WarpSpan::unpack(words, base), SPAN);
        }
        for base in [[clock + far + 1, timer], [clock - far, timer], [clock, timer + far + 1], [0, 0]] {
            assert!(!SPAN.pack(base).1);
        }
        let long = WarpSpan { end_clock: clock + (1 << 32), ..SPAN };
        let backwards = WarpSpan { end_timer: timer - 1, ..SPAN };
        let large = WarpSpan { end_sm: 1 << 16, ..SPAN };
        assert!(
            [long, backwards, large, WarpSpan { end_sm: 0, end_clock: 0, ..SPAN }]
                .iter()
                .all(|span| !span.pack([clock, timer]).1)
        );
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
