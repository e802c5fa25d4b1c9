//! `raw`: six bytes per event.
//!
//! ```text
//! offset  size  field
//!      0     2  location  1..=65,535, lowest byte first
//!      2     4  mask      bit i is lane i, lowest byte first; not 0
//! ```
//!
//! A payload is six bytes times the chunk's events. `docs/reference/codecs.md` is the specification.

use crate::event::Event;
use crate::memory::Memory;

/// Bytes of an event in a payload. Compression ratios use [`RAW_EVENT_BYTES`](crate::RAW_EVENT_BYTES).
pub const PAYLOAD_EVENT_BYTES: u32 = 6;

const EVENT_BITS: u32 = 8 * PAYLOAD_EVENT_BYTES;

/// Encodes an event.
#[inline(always)]
pub const fn encode_event(event: Event) -> [u8; PAYLOAD_EVENT_BYTES as usize] {
    let [low, high] = event.location.to_le_bytes();
    let [a, b, c, d] = event.mask.to_le_bytes();
    [low, high, a, b, c, d]
}

/// Decodes an event. Accepts any bytes, including events that no trace contains.
#[inline(always)]
pub const fn decode_event(bytes: [u8; PAYLOAD_EVENT_BYTES as usize]) -> Event {
    let [low, high, a, b, c, d] = bytes;
    Event { location: u16::from_le_bytes([low, high]), mask: u32::from_le_bytes([a, b, c, d]) }
}

/// Encoder state of one warp, like [`EclState`](super::ecl::EclState) but without parameters and tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RawState {
    length: u32,
}

impl RawState {
    /// Number of `u32` words of the state.
    pub const WORDS: usize = 4;

    /// Creates a state before its first chunk. All its words are 0.
    #[inline(always)]
    pub const fn new() -> Self {
        Self { length: 0 }
    }

    /// Restores a state from the words of [`to_words`](Self::to_words).
    #[inline(always)]
    pub const fn from_words(words: &[u32; Self::WORDS]) -> Self {
        Self { length: words[0] }
    }

    /// Returns the state as words, to keep until the next event.
    #[inline(always)]
    pub const fn to_words(&self) -> [u32; Self::WORDS] {
        [self.length, 0, 0, 0]
    }

    /// Starts a chunk.
    #[inline(always)]
    pub fn begin_chunk(&mut self) {
        self.length = 0;
    }

    /// Appends one event: writes [`PAYLOAD_EVENT_BYTES`] of `out`.
    #[inline(always)]
    pub fn push<O: Memory>(&mut self, out: &mut O, event: Event) {
        let bytes = encode_event(event);
        let mut i = 0;
        while i < PAYLOAD_EVENT_BYTES {
            out.set8(self.length + i, bytes[i as usize]);
            i += 1;
        }
        self.length += PAYLOAD_EVENT_BYTES;
    }

    /// Appends `event` up to `count` times (at least 1), as often as it fits into `capacity` bytes of a
    /// 4-byte aligned payload. Returns the number of appended events. Requires [`has_room`](Self::has_room).
    #[inline(always)]
    pub fn push_run<O: Memory>(&mut self, out: &mut O, event: Event, count: u32, capacity: u32) -> u32 {
        let room = (capacity - self.length) / PAYLOAD_EVENT_BYTES;
        let taken = if count < room { count } else { room };
        let end = self.length + taken * PAYLOAD_EVENT_BYTES;
        // The next bytes, lowest first, repeated cyclically.
        let mut next = u64::from(event.location) | u64::from(event.mask) << 16;
        while self.length < end {
            let bytes = if self.length.is_multiple_of(4) && self.length + 4 <= end {
                out.set32(self.length, next as u32);
                4
            } else {
                out.set8(self.length, next as u8);
                1
            };
            self.length += bytes;
            next = (next >> (8 * bytes) | next << (EVENT_BITS - 8 * bytes)) & ((1 << EVENT_BITS) - 1);
        }
        taken
    }

    /// Ends the chunk and returns the payload's length in bytes.
    #[inline(always)]
    pub fn finish_chunk(&mut self) -> u32 {
        self.length
    }

    /// Returns true if one more event fits into `capacity` bytes of payload.
    #[inline(always)]
    pub const fn has_room(&self, capacity: u32) -> bool {
        self.length + PAYLOAD_EVENT_BYTES <= capacity
    }
}

#[cfg(feature = "std")]
const SIZE: usize = PAYLOAD_EVENT_BYTES as usize;

/// Stateless decoder of the codec `raw`.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, Default)]
pub struct RawDecoder;

#[cfg(feature = "std")]
impl RawDecoder {
    /// Creates a decoder.
    pub const fn new() -> Self {
        Self
    }

    /// Decodes one chunk's payload and passes its events to `sink`. Fails, perhaps after some events, if the
    /// payload is not exactly `events` events, or holds an event that no trace contains.
    pub fn decode(
        &mut self,
        payload: &[u8],
        events: u32,
        sink: &mut impl FnMut(Event),
    ) -> Result<(), super::CodecError> {
        for (number, bytes) in Self::split(payload, events)?.iter().enumerate() {
            let event = decode_event(*bytes);
            super::error::check_event(number as u32, event)?;
            sink(event);
        }
        Ok(())
    }

    /// Like [`decode`](Self::decode), but accepts events with location 0 or mask 0.
    pub fn decode_any(
        &mut self,
        payload: &[u8],
        events: u32,
        sink: &mut impl FnMut(Event),
    ) -> Result<(), super::CodecError> {
        for bytes in Self::split(payload, events)? {
            sink(decode_event(*bytes));
        }
        Ok(())
    }

    fn split(payload: &[u8], events: u32) -> Result<&[[u8; SIZE]], super::CodecError> {
        use super::CodecError::{TooFewEvents, TooManyEvents};
        let (whole, stray) = payload.as_chunks::<SIZE>();
        if whole.len() < events as usize {
            let (found, stray) = (whole.len() as u32, stray.len() as u8);
            return Err(TooFewEvents { expected: events, found, stray, offset: payload.len() });
        }
        if whole.len() > events as usize || !stray.is_empty() {
            return Err(TooManyEvents { expected: events, offset: events as usize * SIZE });
        }
        Ok(whole)
    }
}
