use super::*;
use crate::file::section::{SECTION_HEADER_BYTES, SectionHeader};
use crate::file::{FormatError, SectionKind};

fn chunk(warp: u32, sequence: u32, payload: &[u8]) -> ChunkRef<'_> {
    ChunkRef { track: 0, warp, sequence, events: 2, payload }
}

fn body(chunks: &[ChunkRef<'_>], compression: Compression) -> Vec<u8> {
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
            35, 0, 0, 0
        ]
    );
    assert_eq!(
        body[40..],
        [
            5, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 6, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0,
            9, 8, 7
        ]
    );
}

#[test]
fn chunks_come_back_in_order_with_and_without_compression() {
    let long = vec![7; 5000];
    let chunks = [chunk(1, 4, &long), chunk(1, 5, &[1, 2, 3]), chunk(9, 0, &long)];
    for compression in [Compression::None, Compression::Zstd(1), Compression::default()] {
        let frame = Frame::decode(&body(&chunks, compression), 0).unwrap();
        let found: Vec<_> = frame
            .chunks()
            .map(|found| (found.entry.warp, found.entry.sequence, found.entry.events, found.payload))
            .collect();
        let expected: Vec<_> =
            chunks.iter().map(|chunk| (chunk.warp, chunk.sequence, chunk.events, chunk.payload)).collect();
        assert_eq!(found, expected);
    }
    assert_eq!(
        Frame::decode(&body(&chunks, Compression::Zstd(1)), 0).unwrap().header().stored_as,
        StoredAs::Zstd
    );
    // What does not shrink is stored plain.
    let tiny = body(&chunks[1..2], Compression::Zstd(1));
    assert_eq!(Frame::decode(&tiny, 0).unwrap().header().stored_as, StoredAs::Plain);
}

#[test]
fn a_chunk_is_taken_from_the_pool_as_the_warp_left_it() {
    let mut bytes = [0; 64];
    for (at, word) in [(0, 7u32), (4, 2), (8, 11), (12, 3), (16, 5), (20, 1)] {
        bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    bytes[32..35].copy_from_slice(&[1, 2, 3]);
    let expected = ChunkRef { track: 1, warp: 7, sequence: 2, events: 11, payload: &[1, 2, 3] };
    assert_eq!(ChunkRef::from_pool(&bytes), Some(expected));
    bytes[12] = 33;
    assert_eq!(ChunkRef::from_pool(&bytes), None);
    assert_eq!(ChunkRef::from_pool(&bytes[..31]), None);
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

/// Rewrites the fixed part of a body with a right checksum.
fn patched(body: &[u8], at: usize, word: u32) -> Vec<u8> {
    let mut bad = body.to_vec();
    bad[at..at + 4].copy_from_slice(&word.to_le_bytes());
    let crc = crc32fast::hash(&bad[..36]);
    bad[36..40].copy_from_slice(&crc.to_le_bytes());
    bad
}

#[test]
fn a_table_that_contradicts_the_header_is_refused() {
    let good = body(&[chunk(5, 0, &[9, 8]), chunk(6, 1, &[7])], Compression::None);
    assert!(Frame::decode(&good, 0).is_ok());
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
        ("plain bytes", 32, 34),
        ("plain bytes of 2^32 - 1", 32, u32::MAX),
        // The table: warp, order, events, length.
        ("warp of the first chunk", 40, 6),
        ("order", 56, 5 - 1),
        ("no events", 48, 0),
        ("no bytes", 52, 0),
        ("length of 2^32 - 1", 52, u32::MAX),
        ("length", 52, 3),
    ] {
        let error = Frame::decode(&patched(&good, at, word), 0);
        assert!(error.is_err(), "{what}: {error:?}");
    }
    for length in 0..good.len() {
        assert!(Frame::decode(&good[..length], 0).is_err(), "length {length}");
    }
}

#[test]
fn a_frame_that_unpacks_to_more_than_it_says_is_refused() {
    let zeros = vec![0; 100_000];
    let good = body(&[chunk(5, 0, &zeros)], Compression::Zstd(3));
    for plain_bytes in [17, 100_015, 100_017, 16 << 20] {
        let error = Frame::decode(&patched(&good, 32, plain_bytes), 0).unwrap_err();
        assert!(matches!(error, FormatError::Decompress { .. }), "{plain_bytes}: {error}");
    }
}
