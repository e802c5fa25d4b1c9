//! Runs and cycles: repeated events, not expanded.

use crate::event::Event;

/// Longest body of an [`Item::Cycle`], in events.
pub const MAX_BODY: usize = 128;

/// Consecutive events of a warp.
///
/// ```
/// use warptrace_format::Event;
/// use warptrace_format::codec::Item;
///
/// let [a, b] = [1, 2].map(|location| Event { location, mask: 1 });
/// let mut events = Vec::new();
/// Item::Cycle { body: &[a, b], times: 2 }.for_each(&mut |event| events.push(event));
/// Item::Run { event: b, times: 3 }.for_each(&mut |event| events.push(event));
/// assert_eq!(events, [a, b, a, b, b, b, b]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// One event, repeated.
    Run {
        /// The event.
        event: Event,
        /// Number of times that it happens, at least 1.
        times: u32,
    },
    /// Several events, repeated.
    Cycle {
        /// Events of one time: 2 to [`MAX_BODY`].
        body: &'a [Event],
        /// Number of times that it happens, at least 1.
        times: u32,
    },
}

impl<'a> Item<'a> {
    #[inline]
    pub(crate) const fn repeated(body: &'a [Event], times: u32) -> Self {
        match body {
            [event] => Self::Run { event: *event, times },
            _ => Self::Cycle { body, times },
        }
    }

    /// Returns the events of one time.
    #[inline]
    pub const fn body(&self) -> &[Event] {
        match self {
            Self::Run { event, .. } => std::slice::from_ref(event),
            Self::Cycle { body, .. } => body,
        }
    }

    /// Returns the number of times that the body happens.
    #[inline]
    pub const fn times(&self) -> u32 {
        match *self {
            Self::Run { times, .. } | Self::Cycle { times, .. } => times,
        }
    }

    /// Returns the total number of events.
    #[inline]
    pub const fn events(&self) -> u64 {
        self.body().len() as u64 * self.times() as u64
    }

    /// Passes each event to `sink`, in order.
    #[inline]
    pub fn for_each(&self, sink: &mut impl FnMut(Event)) {
        match *self {
            Self::Run { event, times } => (0..times).for_each(|_| sink(event)),
            Self::Cycle { body, times } => {
                for _ in 0..times {
                    body.iter().for_each(|&event| sink(event));
                }
            }
        }
    }
}

/// Longest body that a [`Coalescer`] finds.
const MAX_PERIOD: usize = 16;
const PENDING: usize = 64;
const HASHES: usize = 32;

/// Finds runs and short cycles in a sequence of events, in constant time per event. If the last equal event
/// is at the same distance d for d events in a row, a body of d events has repeated.
pub(crate) struct Coalescer {
    /// Events not yet passed to the sink, oldest first. In a repetition they end with one body.
    pending: Vec<Event>,
    /// Last position in `pending` of an event, by the event's hash.
    positions: [u8; HASHES],
    /// Distance from the last event to the previous equal one, and the number of consecutive events with it.
    distance: usize,
    streak: usize,
    /// Length of the repeated body; 0 outside a repetition.
    period: usize,
    /// Events in the repetition after its first body.
    matched: u32,
    phase: usize,
}

impl Coalescer {
    pub(crate) fn new() -> Self {
        Self {
            pending: Vec::with_capacity(PENDING),
            positions: [0; HASHES],
            distance: 0,
            streak: 0,
            period: 0,
            matched: 0,
            phase: 0,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, event: Event, sink: &mut impl FnMut(Item<'_>)) {
        if self.period != 0 {
            let body_at = self.pending.len() - self.period;
            if self.pending[body_at + self.phase] == event {
                self.matched += 1;
                self.phase += 1;
                if self.phase == self.period {
                    self.phase = 0;
                }
                return;
            }
            self.end_repetition(sink);
        }
        self.push_single(event, sink);
    }

    fn push_single(&mut self, event: Event, sink: &mut impl FnMut(Item<'_>)) {
        if self.pending.len() == PENDING {
            self.give(PENDING - MAX_PERIOD, sink);
        }
        let at = self.pending.len();
        let hash = (u32::from(event.location) ^ event.mask.wrapping_mul(0x9e37_79b1) >> 27) as usize % HASHES;
        let before = usize::from(std::mem::replace(&mut self.positions[hash], at as u8));
        self.pending.push(event);
        let known = before < at && at - before <= MAX_PERIOD && self.pending[before] == event;
        if !known {
            self.streak = 0;
            return;
        }
        let distance = at - before;
        self.streak = if distance == self.distance { self.streak + 1 } else { 1 };
        self.distance = distance;
        if self.streak == distance {
            // The last `distance` events repeat those before them.
            self.pending.truncate(at + 1 - distance);
            (self.period, self.matched, self.phase) = (distance, distance as u32, 0);
        }
    }

    fn give(&mut self, count: usize, sink: &mut impl FnMut(Item<'_>)) {
        for event in self.pending.drain(..count) {
            sink(Item::Run { event, times: 1 });
        }
        // Positions may now point at other events, but lookups compare events.
        for position in &mut self.positions {
            *position = position.saturating_sub(count as u8);
        }
        // Part of a body may be removed.
        self.streak = 0;
    }

    fn end_repetition(&mut self, sink: &mut impl FnMut(Item<'_>)) {
        let body_at = self.pending.len() - self.period;
        for &event in &self.pending[..body_at] {
            sink(Item::Run { event, times: 1 });
        }
        let body = &self.pending[body_at..];
        sink(Item::repeated(body, 1 + self.matched / self.period as u32));
        let rest = self.phase;
        self.pending.drain(..body_at);
        self.pending.truncate(rest);
        self.positions = [0; HASHES];
        (self.period, self.matched, self.phase, self.streak) = (0, 0, 0, 0);
    }

    pub(crate) fn finish(&mut self, sink: &mut impl FnMut(Item<'_>)) {
        if self.period != 0 {
            self.end_repetition(sink);
        }
        self.give(self.pending.len(), sink);
    }
}
