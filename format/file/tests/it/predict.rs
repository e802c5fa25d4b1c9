//! The codec `predict`: round trips, the bound on growth, and comparisons with simple definitions.

use crate::common::{bfs_streams, few_values, stream};
use proptest::prelude::*;
use warptrace_format::codec::predict::encoder::{MAX_PUSH_BITS, MAX_PUSH_GROWTH};
use warptrace_format::codec::predict::lanes;
use warptrace_format::codec::predict::stack::{Relation, Relations, Stack};
use warptrace_format::codec::predict::{MAX_CHUNK_EVENTS, PredictDecoder, PredictState, Slot};
use warptrace_format::codec::{CodecSpec, Decoder, Item, PredictParams, encode_stream};
use warptrace_format::{Event, RAW_EVENT_BYTES, SliceMemory};

fn params() -> impl Strategy<Value = PredictParams> {
    (2_u8..=10).prop_map(|slot_bits| PredictParams { slot_bits })
}

/// Structured control flow of random nesting: branches, loops that lanes leave, locations up to 65,535.
fn nested() -> impl Strategy<Value = Vec<Event>> {
    (prop::collection::vec(any::<u32>(), 1..200), prop_oneof![Just(1_u16), 1_u16..=65_000]).prop_map(
        |(choices, first)| {
            let mut events = Vec::new();
            let mut outside = vec![(u32::MAX, first)];
            for choice in choices {
                let (mask, location) = *outside.last().expect("the outermost is never popped");
                events.push(Event { location, mask });
                let inside = mask & (choice | choice << 7);
                match choice >> 28 {
                    0..=5 if inside != 0 => outside.push((inside, location + 1 + (choice >> 20 & 7) as u16)),
                    6..=8 if mask & !inside != 0 => {
                        events.push(Event { location: location + 1, mask: inside | 1 });
                        events.push(Event { location: location + 2, mask: mask & !inside });
                    }
                    9..=12 if outside.len() > 1 => drop(outside.pop()),
                    _ => events.extend((0..choice & 63).map(|_| Event { location, mask })),
                }
            }
            events
        },
    )
}

fn decoded(params: PredictParams, chunks: &[(u32, Vec<u8>)]) -> Vec<Event> {
    let mut decoder = PredictDecoder::new(params);
    let mut events = Vec::new();
    for (count, payload) in chunks {
        decoder.decode_any(payload, *count, &mut |event| events.push(event)).expect("an encoder wrote it");
    }
    events
}

proptest! {
    #[test]
    fn streams_cut_into_chunks_come_back(
        params in params(),
        events in prop_oneof![stream(), nested()],
        capacity in MAX_PUSH_GROWTH..600,
    ) {
        let chunks = encode_stream(CodecSpec::Predict(params), &events, capacity);
        prop_assert!(chunks.iter().all(|(_, payload)| payload.len() <= capacity as usize));
        prop_assert_eq!(decoded(params, &chunks), &events[..]);
        // Each chunk decodes alone, also in reverse order.
        let mut decoder = Decoder::new(CodecSpec::Predict(params));
        for (count, payload) in chunks.iter().rev() {
            let mut chunk = Vec::new();
            decoder.decode_into(payload, *count, &mut chunk).unwrap();
            prop_assert_eq!(chunk.len(), *count as usize);
        }
    }

    #[test]
    fn any_events_come_back(
        params in params(),
        events in prop::collection::vec((any::<u16>(), any::<u32>()), 0..200),
    ) {
        let events: Vec<Event> = events.into_iter().map(|(location, mask)| Event { location, mask }).collect();
        let chunks = encode_stream(CodecSpec::Predict(params), &events, 480);
        prop_assert_eq!(decoded(params, &chunks), events);
    }

    #[test]
    fn a_push_and_a_finish_stay_below_the_bound(
        params in params(),
        events in prop_oneof![stream(), nested()],
    ) {
        let mut work = vec![0xaa; params.work_bytes() as usize];
        let mut out = vec![0; (events.len() + 1) * MAX_PUSH_GROWTH as usize];
        let mut words = PredictState::new().to_words();
        let mut state = PredictState::from_words(&words);
        state.begin_chunk(&params, &mut SliceMemory(&mut work));
        for event in &events {
            let before = state.to_words()[3];
            state.push(&params, &mut SliceMemory(&mut work), &mut SliceMemory(&mut out), *event);
            prop_assert!(state.to_words()[3] - before <= MAX_PUSH_BITS);
            words = state.to_words();
            state = PredictState::from_words(&words);
        }
        let length = state.finish_chunk(&params, &mut SliceMemory(&mut work), &mut SliceMemory(&mut out));
        prop_assert_eq!(length, words[3].div_ceil(8));
        let chunks = encode_stream(CodecSpec::Predict(params), &events, u32::MAX);
        prop_assert_eq!(chunks.first().map_or(&[][..], |chunk| &chunk.1), &out[..length as usize]);
    }

    #[test]
    fn compressed_lanes_are_those_of_the_base_in_order(mask: u32, base in base()) {
        let mut expected = 0;
        let mut count = 0;
        for lane in 0..32 {
            if base >> lane & 1 != 0 {
                expected |= (mask >> lane & 1) << count;
                count += 1;
            }
        }
        prop_assert_eq!(lanes::compress(mask, base), expected);
        prop_assert_eq!(lanes::expand(expected, base), mask & base);
        for (rank, lane) in (0..32).filter(|lane| base >> lane & 1 != 0).enumerate() {
            prop_assert_eq!(lanes::lane(rank as u32, base), Some(1 << lane));
        }
        prop_assert_eq!(lanes::lane(count, base), None);
    }

    #[test]
    fn lanes_take_the_shortest_form(mask: u32, base in base()) {
        let mask = mask & base;
        let (n, here) = (base.count_ones(), mask.count_ones());
        let rank = n.max(1).next_power_of_two().ilog2();
        let shortest = [
            (here == n, 2),
            (n - here == 1, 3 + rank),
            (here == 1, 4 + rank),
            (n - here == 2 || here == 2, 5 + 2 * rank),
            (true, 1 + n),
        ];
        let shortest = shortest.iter().filter(|form| form.0).map(|form| form.1).min();
        // A full set has only one encoding, one bit longer than necessary if the base has at most one lane.
        let shortest = if here == n { Some(2) } else { shortest };
        prop_assert_eq!(Some(lanes::encode(mask, base).length), shortest);
    }

    #[test]
    fn the_stack_stays_nested_and_finds_the_smallest(masks in prop::collection::vec(base(), 1..60)) {
        let (mut stack, mut last) = (Stack::EMPTY, u32::MAX);
        for mask in masks {
            let nested = [last, stack.0[0], stack.0[1], stack.0[2], stack.0[3], u32::MAX];
            prop_assert!(nested.windows(2).all(|pair| pair[0] & !pair[1] == 0), "{nested:x?}");
            let level = nested.iter().position(|outside| mask & !outside == 0).expect("all lanes hold any mask");
            let relation = stack.nearest(last, mask);
            prop_assert_eq!(relation, Relation::new(level as u32, level > 0 && mask & last == 0));
            prop_assert_eq!(mask & !stack.base(relation, last), 0);
            prop_assert!(relation.number() < Relation::END);
            if mask != 0 && last != 0 {
                let exact = stack.base(relation, last) == mask;
                let relations = Relations::new(relation, exact, mask, last);
                for number in (0..Relation::END).filter(|&number| number != 1) {
                    let other = Relation::new(number >> 1, number & 1 != 0);
                    let base = stack.base(other, last);
                    let is_among = if exact { base == mask } else { mask & !base == 0 };
                    prop_assert!(exact || base != mask);
                    for by_seen in [false, true] {
                        let slot = Slot::learned(3, other, by_seen, 5);
                        prop_assert_eq!(relations.has(slot), is_among, "{:?} of {:x?}", other, nested);
                    }
                }
            }

            let mut masks = stack.0.to_vec();
            if mask != last && mask & !last == 0 {
                masks.insert(0, last);
            } else if mask != last {
                masks.retain(|outside| mask & !outside == 0 && *outside != mask);
            }
            masks.resize(masks.len().max(4), u32::MAX);
            stack = stack.after(last, mask);
            prop_assert_eq!(&stack.0[..], &masks[..4]);
            last = mask;
        }
    }
}

fn base() -> impl Strategy<Value = u32> {
    (any::<u32>(), any::<u32>(), any::<u32>(), 0..5).prop_map(|(a, b, c, kind)| match kind {
        0 => a & b & c,
        1 => a & b,
        2 => a | b | c,
        3 => u32::MAX << (a & 31),
        _ => a,
    })
}

#[test]
fn work_memory_may_hold_anything_before_a_chunk() {
    let params = PredictParams::new(3).unwrap();
    for seed in 0..50 {
        let events = few_values(3, 60, seed);
        let mut work = vec![0x5b; params.work_bytes() as usize];
        let mut out = vec![0; 1000];
        let mut state = PredictState::new();
        // A chunk that is not finished, then another one.
        for end in [20, 60] {
            state.begin_chunk(&params, &mut SliceMemory(&mut work));
            for event in &events[..end] {
                state.push(&params, &mut SliceMemory(&mut work), &mut SliceMemory(&mut out), *event);
            }
        }
        let length = state.finish_chunk(&params, &mut SliceMemory(&mut work), &mut SliceMemory(&mut out));
        let expected = encode_stream(CodecSpec::Predict(params), &events, u32::MAX);
        assert_eq!(expected, [(60, out[..length as usize].to_vec())], "seed {seed}");
    }
}

#[test]
fn the_bound_is_reached() {
    // The last event has the longest form of each field: more than 2^15 hits before it, a distant location,
    // and a bit for each of 32 lanes in a mask two levels up.
    let at = |location, mask| Event { location, mask };
    let mut events = vec![at(4, u32::MAX), at(8, 0xff), at(12, 0xf)];
    events.extend([at(12, 0xf); 40_000]);
    events.push(at(60_000, 0x5555_5555));
    let params = PredictParams::DEFAULT;
    let bits = |events: &[Event]| {
        let (mut work, mut out) = (vec![0; params.work_bytes() as usize], vec![0; 200]);
        let mut state = PredictState::new();
        state.begin_chunk(&params, &mut SliceMemory(&mut work));
        for event in events {
            state.push(&params, &mut SliceMemory(&mut work), &mut SliceMemory(&mut out), *event);
        }
        state.to_words()[3]
    };
    assert_eq!(bits(&events) - bits(&events[..events.len() - 1]), MAX_PUSH_BITS);
    let chunks = encode_stream(CodecSpec::Predict(params), &events, u32::MAX);
    assert_eq!(decoded(params, &chunks), events);
}

#[test]
fn room_ends_where_one_more_event_might_not_fit() {
    // The words are last location, mask, events, bits.
    let with = |events, bits| PredictState::from_words(&[1, 1, events, bits]);
    assert!(with(0, 0).has_room(MAX_PUSH_GROWTH) && !with(0, 0).has_room(MAX_PUSH_GROWTH - 1));
    assert!(with(1, 28).has_room(16) && !with(1, 29).has_room(16));
    assert!(with(MAX_CHUNK_EVENTS - 1, 1).has_room(4064) && !with(MAX_CHUNK_EVENTS, 1).has_room(4064));
}

#[test]
fn a_chunk_of_the_most_events_comes_back() {
    let event = Event { location: 1, mask: u32::MAX };
    let mut events = vec![event; MAX_CHUNK_EVENTS as usize - 1];
    events.push(Event { location: 9, mask: 1 });
    events.push(event);
    let spec = CodecSpec::Predict(PredictParams::DEFAULT);
    let chunks = encode_stream(spec, &events, 64);
    assert_eq!(chunks.iter().map(|chunk| chunk.0).collect::<Vec<_>>(), [MAX_CHUNK_EVENTS, 1]);
    let mut runs = Vec::new();
    let mut decoder = PredictDecoder::new(PredictParams::DEFAULT);
    let mut note = |item: Item<'_>| runs.push((item.body()[0], item.events() as u32));
    decoder.decode_items(&chunks[0].1, chunks[0].0, &mut note).unwrap();
    assert_eq!(runs, [(event, 1), (event, MAX_CHUNK_EVENTS - 2), (events[MAX_CHUNK_EVENTS as usize - 1], 1)]);
}

#[test]
fn an_n_body_warp_takes_four_bytes() {
    // A warp of the force kernel: entry, 16,384 interactions, first or later step.
    for last in [4, 5] {
        let mut events = vec![Event { location: 3, mask: u32::MAX }; 16_386];
        events[0].location = 1;
        events[16_385].location = last;
        let chunks = encode_stream(CodecSpec::Predict(PredictParams::DEFAULT), &events, 4064);
        assert_eq!(chunks.iter().map(|chunk| chunk.1.len()).collect::<Vec<_>>(), [4]);
        assert_eq!(decoded(PredictParams::DEFAULT, &chunks), events);
    }
}

#[test]
fn the_bfs_trace_comes_back_at_the_ratio_documented() {
    let Some(streams) = bfs_streams() else { return };
    let (mut raw, mut encoded) = (0, 0);
    for stream in &streams {
        let chunks = encode_stream(CodecSpec::Predict(PredictParams::DEFAULT), stream, 4064);
        assert_eq!(&decoded(PredictParams::DEFAULT, &chunks), stream);
        raw += stream.len() * RAW_EVENT_BYTES as usize;
        encoded += chunks.iter().map(|chunk| chunk.1.len()).sum::<usize>();
    }
    assert_eq!(raw * 10 / encoded, 158, "{encoded} bytes");
}

#[test]
fn fresh_states_are_zero_words() {
    assert_eq!(PredictState::new().to_words(), [0; PredictState::WORDS]);
    assert_eq!(PredictState::from_words(&[1, 2, 3, 4]).to_words(), [1, 2, 3, 4]);
}
