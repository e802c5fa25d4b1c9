use warptrace_columns::ColumnCursor;

use super::super::{SECTION_HEADER_BYTES, encode_section};
use super::*;
use crate::chunk::{SPLIT, bytes_of_times};

fn tie(body: &[u8]) -> Tie {
    Tie::to_encoded(&encode_section(SectionKind::Frame, body))
}

fn decode(body: &[u8], chunks: usize) -> Result<FrameTimes, FormatError> {
    FrameTimes::decode((2, body), 7, tie(b"f"), chunks)
}

fn device(runs: &[(u32, u32)]) -> Vec<u8> {
    runs.iter().flat_map(|(time, events)| [time.to_le_bytes(), events.to_le_bytes()].concat()).collect()
}

fn split(bytes: &[u8]) -> DeviceTimes<'_> {
    DeviceTimes::new(SPLIT, bytes)
}

fn chunks() -> [Vec<u8>; 3] {
    [
        device(&[(100, 0), (107, 3), (109, 2), (120, 0), (119, 0)]),
        device(&[(u32::MAX - 2, 0), (5, 0)]),
        device(&[(40, 65_535), (90, 0)]),
    ]
}

fn section_of(chunks: &[Vec<u8>], compression: Compression) -> Vec<u8> {
    FrameTimes::encode_section(tie(b"f"), chunks.iter().map(|bytes| split(bytes)), 16, compression).unwrap()
}

fn section(compression: Compression) -> Vec<u8> {
    section_of(&chunks(), compression)
}

#[test]
fn runs_that_are_not_split_take_four_bytes() {
    let bytes: Vec<u8> = [7_u32, 5].into_iter().flat_map(u32::to_le_bytes).collect();
    assert_eq!([2, 1 | SPLIT].map(bytes_of_times), [bytes.len() as u64; 2]);
    let runs = |runs| DeviceTimes::new(runs, &bytes).runs().collect::<Vec<_>>();
    assert_eq!(runs(2), [(7, 0), (5, 0)]);
    assert_eq!(runs(1 | SPLIT), [(7, 5)]);
}

#[test]
fn what_is_written_is_read() {
    for compression in [Compression::None, Compression::Suited] {
        let section = section(compression);
        let times = decode(&section[SECTION_HEADER_BYTES..], 3).unwrap();
        assert_eq!((times.step(), times.runs()), (16, 9));
        assert_eq!(*times.chunk(0).times, [100, 107, 109, 120, 119]);
        assert_eq!(*times.chunk(0).splits, [(1, 3), (2, 2)]);
        assert_eq!(*times.chunk(1).times, [u32::MAX - 2, 5]);
        assert_eq!((*times.chunk(2).splits).to_vec(), [(0, 65_535)]);
    }
}

#[test]
fn steps_like_those_of_the_previous_chunk_take_fewer_bytes() {
    // Two long steps in each chunk, of different lengths.
    let chunk = |chunk: u32| {
        let begin = chunk.wrapping_mul(0x9e37_79b9);
        let times = [0, 40_000 + chunk % 7, 90_000 + chunk % 11].map(|since| (begin.wrapping_add(since), 0));
        device(&times[..if chunk == 19_990 { 2 } else { 3 }])
    };
    let alike: Vec<_> = (0..20_000).map(chunk).collect();
    let encoded = section_of(&alike, Compression::Suited);
    let times = decode(&encoded[SECTION_HEADER_BYTES..], alike.len()).unwrap();
    for (number, bytes) in alike.iter().enumerate() {
        assert!(times.chunk(number).times.iter().copied().eq(split(bytes).runs().map(|(time, _)| time)));
    }
    // Two bytes for both steps of a chunk, and four for its first time.
    assert!(encoded.len() < 7 * alike.len(), "{}", encoded.len());
    let firsts: Vec<_> = alike.iter().map(|bytes| bytes[..8].to_vec()).collect();
    let first = section_of(&firsts, Compression::Suited).len();
    assert!(encoded.len() - first < 3 * alike.len(), "{first} of {}", encoded.len());
}

#[test]
fn few_runs_are_stored_in_the_smallest_way() {
    // Warps of a block begin together, at an unpredictable time; then all take equally long.
    let warp = |warp: u32| {
        let begin = (warp / 8).wrapping_mul(0x9e37_79b9);
        device(&[(begin, 0), (begin.wrapping_add(70_000), 0), (begin.wrapping_add(70_300), 0)])
    };
    let chunks: Vec<_> = (0..320).map(warp).collect();
    let encoded = |compression| section_of(&chunks, compression);
    let section = encoded(Compression::Suited);
    let times = decode(&section[SECTION_HEADER_BYTES..], 320).unwrap();
    let plain = decode(&encoded(Compression::None)[SECTION_HEADER_BYTES..], 320).unwrap();
    assert_eq!(times, plain);
    let units = (0..320).flat_map(|chunk| times.chunk(chunk).times.to_vec());
    let wide: Vec<u8> = units.flat_map(|unit| u64::from(unit).to_le_bytes()).collect();
    let one_by_one = zstd::bulk::compress(&wide, 19).unwrap().len();
    let stored = section.len() - SECTION_HEADER_BYTES - 20;
    assert!(stored < one_by_one, "{stored} bytes, zstd -19 of the times {one_by_one}");
    let asked = encoded(Compression::Zstd(1)).len();
    assert!(section.len() <= asked, "{} bytes, at level 1 {asked}", section.len());
}

#[test]
fn damage_is_an_error() {
    let section = section(Compression::None);
    let body = &section[SECTION_HEADER_BYTES..];
    assert!(decode(body, 2).is_err(), "another frame's");
    let other = FrameTimes::decode((2, body), 7, tie(b"g"), 3).unwrap_err().to_string();
    assert!(other.contains("the FRAM section before it"), "{other}");
    // Version 1 does not identify the frame.
    assert_eq!(
        FrameTimes::decode((1, &body[4..]), 7, tie(b"g"), 3).unwrap(),
        decode(body, 3).unwrap(),
        "version 1"
    );
    for length in 0..body.len() {
        assert!(decode(&body[..length], 3).is_err(), "length {length}");
    }
    for at in 0..body.len() {
        for bit in 0..8 {
            let mut damaged = body.to_vec();
            damaged[at] ^= 1 << bit;
            // No panic, and never more than the section can hold.
            if let Ok(times) = decode(&damaged, 3) {
                assert!(times.runs() == 9);
            }
        }
    }
}

#[test]
fn events_find_their_runs() {
    let section = section(Compression::None);
    let times = decode(&section[SECTION_HEADER_BYTES..], 3).unwrap().chunk(0);
    let [a, b] = [1, 2].map(|location| Event { location, mask: 1 });
    let walk = |events: &[(Event, u32)]| {
        let (mut walk, mut found) = (times.walk(), Vec::new());
        let all = events
            .iter()
            .all(|&(event, count)| walk.take(event, count, |events, begins| found.push((events, begins))));
        (found, all && walk.is_done())
    };
    // Runs: a; b three times; b twice; b seven times; a.
    let expected = [(4, Some(100)), (3, Some(107)), (2, Some(109)), (7, Some(120)), (1, Some(119))];
    let (found, is_done) = walk(&[(a, 4), (b, 12), (a, 1)]);
    assert_eq!((&found[..], is_done), (&expected[..], true));
    // The parts do not depend on how the events are divided.
    let (found, is_done) = walk(&[(a, 3), (a, 1), (b, 2), (b, 1), (b, 2), (b, 7), (a, 1)]);
    let begins: Vec<_> = found.iter().filter_map(|(_, begins)| *begins).collect();
    assert_eq!((begins, is_done), (vec![100, 107, 109, 120, 119], true));
    assert_eq!(found.iter().map(|(events, _)| events).sum::<u32>(), 17);
    // Events of another chunk.
    for other in [
        &[(a, 4), (b, 5), (a, 1)][..],
        &[(a, 4)],
        &[(a, 1), (b, 4)],
        &[(b, 1), (a, 1), (b, 9), (a, 1), (b, 1), (a, 1)],
    ] {
        assert!(!walk(other).1, "{other:?}");
    }
}

#[test]
fn the_bytes_are_as_the_page_says() {
    let section = section(Compression::None);
    let body = &section[SECTION_HEADER_BYTES..];
    assert_eq!(body[..4], crc32fast::hash(b"f").to_le_bytes());
    let body = &body[4..];
    assert_eq!(body[..16], [9, 0, 0, 0, 16, 0, 0, 0, (body.len() - 16) as u8, 0, 0, 0, 0, 0, 0, 0]);
    let mut source = ColumnCursor::new(&body[16..]);
    let columns: [Vec<u32>; 5] = std::array::from_fn(|_| warptrace_columns::decode(&mut source).unwrap());
    assert_eq!(columns[0], [5, 2, 2]);
    assert_eq!(columns[1], [100, u32::MAX - 2, 40]);
    assert_eq!(columns[2], [14, 4, 22, 1, 16, 100]);
    assert_eq!(columns[3..], [vec![1, 0, 4], vec![3, 2, 65_535]]);
    assert!(source.rest().is_empty());
}
