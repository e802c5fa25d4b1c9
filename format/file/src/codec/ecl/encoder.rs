//! Encoder of `ecl`: one warp's state between two events.

use super::EclParams;
use super::lza2::{Emitted, Lza2State, MAX_CHUNK_RAW_BYTES};
use super::rle::RleState;
use crate::event::{Event, RAW_EVENT_BYTES};
use crate::memory::Memory;

/// Most bytes by which one [`EclState::push`], with the finish after it, extends the payload. For the event's
/// five bytes LZa2 emits at most five counts and literals: ten bytes. RLE adds at most one count byte: a
/// second group requires a repeat (which adds nothing) or 16 literals after the first one.
pub const MAX_PUSH_GROWTH: u32 = 11;

/// Encoder state of one warp: eight words. The tables are in `work` ([`EclParams::work_bytes`] bytes), the
/// payload is in `out`. First zero the table and the word after the ring, or call [`prepare`](Self::prepare).
/// For each chunk call [`begin_chunk`](Self::begin_chunk), [`push`](Self::push) while
/// [`has_room`](Self::has_room) returns true, and [`finish_chunk`](Self::finish_chunk).
///
/// ```
/// use warptrace_format::codec::{EclParams, ecl::EclState};
/// use warptrace_format::{Event, SliceMemory};
///
/// let params = EclParams::DEFAULT;
/// let mut tables = vec![0; params.work_bytes() as usize];
/// let mut payload = vec![0; 480];
/// let (mut work, mut out) = (SliceMemory(&mut tables), SliceMemory(&mut payload));
/// let mut state = EclState::new();
/// state.begin_chunk(&params, &mut work);
/// let mut events = 0;
/// while events < 10_000 && state.has_room(480) {
///     state.push(&params, &mut work, &mut out, Event { location: 1, mask: u32::MAX });
///     events += 1;
/// }
/// let length = state.finish_chunk(&params, &mut work, &mut out);
/// assert!(events == 10_000 && length < 480);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct EclState {
    lza2: Lza2State,
    rle: RleState,
}

impl EclState {
    /// Number of `u32` words of the state.
    pub const WORDS: usize = 8;

    /// Creates a state before its first chunk. All its words are 0.
    #[inline(always)]
    pub const fn new() -> Self {
        Self { lza2: Lza2State::new(), rle: RleState::new() }
    }

    /// Prepares tables with any content for the first chunk.
    #[inline(always)]
    pub fn prepare<W: Memory>(params: &EclParams, work: &mut W) {
        Lza2State::prepare(params, work);
    }

    /// Restores a state from the words of [`to_words`](Self::to_words).
    #[inline(always)]
    pub const fn from_words(words: &[u32; Self::WORDS]) -> Self {
        let [a, b, c, d, e, f, g, h] = *words;
        Self { lza2: Lza2State::from_words([a, b, c, d, e, f]), rle: RleState::from_words([g, h]) }
    }

    /// Returns the state as words, to keep until the next event.
    #[inline(always)]
    pub const fn to_words(&self) -> [u32; Self::WORDS] {
        let [a, b, c, d, e, f] = self.lza2.to_words();
        let [g, h] = self.rle.to_words();
        [a, b, c, d, e, f, g, h]
    }

    /// Starts a chunk and discards an unfinished one. `work` may hold earlier tables for the same parameters.
    #[inline(always)]
    pub fn begin_chunk<W: Memory>(&mut self, params: &EclParams, work: &mut W) {
        self.lza2.begin(params, work);
        self.rle = RleState::new();
    }

    /// Appends one event with a location from 1 to 255, in at most [`MAX_PUSH_GROWTH`] bytes of `out`. The
    /// caller checks [`has_room`](Self::has_room) first.
    #[inline(always)]
    pub fn push<W: Memory, O: Memory>(
        &mut self,
        params: &EclParams,
        work: &mut W,
        out: &mut O,
        event: Event,
    ) {
        // The event's five bytes, lowest first, in two words.
        let mut low = (u32::from(event.location) & 0xff) | (event.mask << 8);
        let mut high = event.mask >> 24;
        if self.lza2.take_event(params, work, low, high) {
            return;
        }
        for _ in 0..RAW_EVENT_BYTES {
            let emitted = self.lza2.push(params, work, low & 0xff);
            self.emit(out, emitted);
            low = (low >> 8) | (high << 24);
            high = 0;
        }
    }

    /// Appends `event` up to `count` times (at least 1), as often as it fits into `capacity` bytes. Returns
    /// the number of appended events. The payload is as after [`push`](Self::push)es. Requires
    /// [`has_room`](Self::has_room).
    #[inline(always)]
    pub fn push_run<W: Memory, O: Memory>(
        &mut self,
        params: &EclParams,
        work: &mut W,
        out: &mut O,
        event: Event,
        count: u32,
        capacity: u32,
    ) -> u32 {
        let bytes = event.cut();
        let mut taken = 0;
        let mut skipped = false;
        while taken < count && (taken == 0 || self.has_room(capacity)) {
            let copies = self.lza2.take_copies(params, work, bytes, taken, count - taken);
            if copies == 0 {
                self.push(params, work, out, event);
                taken += 1;
            } else {
                taken += copies;
                skipped = true;
            }
        }
        if skipped {
            self.lza2.restore_ring(params, work, bytes, taken);
        }
        taken
    }

    /// Ends the chunk: flushes the open match and the open group. Returns the payload's length in bytes.
    #[inline(always)]
    pub fn finish_chunk<W: Memory, O: Memory>(
        &mut self,
        params: &EclParams,
        work: &mut W,
        out: &mut O,
    ) -> u32 {
        let emitted = self.lza2.finish(params, work);
        self.emit(out, emitted);
        self.rle.finish(out)
    }

    /// Returns true if one more event, with the finish after it, fits into `capacity` bytes of payload.
    #[inline(always)]
    pub const fn has_room(&self, capacity: u32) -> bool {
        self.rle.length() + MAX_PUSH_GROWTH <= capacity
            && self.lza2.taken() <= MAX_CHUNK_RAW_BYTES - RAW_EVENT_BYTES
    }

    /// A loop instead of two calls, so that the run stage's code exists once.
    #[inline(always)]
    fn emit<O: Memory>(&mut self, out: &mut O, mut emitted: Emitted) {
        while emitted.len != 0 {
            self.rle.push(out, emitted.bytes & 0xff);
            emitted.bytes >>= 8;
            emitted.len -= 1;
        }
    }
}
