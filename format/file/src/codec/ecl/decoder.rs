//! Decoder of `ecl`. It accepts any bytes, in memory fixed by the parameters.

use super::EclParams;
use super::lza2::{CONTEXT_BYTES, MAX_CHUNK_RAW_BYTES, MAX_COUNT, RESTART_AT};
use super::rle::RleReader;
use crate::codec::error::{CodecError, check_event};
use crate::event::{Event, RAW_EVENT_BYTES};

/// Most events that a chunk of this codec can hold.
pub const MAX_CHUNK_EVENTS: u32 = MAX_CHUNK_RAW_BYTES / RAW_EVENT_BYTES;
const BLOCK_BYTES: usize = 1 << 14;
const MAX_TOKEN_BYTES: usize = MAX_COUNT as usize + 1;

/// Decoder for chunks with the same parameters. Allocates once: the table, W bytes of history, and 16 KiB.
#[derive(Clone, Debug)]
pub struct EclDecoder {
    params: EclParams,
    /// Absolute positions, which show whether an entry is older than the chunk.
    table: Box<[u32]>,
    history: Box<[u8]>,
    /// Absolute position of the next chunk, above every entry of the table.
    position: u32,
}

impl EclDecoder {
    /// Creates a decoder. Panics if the parameters are out of range. Opening a file checks them.
    pub fn new(params: EclParams) -> Self {
        params.check().expect("parameters are checked before a decoder is made for them");
        Self {
            params,
            table: vec![0; params.table_entries() as usize].into(),
            history: vec![0; params.window() as usize + BLOCK_BYTES + MAX_TOKEN_BYTES].into(),
            position: 0,
        }
    }

    /// Returns the decoder's parameters.
    pub fn params(&self) -> EclParams {
        self.params
    }

    /// Decodes one chunk's payload and passes its events to `sink` in order. `events`, from the chunk's
    /// header, bounds the time. Fails if the payload is not the encoding of exactly `events` events, or holds
    /// an event that no trace contains. Events before the fault may already be in `sink`.
    pub fn decode(
        &mut self,
        payload: &[u8],
        events: u32,
        sink: &mut impl FnMut(Event),
    ) -> Result<(), CodecError> {
        self.run(payload, events, |number, event| {
            check_event(number, event)?;
            sink(event);
            Ok(())
        })
    }

    /// Like [`decode`](Self::decode), but accepts location 0 and mask 0, for streams of other tracers.
    pub fn decode_any(
        &mut self,
        payload: &[u8],
        events: u32,
        sink: &mut impl FnMut(Event),
    ) -> Result<(), CodecError> {
        self.run(payload, events, |_, event| {
            sink(event);
            Ok(())
        })
    }

    fn run(
        &mut self,
        payload: &[u8],
        events: u32,
        sink: impl FnMut(u32, Event) -> Result<(), CodecError>,
    ) -> Result<(), CodecError> {
        if events > MAX_CHUNK_EVENTS {
            return Err(CodecError::TooLarge { events, max: MAX_CHUNK_EVENTS });
        }
        if self.position >= RESTART_AT {
            self.table.fill(0);
            self.position = 0;
        }
        let base = self.position;
        let mut remaining = events * RAW_EVENT_BYTES;
        // Set before any error return: every table entry of this chunk is below it.
        self.position = base + remaining;

        let params = self.params;
        let window = params.window() as usize;
        let max_distance = params.max_distance();
        let table = &mut self.table[..];
        let history = &mut self.history[..];
        // The byte at absolute position `origin + at` is `history[at]`.
        let mut origin = base;
        let mut at = 0;
        let mut hash = 0;
        let mut input = RleReader::new(payload);
        let mut delivery = Delivery { sink, from: 0, number: 0 };

        while !input.is_empty() {
            if at + MAX_TOKEN_BYTES > history.len() {
                delivery.deliver(&history[..at])?;
                let shift = at - window;
                history.copy_within(shift..at, 0);
                delivery.from -= shift;
                origin += shift as u32;
                at = window;
            }

            let position = origin + at as u32;
            let distance = position.wrapping_sub(table[hash as usize]);
            let limit = (position - base).saturating_sub(CONTEXT_BYTES).min(max_distance);
            if distance.wrapping_sub(1) < limit {
                let mut from = at - distance as usize;
                if history[from - 2..from] == history[at - 2..at] {
                    let offset = input.offset();
                    let count = u32::from(input.next()?);
                    if input.is_empty() {
                        return Err(CodecError::MissingLiteral { offset: payload.len() });
                    }
                    if count >= remaining {
                        return Err(CodecError::TooManyEvents { expected: events, offset });
                    }
                    remaining -= count;
                    for position in position..position + count {
                        let byte = history[from];
                        history[at] = byte;
                        table[hash as usize] = position;
                        hash = params.next_hash(hash, u32::from(byte));
                        from += 1;
                        at += 1;
                    }
                }
            }

            if remaining == 0 {
                return Err(CodecError::TooManyEvents { expected: events, offset: input.offset() });
            }
            let byte = input.next()?;
            history[at] = byte;
            table[hash as usize] = origin + at as u32;
            hash = params.next_hash(hash, u32::from(byte));
            at += 1;
            remaining -= 1;
        }
        delivery.deliver(&history[..at])?;
        if remaining != 0 {
            let found = events * RAW_EVENT_BYTES - remaining;
            return Err(CodecError::TooFewEvents {
                expected: events,
                found: found / RAW_EVENT_BYTES,
                stray: (found % RAW_EVENT_BYTES) as u8,
                offset: payload.len(),
            });
        }
        Ok(())
    }
}

struct Delivery<S> {
    sink: S,
    from: usize,
    number: u32,
}

impl<S: FnMut(u32, Event) -> Result<(), CodecError>> Delivery<S> {
    fn deliver(&mut self, history: &[u8]) -> Result<(), CodecError> {
        let (whole, _) = history[self.from..].as_chunks::<{ RAW_EVENT_BYTES as usize }>();
        for bytes in whole {
            (self.sink)(self.number, Event::from_cut(*bytes))?;
            self.number += 1;
        }
        self.from += whole.len() * RAW_EVENT_BYTES as usize;
        Ok(())
    }
}
