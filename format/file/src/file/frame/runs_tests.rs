use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::file::frame::tests::{body, chunk, patched};
use crate::file::limits::MAX_PAYLOAD_BYTES;
use crate::file::section::{SECTION_HEADER_BYTES, SectionHeader, SectionKind};
use crate::file::{ChunkRef, Frame, encode_frame};

fn class_chunk(events: u32, payload: &[u8]) -> ClassChunk<'_> {
    ClassChunk { events, payload }
}

fn run(first: u32, warps: u32, class: u32) -> WarpRun {
    WarpRun { first, warps, class }
}

const SMALL_RUNS: [WarpRun; 3] = [
    WarpRun { first: 5, warps: 3, class: 0 },
    WarpRun { first: 8, warps: 1, class: 1 },
    WarpRun { first: 12, warps: 2, class: 0 },
];
const SMALL_CLASSES: [&[ClassChunk<'_>]; 2] = [
    &[ClassChunk { events: 2, payload: &[9, 8] }, ClassChunk { events: 1, payload: &[7] }],
    &[ClassChunk { events: 3, payload: &[7] }],
];

fn runs_body(runs: &[WarpRun], classes: &[&[ClassChunk<'_>]], compression: Compression) -> Vec<u8> {
    encode_frame_of_runs(3, 0, runs, classes, compression).unwrap().section.split_off(SECTION_HEADER_BYTES)
}

fn expanded<'a>(runs: &[WarpRun], classes: &[&[ClassChunk<'a>]]) -> Vec<ChunkRef<'a>> {
    let mut chunks = Vec::new();
    for run in runs {
        for warp in run.first..=run.last() {
            chunks.extend((0..).zip(classes[run.class as usize]).map(
                |(sequence, &ClassChunk { events, payload })| ChunkRef {
                    track: 0,
                    warp,
                    sequence,
                    events,
                    payload,
                },
            ));
        }
    }
    chunks
}

fn entries_and_payloads(frame: &Frame) -> Vec<(ChunkEntry, Vec<u8>)> {
    frame.chunks().map(|chunk| (chunk.entry, chunk.payload.to_vec())).collect()
}

#[test]
fn section_bytes_of_runs_are_frozen() {
    let encoded = encode_frame_of_runs(3, 0, &SMALL_RUNS, &SMALL_CLASSES, Compression::None).unwrap();
    let (head, body) = encoded.section.split_at(SECTION_HEADER_BYTES);
    let header = SectionHeader { version: 2, ..SectionHeader::for_body(SectionKind::Frame, body) };
    assert_eq!(SectionHeader::parse(head, 0), Ok(header));
    assert_eq!(
        body[..36],
        [
            3, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 13, 0, 0, 0, 11, 0, 0, 0, 0, 0, 0, 0, 18, 0, 0, 0, 0, 0, 0,
            0, 22, 0, 0, 0
        ]
    );
    // Runs; gaps, warps and classes of runs; chunks of classes; events and lengths of chunks; payloads.
    assert_eq!(body[40..], [3, 0, 0, 3, 2, 0, 1, 0, 0, 1, 1, 0, 2, 1, 3, 2, 1, 1, 9, 8, 7, 7]);
    assert_eq!(encoded.payload_bytes, 16);
}

#[test]
fn runs_expand_to_the_chunks_of_all_warps() {
    let frame = Frame::decode(2, &runs_body(&SMALL_RUNS, &SMALL_CLASSES, Compression::None), 0).unwrap();
    assert_eq!(frame.runs(), SMALL_RUNS);
    let found: Vec<_> = frame
        .chunks()
        .map(|chunk| (chunk.entry.warp, chunk.entry.sequence, chunk.entry.events, chunk.payload_number))
        .collect();
    let of_warp = |warp| [(warp, 0, 2, 0), (warp, 1, 1, 1)];
    let expected = [&of_warp(5)[..], &of_warp(6), &of_warp(7), &[(8, 0, 3, 2)], &of_warp(12), &of_warp(13)];
    assert_eq!(found, expected.concat());
    assert!(frame.warp_chunks(12, 0).eq(frame.chunks().skip(7).take(2)));
    assert_eq!(frame.warp_chunks(12, 2).count(), 0);
    let listed = Frame::decode(1, &body(&[chunk(5, 0, &[1])], Compression::None), 0).unwrap();
    assert_eq!((listed.runs(), listed.warp_chunks(5, 0).count()), (&[][..], 0));
}

#[test]
fn runs_at_the_limits_come_back() {
    let most = u32::MAX;
    let ends = [run(0, 1, 0), run(most - 1, 2, 0)];
    let class = [class_chunk(most, &[1])];
    let frame = Frame::decode(2, &runs_body(&ends, &[&class], Compression::None), 0).unwrap();
    assert_eq!(frame.entries().map(|entry| entry.warp).collect::<Vec<_>>(), [0, most - 1, most]);
    assert_eq!(frame.header().events, 3 * u64::from(most));
    // More chunks than plain bytes.
    let all = [run(7, MAX_FRAME_CHUNKS, 0)];
    let encoded = runs_body(&all, &[&[class_chunk(1, &[1])]], Compression::None);
    assert_eq!(encoded.len(), 40 + 4 + 2 + 4);
    let frame = Frame::decode(2, &encoded, 0).unwrap();
    assert_eq!(frame.entries().map(|entry| entry.warp).max(), Some(7 + MAX_FRAME_CHUNKS - 1));
    // In version 1 the header must have fewer chunks than plain bytes.
    assert!(FrameHeader::parse(2, &encoded, 0).is_ok() && FrameHeader::parse(1, &encoded, 0).is_err());
}

#[test]
fn runs_that_a_reader_would_refuse_are_not_written() {
    let one = class_chunk(1, &[1]);
    let encode = |runs: &[WarpRun], classes: &[&[ClassChunk<'_>]]| {
        encode_frame_of_runs(3, 0, runs, classes, Compression::None)
    };
    assert!(encode(&[run(1, 2, 0)], &[&[one]]).is_ok());
    assert!(encode(&[], &[]).is_err(), "no run");
    assert!(encode(&[run(1, 0, 0)], &[&[one]]).is_err(), "no warp");
    assert!(encode(&[run(u32::MAX, 2, 0)], &[&[one]]).is_err(), "past the last warp");
    assert!(encode(&[run(0, u32::MAX, 0)], &[&[one]]).is_err(), "too many chunks");
    assert!(encode(&[run(1, 2, 0), run(2, 1, 0)], &[&[one]]).is_err(), "overlap");
    assert!(encode(&[run(4, 1, 0), run(2, 1, 0)], &[&[one]]).is_err(), "order");
    assert!(encode(&[run(1, 1, 1), run(2, 1, 0)], &[&[one], &[one]]).is_err(), "order of classes");
    assert!(encode(&[run(1, 1, 1)], &[&[one]]).is_err(), "no such class");
    assert!(encode(&[run(1, 1, 0)], &[&[one], &[one]]).is_err(), "class without runs");
    assert!(encode(&[run(1, 1, 0)], &[&[]]).is_err(), "class without chunks");
    assert!(encode(&[run(1, 1, 0)], &[&[class_chunk(0, &[1])]]).is_err(), "no events");
    assert!(encode(&[run(1, 1, 0)], &[&[class_chunk(1, &[])]]).is_err(), "no bytes");
    let long = vec![0; 1 << 20];
    assert!(encode(&[run(1, 1, 0)], &[&[class_chunk(1, &long)]]).is_err(), "payload over the limit");
    let most = class_chunk(1, &long[..MAX_PAYLOAD_BYTES as usize]);
    let error = encode(&[run(1, 17, 0)], &[&[most]]).unwrap_err();
    assert!(matches!(error, FormatError::TooLarge { field: "plain bytes", .. }), "{error}");
    assert!(encode(&[run(1, 16, 0)], &[&[most]]).is_ok());
}

fn runs_frame(contents: &[u8], [last, chunks, events]: [u32; 3]) -> Result<Frame, FormatError> {
    let mut bytes = runs_body(&SMALL_RUNS, &SMALL_CLASSES, Compression::None);
    bytes.truncate(40);
    bytes.extend_from_slice(contents);
    for (at, word) in [(12, last), (16, chunks), (24, events), (32, contents.len() as u32)] {
        bytes = patched(&bytes, at, word);
    }
    Frame::decode(2, &bytes, 0)
}

#[test]
fn runs_that_contradict_the_header_are_refused() {
    let good = runs_body(&SMALL_RUNS, &SMALL_CLASSES, Compression::None);
    let contents = &good[40..];
    assert!(runs_frame(contents, [13, 11, 18]).is_ok());
    for (what, fields) in [
        ("last warp", [14, 11, 18]),
        ("fewer chunks", [13, 10, 18]),
        ("more chunks", [13, 12, 18]),
        ("chunks over the limit", [13, MAX_FRAME_CHUNKS + 1, u32::MAX]),
        ("fewer events", [13, 11, 17]),
        ("more events", [13, 11, 19]),
        ("fewer events than chunks", [13, 11, 10]),
    ] {
        assert!(runs_frame(contents, fields).is_err(), "{what}");
    }
    for (what, at, byte) in [
        ("no run", 0, 0),
        ("another first warp", 1, 1),
        ("a class that skips", 7, 2),
        ("a class that skips two", 8, 2),
        ("no events", 12, 0),
        ("no bytes", 15, 0),
        ("more bytes than there are", 15, 3),
    ] {
        let mut bad = contents.to_vec();
        bad[at] = byte;
        assert!(runs_frame(&bad, [13, 11, 18]).is_err(), "{what}");
    }
    for length in 0..contents.len() {
        assert!(runs_frame(&contents[..length], [13, 11, 18]).is_err(), "length {length}");
    }
    assert!(runs_frame(&[contents, &[0]].concat(), [13, 11, 18]).is_err(), "a byte more");
    // 17 warps with a payload of 1 MiB.
    let mut long = vec![1, 0, 16, 0, 0, 1, 0xe0, 0xff, 0x3f];
    long.resize(long.len() + (1 << 20) - 32, 7);
    let error = runs_frame(&long, [21, 17, 17]).unwrap_err();
    assert!(matches!(error, FormatError::Invalid { field: "sum of chunk lengths", .. }), "{error}");
    long[2] = 15;
    assert!(runs_frame(&long, [20, 16, 16]).is_ok());
}

#[test]
fn runs_of_huge_counts_are_refused() {
    let most = [0xff, 0xff, 0xff, 0xff, 0x0f];
    let all = [5 + MAX_FRAME_CHUNKS - 1, MAX_FRAME_CHUNKS, MAX_FRAME_CHUNKS];
    let short = |contents: &[u8]| {
        let error = runs_frame(contents, all).unwrap_err();
        assert!(matches!(error, FormatError::Short { .. }), "{contents:?}: {error}");
    };
    let invalid = |contents: &[u8]| {
        let error = runs_frame(contents, all).unwrap_err();
        assert!(matches!(error, FormatError::Invalid { .. }), "{contents:?}: {error}");
    };
    // As many runs, and chunks of a class, as the frame has chunks.
    short(&[0x80, 0x80, 0x10, 0]);
    short(&[1, 0, 0, 0, 0xff, 0xff, 0x0f, 1]);
    // One more; and all numbers at their limits.
    invalid(&[0x81, 0x80, 0x10, 0]);
    invalid(&[1, 0, 0, 0, 0x80, 0x80, 0x10, 1]);
    invalid(&most);
    invalid(&[&[1, 0][..], &most].concat());
    invalid(&[&[2, 0][..], &most, &[0, 0]].concat());
    invalid(&[&[1, 0, 0][..], &most].concat());
    invalid(&[&[1, 0, 0, 0][..], &most].concat());
    // As many chunks in each of two runs, and in both of two classes.
    invalid(&[2, 0, 0, 0xff, 0xff, 0x0f, 0xff, 0xff, 0x0f, 0, 1, 0xff, 0xff, 0x0f]);
    invalid(&[2, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0x0f, 0xff, 0xff, 0x0f]);
}

#[test]
fn a_changed_byte_of_runs_gives_an_error_or_a_frame() {
    let good = runs_body(&SMALL_RUNS, &SMALL_CLASSES, Compression::None);
    for at in 0..good.len() {
        for byte in 0..=u8::MAX {
            let mut bad = good.clone();
            bad[at] = byte;
            let crc = crc32fast::hash(&bad[..36]);
            if at < 36 {
                bad[36..40].copy_from_slice(&crc.to_le_bytes());
            }
            let Ok(frame) = Frame::decode(2, &bad, 0) else { continue };
            let header = *frame.header();
            assert_eq!(frame.entries().count(), header.chunks as usize);
            let events: u64 = frame.entries().map(|entry| u64::from(entry.events)).sum();
            let last = frame.entries().last().map(|entry| entry.warp);
            assert_eq!((events, last), (header.events, Some(header.last_warp)));
            let classes: Vec<Vec<_>> = (0..)
                .map(|class| frame.warp_chunks(0, class))
                .map(|chunks| chunks.map(|chunk| class_chunk(chunk.entry.events, chunk.payload)).collect())
                .take_while(|chunks: &Vec<_>| !chunks.is_empty())
                .collect();
            let classes: Vec<_> = classes.iter().map(Vec::as_slice).collect();
            let again =
                encode_frame_of_runs(header.launch, header.track, frame.runs(), &classes, Compression::None);
            let again = Frame::decode(2, &again.unwrap().section[SECTION_HEADER_BYTES..], 0).unwrap();
            assert!(again.chunks().eq(frame.chunks()), "byte {at} is {byte}");
        }
    }
}

proptest! {
    #[test]
    fn runs_have_the_chunks_of_a_frame_without_runs(
        classes in vec(vec((1..9u32, vec(0..4u8, 1..9)), 1..5), 1..6),
        shape in vec((0..3u32, 1..5u32, 0..6u32), 1..20),
        first in 0..1000u32,
        level in 0..2,
    ) {
        let compression = if level == 0 { Compression::None } else { Compression::Zstd(level) };
        let (mut runs, mut used, mut next) = (Vec::new(), Vec::new(), first);
        for (gap, warps, class) in shape {
            let class = class as usize % classes.len();
            let number = used.iter().position(|known| *known == class).unwrap_or_else(|| {
                used.push(class);
                used.len() - 1
            });
            runs.push(run(next + gap, warps, number as u32));
            next += gap + warps;
        }
        let classes: Vec<Vec<_>> = used
            .iter()
            .map(|class| classes[*class].iter().map(|(events, payload)| class_chunk(*events, payload)).collect())
            .collect();
        let classes: Vec<_> = classes.iter().map(Vec::as_slice).collect();
        let chunks = expanded(&runs, &classes);
        let by_runs = encode_frame_of_runs(3, 0, &runs, &classes, compression).unwrap();
        let listed = encode_frame(3, 0, &chunks, compression).unwrap();
        prop_assert_eq!(by_runs.payload_bytes, listed.payload_bytes);
        let by_runs = Frame::decode(2, &by_runs.section[SECTION_HEADER_BYTES..], 0).unwrap();
        let listed = Frame::decode(1, &listed.section[SECTION_HEADER_BYTES..], 0).unwrap();
        prop_assert_eq!(by_runs.runs(), runs);
        prop_assert_eq!(entries_and_payloads(&by_runs), entries_and_payloads(&listed));
        prop_assert!(by_runs.entries().eq(listed.entries()));
        let fixed = |frame: &Frame| {
            let FrameHeader { first_warp, last_warp, chunks, events, .. } = *frame.header();
            (first_warp, last_warp, chunks, events)
        };
        prop_assert_eq!(fixed(&by_runs), fixed(&listed));
    }
}
