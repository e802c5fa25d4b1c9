//! Decoder of `predict`. It accepts any bytes, in memory fixed by the parameters.

use super::bits::Bits;
use super::fast::{self, Expand};
use super::fields::{self, Context};
use super::output::{EachEvent, EachItem, Output};
use super::stack::Stack;
use super::{MAX_CHUNK_EVENTS, PredictParams, Slot};
use crate::codec::error::{CodecError, check_event};
use crate::codec::item::{Item, MAX_BODY};
use crate::event::Event;

/// Decoder for chunks with the same parameters. Allocates once.
#[derive(Clone, Debug)]
pub struct PredictDecoder {
    params: PredictParams,
    slots: Box<[Slot]>,
    body: Box<[Event; MAX_BODY]>,
}

impl PredictDecoder {
    /// Creates a decoder. Panics if the parameters are out of range. Opening a file checks them.
    pub fn new(params: PredictParams) -> Self {
        params.check().expect("parameters are checked before a decoder is made for them");
        let slots = vec![Slot::default(); params.slots() as usize].into();
        Self { params, slots, body: Box::new([Event::default(); MAX_BODY]) }
    }

    /// Returns the decoder's parameters.
    pub fn params(&self) -> PredictParams {
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
        self.run(payload, events, check_event, &mut EachEvent(sink))
    }

    /// Like [`decode`](Self::decode), but appends the events to `to`.
    pub fn decode_into(
        &mut self,
        payload: &[u8],
        events: u32,
        to: &mut Vec<Event>,
    ) -> Result<(), CodecError> {
        self.run(payload, events, check_event, to)
    }

    /// Like [`decode`](Self::decode), but passes predicted repetitions to `sink` as one item each: a repeated
    /// event, or a body of up to [`MAX_BODY`] events that returns the state to its start.
    pub fn decode_items(
        &mut self,
        payload: &[u8],
        events: u32,
        sink: &mut impl FnMut(Item<'_>),
    ) -> Result<(), CodecError> {
        self.run(payload, events, check_event, &mut EachItem(sink))
    }

    /// Like [`decode`](Self::decode), but accepts location 0 and mask 0, for streams of other tracers.
    pub fn decode_any(
        &mut self,
        payload: &[u8],
        events: u32,
        sink: &mut impl FnMut(Event),
    ) -> Result<(), CodecError> {
        self.run(payload, events, |_, _| Ok(()), &mut EachEvent(sink))
    }

    fn run(
        &mut self,
        payload: &[u8],
        events: u32,
        check: impl Fn(u32, Event) -> Result<(), CodecError> + Copy,
        output: &mut impl Output,
    ) -> Result<(), CodecError> {
        if events > MAX_CHUNK_EVENTS {
            return Err(CodecError::TooLarge { events, max: MAX_CHUNK_EVENTS });
        }
        self.slots.fill(Slot::default());
        let warp = Warp { slots: &mut self.slots, body: &mut self.body, check, output };
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
        {
            // SAFETY: the processor has all features that the function requires.
            return unsafe { warp.chunk_bmi2(payload, events) };
        }
        warp.chunk::<fast::Portable>(payload, events)
    }
}

/// Events in the first search for a cycle. The next searches double it, up to [`MAX_BODY`].
const FIRST_SEARCH: usize = 8;

/// Decoder state and output. Functions pass the context by value, so that it stays in registers.
struct Warp<'a, C, O> {
    slots: &'a mut [Slot],
    body: &'a mut [Event; MAX_BODY],
    check: C,
    output: &'a mut O,
}

impl<C: Fn(u32, Event) -> Result<(), CodecError> + Copy, O: Output> Warp<'_, C, O> {
    /// # Safety
    /// The processor must have these features.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn chunk_bmi2(self, payload: &[u8], events: u32) -> Result<(), CodecError> {
        self.chunk::<fast::Bmi2>(payload, events)
    }

    #[inline(always)]
    fn chunk<E: Expand>(mut self, payload: &[u8], events: u32) -> Result<(), CodecError> {
        let mut input = Bits { payload, at: 0, event: 0 };
        let mut context = Context { stack: Stack::EMPTY, last: 0, mask: u32::MAX };
        if events != 0 {
            let (location, mask) = fields::read_first(&mut input, context)?;
            self.enter(&mut context, 0, location, mask)?;
            input.event = 1;
        }
        while !input.is_at_end() {
            let offset = input.at / 8;
            let remaining = events - input.event;
            let too_many = CodecError::TooManyEvents { expected: events, offset };
            if remaining == 0 {
                return Err(too_many);
            }
            let head = fast::head(input.window());
            let (mut hits, mut located) = (u32::from(head.hits), head.located());
            if head.length() == 0 {
                (input, hits, located) = fields::read_head(input)?;
            } else {
                input.skip(head.length())?;
            }
            if hits >= remaining {
                return Err(too_many);
            }
            self.hits(&mut context, input.event, hits)?;
            input.event += hits;
            let index = self.slot_index(&context);
            let slot = self.slots[index];
            let mut after = input;
            let found = fast::miss::<E>(&input, &context, slot, located);
            let miss = match found {
                Some((miss, length)) if after.skip(length).is_ok() => {
                    input = after;
                    miss
                }
                // Decodes field by field, to find the error and its place.
                _ => {
                    let (after, miss) = fields::read_miss(input, context, slot, located)?;
                    input = after;
                    miss
                }
            };
            self.slots[index] = miss.slot;
            self.enter(&mut context, input.event, miss.location, miss.mask)?;
            input.event += 1;
        }
        self.hits(&mut context, input.event, events - input.event)
    }

    #[inline(always)]
    fn step(
        &self,
        context: &mut Context,
        number: u32,
        location: u32,
        mask: u32,
    ) -> Result<Event, CodecError> {
        let stack = fast::after(context.stack, context.mask, mask);
        *context = Context { stack, last: location, mask };
        let event = Event { location: location as u16, mask };
        (self.check)(number, event)?;
        Ok(event)
    }

    /// Advances to an event and delivers it.
    #[inline(always)]
    fn enter(
        &mut self,
        context: &mut Context,
        number: u32,
        location: u32,
        mask: u32,
    ) -> Result<(), CodecError> {
        let event = self.step(context, number, location, mask)?;
        self.output.event(event);
        Ok(())
    }

    #[inline(always)]
    fn slot_index(&self, context: &Context) -> usize {
        context.last as usize & (self.slots.len() - 1)
    }

    #[inline(always)]
    fn hits(&mut self, context: &mut Context, number: u32, hits: u32) -> Result<(), CodecError> {
        if hits < O::WORTH_A_SEARCH {
            return self.few_hits(context, number, hits);
        }
        // A copy, because a context that another function can write to has to stay in memory.
        let mut moved = *context;
        let result = self.many_hits(&mut moved, number, hits);
        *context = moved;
        result
    }

    #[inline(always)]
    fn few_hits(&mut self, context: &mut Context, mut number: u32, hits: u32) -> Result<(), CodecError> {
        let end = number + hits;
        while number < end {
            let slot = self.slots[self.slot_index(context)];
            if slot.expected == 0 {
                self.same_again(context, end - number);
                return Ok(());
            }
            let event = self.expected(context, number, slot)?;
            self.output.event(event);
            number += 1;
        }
        Ok(())
    }

    #[inline(always)]
    fn expected(&self, context: &mut Context, number: u32, slot: Slot) -> Result<Event, CodecError> {
        fast::expected(context, slot);
        let event = Event { location: context.last as u16, mask: context.mask };
        (self.check)(number, event)?;
        Ok(event)
    }

    /// Repeats the last event. Its slot is empty and stays empty.
    #[inline(always)]
    fn same_again(&mut self, context: &Context, times: u32) {
        self.output.run(Event { location: context.last as u16, mask: context.mask }, times);
    }

    /// Decodes hits with a search for a cycle. Hits change no slot, so when the last event and the stack
    /// recur, so do all later events. The mark to compare with moves in growing steps, because the first
    /// events may precede the cycle (Brent, "An improved Monte Carlo factorization algorithm", 1980).
    #[inline(never)]
    fn many_hits(&mut self, context: &mut Context, mut number: u32, hits: u32) -> Result<(), CodecError> {
        let end = number + hits;
        // A run needs no stored body.
        if self.slots[self.slot_index(context)].expected == 0 {
            self.same_again(context, hits);
            return Ok(());
        }
        let mut limit = FIRST_SEARCH;
        while number < end {
            let mark = *context;
            let mut length = 0;
            loop {
                let slot = self.slots[self.slot_index(context)];
                if slot.expected == 0 || length == limit || number == end {
                    self.each_of_body(length);
                    if number < end && slot.expected == 0 {
                        self.same_again(context, end - number);
                        return Ok(());
                    }
                    break;
                }
                match self.expected(context, number, slot) {
                    Ok(event) => self.body[length] = event,
                    Err(error) => {
                        self.each_of_body(length);
                        return Err(error);
                    }
                }
                length += 1;
                number += 1;
                if *context == mark {
                    let more = end - number;
                    self.output.item(Item::repeated(&self.body[..length], 1 + more / length as u32));
                    number = end - more % length as u32;
                    return self.few_hits(context, number, end - number);
                }
            }
            limit = (2 * limit).min(MAX_BODY);
        }
        Ok(())
    }

    fn each_of_body(&mut self, length: usize) {
        for &event in &self.body[..length] {
            self.output.event(event);
        }
    }
}

#[cfg(test)]
mod tests;
