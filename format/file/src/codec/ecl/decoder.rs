//! The decoder of `ecl`: total over any bytes, in memory fixed by the parameters.

use super::EclParams;
use super::lza2::{CONTEXT_BYTES, MAX_CHUNK_RAW_BYTES, MAX_COUNT, RESTART_AT};
use super::rle::RleReader;
use crate::codec::error::{CodecError, check_event};
use crate::event::{Event, RAW_EVENT_BYTES};

/// Most events that a chunk of this codec can hold.
pub const MAX_CHUNK_EVENTS: u32 = MAX_CHUNK_RAW_BYTES / RAW_EVENT_BYTES;
/// Decoded bytes between two deliveries of events.
const BLOCK_BYTES: usize = 1 << 14;
/// A match and its literal.
const MAX_TOKEN_BYTES: usize = MAX_COUNT as usize + 1;

/// Decodes chunks of one set of parameters, one after the other, in memory allocated once: the table, and W
/// bytes of history with 16 KiB of decoded bytes behind them.
#[derive(Clone, Debug)]
pub struct EclDecoder {
    params: EclParams,
    /// Absolute positions, as in the encoder; entries from before the chunk are recognised by their value.
    table: Box<[u32]>,
    /// The last decoded bytes of the chunk: a straight buffer that is shifted down when it is full.
    history: Box<[u8]>,
    /// Absolute position at which the next chunk starts; beyond every entry of the table.
    position: u32,
}

impl EclDecoder {
    /// A decoder for streams with these parameters.
    ///
    /// # Panics
    /// If the parameters are out of range; those of a file are checked when it is opened.
    pub fn new(params: EclParams) -> Self {
        params.check().expect("parameters are checked before a decoder is made for them");
        Self {
            params,
            table: vec![0; params.table_entries() as usize].into(),
            history: vec![0; params.window() as usize + BLOCK_BYTES + MAX_TOKEN_BYTES].into(),
            position: 0,
        }
    }

    /// The parameters given to [`new`](Self::new).
    pub fn params(&self) -> EclParams {
        self.params
    }

    /// Decodes one chunk's payload and gives its events to `sink` in order.
    ///
    /// Time and calls are bounded by `events`, which the chunk's header announces; memory does not grow.
    ///
    /// # Errors
    /// [`CodecError`] where the payload is not the encoding of exactly `events` events, or holds one that no
    /// trace can contain. Events before the fault may have been given to `sink`.
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

    /// Decodes like [`decode`](Self::decode), but lets events with location 0 or mask 0 pass: for streams
    /// that other tracers recorded.
    ///
    /// # Errors
    /// As [`decode`](Self::decode), less [`CodecError::ZeroLocation`] and [`CodecError::ZeroMask`].
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
        // Set before anything can fail: whatever this chunk leaves in the table lies below.
        self.position = base + remaining;

        let params = self.params;
        let window = params.window() as usize;
        let max_distance = params.max_distance();
        let table = &mut self.table[..];
        let history = &mut self.history[..];
        // The byte at absolute position `origin + at` goes to `history[at]`.
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

/// Cuts decoded bytes into events.
struct Delivery<S> {
    sink: S,
    /// Where in the history the next event starts.
    from: usize,
    /// Number of the next event in the chunk.
    number: u32,
}

impl<S: FnMut(u32, Event) -> Result<(), CodecError>> Delivery<S> {
    /// Delivers the whole events of `history` from `from` on.
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
