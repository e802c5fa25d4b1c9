//! Compares the fast paths with the definition: the same events and the same errors for any bytes.

use proptest::prelude::*;

use super::super::lanes;
use super::*;
use crate::codec::{CodecSpec, encode_stream};

/// Decodes a payload field by field and hit by hit. Returns the events before an error, and the result.
fn reference(
    params: PredictParams,
    payload: &[u8],
    events: u32,
    check: impl Fn(u32, Event) -> Result<(), CodecError>,
) -> (Vec<Event>, Result<(), CodecError>) {
    let mut found = Vec::new();
    let mut slots = vec![Slot::default(); params.slots() as usize];
    let mut context = Context { stack: Stack::EMPTY, last: 0, mask: u32::MAX };
    let mut enter = |context: &mut Context, location: u32, mask: u32| {
        let event = Event { location: location as u16, mask };
        check(found.len() as u32, event)?;
        found.push(event);
        *context = Context { stack: context.stack.after(context.mask, mask), last: location, mask };
        Ok(())
    };
    let index = |context: &Context| (params.slot_at(context.last) / 8) as usize;
    let mut all = || {
        let mut input = Bits { payload, at: 0, event: 0 };
        if events != 0 {
            let (location, mask) = fields::read_first(&mut input, context)?;
            enter(&mut context, location, mask)?;
            input.event = 1;
        }
        let mut open = true;
        while open {
            open = !input.is_at_end();
            let remaining = events - input.event;
            let (mut hits, mut located) = (remaining, false);
            if open {
                let too_many = CodecError::TooManyEvents { expected: events, offset: input.at / 8 };
                if remaining == 0 {
                    return Err(too_many);
                }
                (input, hits, located) = fields::read_head(input)?;
                if hits >= remaining {
                    return Err(too_many);
                }
            }
            for _ in 0..hits {
                let slot = slots[index(&context)];
                let mask = slot.mask(context.stack.base(slot.relation(), context.mask));
                let location = context.last ^ slot.step();
                enter(&mut context, location, mask)?;
            }
            input.event += hits;
            if open {
                let index = index(&context);
                let (after, miss) = fields::read_miss(input, context, slots[index], located)?;
                (input, slots[index]) = (after, miss.slot);
                enter(&mut context, miss.location, miss.mask)?;
                input.event += 1;
            }
        }
        Ok(())
    };
    let result = all();
    (found, result)
}

fn compare(params: PredictParams, payload: &[u8], events: u32) {
    let mut decoder = PredictDecoder::new(params);
    let expected = reference(params, payload, events, check_event);
    let mut found = Vec::new();
    let result = decoder.decode(payload, events, &mut |event| found.push(event));
    assert_eq!((&found, &result), (&expected.0, &expected.1));
    let mut found = Vec::new();
    let result = decoder.decode_into(payload, events, &mut found);
    assert_eq!((&found, &result), (&expected.0, &expected.1));
    let mut found = Vec::new();
    let result =
        decoder.decode_items(payload, events, &mut |item| item.for_each(&mut |event| found.push(event)));
    assert_eq!((&found, &result), (&expected.0, &expected.1));
    let mut found = Vec::new();
    decoder.slots.fill(Slot::default());
    let (slots, body, output) = (&mut decoder.slots[..], &mut *decoder.body, &mut found);
    let result = Warp { slots, body, check: check_event, output }.chunk::<fast::Portable>(payload, events);
    assert_eq!((&found, &result), (&expected.0, &expected.1));

    let expected = reference(params, payload, events, |_, _| Ok(()));
    let mut found = Vec::new();
    let result = decoder.decode_any(payload, events, &mut |event| found.push(event));
    assert_eq!((found, result), expected);
}

fn params() -> impl Strategy<Value = PredictParams> {
    prop_oneof![2_u8..=4, 5_u8..=10].prop_map(|slot_bits| PredictParams { slot_bits })
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec(any::<u32>(), 1..400).prop_map(|choices| {
        let mut masks = vec![u32::MAX];
        let mut location = 1_u16;
        let mut events = Vec::new();
        for choice in choices {
            let mask = masks.last().copied().unwrap_or(u32::MAX);
            match choice >> 29 {
                0 | 1 if mask & choice != 0 => masks.push(mask & choice),
                2 if masks.len() > 1 => {
                    masks.truncate(masks.len() - 1 - (choice as usize & 1).min(masks.len() - 2));
                }
                3 if masks.len() > 1 => {
                    let inside = masks.pop().unwrap_or(u32::MAX);
                    let outside = masks.last().copied().unwrap_or(u32::MAX);
                    masks.push(if outside & !inside == 0 { outside } else { outside & !inside });
                }
                _ => {}
            }
            location = match choice >> 24 & 15 {
                0 => choice as u16,
                1..=3 => 1 + (location & 7),
                4..=10 => location,
                _ => location.wrapping_add((choice >> 8) as u16 & 31),
            };
            let event = Event { location: location.max(1), mask: masks.last().copied().unwrap_or(u32::MAX) };
            events.extend((0..=choice >> 16 & 3).map(|_| event));
        }
        events
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_bytes_say_the_same(
        params in params(),
        payload in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..80),
            prop::collection::vec(0_u8..16, 0..80),
            prop::collection::vec((any::<u8>(), any::<u8>()).prop_map(|(a, b)| a | b), 0..200),
        ],
        events in prop_oneof![0_u32..8, 0_u32..3000],
    ) {
        compare(params, &payload, events);
    }

    #[test]
    fn damaged_streams_say_the_same(
        params in params(),
        events in events(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0_u32..8), 0..3),
        keep in any::<prop::sample::Index>(),
    ) {
        for (count, mut payload) in encode_stream(CodecSpec::Predict(params), &events, 200) {
            compare(params, &payload, count);
            for (index, bit) in &flips {
                let index = index.index(payload.len());
                payload[index] ^= 1 << bit;
            }
            compare(params, &payload, count);
            payload.truncate(keep.index(payload.len() + 1));
            compare(params, &payload, count);
        }
    }

    #[test]
    fn lanes_expand_the_same(bits: u32, a: u32, b: u32) {
        for base in [a, a & b, a | b, 0, u32::MAX] {
            prop_assert_eq!(<fast::Portable as Expand>::expand(bits, base), lanes::expand(bits, base));
        }
    }

    #[test]
    fn stacks_go_on_the_same(masks in prop::collection::vec((any::<u32>(), 0_usize..6), 1..60)) {
        let (mut stack, mut last) = (Stack::EMPTY, u32::MAX);
        for (mask, kind) in masks {
            let mask = match kind {
                0 => mask,
                1 => last & mask,
                2 => last | mask,
                3 => 0,
                level => stack.0[level - 2],
            };
            prop_assert_eq!(fast::after(stack, last, mask), stack.after(last, mask));
            (stack, last) = (stack.after(last, mask), mask);
        }
    }
}
