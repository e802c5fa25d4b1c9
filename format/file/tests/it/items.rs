//! Runs and cycles: they expand to the events, and loops cost as much as their encoding.

use crate::common::{bfs_streams, stream};
use proptest::prelude::*;
use warptrace_format::Event;
use warptrace_format::codec::{CodecSpec, Decoder, EclParams, Item, MAX_BODY, PredictParams, encode_stream};

fn specs() -> impl Strategy<Value = CodecSpec> {
    let predict = (2_u8..=10).prop_map(|slot_bits| CodecSpec::Predict(PredictParams { slot_bits }));
    prop_oneof![2 => predict, 1 => Just(CodecSpec::Raw), 1 => Just(CodecSpec::Ecl(EclParams::DEFAULT))]
}

fn items(spec: CodecSpec, chunks: &[(u32, Vec<u8>)]) -> Vec<(Vec<Event>, u32)> {
    let mut decoder = Decoder::new(spec);
    let mut items = Vec::new();
    for (count, payload) in chunks {
        let mut sum = 0;
        let mut note = |item: Item<'_>| {
            sum += item.events();
            items.push((item.body().to_vec(), item.times()));
        };
        decoder.decode_items(payload, *count, &mut note).expect("an encoder wrote it");
        assert_eq!(sum, u64::from(*count));
    }
    items
}

fn expanded(items: &[(Vec<Event>, u32)]) -> Vec<Event> {
    items.iter().flat_map(|(body, times)| (0..*times).flat_map(|_| body.iter().copied())).collect()
}

/// Nested loops: repeated bodies, with single events and other loops between them.
fn loops() -> impl Strategy<Value = Vec<Event>> {
    let event =
        (1_u16..=40, 0_u32..4).prop_map(|(location, part)| Event { location, mask: u32::MAX >> (7 * part) });
    let body = prop_oneof![
        4 => prop::collection::vec(event.clone(), 1..6),
        2 => prop::collection::vec(event.clone(), 10..40),
        1 => prop::collection::vec(event, 100..160),
    ];
    let once = (body, 1_usize..60).prop_map(|(body, times)| body.repeat(times));
    (prop::collection::vec(once, 1..6), 1_usize..4).prop_map(|(parts, times)| parts.concat().repeat(times))
}

proptest! {
    #[test]
    fn items_expand_to_the_events(
        spec in specs(),
        events in prop_oneof![loops(), stream()],
        capacity in 16_u32..2000,
    ) {
        let chunks = encode_stream(spec, &events, capacity);
        let items = items(spec, &chunks);
        prop_assert_eq!(expanded(&items), events);
        for (body, times) in items {
            prop_assert!((1..=MAX_BODY).contains(&body.len()) && times > 0);
        }
    }
}

fn at(locations: impl IntoIterator<Item = u16>) -> Vec<Event> {
    locations.into_iter().map(|location| Event { location, mask: u32::MAX }).collect()
}

#[test]
fn a_loop_is_one_item_however_often_it_runs() {
    for (codec, max_items, longest) in [
        (CodecSpec::Predict(PredictParams::DEFAULT), 100, 25),
        (CodecSpec::Raw, 40, 16),
        (CodecSpec::Ecl(EclParams::DEFAULT), 40, 16),
    ] {
        for length in 1..=longest {
            let body = at(2..2 + length);
            let times = 10_000;
            let events = [at([1]), body.repeat(times), at([31])].concat();
            let chunks = encode_stream(codec, &events, 1 << 20);
            assert_eq!(chunks.len(), 1);
            let items = items(codec, &chunks);
            assert_eq!(expanded(&items), events);
            assert!(items.len() <= max_items, "{codec:?}, body of {length}: {} items", items.len());
            let most = items.iter().max_by_key(|(_, times)| times).expect("there are items");
            assert_eq!(most.0.len(), usize::from(length), "{codec:?}");
            assert!(most.1 as usize > times - 20, "{codec:?}: {} times in one item", most.1);
        }
    }
}

#[test]
fn a_run_is_one_item_for_every_codec() {
    let events = at([1, 2].into_iter().chain(std::iter::repeat_n(3, 50_000)).chain([4, 4]));
    let specs =
        [CodecSpec::Raw, CodecSpec::Ecl(EclParams::DEFAULT), CodecSpec::Predict(PredictParams::DEFAULT)];
    for spec in specs {
        let chunks = encode_stream(spec, &events, 1 << 20);
        let items = items(spec, &chunks);
        assert_eq!(expanded(&items), events);
        assert!(items.len() <= 6, "{spec:?}: {items:?}");
    }
}

#[test]
fn a_fault_ends_the_items_like_the_events() {
    let payload = [[1, 0, 1, 0, 0, 0]; 5].concat();
    let payload = [&payload[..], &[2, 0, 0, 0, 0, 0]].concat();
    let mut expanded = Vec::new();
    let mut decoder = Decoder::new(CodecSpec::Raw);
    let result =
        decoder.decode_items(&payload, 6, &mut |item| item.for_each(&mut |event| expanded.push(event)));
    assert_eq!(result, decoder.decode(&payload, 6, &mut |_| {}));
    assert!(result.is_err());
    assert_eq!(expanded, [Event { location: 1, mask: 1 }; 5]);
}

#[test]
fn the_bfs_trace_expands_to_its_events() {
    let Some(streams) = bfs_streams() else { return };
    let spec = CodecSpec::Predict(PredictParams::DEFAULT);
    let (mut events, mut count) = (0, 0);
    for mut stream in streams {
        // The trace has a location 0 and empty masks, which no trace of this project has.
        stream
            .iter_mut()
            .for_each(|event| (event.location, event.mask) = (event.location + 1, event.mask.max(1)));
        let chunks = encode_stream(spec, &stream, 4064);
        let items = items(spec, &chunks);
        assert_eq!(expanded(&items), stream);
        (events, count) = (events + stream.len(), count + items.len());
    }
    println!("{events} events in {count} items");
}
