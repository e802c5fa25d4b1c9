//! The decoder of `predict`: total over any bytes, in memory fixed by the parameters.

use super::code::{FAR, FULL_RUN_BITS, LONG_RUN_WIDTH, NEAR};
use super::stack::{Relation, Stack};
use super::{MAX_CHUNK_EVENTS, PredictParams, Slot, lanes};
use crate::codec::error::{CodecError, check_event};
use crate::event::Event;

/// Decodes chunks of one set of parameters, one after the other, in memory allocated once: the slots.
#[derive(Clone, Debug)]
pub struct PredictDecoder {
    params: PredictParams,
    slots: Box<[Slot]>,
}

impl PredictDecoder {
    /// A decoder for streams with these parameters.
    ///
    /// # Panics
    /// If the parameters are out of range; those of a file are checked when it is opened.
    pub fn new(params: PredictParams) -> Self {
        params.check().expect("parameters are checked before a decoder is made for them");
        Self { params, slots: vec![Slot::default(); params.slots() as usize].into() }
    }

    /// The parameters given to [`new`](Self::new).
    pub fn params(&self) -> PredictParams {
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
        self.decode_repeats(payload, events, &mut |event, times| (0..times).for_each(|_| sink(event)))
    }

    /// As [`decode`](Self::decode), but gives an event that follows itself by prediction once, with the number of
    /// times it happened in a row (at least 1; the next call may bring the same event again).
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_repeats(
        &mut self,
        payload: &[u8],
        events: u32,
        sink: &mut impl FnMut(Event, u32),
    ) -> Result<(), CodecError> {
        self.run(payload, events, |number, event, times| {
            check_event(number, event)?;
            sink(event, times);
            Ok(())
        })
    }

    /// As [`decode`](Self::decode), but lets events with location 0 or mask 0 pass: for streams that other
    /// tracers recorded.
    ///
    /// # Errors
    /// As [`decode`](Self::decode), less [`CodecError::ZeroLocation`] and [`CodecError::ZeroMask`].
    pub fn decode_any(
        &mut self,
        payload: &[u8],
        events: u32,
        sink: &mut impl FnMut(Event),
    ) -> Result<(), CodecError> {
        self.run(payload, events, |_, event, times| {
            (0..times).for_each(|_| sink(event));
            Ok(())
        })
    }

    fn run(
        &mut self,
        payload: &[u8],
        events: u32,
        sink: impl FnMut(u32, Event, u32) -> Result<(), CodecError>,
    ) -> Result<(), CodecError> {
        if events > MAX_CHUNK_EVENTS {
            return Err(CodecError::TooLarge { events, max: MAX_CHUNK_EVENTS });
        }
        self.slots.fill(Slot::default());
        let mut input = Bits { payload, at: 0, event: 0 };
        let mut warp = Warp {
            params: self.params,
            slots: &mut self.slots,
            stack: Stack::EMPTY,
            last: 0,
            mask: u32::MAX,
            sink,
        };
        if events != 0 {
            let (location, mask) = warp.first(&mut input)?;
            warp.enter(0, location, mask)?;
            input.event = 1;
        }
        while !input.is_at_end() {
            let offset = input.at / 8;
            let left = events - input.event;
            let too_many = CodecError::TooManyEvents { expected: events, offset };
            if left == 0 {
                return Err(too_many);
            }
            let (hits, located) = read_head(&mut input)?;
            if hits >= left {
                return Err(too_many);
            }
            warp.hits(input.event, hits)?;
            input.event += hits;
            warp.miss(&mut input, located)?;
            input.event += 1;
        }
        warp.hits(input.event, events - input.event)
    }
}

/// What the encoder knew, and where events go: number of the first, event, times.
struct Warp<'a, S> {
    params: PredictParams,
    slots: &'a mut [Slot],
    stack: Stack,
    last: u32,
    mask: u32,
    sink: S,
}

impl<S: FnMut(u32, Event, u32) -> Result<(), CodecError>> Warp<'_, S> {
    /// Delivers an event and goes on from it.
    fn enter(&mut self, number: u32, location: u32, mask: u32) -> Result<(), CodecError> {
        self.stack = self.stack.after(self.mask, mask);
        (self.last, self.mask) = (location, mask);
        self.deliver(number, 1)
    }

    fn deliver(&mut self, number: u32, times: u32) -> Result<(), CodecError> {
        (self.sink)(number, Event { location: self.last as u16, mask: self.mask }, times)
    }

    fn slot_index(&self) -> usize {
        (self.params.slot_at(self.last) / 8) as usize
    }

    /// So many events as the slots expect them.
    fn hits(&mut self, mut number: u32, hits: u32) -> Result<(), CodecError> {
        let end = number + hits;
        while number < end {
            let slot = self.slots[self.slot_index()];
            if slot.expected == 0 {
                // The same again, from the same slot: so it goes on.
                return self.deliver(number, end - number);
            }
            let mask = slot.mask(self.stack.base(slot.relation(), self.mask));
            self.enter(number, self.last ^ slot.step(), mask)?;
            number += 1;
        }
        Ok(())
    }

    /// The first event of a chunk.
    fn first(&mut self, input: &mut Bits<'_>) -> Result<(u32, u32), CodecError> {
        if input.bit()? {
            return Ok((1, u32::MAX));
        }
        if input.bit()? {
            return Ok((2 + input.read(5)?, u32::MAX));
        }
        let location = read_location(input, 0)?;
        let (mask, _, _) = self.unlocated_mask(input)?;
        Ok((location, mask))
    }

    /// One event that its slot did not expect.
    fn miss(&mut self, input: &mut Bits<'_>, located: bool) -> Result<(), CodecError> {
        let index = self.slot_index();
        let slot = self.slots[index];
        let (location, (mask, relation, by_seen)) = if located {
            (self.last ^ slot.step(), self.located_mask(input, slot)?)
        } else {
            (read_location(input, self.last)?, self.unlocated_mask(input)?)
        };
        self.slots[index] = Slot::learned(self.last ^ location, relation, by_seen, mask);
        self.enter(input.event, location, mask)
    }

    fn unlocated_mask(&self, input: &mut Bits<'_>) -> Result<(u32, Relation, bool), CodecError> {
        if input.bit()? { Ok((self.mask, Relation::SAME, false)) } else { self.related_mask(input) }
    }

    fn located_mask(&self, input: &mut Bits<'_>, slot: Slot) -> Result<(u32, Relation, bool), CodecError> {
        if input.bit()? {
            let relation = slot.relation();
            return Ok((read_lanes(input, self.stack.base(relation, self.mask))?, relation, false));
        }
        if input.bit()? { Ok((slot.seen, slot.relation(), true)) } else { self.related_mask(input) }
    }

    fn related_mask(&self, input: &mut Bits<'_>) -> Result<(u32, Relation, bool), CodecError> {
        let relation = read_relation(input)?;
        Ok((read_lanes(input, self.stack.base(relation, self.mask))?, relation, false))
    }
}

/// See [`code::head`](super::code::head).
fn read_head(input: &mut Bits<'_>) -> Result<(u32, bool), CodecError> {
    if input.bit()? {
        return Ok((0, false));
    }
    if input.bit()? {
        return Ok((0, true));
    }
    let hits = if input.bit()? {
        1
    } else if input.bit()? {
        2 + input.read(1)?
    } else {
        match input.read(LONG_RUN_WIDTH)? {
            15 => input.read(FULL_RUN_BITS)?,
            width => 3 + (1 << width) + input.read(width)?,
        }
    };
    Ok((hits, input.bit()?))
}

/// See [`code::location`](super::code::location).
fn read_location(input: &mut Bits<'_>, last: u32) -> Result<u32, CodecError> {
    let start = input.at;
    let difference = if input.bit()? {
        1
    } else if input.bit()? {
        if input.bit()? { 2 } else { 0 }
    } else if input.bit()? {
        let index = input.read(4)? as i32;
        if index < -NEAR.0 { NEAR.0 + index } else { NEAR.0 + 3 + index }
    } else if input.bit()? {
        let index = input.read(5)? as i32;
        if index < 16 { FAR.0 + index } else { FAR.1 - 31 + index }
    } else {
        let width = if input.bit()? { 8 } else { 16 };
        return input.read(width);
    };
    match u16::try_from(last as i32 + difference) {
        Ok(location) => Ok(u32::from(location)),
        Err(_) => Err(input.bad(start, "location")),
    }
}

/// See [`code::relation`](super::code::relation).
fn read_relation(input: &mut Bits<'_>) -> Result<Relation, CodecError> {
    let number = if input.bit()? {
        0
    } else if input.bit()? {
        2 + input.read(1)?
    } else {
        4 + input.read(3)?
    };
    Ok(Relation::from_low_bits(number))
}

/// See [`lanes`].
fn read_lanes(input: &mut Bits<'_>, base: u32) -> Result<u32, CodecError> {
    let start = input.at;
    let count = base.count_ones();
    if input.bit()? {
        return Ok(lanes::expand(input.read(count)?, base));
    }
    if input.bit()? {
        return Ok(base);
    }
    let (without, two) = if input.bit()? {
        (true, false)
    } else if input.bit()? {
        (false, false)
    } else {
        (input.bit()?, true)
    };
    let width = lanes::rank_bits(count);
    let low = input.read(width)?;
    let high = if two { input.read(width)? } else { low };
    let found = match (lanes::lane(low, base), lanes::lane(high, base)) {
        (Some(a), Some(b)) if !two || low < high => a | b,
        _ => return Err(input.bad(start, "lane")),
    };
    Ok(if without { base & !found } else { found })
}

/// A payload's bits, lowest first.
struct Bits<'a> {
    payload: &'a [u8],
    /// Bits read.
    at: usize,
    /// Number of the event that is being read, for errors.
    event: u32,
}

impl Bits<'_> {
    fn bit(&mut self) -> Result<bool, CodecError> {
        Ok(self.read(1)? != 0)
    }

    /// The next `count` bits, at most 32.
    fn read(&mut self, count: u32) -> Result<u32, CodecError> {
        let end = self.at + count as usize;
        if end > 8 * self.payload.len() {
            return Err(CodecError::TruncatedCode { event: self.event, offset: self.payload.len() });
        }
        let rest = &self.payload[self.at / 8..];
        let window = match rest.first_chunk::<8>() {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => rest.iter().rev().fold(0, |bits, byte| (bits << 8) | u64::from(*byte)),
        };
        let bits = (window >> (self.at % 8)) & ((1 << count) - 1);
        self.at = end;
        Ok(bits as u32)
    }

    /// Whether nothing follows but the zeros that fill the last byte. No code is so short a string of zeros.
    fn is_at_end(&self) -> bool {
        match &self.payload[self.at.div_ceil(8)..] {
            [] if self.at.is_multiple_of(8) => true,
            [] => self.payload[self.at / 8] >> (self.at % 8) == 0,
            _ => false,
        }
    }

    fn bad(&self, bit: usize, field: &'static str) -> CodecError {
        CodecError::BadCode { event: self.event, offset: bit / 8, bit: (bit % 8) as u8, field }
    }
}
