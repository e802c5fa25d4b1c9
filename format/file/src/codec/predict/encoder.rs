//! Encoder of `predict`: one warp's state between two events.

use super::code::{self, Code};
use super::mask::MaskForm;
use super::stack::Stack;
use super::{MAX_CHUNK_EVENTS, PredictParams, Slot};
use crate::event::Event;
use crate::memory::Memory;

/// Most bits of one [`PredictState::push`]: 33 for hits, 21 for location, 6 for relation, 33 for lanes.
pub const MAX_PUSH_BITS: u32 = 93;
/// Most bits for a repetition of the last event: 33 for the hits, 4 for location and mask or 5 for the mask.
pub const MAX_AGAIN_BITS: u32 = 38;
/// Most bits of one [`PredictState::push_run`]. Its second event may miss too, after 2 bits for the hits.
const MAX_RUN_BITS: u32 = MAX_PUSH_BITS + 7;
/// Most bytes of one [`PredictState::push_run`] in a fresh chunk. The payload is written in words.
pub const MAX_PUSH_GROWTH: u32 = 4 * MAX_RUN_BITS.div_ceil(32);

/// Value of `last` before the first event. No slot leads from it to a location: the first event is a miss.
pub const NOWHERE: u32 = 1 << 31;

/// Encoder state of one warp: four words. Slots and stack are in `work` ([`PredictParams::work_bytes`] bytes,
/// with any content before a chunk). The payload is in `out`, which is 4-byte aligned. For each chunk call
/// [`begin_chunk`](Self::begin_chunk), [`push`](Self::push) while [`has_room`](Self::has_room) returns true,
/// and [`finish_chunk`](Self::finish_chunk).
///
/// ```
/// use warptrace_format::codec::{PredictParams, predict::PredictState};
/// use warptrace_format::{Event, SliceMemory};
///
/// let params = PredictParams::DEFAULT;
/// let mut slots = vec![0; params.work_bytes() as usize];
/// let mut payload = vec![0; 480];
/// let (mut work, mut out) = (SliceMemory(&mut slots), SliceMemory(&mut payload));
/// let mut state = PredictState::new();
/// state.begin_chunk(&params, &mut work);
/// let mut events = 0;
/// while events < 1_000_000 && state.has_room(480) {
///     state.push(&params, &mut work, &mut out, Event { location: 1, mask: u32::MAX });
///     events += 1;
/// }
/// let length = state.finish_chunk(&params, &mut work, &mut out);
/// assert!(events == 1_000_000 && length == 1);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PredictState {
    /// Location of the last event, or [`NOWHERE`].
    last: u32,
    mask: u32,
    events: u32,
    /// Bits written, including the pending bits in `work` that do not fill a word.
    bits: u32,
}

impl PredictState {
    /// Number of `u32` words of the state.
    pub const WORDS: usize = 4;

    /// Creates a state before its first chunk. All its words are 0.
    #[inline(always)]
    pub const fn new() -> Self {
        Self { last: 0, mask: 0, events: 0, bits: 0 }
    }

    /// Restores a state from the words of [`to_words`](Self::to_words).
    #[inline(always)]
    pub const fn from_words(words: &[u32; Self::WORDS]) -> Self {
        let [last, mask, events, bits] = *words;
        Self { last, mask, events, bits }
    }

    /// Returns the state as words, to keep until the next event.
    #[inline(always)]
    pub const fn to_words(&self) -> [u32; Self::WORDS] {
        [self.last, self.mask, self.events, self.bits]
    }

    /// Starts a chunk and discards an unfinished one.
    #[inline(always)]
    pub fn begin_chunk<W: Memory>(&mut self, params: &PredictParams, work: &mut W) {
        let mut at = 0;
        while at < params.tail_at() {
            work.set128(at, [0; 4]);
            at += 16;
        }
        *self = Self { last: NOWHERE, mask: u32::MAX, events: 0, bits: 0 };
        Tail { pending: 0, stack: Stack::EMPTY, mark: 0 }.store(work, params.tail_at());
    }

    /// Appends one event in at most [`MAX_PUSH_BITS`] bits, if [`has_room`](Self::has_room) was true.
    #[inline(always)]
    pub fn push<W: Memory, O: Memory>(
        &mut self,
        params: &PredictParams,
        work: &mut W,
        out: &mut O,
        event: Event,
    ) {
        let slot_at = params.slot_at(self.last);
        let [expected, seen] = work.get64(slot_at);
        let location = u32::from(event.location);
        // True unless location and mask are as expected and the slot's other bits are 0. `|` for one branch.
        if (expected ^ self.last ^ location) | (event.mask ^ self.mask) != 0 {
            self.push_other(params, work, out, event, slot_at, Slot { expected, seen });
        }
        self.last = location;
        self.mask = event.mask;
        self.events += 1;
    }

    /// Appends `event` up to `count` times (at least 1), as often as a chunk allows. Returns the number of
    /// appended events. After the first two the rest are hits. Requires [`has_room`](Self::has_room).
    #[inline(always)]
    pub fn push_run<W: Memory, O: Memory>(
        &mut self,
        params: &PredictParams,
        work: &mut W,
        out: &mut O,
        event: Event,
        count: u32,
    ) -> u32 {
        let room = MAX_CHUNK_EVENTS - self.events;
        let taken = if count < room { count } else { room };
        self.push(params, work, out, event);
        if taken != 1 {
            self.push_again(params, work, out);
            self.events += taken - 2;
        }
        taken
    }

    /// Equivalent to [`push`](Self::push) of the last event.
    #[inline(always)]
    fn push_again<W: Memory, O: Memory>(&mut self, params: &PredictParams, work: &mut W, out: &mut O) {
        let slot_at = params.slot_at(self.last);
        let [expected, seen] = work.get64(slot_at);
        let slot = Slot { expected, seen };
        // A slot that is zero except for the seen mask expects this event.
        if expected != 0 {
            let mut tail = Tail::load(work, params.tail_at());
            let located = slot.step() == 0;
            if !located || slot.mask(tail.stack.base(slot.relation(), self.mask)) != self.mask {
                let learned = Slot::same_again(self.mask);
                work.set64(slot_at, [learned.expected, learned.seen]);
                let code = code::again(self.events - tail.mark, located);
                self.write(out, &mut tail, code);
                tail.mark = self.events + 1;
                tail.store(work, params.tail_at());
            }
        }
        self.events += 1;
    }

    /// Writes a miss or a change of mask. Inlined: around a call a GPU reloads uniform registers.
    #[inline(always)]
    fn push_other<W: Memory, O: Memory>(
        &mut self,
        params: &PredictParams,
        work: &mut W,
        out: &mut O,
        event: Event,
        slot_at: u32,
        slot: Slot,
    ) {
        let mut tail = Tail::load(work, params.tail_at());
        let step = self.last ^ u32::from(event.location);
        let base = tail.stack.base(slot.relation(), self.mask);
        // The first event's step has the bit of `NOWHERE`.
        let located = slot.step() == step;
        if !located || slot.mask(base) != event.mask {
            let nearest = tail.stack.nearest(self.mask, event.mask);
            let nearest_base = tail.stack.base(nearest, self.mask);
            let form = MaskForm::new(
                located,
                nearest_base == event.mask,
                slot.seen == event.mask,
                event.mask & !base == 0,
                event.mask == self.mask,
            );
            let mask = form.code(nearest, event.mask, if form.expected { base } else { nearest_base });
            let location = u32::from(event.location);
            let (head, rest) = if self.last == NOWHERE {
                match code::first(location, event.mask) {
                    Some(code) => (code, Code::NONE),
                    None => (Code::new(0, 2).then(code::location(0, location)), mask),
                }
            } else {
                let learned = form.learned(step, slot, nearest, event.mask);
                work.set64(slot_at, [learned.expected, learned.seen]);
                let head = code::head(self.events - tail.mark, located);
                (if located { head } else { head.then(code::location(self.last, location)) }, mask)
            };
            self.write(out, &mut tail, head);
            self.write(out, &mut tail, rest);
            tail.mark = self.events + 1;
        }
        tail.stack = tail.stack.after(self.mask, event.mask);
        tail.store(work, params.tail_at());
    }

    /// Ends the chunk and returns the payload's length in bytes. Hits after the last miss are not written.
    #[inline(always)]
    pub fn finish_chunk<W: Memory, O: Memory>(
        &mut self,
        params: &PredictParams,
        work: &mut W,
        out: &mut O,
    ) -> u32 {
        if !self.bits.is_multiple_of(32) {
            out.set32(self.bits / 32 * 4, work.get32(params.tail_at()));
        }
        self.bits.div_ceil(8)
    }

    /// Returns true if one more event or run fits into `capacity` bytes of payload, including the finish.
    #[inline(always)]
    pub const fn has_room(&self, capacity: u32) -> bool {
        ((self.bits + MAX_RUN_BITS + 31) & !31) / 8 <= capacity && self.events < MAX_CHUNK_EVENTS
    }

    #[inline(always)]
    fn write<O: Memory>(&mut self, out: &mut O, tail: &mut Tail, code: Code) {
        let used = self.bits % 32;
        let word_at = self.bits / 32 * 4;
        let bits = u64::from(tail.pending) | (code.bits << used);
        self.bits += code.length;
        let filled = used + code.length;
        let next = (bits >> 32) as u32;
        // The bits lost by the shift above. With 64 bits filled `used` is not 0: no code has 64 bits.
        let lost = (code.bits >> ((64 - used) % 64)) as u32;
        out.set32_if(filled >= 32, word_at, bits as u32);
        out.set32_if(filled >= 64, word_at + 4, next);
        let pending = if filled >= 32 { next } else { bits as u32 };
        tail.pending = if filled >= 64 { lost } else { pending };
    }
}

/// Part of the state at the end of the work memory. Only a miss or a change of mask needs it.
struct Tail {
    /// Bits that do not fill a word of the payload yet, lowest first; the others are 0.
    pending: u32,
    stack: Stack,
    /// Events up to and including the last miss.
    mark: u32,
}

impl Tail {
    #[inline(always)]
    fn load<W: Memory>(work: &W, at: u32) -> Self {
        let [pending, a, b, c] = work.get128(at);
        let [d, mark, _, _] = work.get128(at + 16);
        Self { pending, stack: Stack([a, b, c, d]), mark }
    }

    #[inline(always)]
    fn store<W: Memory>(&self, work: &mut W, at: u32) {
        let [a, b, c, d] = self.stack.0;
        work.set128(at, [self.pending, a, b, c]);
        work.set128(at + 16, [d, self.mark, 0, 0]);
    }
}
