//! Runs and cycles: events as a loop made them, without unrolling it.

use crate::event::Event;

/// Longest body of a [`Item::Cycle`], in events.
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
    /// One event, this many times in a row (at least once).
    Run {
        /// The event.
        event: Event,
        /// How often.
        times: u32,
    },
    /// Two or more events, and the same again: this many times in all (at least once).
    Cycle {
        /// The events of one time: 2 to [`MAX_BODY`].
        body: &'a [Event],
        /// How often.
        times: u32,
    },
}

impl<'a> Item<'a> {
    /// The item for `body`, which is not empty, `times` times.
    #[inline]
    pub(crate) const fn repeated(body: &'a [Event], times: u32) -> Self {
        match body {
            [event] => Self::Run { event: *event, times },
            _ => Self::Cycle { body, times },
        }
    }

    /// The events of one time.
    #[inline]
    pub const fn body(&self) -> &[Event] {
        match self {
            Self::Run { event, .. } => std::slice::from_ref(event),
            Self::Cycle { body, .. } => body,
        }
    }

    /// How often the body happens.
    #[inline]
    pub const fn times(&self) -> u32 {
        match *self {
            Self::Run { times, .. } | Self::Cycle { times, .. } => times,
        }
    }

    /// Number of events.
    #[inline]
    pub const fn events(&self) -> u64 {
        self.body().len() as u64 * self.times() as u64
    }

    /// Gives each event to `sink`, in order.
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

/// Longest body that a [`Coalescer`] looks for.
const MAX_PERIOD: usize = 16;
/// Events that wait for what follows them.
const PENDING: usize = 64;
/// Entries of the table of last positions.
const HASHES: usize = 32;

/// Finds runs and short cycles among events that come one by one, in constant time an event.
///
/// An event is compared with the one that its body would have next. Outside of a repetition it looks where
/// the same event was last: when as many events in a row as that is away had their like at the same distance,
/// a body has been repeated once.
pub(crate) struct Coalescer {
    /// Events that were not given on, the oldest first. In a repetition they end with one body.
    pending: Vec<Event>,
    /// Where in `pending` an event with some hash was last.
    positions: [u8; HASHES],
    /// Distance of the last event to the one before that is like it, and how many events in a row had it.
    distance: usize,
    streak: usize,
    /// Length of the body that is being repeated; 0 outside of a repetition.
    period: usize,
    /// Events in the repetition after its first body.
    matched: u32,
    /// `matched` modulo `period`.
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

    /// Takes the next event; gives what is complete to `sink`.
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
            // The last `distance` events are those before them once more.
            self.pending.truncate(at + 1 - distance);
            (self.period, self.matched, self.phase) = (distance, distance as u32, 0);
        }
    }

    /// Gives the first `count` pending events on, one by one.
    fn give(&mut self, count: usize, sink: &mut impl FnMut(Item<'_>)) {
        for event in self.pending.drain(..count) {
            sink(Item::Run { event, times: 1 });
        }
        // Positions of events that are gone point at others now, which are compared anyway.
        for position in &mut self.positions {
            *position = position.saturating_sub(count as u8);
        }
        // A body may have gone in part.
        self.streak = 0;
    }

    fn end_repetition(&mut self, sink: &mut impl FnMut(Item<'_>)) {
        let body_at = self.pending.len() - self.period;
        for &event in &self.pending[..body_at] {
            sink(Item::Run { event, times: 1 });
        }
        let body = &self.pending[body_at..];
        sink(Item::repeated(body, 1 + self.matched / self.period as u32));
        // What the last time lacked of its end is open again.
        let rest = self.phase;
        self.pending.drain(..body_at);
        self.pending.truncate(rest);
        self.positions = [0; HASHES];
        (self.period, self.matched, self.phase, self.streak) = (0, 0, 0, 0);
    }

    /// Gives the rest to `sink`, and is ready for other events.
    pub(crate) fn finish(&mut self, sink: &mut impl FnMut(Item<'_>)) {
        if self.period != 0 {
            self.end_repetition(sink);
        }
        self.give(self.pending.len(), sink);
    }
}
