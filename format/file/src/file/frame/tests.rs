use super::*;
use crate::file::section::{SECTION_HEADER_BYTES, SectionHeader};
use crate::file::{FormatError, SectionKind};

pub(super) fn chunk(warp: u32, sequence: u32, payload: &[u8]) -> ChunkRef<'_> {
    ChunkRef { track: 0, warp, sequence, events: 2, payload }
}

pub(super) fn body(chunks: &[ChunkRef<'_>], compression: Compression) -> Vec<u8> {
    encode_frame(3, 0, chunks, compression).unwrap().section.split_off(SECTION_HEADER_BYTES)
}

#[test]
fn section_bytes_are_frozen() {
    let encoded = encode_frame(3, 0, &[chunk(5, 0, &[9, 8]), chunk(6, 1, &[7])], Compression::None).unwrap();
    let (head, body) = encoded.section.split_at(SECTION_HEADER_BYTES);
    assert_eq!(SectionHeader::parse(head, 0), Ok(SectionHeader::for_body(SectionKind::Frame, body)));
    assert_eq!(
        body[..36],
        [
            3, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0,
            13, 0, 0, 0
        ]
    );
    assert_eq!(body[40..], [0, 1, 0, 1, 0, 0, 4, 4, 2, 1, 9, 8, 7]);
    assert_eq!(encoded.payload_bytes, 3);
}

#[test]
fn equal_payloads_are_stored_once() {
    let long = vec![7; 1000];
    let mut chunks: Vec<_> = (0..100).map(|warp| chunk(3 * warp, 0, &long)).collect();
    chunks[50].payload = &[1];
    chunks[70] = ChunkRef { events: 900, ..chunks[70] };
    let encoded = encode_frame(3, 0, &chunks, Compression::None).unwrap();
    assert_eq!(encoded.payload_bytes, 99_001);
    // Four bytes per chunk, and three more for the differences of the chunk with 900 events and the next one.
    assert_eq!(encoded.header.plain_bytes, 400 + 2 + (2 + 1) + 1001);
    let frame = Frame::decode(1, &encoded.section[SECTION_HEADER_BYTES..], 0).unwrap();
    for (found, given) in frame.chunks().zip(&chunks) {
        assert_eq!((found.entry.warp, found.entry.events), (given.warp, given.events));
        assert_eq!((found.payload, found.payload_number), (given.payload, u32::from(given.payload == [1])));
    }
}

#[test]
fn the_largest_numbers_come_back() {
    let chunks = [
        chunk(0, u32::MAX, &[1]),
        ChunkRef { events: u32::MAX, ..chunk(u32::MAX, u32::MAX - 1, &[1]) },
        chunk(u32::MAX, u32::MAX, &[1]),
    ];
    let frame = Frame::decode(1, &body(&chunks, Compression::None), 0).unwrap();
    let found: Vec<_> =
        frame.entries().map(|entry| (entry.warp, entry.sequence, entry.events, entry.length)).collect();
    assert_eq!(
        found,
        [(0, u32::MAX, 2, 1), (u32::MAX, u32::MAX - 1, u32::MAX, 1), (u32::MAX, u32::MAX, 2, 1)]
    );
}

/// Each payload is stored once, but the announced chunks exceed the memory limit.
#[test]
fn a_frame_that_unfolds_to_more_than_a_frame_is_refused() {
    let long = vec![7; 1 << 19];
    let chunks: Vec<_> = (0..31).map(|warp| chunk(warp, 0, &long)).collect();
    let good = body(&chunks, Compression::None);
    assert!(Frame::decode(1, &good, 0).is_ok());
    // One more chunk with the same payload: 32 times 2^19 bytes and the table are over 16 MiB.
    let (fixed, contents) = good.split_at(40);
    let mut more = fixed.to_vec();
    for column in 0..4 {
        let column = &contents[column * 31..][..31];
        more.extend_from_slice(column);
        more.push(column[30]);
    }
    more.extend_from_slice(&contents[4 * 31..]);
    let plain_bytes = more.len() as u32 - 40;
    for (at, word) in [(12, 31), (16, 32), (24, 64), (32, plain_bytes)] {
        more = patched(&more, at, word);
    }
    let error = Frame::decode(1, &more, 0).unwrap_err();
    assert!(matches!(error, FormatError::Invalid { field: "sum of chunk lengths", .. }), "{error}");
}

#[test]
fn chunks_come_back_in_order_with_and_without_compression() {
    let long = vec![7; 5000];
    let chunks = [chunk(1, 4, &long), chunk(1, 5, &[1, 2, 3]), chunk(9, 0, &long)];
    for compression in [Compression::None, Compression::Zstd(1), Compression::default()] {
        let frame = Frame::decode(1, &body(&chunks, compression), 0).unwrap();
        let found: Vec<_> = frame
            .chunks()
            .map(|found| (found.entry.warp, found.entry.sequence, found.entry.events, found.payload))
            .collect();
        let expected: Vec<_> =
            chunks.iter().map(|chunk| (chunk.warp, chunk.sequence, chunk.events, chunk.payload)).collect();
        assert_eq!(found, expected);
    }
    assert_eq!(
        Frame::decode(1, &body(&chunks, Compression::Zstd(1)), 0).unwrap().header().stored_as,
        StoredAs::Zstd
    );
    let tiny = body(&chunks[1..2], Compression::Zstd(1));
    assert_eq!(Frame::decode(1, &tiny, 0).unwrap().header().stored_as, StoredAs::Plain);
}

#[test]
fn what_a_reader_would_refuse_is_not_written() {
    let one = chunk(1, 0, &[1]);
    let encode = |chunks: &[ChunkRef<'_>]| encode_frame(3, 0, chunks, Compression::None);
    assert!(encode(&[]).is_err());
    assert!(encode(&[one, one]).is_err(), "twice");
    assert!(encode(&[chunk(2, 0, &[1]), one]).is_err(), "order");
    assert!(encode(&[ChunkRef { track: 1, ..one }]).is_err(), "track");
    assert!(encode(&[ChunkRef { events: 0, ..one }]).is_err(), "no events");
    assert!(encode(&[ChunkRef { payload: &[], ..one }]).is_err(), "no bytes");
    let long = vec![0; 1 << 20];
    assert!(encode(&[ChunkRef { payload: &long, ..one }]).is_err(), "payload over the limit");
    let most = &long[..crate::file::limits::MAX_PAYLOAD_BYTES as usize];
    let many: Vec<_> = (0..17).map(|sequence| chunk(1, sequence, most)).collect();
    assert!(matches!(encode(&many), Err(FormatError::TooLarge { field: "plain bytes", .. })));
}

pub(super) fn patched(body: &[u8], at: usize, word: u32) -> Vec<u8> {
    let mut bad = body.to_vec();
    bad[at..at + 4].copy_from_slice(&word.to_le_bytes());
    let crc = crc32fast::hash(&bad[..36]);
    bad[36..40].copy_from_slice(&crc.to_le_bytes());
    bad
}

#[test]
fn a_table_that_contradicts_the_header_is_refused() {
    let good = body(&[chunk(5, 0, &[9, 8]), chunk(6, 1, &[7])], Compression::None);
    assert!(Frame::decode(1, &good, 0).is_ok());
    for (what, at, word) in [
        ("first warp", 8, 4),
        ("last warp", 12, 7),
        ("last before first", 12, 4),
        ("fewer chunks", 16, 1),
        ("more chunks", 16, 3),
        ("no chunk", 16, 0),
        ("chunks of 2^32 - 1", 16, u32::MAX),
        ("compression", 20, 2),
        ("zstd that is none", 20, 1),
        ("reserved", 20, 0x100),
        ("events", 24, 5),
        ("events of 2^32 and more", 28, 1),
        ("plain bytes", 32, 12),
        ("plain bytes of 2^32 - 1", 32, u32::MAX),
        ("no plain bytes", 32, 0),
        // The table, four bytes at a time: 0 1 0 1, 0 0 4 4, 2 1 9 8.
        ("warp of the first chunk", 40, 0x0100_0101),
        ("warp after the last", 40, 0x0100_0200),
        ("same warp, same sequence numbers", 40, 0xffff_ffff),
        ("payload before it comes", 44, 0x0404_0001),
        ("payload that is none", 44, 0x0404_0200),
        ("payload again, and one too many", 44, 0x0404_0100),
        ("no events", 44, 0x0400_0000),
        ("fewer events than none", 44, 0x0401_0000),
        ("other events", 44, 0x0402_0000),
        ("no bytes", 48, 0x0809_0100),
        ("more bytes than there are", 48, 0x0809_0102 + 1),
        ("fewer bytes than there are", 48, 0x0809_0101),
    ] {
        let error = Frame::decode(1, &patched(&good, at, word), 0);
        assert!(error.is_err(), "{what}: {error:?}");
    }
    for length in 0..good.len() {
        assert!(Frame::decode(1, &good[..length], 0).is_err(), "length {length}");
    }
}

#[test]
fn a_frame_that_unpacks_to_more_than_it_says_is_refused() {
    let zeros = vec![0; 100_000];
    let good = body(&[chunk(5, 0, &zeros)], Compression::Zstd(3));
    for plain_bytes in [17, 100_006, 100_008, 16 << 20] {
        let error = Frame::decode(1, &patched(&good, 32, plain_bytes), 0).unwrap_err();
        assert!(matches!(error, FormatError::Decompress { .. }), "{plain_bytes}: {error}");
    }
}
