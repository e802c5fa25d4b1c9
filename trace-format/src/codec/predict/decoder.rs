//! The decoder of `predict`: total over any bytes, in memory fixed by the parameters.

use super::code::{FAR, FULL_RUN_BITS, NEAR};
use super::stack::{Relation, Stack};
use super::{MAX_CHUNK_EVENTS, PredictParams, Slot, lanes};
use crate::codec::error::{CodecError, check_event};
use crate::codec::item::{Item, MAX_BODY};
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
        self.run(payload, events, check_event, |item| item.for_each(sink))
    }

    /// As [`decode`](Self::decode), but gives events that repeat by prediction as one item: an event that follows
    /// itself, or a body of up to [`MAX_BODY`] events that leads the slots back to where they were.
    ///
    /// # Errors
    /// As [`decode`](Self::decode); items before the fault may have been given to `sink`.
    pub fn decode_items(
        &mut self,
        payload: &[u8],
        events: u32,
        sink: &mut impl FnMut(Item<'_>),
    ) -> Result<(), CodecError> {
        self.run(payload, events, check_event, sink)
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
        self.run(payload, events, |_, _| Ok(()), |item| item.for_each(sink))
    }

    fn run(
        &mut self,
        payload: &[u8],
        events: u32,
        check: impl Fn(u32, Event) -> Result<(), CodecError>,
        sink: impl FnMut(Item<'_>),
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
            check,
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

/// Hits from which on it is worth to look for a cycle among them.
const WORTH_A_SEARCH: u32 = 16;
/// Events among which the first search for a cycle goes on; the next goes twice as far, up to [`MAX_BODY`].
const FIRST_SEARCH: usize = 8;

/// What the encoder knew, and where events go.
struct Warp<'a, C, S> {
    params: PredictParams,
    slots: &'a mut [Slot],
    stack: Stack,
    last: u32,
    mask: u32,
    /// Whether an event can be: its number, the event.
    check: C,
    sink: S,
}

impl<C: Fn(u32, Event) -> Result<(), CodecError>, S: FnMut(Item<'_>)> Warp<'_, C, S> {
    /// Goes on to an event.
    #[inline(always)]
    fn step(&mut self, number: u32, location: u32, mask: u32) -> Result<Event, CodecError> {
        self.stack = self.stack.after(self.mask, mask);
        (self.last, self.mask) = (location, mask);
        let event = Event { location: location as u16, mask };
        (self.check)(number, event)?;
        Ok(event)
    }

    /// Delivers an event and goes on from it.
    #[inline(always)]
    fn enter(&mut self, number: u32, location: u32, mask: u32) -> Result<(), CodecError> {
        let event = self.step(number, location, mask)?;
        (self.sink)(Item::Run { event, times: 1 });
        Ok(())
    }

    #[inline(always)]
    fn slot_index(&self) -> usize {
        (self.params.slot_at(self.last) / 8) as usize
    }

    /// So many events as the slots expect them.
    #[inline(always)]
    fn hits(&mut self, number: u32, hits: u32) -> Result<(), CodecError> {
        if hits >= WORTH_A_SEARCH { self.many_hits(number, hits) } else { self.few_hits(number, hits) }
    }

    #[inline(always)]
    fn few_hits(&mut self, mut number: u32, hits: u32) -> Result<(), CodecError> {
        let end = number + hits;
        while number < end {
            let slot = self.slots[self.slot_index()];
            if slot.expected == 0 {
                self.same_again(end - number);
                return Ok(());
            }
            let (location, mask) = self.expected(slot);
            self.enter(number, location, mask)?;
            number += 1;
        }
        Ok(())
    }

    /// The event that a slot expects.
    #[inline(always)]
    fn expected(&self, slot: Slot) -> (u32, u32) {
        (self.last ^ slot.step(), slot.mask(self.stack.base(slot.relation(), self.mask)))
    }

    /// The last event so many times more: its slot is empty, and stays so.
    #[inline(always)]
    fn same_again(&mut self, times: u32) {
        (self.sink)(Item::Run { event: Event { location: self.last as u16, mask: self.mask }, times });
    }

    /// Hits change no slot, so the next event depends on the last one and the stack alone: where they come back, so does
    /// all that followed them. The state is compared with that at a mark, which moves on in growing steps, because the
    /// first events may lead into the cycle without being part of it (Brent, "An improved Monte Carlo factorization
    /// algorithm", 1980, section 3).
    fn many_hits(&mut self, mut number: u32, hits: u32) -> Result<(), CodecError> {
        let end = number + hits;
        let mut body = [Event::default(); MAX_BODY];
        let mut limit = FIRST_SEARCH;
        while number < end {
            let mark = (self.last, self.mask, self.stack);
            let mut length = 0;
            loop {
                let slot = self.slots[self.slot_index()];
                if slot.expected == 0 || length == limit || number == end {
                    for &event in &body[..length] {
                        (self.sink)(Item::Run { event, times: 1 });
                    }
                    if number < end && slot.expected == 0 {
                        self.same_again(end - number);
                        return Ok(());
                    }
                    break;
                }
                let (location, mask) = self.expected(slot);
                body[length] = self.step(number, location, mask)?;
                length += 1;
                number += 1;
                if self.last == mark.0 && self.mask == mark.1 && self.stack == mark.2 {
                    let more = end - number;
                    (self.sink)(Item::repeated(&body[..length], 1 + more / length as u32));
                    number = end - more % length as u32;
                    return self.few_hits(number, end - number);
                }
            }
            limit = (2 * limit).min(MAX_BODY);
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

/// See [`code::head`](super::code::head). Hits, and whether the location was the expected one.
#[inline(always)]
fn read_head(input: &mut Bits<'_>) -> Result<(u32, bool), CodecError> {
    let bits = input.window();
    if bits & 0b11 != 0 {
        let located = bits & 1 == 0;
        input.skip(1 + u32::from(located))?;
        return Ok((0, located));
    }
    let low = bits as u32;
    let (hits, length) = if low & 0b100 != 0 {
        (1, 3)
    } else if low & 0b1000 != 0 {
        (2 + (low >> 4 & 1), 5)
    } else {
        match low >> 4 & 15 {
            15 => (low >> 8, 8 + FULL_RUN_BITS),
            width => (3 + (1 << width) + (low >> 8 & ((1 << width) - 1)), 8 + width),
        }
    };
    input.skip(length + 1)?;
    Ok((hits, bits >> length & 1 != 0))
}

/// See [`code::location`](super::code::location).
#[inline(always)]
fn read_location(input: &mut Bits<'_>, last: u32) -> Result<u32, CodecError> {
    let start = input.at;
    let bits = input.window() as u32;
    let (difference, length) = match bits.trailing_zeros() {
        0 => (1, 1),
        1 => ((bits as i32 >> 2 & 1) * 2, 3),
        2 => {
            let index = bits as i32 >> 3 & 15;
            (if index < -NEAR.0 { NEAR.0 + index } else { NEAR.0 + 3 + index }, 7)
        }
        3 => {
            let index = bits as i32 >> 4 & 31;
            (if index < 16 { FAR.0 + index } else { FAR.1 - 31 + index }, 9)
        }
        zeros => {
            let width = if zeros == 4 { 8 } else { 16 };
            input.skip(5 + width)?;
            return Ok(bits >> 5 & ((1 << width) - 1));
        }
    };
    input.skip(length)?;
    match u16::try_from(last as i32 + difference) {
        Ok(location) => Ok(u32::from(location)),
        Err(_) => Err(input.bad(start, "location")),
    }
}

/// See [`code::relation`](super::code::relation).
#[inline(always)]
fn read_relation(input: &mut Bits<'_>) -> Result<Relation, CodecError> {
    let bits = input.window() as u32;
    let (number, length) = if bits & 1 != 0 {
        (0, 1)
    } else if bits & 2 != 0 {
        (2 + (bits >> 2 & 1), 3)
    } else {
        (4 + (bits >> 2 & 7), 5)
    };
    input.skip(length)?;
    Ok(Relation::from_low_bits(number))
}

/// See [`lanes`].
#[inline(always)]
fn read_lanes(input: &mut Bits<'_>, base: u32) -> Result<u32, CodecError> {
    let start = input.at;
    let bits = input.window();
    let count = base.count_ones();
    if bits & 1 != 0 {
        input.skip(1 + count)?;
        let subset = (bits >> 1 & ((1 << count) - 1)) as u32;
        return Ok(if base == u32::MAX { subset } else { lanes::expand(subset, base) });
    }
    let bits = bits as u32;
    if bits & 2 != 0 {
        input.skip(2)?;
        return Ok(base);
    }
    let (without, two, prefix) = match bits.trailing_zeros() {
        2 => (true, false, 3),
        3 => (false, false, 4),
        zeros => (zeros == 4, true, 5),
    };
    let width = lanes::rank_bits(count);
    let rank = |at: u32| bits >> at & ((1 << width) - 1);
    let low = rank(prefix);
    let high = if two { rank(prefix + width) } else { low };
    input.skip(prefix + if two { 2 * width } else { width })?;
    let found = match (lane(low, base), lane(high, base)) {
        (Some(a), Some(b)) if !two || low < high => a | b,
        _ => return Err(input.bad(start, "lane")),
    };
    Ok(if without { base & !found } else { found })
}

/// As [`lanes::lane`]; full warps are worth a short cut.
#[inline(always)]
fn lane(rank: u32, base: u32) -> Option<u32> {
    if base == u32::MAX && rank < 32 { Some(1 << rank) } else { lanes::lane(rank, base) }
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
        let bits = self.window() & ((1 << count) - 1);
        self.skip(count)?;
        Ok(bits as u32)
    }

    /// The next 57 bits or more; zeros behind the payload's end. No part of the code is longer.
    #[inline(always)]
    fn window(&self) -> u64 {
        let rest = self.payload.get(self.at / 8..).unwrap_or_default();
        let window = match rest.first_chunk::<8>() {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => rest.iter().rev().fold(0, |bits, byte| (bits << 8) | u64::from(*byte)),
        };
        window >> (self.at % 8)
    }

    /// Goes on by `count` bits that were looked at.
    #[inline(always)]
    fn skip(&mut self, count: u32) -> Result<(), CodecError> {
        self.at += count as usize;
        if self.at > 8 * self.payload.len() {
            return Err(CodecError::TruncatedCode { event: self.event, offset: self.payload.len() });
        }
        Ok(())
    }

    /// Whether nothing follows but the zeros that fill the last byte. No code is so short a string of zeros.
    #[inline(always)]
    fn is_at_end(&self) -> bool {
        if self.at + 8 <= 8 * self.payload.len() {
            return false;
        }
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
