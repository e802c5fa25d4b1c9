//! Payloads that no encoder wrote: decoders return data or an error with its position, and never panic.

use crate::common::{params, stream};
use proptest::prelude::*;
use warptrace_format::Event;
use warptrace_format::codec::{
    CodecError, CodecSpec, Decoder, EclDecoder, EclParams, PredictParams, decode_chunk, encode_stream,
    fuzzing,
};

proptest! {
    #[test]
    fn any_bytes_give_data_or_an_error(data in prop::collection::vec(any::<u8>(), 0..600)) {
        fuzzing::decode_arbitrary(&data);
    }

    #[test]
    fn low_bytes_give_data_or_an_error(data in prop::collection::vec(0_u8..8, 0..600)) {
        fuzzing::decode_arbitrary(&data);
    }

    #[test]
    fn any_bytes_as_events_come_back(data in prop::collection::vec(any::<u8>(), 0..1200)) {
        fuzzing::round_trip(&data);
    }

    #[test]
    fn flipped_bits_and_truncation_never_panic(
        params in params(),
        events in stream(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0_u32..8), 0..4),
        keep in any::<prop::sample::Index>(),
    ) {
        let spec = CodecSpec::Ecl(params);
        let mut decoder = Decoder::new(spec);
        for (count, mut payload) in encode_stream(spec, &events, 480) {
            for (index, bit) in &flips {
                let index = index.index(payload.len());
                payload[index] ^= 1 << bit;
            }
            payload.truncate(keep.index(payload.len() + 1));
            let mut decoded = Vec::new();
            let ok = decoder.decode_into(&payload, count, &mut decoded).is_ok();
            prop_assert_eq!(decoded.len(), if ok { count as usize } else { 0 });
        }
        // The decoder still works afterwards.
        for (count, payload) in encode_stream(spec, &events, 480) {
            let mut decoded = Vec::new();
            prop_assert!(decoder.decode_into(&payload, count, &mut decoded).is_ok());
            prop_assert_eq!(decoded.len(), count as usize);
        }
    }
}

/// The hash is exactly the two previous bytes.
const EXACT: CodecSpec = CodecSpec::Ecl(EclParams { hash_bits: 16, shift: 8, window_bits: 8 });

#[test]
fn each_fault_is_named_with_its_place() {
    // The payload of two events { 1, all lanes }, from the byte-vector test:
    // [01 ff, repeats 2] [01, repeats 1] [ff 02 ff]
    let good = [0x21, 0x01, 0xff, 0x10, 0x01, 0x02, 0xff, 0x02, 0xff];
    assert!(decode_chunk(EXACT, &good, 2).is_ok());
    let error = |payload: &[u8], events| decode_chunk(EXACT, payload, events).unwrap_err();

    assert_eq!(error(&good[..8], 2), CodecError::TruncatedGroup { offset: 5, literals: 3, left: 2 });
    assert_eq!(
        error(&good[..8], 2).to_string(),
        "the group at payload offset 5 has 3 literals, but only 2 bytes follow"
    );
    assert_eq!(error(&good[..1], 2), CodecError::TruncatedGroup { offset: 0, literals: 2, left: 0 });

    // 01 ff ff ff, then a match's count without a literal.
    let open = [0x21, 0x01, 0xff, 0x00, 0x01];
    assert_eq!(error(&open, 2), CodecError::MissingLiteral { offset: 5 });

    // One event announced: 01 ff ff ff, then the count 1 and the literal 01, which is the sixth byte. The
    // count is the first byte of the group at offset 3.
    assert_eq!(error(&good, 1), CodecError::TooManyEvents { expected: 1, offset: 3 });
    assert_eq!(error(&good, 3), CodecError::TooFewEvents { expected: 3, found: 2, stray: 0, offset: 9 });
    assert_eq!(error(&good[..5], 3), CodecError::TooFewEvents { expected: 3, found: 1, stray: 1, offset: 5 });
    assert_eq!(
        error(&good[..5], 3).to_string(),
        "the payload ends at offset 5 after 1 events and 1 bytes; 3 events were announced"
    );
    assert_eq!(error(&[0x00, 0x01], 0), CodecError::TooManyEvents { expected: 0, offset: 0 });

    let most = (1 << 30) / 5;
    assert_eq!(error(&good, u32::MAX), CodecError::TooLarge { events: u32::MAX, max: most });
    assert_eq!(error(&good, most + 1), CodecError::TooLarge { events: most + 1, max: most });
    assert!(matches!(error(&good, most), CodecError::TooFewEvents { found: 2, .. }));
}

#[test]
fn events_that_no_trace_contains_are_refused() {
    for (event, expected, text) in [
        (
            Event { location: 0, mask: 1 },
            CodecError::ZeroLocation { event: 1 },
            "event 1 of the chunk has location 0, which no trace point has",
        ),
        (
            Event { location: 1, mask: 0 },
            CodecError::ZeroMask { event: 1 },
            "event 1 of the chunk has mask 0: no lane took part in it",
        ),
    ] {
        let events = [Event { location: 9, mask: 3 }, event];
        for spec in [CodecSpec::Raw, EXACT, CodecSpec::Predict(PredictParams::DEFAULT)] {
            let chunks = encode_stream(spec, &events, 480);
            let error = decode_chunk(spec, &chunks[0].1, 2).unwrap_err();
            assert_eq!((error, error.to_string().as_str()), (expected, text));
            let mut decoded = Vec::new();
            Decoder::new(spec).decode_any(&chunks[0].1, 2, &mut |event| decoded.push(event)).unwrap();
            assert_eq!(decoded, events);
        }
    }
}

#[test]
fn raw_payloads_have_the_announced_length() {
    let error = |payload: &[u8], events| decode_chunk(CodecSpec::Raw, payload, events).unwrap_err();
    assert_eq!(error(&[1; 11], 2), CodecError::TooFewEvents { expected: 2, found: 1, stray: 5, offset: 11 });
    assert_eq!(error(&[1; 13], 2), CodecError::TooManyEvents { expected: 2, offset: 12 });
    assert_eq!(error(&[1; 18], 2), CodecError::TooManyEvents { expected: 2, offset: 12 });
    assert!(matches!(error(&[], u32::MAX), CodecError::TooFewEvents { found: 0, .. }));
}

#[test]
fn a_small_payload_cannot_expand_without_bound() {
    // The payload repeats one RLE group: the literal 255 with 15 repeats. So all LZa2 bytes are 255, and after
    // the first few, every second one is a count of 255 matching bytes. 64 KiB of payload would expand to
    // 67 MB of CUT bytes, but the decoder stops after the announced events.
    let payload = [0xf0, 0xff].repeat(1 << 15);
    let mut seen = 0;
    let mut decoder = EclDecoder::new(EclParams::DEFAULT);
    let error = decoder.decode(&payload, 1000, &mut |_| seen += 1).unwrap_err();
    assert!(matches!(error, CodecError::TooManyEvents { expected: 1000, .. }));
    assert!(seen <= 1000);
}

#[test]
fn a_decoder_outlives_its_range_of_positions() {
    // An empty chunk that announces the maximum number of events uses 2^30 of the 2^32 positions.
    let events = [Event { location: 5, mask: u32::MAX }; 300];
    let params = EclParams::new(4, 1, 6).unwrap();
    let (count, payload) = encode_stream(CodecSpec::Ecl(params), &events, 480).remove(0);
    let mut decoder = EclDecoder::new(params);
    for _ in 0..9 {
        assert!(decoder.decode(&[], (1 << 30) / 5, &mut |_| ()).is_err());
        let mut decoded = Vec::new();
        decoder.decode(&payload, count, &mut |event| decoded.push(event)).unwrap();
        assert_eq!(decoded, events);
    }
}

#[test]
#[should_panic(expected = "parameters are checked")]
fn a_decoder_is_not_made_for_parameters_out_of_range() {
    EclDecoder::new(EclParams { hash_bits: 40, shift: 2, window_bits: 8 });
}
