//! `raw`: each event as its five CUT bytes, nothing else.

use crate::event::{Event, RAW_EVENT_BYTES};
use crate::memory::Memory;

/// State of one warp's encoder: one word that counts, three of padding. It has the methods of
/// [`EclState`](super::ecl::EclState), but needs neither parameters nor work memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RawState {
    length: u32,
}

impl RawState {
    /// Number of `u32` words of the state.
    pub const WORDS: usize = 4;

    /// A state before its first chunk. Its words are all zero.
    #[inline(always)]
    pub const fn new() -> Self {
        Self { length: 0 }
    }

    /// The state that [`to_words`](Self::to_words) gave.
    #[inline(always)]
    pub const fn from_words(words: &[u32; Self::WORDS]) -> Self {
        Self { length: words[0] }
    }

    /// The state as words, to be kept until the next event.
    #[inline(always)]
    pub const fn to_words(&self) -> [u32; Self::WORDS] {
        [self.length, 0, 0, 0]
    }

    /// Starts a chunk.
    #[inline(always)]
    pub fn begin_chunk(&mut self) {
        self.length = 0;
    }

    /// Appends one event, whose location is 1 to 255 (the high byte is dropped): five bytes of `out`.
    #[inline(always)]
    pub fn push<O: Memory>(&mut self, out: &mut O, event: Event) {
        let bytes = event.cut();
        let mut i = 0;
        while i < RAW_EVENT_BYTES {
            out.set8(self.length + i, bytes[i as usize]);
            i += 1;
        }
        self.length += RAW_EVENT_BYTES;
    }

    /// Appends `event` `count` times (at least once), or as often as it fits into `capacity` bytes; answers how often.
    ///
    /// [`has_room`](Self::has_room) has said that it fits once. Whole words are written where the payload has them; it
    /// is 4-byte aligned.
    #[inline(always)]
    pub fn push_run<O: Memory>(&mut self, out: &mut O, event: Event, count: u32, capacity: u32) -> u32 {
        let room = (capacity - self.length) / RAW_EVENT_BYTES;
        let taken = if count < room { count } else { room };
        let end = self.length + taken * RAW_EVENT_BYTES;
        // The bytes that come next, lowest first, over and over.
        let [a, b, c, d, e] = event.cut();
        let mut next = u64::from(u32::from_le_bytes([a, b, c, d])) | u64::from(e) << 32;
        while self.length < end {
            if self.length.is_multiple_of(4) && self.length + 4 <= end {
                out.set32(self.length, next as u32);
                self.length += 4;
                next = (next >> 32 | next << 8) & 0xff_ffff_ffff;
            } else {
                out.set8(self.length, next as u8);
                self.length += 1;
                next = (next >> 8 | next << 32) & 0xff_ffff_ffff;
            }
        }
        taken
    }

    /// Ends the chunk and gives the payload's length in bytes.
    #[inline(always)]
    pub fn finish_chunk(&mut self) -> u32 {
        self.length
    }

    /// Whether one more event fits into `capacity` bytes of payload.
    #[inline(always)]
    pub const fn has_room(&self, capacity: u32) -> bool {
        self.length + RAW_EVENT_BYTES <= capacity
    }
}

/// Decodes payloads of the codec `raw`; it has no state.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, Default)]
pub struct RawDecoder;

#[cfg(feature = "std")]
impl RawDecoder {
    /// A decoder.
    pub const fn new() -> Self {
        Self
    }

    /// Decodes one chunk's payload and gives its events to `sink` in order.
    ///
    /// # Errors
    /// [`CodecError`](super::CodecError) where the payload is not exactly `events` events, or holds one that
    /// no trace can contain. Events before the fault may have been given to `sink`.
    pub fn decode(
        &mut self,
        payload: &[u8],
        events: u32,
        sink: &mut impl FnMut(Event),
    ) -> Result<(), super::CodecError> {
        for (number, bytes) in Self::split(payload, events)?.iter().enumerate() {
            let event = Event::from_cut(*bytes);
            super::error::check_event(number as u32, event)?;
            sink(event);
        }
        Ok(())
    }

    /// As [`decode`](Self::decode), but lets events with location 0 or mask 0 pass.
    ///
    /// # Errors
    /// [`CodecError`](super::CodecError) where the payload is not exactly `events` events.
    pub fn decode_any(
        &mut self,
        payload: &[u8],
        events: u32,
        sink: &mut impl FnMut(Event),
    ) -> Result<(), super::CodecError> {
        for bytes in Self::split(payload, events)? {
            sink(Event::from_cut(*bytes));
        }
        Ok(())
    }

    /// The payload as events, if it holds as many as announced.
    fn split(payload: &[u8], events: u32) -> Result<&[[u8; 5]], super::CodecError> {
        use super::CodecError::{TooFewEvents, TooManyEvents};
        let (whole, stray) = payload.as_chunks::<5>();
        if whole.len() < events as usize {
            let (found, stray) = (whole.len() as u32, stray.len() as u8);
            return Err(TooFewEvents { expected: events, found, stray, offset: payload.len() });
        }
        if whole.len() > events as usize || !stray.is_empty() {
            return Err(TooManyEvents { expected: events, offset: events as usize * 5 });
        }
        Ok(whole)
    }
}
