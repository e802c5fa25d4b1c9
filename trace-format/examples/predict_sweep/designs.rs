//! Designs as counters of bytes: they say how long a stream becomes, with the codec's own tables where those
//! apply.

use warptrace_format::Event;
use warptrace_format::codec::predict::stack::{Relation, Stack};
use warptrace_format::codec::predict::{code, lanes};

/// What the rows mean.
pub(crate) const NOTES: &str = "\
- A: a slot for each hash of the event before holds the event expected next. A miss is the run of hits as a varint, a \
byte that says location and how the mask differs from the last one (not, in one lane, otherwise), a byte for the \
location if it changes, one for the lane or four for the mask.\n\
- B: the same slots, but a slot holds location, relation and mask as in `predict`, and misses are in bits.\n\
- C: slots by location. One stream is one chunk here, in `predict` above chunks have 4 KiB.\n\
- Two ways: each slot remembers the location it lost last; a miss costs one bit more and saves the location if that one \
comes. Replaced at the second miss: a slot gives up its location only when it misses for the second time.";

/// The first prototype's design: byte codes, the exact event expected after each event.
pub(crate) struct Automaton {
    pub(crate) slots: usize,
}

impl Automaton {
    pub(crate) fn bytes(&self, stream: &[Event]) -> usize {
        let nothing = Event { location: 0, mask: u32::MAX };
        let mut slots: Vec<Option<Event>> = vec![None; self.slots];
        let (mut last, mut run, mut bytes) = (nothing, 0_u64, 0);
        for event in stream {
            let slot = &mut slots[hash(last) % self.slots];
            // A slot never used expects the same event again.
            if slot.unwrap_or(last) == *event {
                run += 1;
            } else {
                bytes += 1 + (64 - run.leading_zeros() as usize).saturating_sub(1) / 7;
                bytes += 1 + usize::from(event.location != last.location);
                bytes += match (event.mask ^ last.mask).count_ones() {
                    0 => 0,
                    1 => 1,
                    _ => 4,
                };
                run = 0;
                *slot = Some(*event);
            }
            last = *event;
        }
        bytes
    }
}

fn hash(event: Event) -> usize {
    let mixed = u32::from(event.location).wrapping_mul(0x9e37_79b1) ^ event.mask.wrapping_mul(0x85eb_ca6b);
    (mixed >> 16) as usize
}

/// What chooses the slot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    Event,
    TwoEvents,
    Location,
    TwoLocations,
}

/// `predict` with other choices.
#[derive(Clone, Copy)]
pub(crate) struct Design {
    pub(crate) context: Context,
    pub(crate) slots: usize,
    /// Masks on the stack, at most four; with 0 nothing but the last mask is known.
    pub(crate) depth: usize,
    /// Whether a slot keeps the mask it saw last.
    pub(crate) seen: bool,
    /// 2: a slot remembers a second location.
    pub(crate) ways: u8,
    /// Whether a slot keeps its location at the first miss.
    pub(crate) patience: bool,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    step: u16,
    relation: Relation,
    by_seen: bool,
    seen: u32,
    second: Option<u16>,
    doubted: bool,
}

impl Design {
    pub(crate) const CHOSEN: Self =
        Self { context: Context::Location, slots: 32, depth: 4, seen: true, ways: 1, patience: false };

    fn slot(&self, last: Event, before: Event) -> usize {
        let index = match self.context {
            Context::Event => hash(last),
            Context::TwoEvents => hash(last) ^ (hash(before) * 5),
            Context::Location => usize::from(last.location),
            Context::TwoLocations => usize::from(last.location) + 5 * usize::from(before.location),
        };
        index % self.slots
    }

    pub(crate) fn bytes(&self, stream: &[Event]) -> usize {
        let Some(first) = stream.first() else { return 0 };
        let mut slots = vec![Slot::default(); self.slots];
        let start = Event { location: 0, mask: u32::MAX };
        let (mut last, mut before) = (*first, start);
        let mut stack = Stack::EMPTY;
        let mut run = 0;
        let mut bits = code::first(first.location.into(), first.mask).map_or_else(
            || {
                2 + code::location(0, first.location.into()).length
                    + self.mask_bits(&Slot::default(), stack, start, *first, false).0
            },
            |code| code.length,
        ) as usize;
        stack = self.cut(stack.after(start.mask, first.mask));
        for event in &stream[1..] {
            let slot = &mut slots[self.slot(last, before)];
            let located = slot.step == last.location ^ event.location;
            let expected = if slot.by_seen { slot.seen } else { stack.base(slot.relation, last.mask) };
            if located && expected == event.mask {
                run += 1;
            } else {
                bits += code::head(run, located).length as usize;
                run = 0;
                let step = last.location ^ event.location;
                if !located {
                    let second = self.ways == 2 && slot.second == Some(step);
                    bits += usize::from(self.ways == 2);
                    if !second {
                        bits += code::location(last.location.into(), event.location.into()).length as usize;
                    }
                }
                let (length, relation, by_seen) = self.mask_bits(slot, stack, last, *event, located);
                bits += length as usize;
                if !located && self.patience && slot.step != 0 && !slot.doubted {
                    slot.doubted = true;
                } else {
                    let second = if located { slot.second } else { Some(slot.step) };
                    *slot = Slot { step, relation, by_seen, seen: event.mask, second, doubted: false };
                }
            }
            stack = self.cut(stack.after(last.mask, event.mask));
            (before, last) = (last, *event);
        }
        bits.div_ceil(8)
    }

    /// Bits of the mask, and what the slot learns.
    fn mask_bits(
        &self,
        slot: &Slot,
        stack: Stack,
        last: Event,
        event: Event,
        located: bool,
    ) -> (u32, Relation, bool) {
        let (last, mask) = (last.mask, event.mask);
        let nearest = stack.nearest(last, mask);
        let nearest_base = stack.base(nearest, last);
        let base = stack.base(slot.relation, last);
        if located && self.seen && nearest_base != mask && slot.seen == mask {
            (2, slot.relation, true)
        } else if !located && mask == last {
            (1, Relation::SAME, false)
        } else if located && nearest_base != mask && mask & !base == 0 {
            (1 + lanes::encode(mask, base).length, slot.relation, false)
        } else {
            let bits = 1 + u32::from(located) + code::relation(nearest).length;
            (bits + lanes::encode(mask, nearest_base).length, nearest, false)
        }
    }

    /// The stack without what a smaller one forgets.
    fn cut(&self, mut stack: Stack) -> Stack {
        stack.0[self.depth..].fill(u32::MAX);
        stack
    }
}
