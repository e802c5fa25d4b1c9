//! Bytes derived by hand from the rules in `docs/reference/codecs.md`, for each stage and for whole chunks.

use warptrace_format::codec::ecl::lza2::{Emitted, Lza2State};
use warptrace_format::codec::ecl::reference;
use warptrace_format::codec::ecl::rle::{RleReader, RleState};
use warptrace_format::codec::raw::PAYLOAD_EVENT_BYTES;
use warptrace_format::codec::{CodecSpec, EclParams, PredictParams, decode_chunk, encode_stream};
use warptrace_format::{Event, RAW_EVENT_BYTES, SliceMemory};

/// L = 16 and s = 8: the hash is exactly the two previous bytes, so nothing collides.
const EXACT: EclParams = EclParams { hash_bits: 16, shift: 8, window_bits: 8 };

fn lza2(params: EclParams, input: &[u8]) -> Vec<u8> {
    let mut work = vec![0; params.work_bytes() as usize];
    let mut work = SliceMemory(&mut work);
    let mut state = Lza2State::new();
    let mut output = Vec::new();
    let mut take = |emitted: Emitted| {
        output.extend_from_slice(&emitted.bytes.to_le_bytes()[..emitted.len as usize]);
    };
    state.begin(&params, &mut work);
    for byte in input {
        take(state.push(&params, &mut work, u32::from(*byte)));
    }
    take(state.finish(&params, &mut work));
    assert_eq!(output, reference::lza2_compress(params, input), "streaming and whole-buffer forms differ");
    assert_eq!(reference::lza2_decompress(params, &output).as_deref(), Some(input));
    output
}

fn rle(input: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 2 * input.len()];
    let mut memory = SliceMemory(&mut out);
    let mut state = RleState::new();
    for byte in input {
        state.push(&mut memory, u32::from(*byte));
    }
    let length = state.finish(&mut memory) as usize;
    out.truncate(length);
    assert_eq!(out, reference::rle_compress(input), "streaming and whole-buffer forms differ");
    assert_eq!(reference::rle_decompress(&out).as_deref(), Some(input));
    let mut reader = RleReader::new(&out);
    let back: Vec<u8> =
        std::iter::from_fn(|| (!reader.is_empty()).then(|| reader.next().expect("whole groups"))).collect();
    assert_eq!(back, input);
    out
}

#[test]
fn lza2_of_nothing_and_of_one_byte() {
    assert_eq!(lza2(EXACT, b""), b"");
    assert_eq!(lza2(EXACT, b"a"), b"a");
}

#[test]
fn lza2_counts_what_followed_the_same_two_bytes() {
    // r  0 1 2 3 4 5 6 7 8
    //    a b c a b c a b d
    // r 0 to 4: the contexts -, a, ab, bc, ca are new: five literals.
    // r 5: context ab, stored at r = 2. From there c a b agree, then d is the last byte, which is never part
    // of a match: count 3, literal d.
    assert_eq!(lza2(EXACT, b"abcabcabd"), b"abcab\x03d");
}

#[test]
fn lza2_never_takes_the_last_byte() {
    // Like the last test, but the last byte agrees too: still a count of 3 and a literal. The streaming form
    // has matched four bytes and turns the last one into the literal.
    assert_eq!(lza2(EXACT, b"abcabcabc"), b"abcab\x03c");
    // The candidate at r = 5 exists, but the last byte is never part of a match: a count of 0.
    assert_eq!(lza2(EXACT, b"abcabc"), b"abcab\x00c");
}

#[test]
fn lza2_emits_a_count_of_zero_and_one_literal_after_each_count() {
    // r 4: context ab again (stored at 2), next is x, not c: count 0, literal x. Then b and y: the contexts
    // bx and xb are new.
    // r  0 1 2 3 4 5 6
    //    a b c a b x y      r 3: context bc new: a. r 4: context ca new: b. r 5: context ab: 0 x. r 6: y.
    assert_eq!(lza2(EXACT, b"abcabxy"), b"abcab\x00xy");
}

#[test]
fn lza2_takes_no_candidate_with_less_than_two_bytes_before_it() {
    // r 0: h = 0, empty: literal; last[0] = 0.
    // r 1: h = 0, p = 0 < 2: literal; last[0] = 1.
    // r 2: h = 0, p = 1 < 2: literal; last[0] = 2.
    // r 3: h = 0, p = 2, context 00 00 on both sides; r 3 agrees, r 4 is the last byte: count 1, literal.
    assert_eq!(lza2(EXACT, &[0, 0, 0, 0, 0]), [0, 0, 0, 1, 0]);
}

#[test]
fn lza2_ends_a_match_at_255() {
    // Three literals as in the last test, then always p = r - 1: 255 matched (r 3 to 257), the literal (r
    // 258), and again 255 (r 259 to 513) with the literal at r = 514. 515 zeros in total, the last one a
    // literal.
    assert_eq!(lza2(EXACT, &[0; 515]), [0, 0, 0, 255, 0, 255, 0]);
    // One byte less: the second match stops at 254 to leave the literal.
    assert_eq!(lza2(EXACT, &[0; 514]), [0, 0, 0, 255, 0, 254, 0]);
    // One byte more: a third candidate without a byte to match.
    assert_eq!(lza2(EXACT, &[0; 516]), [0, 0, 0, 255, 0, 255, 0, 0, 0]);
}

#[test]
fn lza2_refuses_a_candidate_whose_context_differs() {
    // L = 4, s = 4: the hash is the low four bits of the byte before.
    // r  0  1  2  3  4
    //    10 21 30 41 50
    // r 0: h 0 empty; last[0] = 0, h = 0.   r 1: h 0, p = 0 < 2: literal; last[0] = 1, h = 1.
    // r 2: h 1 empty; last[1] = 2, h = 0.   r 3: h 0, p = 1 < 2: literal; last[0] = 3, h = 1.
    // r 4: h 1, p = 2: the context there is 10 21, here 30 41: no candidate, a literal alone.
    let params = EclParams::new(4, 4, 8).unwrap();
    assert_eq!(lza2(params, &[0x10, 0x21, 0x30, 0x41, 0x50]), [0x10, 0x21, 0x30, 0x41, 0x50]);
}

#[test]
fn lza2_forgets_what_left_the_ring() {
    // The context "ab" recurs `distance` bytes later. W = 64: a distance of 62 leaves its two bytes in the
    // ring (62 + 2 = W), 63 does not.
    let params = EclParams { window_bits: 6, ..EXACT };
    for (distance, found) in [(62, true), (63, false)] {
        let mut input = b"abc".to_vec();
        input.extend((0..distance - 3).map(|i| 100 + i as u8));
        input.extend_from_slice(b"abcd");
        let mut expected = input.clone();
        if found {
            // "ab" as literals, count 1 for c, then d.
            expected.splice(distance + 2.., [1, b'd']);
        }
        assert_eq!(lza2(params, &input), expected, "distance {distance}");
    }
}

#[test]
fn rle_groups_literals_and_repeats() {
    assert_eq!(rle(&[]), []);
    // One literal, no repeats.
    assert_eq!(rle(&[7]), [0x00, 7]);
    // One literal that repeats twice.
    assert_eq!(rle(&[7, 7, 7]), [0x20, 7]);
    // Three literals, the last repeats once; then its repeats have ended and a group of two begins.
    assert_eq!(rle(&[1, 2, 3, 3, 4, 5]), [0x12, 1, 2, 3, 0x01, 4, 5]);
}

#[test]
fn rle_ends_a_group_at_15_repeats() {
    // A literal and 15 repeats are 16 bytes; the 17th opens a group with the same literal.
    assert_eq!(rle(&[9; 16]), [0xf0, 9]);
    assert_eq!(rle(&[9; 17]), [0xf0, 9, 0x00, 9]);
    assert_eq!(rle(&[9; 33]), [0xf0, 9, 0xf0, 9, 0x00, 9]);
}

#[test]
fn rle_ends_a_group_at_16_literals() {
    let sixteen: Vec<u8> = (1..=16).collect();
    let group = |count: u8, literals: &[u8]| [&[count], literals].concat();
    assert_eq!(rle(&sixteen), group(0x0f, &sixteen));
    // A 17th opens the next group.
    assert_eq!(rle(&[&sixteen[..], &[17]].concat()), [group(0x0f, &sixteen), vec![0x00, 17]].concat());
    // The last of 16 repeats like any other.
    assert_eq!(rle(&[&sixteen[..], &[16, 16]].concat()), group(0x2f, &sixteen));
}

#[test]
fn an_ecl_chunk_of_two_equal_events() {
    // CUT:  01 ff ff ff ff 01 ff ff ff ff
    // LZa2: r 0 to 3: 01 ff ff ff (contexts -, 01, 01 ff, ff ff are new).
    //       r 4: context ff ff, p = 3: r 4 agrees (ff), r 5 does not (01 against ff): 01 01.
    //       r 6: context ff 01 is new: ff.
    //       r 7: context 01 ff, p = 2: r 7 and r 8 agree, r 9 is the last: 02 ff.
    //       01 ff ff ff 01 01 ff 02 ff
    // RLE:  [01 ff, repeats 2] [01, repeats 1] [ff 02 ff]
    let spec = CodecSpec::Ecl(EXACT);
    let events = [Event { location: 1, mask: u32::MAX }; 2];
    let payload = vec![0x21, 0x01, 0xff, 0x10, 0x01, 0x02, 0xff, 0x02, 0xff];
    assert_eq!(decode_chunk(spec, &payload, 2).unwrap(), events);
    assert_eq!(encode_stream(spec, &events, 480), [(2, payload)]);
}

#[test]
fn a_raw_chunk_is_six_bytes_an_event() {
    let events = [Event { location: 65_534, mask: 0x8000_0001 }, Event { location: 2, mask: 0x1234_5678 }];
    let payload = vec![0xfe, 0xff, 0x01, 0, 0, 0x80, 2, 0, 0x78, 0x56, 0x34, 0x12];
    assert_eq!(decode_chunk(CodecSpec::Raw, &payload, 2).unwrap(), events);
    assert_eq!(encode_stream(CodecSpec::Raw, &events, 480), [(2, payload)]);
    assert_eq!(encode_stream(CodecSpec::Raw, &events, 11).len(), 2);
    assert_eq!(
        (PAYLOAD_EVENT_BYTES, RAW_EVENT_BYTES),
        (6, 5),
        "chunks, and what ratios are measured against"
    );
}

#[test]
fn the_largest_location_of_each_codec_comes_back() {
    let largest = [CodecSpec::Raw, CodecSpec::Ecl(EXACT), CodecSpec::Predict(PredictParams::DEFAULT)]
        .map(|spec| (spec.max_location(), spec));
    assert_eq!(largest.map(|(location, _)| location), [65_535, 255, 65_535]);
    for (location, spec) in largest {
        let events = [Event { location, mask: 1 }, Event { location: 1, mask: u32::MAX }];
        for (count, payload) in encode_stream(spec, &events, 480) {
            assert_eq!(decode_chunk(spec, &payload, count).unwrap(), events);
        }
    }
}

#[test]
fn parameters_out_of_range_are_named() {
    assert_eq!(EclParams::new(9, 2, 8), Ok(EclParams { hash_bits: 9, shift: 2, window_bits: 8 }));
    for (hash_bits, shift, window_bits, message) in [
        (3, 2, 8, "ecl parameter hash_bits is 3; it must be 4 to 16"),
        (17, 2, 8, "ecl parameter hash_bits is 17; it must be 4 to 16"),
        (9, 0, 8, "ecl parameter shift is 0; it must be 1 to 8"),
        (9, 9, 8, "ecl parameter shift is 9; it must be 1 to 8"),
        (9, 2, 5, "ecl parameter window_bits is 5; it must be 6 to 20"),
        (9, 2, 21, "ecl parameter window_bits is 21; it must be 6 to 20"),
    ] {
        assert_eq!(EclParams::new(hash_bits, shift, window_bits).unwrap_err().to_string(), message);
        let spec = CodecSpec::Ecl(EclParams { hash_bits, shift, window_bits });
        assert_eq!(spec.check().unwrap_err().to_string(), message);
    }
}
