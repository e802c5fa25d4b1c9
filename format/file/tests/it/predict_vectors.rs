//! Payloads of `predict` derived by hand from the tables in `docs/reference/codecs.md`, and errors.
//!
//! Bits are in write order, the lowest of each byte first.

use warptrace_format::Event;
use warptrace_format::codec::{
    CodecError, CodecSpec, ParamError, PredictParams, decode_chunk, encode_stream,
};

const SPEC: CodecSpec = CodecSpec::Predict(PredictParams::DEFAULT);
const ALL: u32 = u32::MAX;

fn events(events: &[(u16, u32)]) -> Vec<Event> {
    events.iter().map(|&(location, mask)| Event { location, mask }).collect()
}

fn check(payload: &[u8], expected: &[(u16, u32)]) {
    let expected = events(expected);
    let count = expected.len() as u32;
    assert_eq!(encode_stream(SPEC, &expected, 480), [(count, payload.to_vec())]);
    assert_eq!(decode_chunk(SPEC, payload, count), Ok(expected));
}

#[test]
fn an_event_that_repeats_is_its_first() {
    // First event, location 1 and all lanes: 1. The rest are hits without a later miss.
    check(&[0x01], &[(1, ALL); 2]);
    check(&[0x01], &[(1, ALL); 1000]);
    assert_eq!(encode_stream(SPEC, &[], 480), []);
    assert_eq!(decode_chunk(SPEC, &[], 0).unwrap(), []);
}

#[test]
fn a_loop_between_two_locations() {
    // (1)        1
    // (3)        no hit, other location 1; +2 011; same mask 1
    // (3)        hit: an empty slot expects the same again
    // (4)        one hit 001, other location 0; +1 1; same mask 1
    // 1 1 011 1 00 | 1 0 1 1
    check(&[0x3b, 0x0d], &[(1, ALL), (3, ALL), (3, ALL), (4, ALL)]);
}

#[test]
fn a_branch_with_two_sides() {
    // (7)        01, 5 as 10100
    // (8, f)     1; +1 1; not the same 0; last mask 1; a bit a lane 1, then 1111 and 28 zeros
    // (9, rest)  1; +1 1; 0; level 1 01, disjoint 1; all lanes 01
    // (10)       1; +1 1; 0; level 1 01, with them 0; all lanes 01
    // 01 10100 1 | 1 0 1 1 1111 | 0… | 0… | 0… | 0000 1 1 0 0 | 1 1 0 1 1 1 0 0 | 1 0 0 1
    check(&[0x96, 0xfd, 0x00, 0x00, 0x00, 0x30, 0x3b, 0x09], &[(7, ALL), (8, 0xf), (9, !0xf), (10, ALL)]);
}

#[test]
fn a_lane_that_leaves_a_loop() {
    // (1)        1
    // (1) (1)    hits
    // (1, less lane 5)   two hits 0001 0, expected location 1; lanes of the expected 1: all but one 001, 5 as 10100
    // 1 0001 0 1 1 | 001 10100
    let less = !(1 << 5);
    check(&[0xd1, 0x2c], &[(1, ALL), (1, ALL), (1, ALL), (1, less), (1, less), (1, less)]);
}

#[test]
fn a_mask_seen_here_before() {
    // (2)        01, 0 as 00000
    // (3, 3)     1; +1 1; 0; last mask 1; two lanes 00000, 0 as 00000, 1 as 10000
    // (2)        1; -1 001, 5 as 1010; 0; level 1 01, with them 0; all lanes 01
    // (3, 3)     no hit, expected location 01; the mask seen here 01
    // (2)        hit: one level out, as the last time
    // (3, 3)     hit: the mask seen here
    // 01 00000 1 | 1 0 1 00000 | 00000 100 | 00 1 001 10 | 10 0 01 0 01 | 01 01
    check(&[0x82, 0x05, 0x20, 0x64, 0x91, 0x0a], &[(2, ALL), (3, 3), (2, ALL), (3, 3), (2, ALL), (3, 3)]);
}

#[test]
fn a_location_of_two_bytes() {
    // General 00; location 00000, 300 as 0011 0100 1000 0000; not the same 0; last mask 1; one lane 0001,
    // 00000 00 00000 0 | 0110 1001 | 0000000 0 | 1 0001 000 | 00
    check(&[0x00, 0x96, 0x00, 0x11, 0x00], &[(300, 1)]);
}

#[test]
fn each_fault_is_named_with_its_place() {
    let error = |payload: &[u8], events| decode_chunk(SPEC, payload, events).unwrap_err();

    assert_eq!(error(&[], 1), CodecError::TruncatedCode { event: 0, offset: 0 });
    assert_eq!(error(&[0x96], 4), CodecError::TruncatedCode { event: 1, offset: 1 });
    assert_eq!(error(&[0x96], 4).to_string(), "the payload ends at offset 1 inside the code of event 1");

    // (1), then 1; -6 001 0000: 1 1 001 000 | 0
    let location = CodecError::BadCode { event: 1, offset: 0, bit: 2, field: "location" };
    assert_eq!(error(&[0x13, 0x00], 2), location);
    assert_eq!(location.to_string(), "event 1, at bit 2 of payload offset 0: there is no such location");
    // (1), then 01; lanes of the expected 1: two lanes 00000, 3 twice: 1 01 1 0000 | 0 11000 11 | 000
    assert_eq!(
        error(&[0x0d, 0xc6, 0x00], 2),
        CodecError::BadCode { event: 1, offset: 0, bit: 4, field: "lane" }
    );

    // The loop above with too few announced events, and a surplus byte.
    assert_eq!(error(&[0x3b, 0x0d], 3), CodecError::TooManyEvents { expected: 3, offset: 0 });
    assert_eq!(error(&[0x3b, 0x0d], 1), CodecError::TooManyEvents { expected: 1, offset: 0 });
    assert_eq!(error(&[0x3b, 0x0d, 0x00], 4), CodecError::TooManyEvents { expected: 4, offset: 1 });
    assert_eq!(error(&[0x00], 0), CodecError::TooManyEvents { expected: 0, offset: 0 });
    assert_eq!(error(&[0x01], u32::MAX), CodecError::TooLarge { events: u32::MAX, max: 1 << 24 });
}

#[test]
fn events_that_no_trace_contains_are_refused() {
    for (event, expected) in
        [((0, 1), CodecError::ZeroLocation { event: 1 }), ((1, 0), CodecError::ZeroMask { event: 1 })]
    {
        let chunks = encode_stream(SPEC, &events(&[(9, 3), event]), 480);
        assert_eq!(decode_chunk(SPEC, &chunks[0].1, 2), Err(expected));
    }
}

#[test]
fn parameters_out_of_range_are_named() {
    assert_eq!(PredictParams::new(5), Ok(PredictParams::DEFAULT));
    for slot_bits in [0, 1, 11, 255] {
        let spec = CodecSpec::Predict(PredictParams { slot_bits });
        assert_eq!(spec.check(), Err(ParamError::SlotBits(slot_bits)));
        let message = format!("predict parameter slot_bits is {slot_bits}; it must be 2 to 10");
        assert_eq!(PredictParams::new(slot_bits).unwrap_err().to_string(), message);
    }
    assert_eq!((SPEC.name(), SPEC.max_location(), SPEC.work_bytes()), ("predict", 65_535, 288));
}
