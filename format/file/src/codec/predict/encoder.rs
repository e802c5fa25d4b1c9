//! The encoder of `predict`: one warp's state between two events.

use super::code::{self, Code};
use super::mask::MaskForm;
use super::stack::Stack;
use super::{MAX_CHUNK_EVENTS, PredictParams, Slot};
use crate::event::Event;
use crate::memory::Memory;

/// Most bits by which one [`PredictState::push`] can lengthen the payload: 33 for the hits before it, 21 for
/// the location, 6 for the relation, 33 for the lanes.
pub const MAX_PUSH_BITS: u32 = 93;
/// Most bits by which an event that is the one before again can: 33 for the hits, then 4 for location and
/// mask, or 5 for the mask alone.
pub const MAX_AGAIN_BITS: u32 = 38;
/// Most bits by which [`PredictState::push_run`] can lengthen it: its second event may miss too, but behind a
/// miss it has only 2 bits for the hits.
const MAX_RUN_BITS: u32 = MAX_PUSH_BITS + 7;
/// Most bytes that one [`PredictState::push_run`] needs in a fresh chunk. The payload is written in words.
pub const MAX_PUSH_GROWTH: u32 = 4 * MAX_RUN_BITS.div_ceil(32);

/// Stands in `last` before the first event. No location, and no slot's step leads away from it, so that the
/// first event of a chunk is always a miss.
pub const NOWHERE: u32 = 1 << 31;

/// State of one warp's encoder: four words that the warp keeps wherever it likes.
///
/// Slots and stack lie in `work` ([`PredictParams::work_bytes`] bytes, with any content before a chunk), the
/// payload in `out`, which is 4-byte aligned. Call, for each chunk, [`begin_chunk`](Self::begin_chunk), then
/// [`push`](Self::push) while [`has_room`](Self::has_room) says so, then
/// [`finish_chunk`](Self::finish_chunk).
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
    /// Mask of the last event.
    mask: u32,
    /// Events in the chunk.
    events: u32,
    /// Bits written, those included that still wait in `work` for their word to be full.
    bits: u32,
}

impl PredictState {
    /// Number of `u32` words of the state.
    pub const WORDS: usize = 4;

    /// A state before its first chunk. Its words are all zero.
    #[inline(always)]
    pub const fn new() -> Self {
        Self { last: 0, mask: 0, events: 0, bits: 0 }
    }

    /// The state that [`to_words`](Self::to_words) gave.
    #[inline(always)]
    pub const fn from_words(words: &[u32; Self::WORDS]) -> Self {
        let [last, mask, events, bits] = *words;
        Self { last, mask, events, bits }
    }

    /// The state as words, to be kept until the next event.
    #[inline(always)]
    pub const fn to_words(&self) -> [u32; Self::WORDS] {
        [self.last, self.mask, self.events, self.bits]
    }

    /// Starts a chunk from a fresh codec state; what an earlier chunk left open is dropped.
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

    /// Appends one event with any location.
    ///
    /// Writes at most [`MAX_PUSH_BITS`] bits of `out`, from the end of what is written so far, so ask
    /// [`has_room`](Self::has_room) before.
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
        // The expected location with the same mask: all of the slot's other bits are 0. `|`, for one branch.
        if (expected ^ self.last ^ location) | (event.mask ^ self.mask) != 0 {
            self.push_other(params, work, out, event, slot_at, Slot { expected, seen });
        }
        self.last = location;
        self.mask = event.mask;
        self.events += 1;
    }

    /// Appends `event` `count` times (at least once), or as often as a chunk allows; returns how often, at
    /// least once.
    ///
    /// After the second of equal events the slot of their location expects one more, so the rest are hits,
    /// and are counted in one step. Ask [`has_room`](Self::has_room) before: it leaves room for the first
    /// two.
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

    /// Appends the last event once more: what [`push`](Self::push) comes to for it, where most is known
    /// beforehand.
    #[inline(always)]
    fn push_again<W: Memory, O: Memory>(&mut self, params: &PredictParams, work: &mut W, out: &mut O) {
        let slot_at = params.slot_at(self.last);
        let [expected, seen] = work.get64(slot_at);
        let slot = Slot { expected, seen };
        // A slot that is all zero but for the mask seen expects just this.
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

    /// Writes a miss or another mask, and changes the state by it. Inline, because around a call the
    /// GPU's compiler reloads uniform registers.
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
        // In the first event's step the bit of `NOWHERE` is set.
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

    /// Ends the chunk and gives the payload's length in bytes. Hits after the last miss are not written: the
    /// chunk says how many events it has.
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

    /// Whether one more event, or a run of it, and the finish after it fit into `capacity` bytes of payload.
    #[inline(always)]
    pub const fn has_room(&self, capacity: u32) -> bool {
        ((self.bits + MAX_RUN_BITS + 31) & !31) / 8 <= capacity && self.events < MAX_CHUNK_EVENTS
    }

    /// Appends a code to the payload, whole words at a time.
    #[inline(always)]
    fn write<O: Memory>(&mut self, out: &mut O, tail: &mut Tail, code: Code) {
        let used = self.bits % 32;
        let word_at = self.bits / 32 * 4;
        let bits = u64::from(tail.pending) | (code.bits << used);
        self.bits += code.length;
        let filled = used + code.length;
        let next = (bits >> 32) as u32;
        // What the shift above lost. With 64 bits filled `used` is not 0, for no code has this many.
        let lost = (code.bits >> ((64 - used) % 64)) as u32;
        out.set32_if(filled >= 32, word_at, bits as u32);
        out.set32_if(filled >= 64, word_at + 4, next);
        let pending = if filled >= 32 { next } else { bits as u32 };
        tail.pending = if filled >= 64 { lost } else { pending };
    }
}

/// The part of the state that only a miss or a change of mask needs, at the end of the work memory.
struct Tail {
    /// Bits that do not fill a word of the payload yet, lowest first; the others are 0.
    pending: u32,
    stack: Stack,
    /// Events up to and with the last miss.
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
