//! Bodies of the fuzz targets, as a library for tests. Each function panics on a finding.

use super::ecl::reference;
use super::raw::{self, PAYLOAD_EVENT_BYTES};
use super::{CodecSpec, Decoder, EclParams, MAX_BODY, PredictDecoder, PredictParams, encode_stream};
use crate::event::{Event, RAW_EVENT_BYTES};

/// Derives valid `ecl` parameters from `data`. Windows are small, so that most inputs reach the ring's end.
fn params_from(data: &[u8]) -> Option<(EclParams, &[u8])> {
    let ([hash_bits, shift, window_bits], rest) = data.split_first_chunk::<3>()?;
    let params = EclParams::new(4 + hash_bits % 13, 1 + shift % 8, 6 + window_bits % 7)
        .expect("each parameter was brought into its range");
    Some((params, rest))
}

fn predict_params(params: EclParams) -> PredictParams {
    PredictParams::new(2 + params.hash_bits % 9).expect("brought into its range")
}

/// Checks that every codec reproduces the events in `data`, and `ecl` the bytes of its reference.
pub fn round_trip(data: &[u8]) {
    let Some((params, rest)) = params_from(data) else { return };
    let Some(([capacity], rest)) = rest.split_first_chunk::<1>() else { return };
    let capacity = 16 + u32::from(*capacity) * 16;
    for spec in [CodecSpec::Raw, CodecSpec::Ecl(params), CodecSpec::Predict(predict_params(params))] {
        // `ecl` carries locations of one byte.
        let events: Vec<Event> = match spec {
            CodecSpec::Ecl(_) => rest.as_chunks().0.iter().map(|bytes| Event::from_cut(*bytes)).collect(),
            _ => rest.as_chunks().0.iter().map(|bytes| raw::decode_event(*bytes)).collect(),
        };
        let chunks = encode_stream(spec, &events, capacity);
        let mut decoder = Decoder::new(spec);
        let mut decoded = Vec::with_capacity(events.len());
        for (count, payload) in &chunks {
            assert!(payload.len() <= capacity as usize, "{spec:?}: chunk larger than its capacity");
            let from = decoded.len();
            decoder
                .decode_any(payload, *count, &mut |event| decoded.push(event))
                .expect("what the encoder wrote decodes");
            if let CodecSpec::Ecl(params) = spec {
                let cut: Vec<u8> = decoded[from..].iter().flat_map(|event| event.cut()).collect();
                let expected = reference::rle_compress(&reference::lza2_compress(params, &cut));
                assert_eq!(payload, &expected, "streaming and whole-buffer encoders differ");
            }
        }
        assert_eq!(decoded, events, "{spec:?}: decoded events differ");
        if events.iter().all(|event| event.location != 0 && event.mask != 0) {
            let mut expanded = Vec::with_capacity(events.len());
            for (count, payload) in &chunks {
                decoder
                    .decode_items(payload, *count, &mut |item| {
                        item.for_each(&mut |event| expanded.push(event));
                    })
                    .expect("what the encoder wrote decodes");
            }
            assert_eq!(expanded, events, "{spec:?}: items expand to other events");
        }
    }
}

/// Checks that each decoder agrees with the reference on data or error, also when it decodes a payload again.
pub fn decode_arbitrary(data: &[u8]) {
    let Some((params, rest)) = params_from(data) else { return };
    let Some(([low, high], payload)) = rest.split_first_chunk::<2>() else { return };
    let announced = u32::from(u16::from_le_bytes([*low, *high]));

    decode_arbitrary_predict(predict_params(params), announced, payload);
    let of_ecl =
        reference::rle_decompress(payload).and_then(|lza2| reference::lza2_decompress(params, &lza2));
    let of_raw = Some(payload.to_vec());
    for (spec, expected, event_bytes) in
        [(CodecSpec::Raw, of_raw, PAYLOAD_EVENT_BYTES), (CodecSpec::Ecl(params), of_ecl, RAW_EVENT_BYTES)]
    {
        let event_bytes = event_bytes as usize;
        // The announced number, and the matching number if one exists.
        let fitting = expected
            .as_ref()
            .filter(|bytes| bytes.len() % event_bytes == 0)
            .map_or(announced, |bytes| (bytes.len() / event_bytes) as u32);
        let mut decoder = Decoder::new(spec);
        for events in [announced, fitting, announced] {
            let mut decoded = Vec::new();
            let result = decoder.decode_any(payload, events, &mut |event| decoded.push(event));
            assert!(decoded.len() <= events as usize, "{spec:?}: more events than announced");
            let plain: Vec<u8> = match spec {
                CodecSpec::Raw => decoded.iter().flat_map(|&event| raw::encode_event(event)).collect(),
                _ => decoded.iter().flat_map(|event| event.cut()).collect(),
            };
            match (&expected, result) {
                (Some(bytes), Ok(())) => assert_eq!(&plain, bytes, "{spec:?}: differs from the reference"),
                (Some(bytes), Err(error)) => assert_ne!(
                    bytes.len(),
                    events as usize * event_bytes,
                    "{spec:?}: {error}, but the reference decodes it"
                ),
                (None, Ok(())) => panic!("{spec:?}: accepted what the reference refuses"),
                (None, Err(_)) => {}
            }
            let mut checked = Vec::new();
            if decoder.decode_into(payload, events, &mut checked).is_ok() {
                assert_eq!(checked, decoded, "{spec:?}: the checked decoder differs");
                assert!(checked.iter().all(|event| event.location != 0 && event.mask != 0));
            } else {
                assert!(checked.is_empty());
            }
        }
    }
}

/// Checks for `predict`, which has no reference, that an accepted payload survives encoding and decoding, and
/// that the three decoding functions agree.
fn decode_arbitrary_predict(params: PredictParams, announced: u32, payload: &[u8]) {
    let mut decoder = PredictDecoder::new(params);
    for events in [announced, announced % 64, announced] {
        let mut decoded = Vec::new();
        let result = decoder.decode_any(payload, events, &mut |event| decoded.push(event));
        assert!(decoded.len() <= events as usize, "more events than announced");
        if result.is_ok() {
            assert_eq!(decoded.len(), events as usize, "fewer events than announced");
            let mut again = Vec::new();
            for (count, payload) in encode_stream(CodecSpec::Predict(params), &decoded, u32::MAX) {
                decoder
                    .decode_any(&payload, count, &mut |event| again.push(event))
                    .expect("what the encoder wrote decodes");
            }
            assert_eq!(again, decoded, "decoded events do not come back");
        }
        let mut checked = Vec::new();
        let checked_result = decoder.decode(payload, events, &mut |event| checked.push(event));
        let mut expanded = Vec::new();
        let items_result = decoder.decode_items(payload, events, &mut |item| {
            assert!(item.times() > 0 && item.body().len() <= MAX_BODY, "{item:?}");
            item.for_each(&mut |event| expanded.push(event));
        });
        assert_eq!((&checked, checked_result), (&expanded, items_result));
        assert!(checked.iter().all(|event| event.location != 0 && event.mask != 0));
        if checked_result.is_ok() {
            assert_eq!((&checked, result), (&decoded, Ok(())), "the checked decoder differs");
        }
    }
}
