//! Compares the streaming encoder and decoder with the whole-buffer reference.

use crate::common::{cut, few_values, params, stream};
use proptest::prelude::*;
use warptrace_format::codec::ecl::encoder::MAX_PUSH_GROWTH;
use warptrace_format::codec::ecl::lza2::RESTART_AT;
use warptrace_format::codec::ecl::reference;
use warptrace_format::codec::{CodecSpec, Decoder, EclParams, EclState, RawState, encode_stream};
use warptrace_format::{Event, Memory, SliceMemory};

/// Converts the state to words and back between steps. Keeps `work` from the last chunk.
fn encode_chunk(params: EclParams, work: &mut [u8], events: &[Event]) -> Vec<u8> {
    let mut work = SliceMemory(work);
    let mut out = vec![0xaa; events.len() * MAX_PUSH_GROWTH as usize];
    let mut payload = SliceMemory(&mut out);
    let mut words = [0; EclState::WORDS];
    let mut step = |run: &mut dyn FnMut(&mut EclState)| {
        let mut state = EclState::from_words(&words);
        run(&mut state);
        words = state.to_words();
    };
    step(&mut |state| state.begin_chunk(&params, &mut work));
    for event in events {
        step(&mut |state| state.push(&params, &mut work, &mut payload, *event));
    }
    let mut length = 0;
    step(&mut |state| length = state.finish_chunk(&params, &mut work, &mut payload));
    out.truncate(length as usize);
    out
}

fn reference_chunk(params: EclParams, events: &[Event]) -> Vec<u8> {
    reference::rle_compress(&reference::lza2_compress(params, &cut(events)))
}

proptest! {
    #[test]
    fn streaming_equals_whole_buffer(params in params(), events in stream()) {
        let mut work = vec![0; params.work_bytes() as usize];
        let payload = encode_chunk(params, &mut work, &events);
        prop_assert_eq!(&payload, &reference_chunk(params, &events));
        let lza2 = reference::rle_decompress(&payload).unwrap();
        prop_assert_eq!(reference::lza2_decompress(params, &lza2).unwrap(), cut(&events));
    }

    #[test]
    fn work_memory_needs_no_clearing_between_streams(
        params in params(),
        streams in prop::collection::vec(stream(), 1..6),
        start in prop_oneof![Just(0), Just(RESTART_AT - 1), Just(RESTART_AT), Just(u32::MAX), 0..RESTART_AT],
    ) {
        let mut work = vec![0; params.work_bytes() as usize];
        SliceMemory(&mut work).set32(params.position_at(), start);
        let mut decoder = Decoder::new(CodecSpec::Ecl(params));
        for events in &streams {
            let payload = encode_chunk(params, &mut work, events);
            prop_assert_eq!(&payload, &reference_chunk(params, events));
            let mut decoded = Vec::new();
            decoder.decode_into(&payload, events.len() as u32, &mut decoded).unwrap();
            prop_assert_eq!(&decoded, events);
        }
    }

    #[test]
    fn streams_cut_into_chunks_come_back(params in params(), events in stream(), capacity in 11_u32..600) {
        for spec in [CodecSpec::Raw, CodecSpec::Ecl(params)] {
            let mut decoder = Decoder::new(spec);
            let mut decoded = Vec::new();
            let chunks = encode_stream(spec, &events, capacity);
            for (count, payload) in &chunks {
                prop_assert!(payload.len() <= capacity as usize);
                decoder.decode_into(payload, *count, &mut decoded).unwrap();
            }
            prop_assert_eq!(&decoded, &events);
            // Each chunk decodes alone, also in reverse order.
            for (count, payload) in chunks.iter().rev() {
                let mut chunk = Vec::new();
                decoder.decode_into(payload, *count, &mut chunk).unwrap();
                prop_assert_eq!(chunk.len(), *count as usize);
            }
        }
    }
}

#[test]
fn a_chunk_left_open_does_not_disturb_the_next() {
    // The hash spans eight bytes, so an entry of the dropped chunk can look like one of the new chunk: the
    // positions are equal, and the new bytes there may agree.
    let params = EclParams::new(8, 1, 8).unwrap();
    for seed in 0..50 {
        let mut memory = vec![0; params.work_bytes() as usize];
        let mut work = SliceMemory(&mut memory);
        let mut out = vec![0; 1000];
        let mut state = EclState::new();
        state.begin_chunk(&params, &mut work);
        for event in few_values(2, 60, seed) {
            state.push(&params, &mut work, &mut SliceMemory(&mut out), event);
        }
        let events = few_values(2, 60, 1000 + seed);
        assert_eq!(
            encode_chunk(params, &mut memory, &events),
            reference_chunk(params, &events),
            "seed {seed}"
        );
    }
}

#[test]
fn a_match_nearer_than_an_event_goes_byte_by_byte() {
    // From position 5 the bytes have period 4, so the open match is 4 bytes back. As the fifth byte of an
    // event it expects the first byte of the same event, instead of the old byte in the ring (W = 64). The
    // last event's fifth byte is that old byte: byte 1 for the event at 65.
    let params = EclParams::new(16, 8, 6).unwrap();
    let mut bytes = vec![200, 99, 98, 97, 96];
    bytes.extend((5..69).map(|i| 1 + i as u8 % 4));
    bytes.push(99);
    bytes.extend([7; 10]);
    let events: Vec<Event> = bytes.as_chunks().0.iter().map(|event| Event::from_cut(*event)).collect();
    let mut work = vec![0; params.work_bytes() as usize];
    assert_eq!(encode_chunk(params, &mut work, &events), reference_chunk(params, &events));
}

#[test]
fn positions_start_again_after_two_gibibytes() {
    let params = EclParams::new(5, 2, 6).unwrap();
    let events: Vec<Event> =
        (0..500).map(|i| Event { location: 1 + i % 3, mask: u32::from(i % 7) + 1 }).collect();
    let mut work = vec![0; params.work_bytes() as usize];
    SliceMemory(&mut work).set32(params.position_at(), RESTART_AT - 1);
    for chunk in 0..3 {
        assert_eq!(
            encode_chunk(params, &mut work, &events),
            reference_chunk(params, &events),
            "chunk {chunk}"
        );
        // 2,500 bytes per chunk: the first starts below the limit and ends above it, the second restarts.
        let position = SliceMemory(&mut work).get32(params.position_at());
        assert_eq!(position, [RESTART_AT - 1 + 2500, 2500, 5000][chunk]);
    }
}

#[test]
fn long_chunks_pass_the_decoders_buffer() {
    // 200,000 bytes in one chunk, many times the decoder's block, with a window larger and smaller than it.
    let mut random = 1_u32;
    let events: Vec<Event> = (0..40_000)
        .map(|i| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let mask = if random >> 30 == 0 { random | 1 } else { u32::MAX };
            Event { location: 1 + (i % 4) as u16, mask }
        })
        .collect();
    for window_bits in [6, 10, 14, 16, 20] {
        let params = EclParams::new(12, 4, window_bits).unwrap();
        let spec = CodecSpec::Ecl(params);
        let chunks = encode_stream(spec, &events, u32::MAX);
        assert_eq!(chunks, [(40_000, reference_chunk(params, &events))]);
        let mut decoded = Vec::new();
        Decoder::new(spec).decode_into(&chunks[0].1, 40_000, &mut decoded).unwrap();
        assert_eq!(decoded, events);
    }
}

#[test]
fn fresh_states_are_zero_words() {
    assert_eq!(EclState::new().to_words(), [0; EclState::WORDS]);
    assert_eq!(EclState::from_words(&[0; EclState::WORDS]), EclState::new());
    assert_eq!(RawState::new().to_words(), [0; RawState::WORDS]);
    assert_eq!(RawState::from_words(&[0; RawState::WORDS]), RawState::new());
    let words = [1, 2, 3, 4, 5, 6, 7, 8];
    assert_eq!(EclState::from_words(&words).to_words(), words);
}

#[test]
#[should_panic(expected = "event 1 has location 256; ecl carries at most 255")]
fn a_location_beyond_the_codec_is_refused() {
    let events = [Event { location: 255, mask: 1 }, Event { location: 256, mask: 1 }];
    encode_stream(CodecSpec::Ecl(EclParams::DEFAULT), &events, 480);
}
