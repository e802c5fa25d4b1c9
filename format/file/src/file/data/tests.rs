use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::SECTION_HEADER_BYTES;
use super::*;
use crate::data::native::WarpRecorder;
use crate::data::tile::{MAX_TILE_BYTES, MAX_TILE_ENTRIES};
use crate::data::{DataEntry, Owner};

type Pattern = fn(u32, u32, u64) -> u64;

fn hash(warp: u32, lane: u32, number: u64) -> u64 {
    let mixed = (u64::from(warp) << 40 | u64::from(lane) << 32 | number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32
}

/// Strided, uniform, random, over all 64 bits, and floats.
const PATTERNS: [Pattern; 5] = [
    |warp, lane, number| 0x7f00_0000_0000 + u64::from(warp) * 4096 + u64::from(lane) * 4 + number * 128,
    |_, _, number| 0x7f10_0000_0000 + number / 3 * 16,
    |warp, lane, number| 0x7f20_0000_0000 + hash(warp, lane, number) % 256 * 4,
    |warp, lane, number| hash(warp, lane, number).wrapping_mul(0x1_0000_0001_0001),
    |warp, lane, number| u64::from((1.0 + hash(warp, lane, number) as f32 / 1e9).to_bits()),
];

fn bytes(entries: &[[u32; 4]]) -> Vec<u8> {
    entries.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
}

/// Some lanes skip every third access.
fn streams(warps: u32, accesses: u64, room: usize) -> Vec<(u32, Vec<u8>, u64)> {
    let warp = |warp: u32| {
        let mut recorder = WarpRecorder::new(room);
        let mut time = 5_000 * warp;
        for number in 0..accesses {
            for (site, pattern) in (1..).zip(PATTERNS) {
                time += 3;
                let mask = if number % 3 == 2 { 0x00ff_ff00 } else { u32::MAX };
                let lanes: Vec<_> = lanes(mask).map(|lane| (lane, pattern(warp, lane, number))).collect();
                recorder.access(site * 7, time, &lanes);
            }
        }
        recorder.leave(time + 1, 0xffff);
        recorder.leave(time + 2, 0xffff_0000);
        let recorded = recorder.attempted - recorder.lost;
        (warp * 3, bytes(&recorder.finish()), recorded)
    };
    (0..warps).map(warp).collect()
}

fn chunks(streams: &[(u32, Vec<u8>, u64)], chunk: usize) -> Vec<DataChunk<'_>> {
    let chunks = streams.iter().flat_map(|(warp, stream, _)| {
        let parts = (0..).zip(stream.chunks(chunk));
        parts.map(|(sequence, entries)| DataChunk { warp: *warp, sequence, entries })
    });
    chunks.collect()
}

/// The section of chunks, read again.
fn read(chunks: &[DataChunk<'_>], compression: Compression) -> (Vec<u8>, DataHeader, Vec<Piece>) {
    let tiles: Vec<_> = cut_into_tiles(chunks).map(Tile::encode).collect();
    let (section, header) = encode_data(9, &tiles, compression).unwrap();
    let (read, pieces) = decode_data(&section[SECTION_HEADER_BYTES..], 3).unwrap();
    assert_eq!(read, header);
    (section, header, pieces)
}

fn pieces(streams: &[(u32, Vec<u8>, u64)], chunk: usize) -> Vec<Piece> {
    read(&chunks(streams, chunk), Compression::None).2
}

fn groups_of(entries: &[u8]) -> PieceGroups {
    read(&[DataChunk { warp: 0, sequence: 0, entries }], Compression::None).2.remove(0).groups
}

#[test]
fn what_is_written_is_read() {
    for room in [usize::MAX, 300] {
        let streams = streams(5, 40, room);
        let sizes = [30 * 16, 16 * MAX_TILE_ENTRIES as usize];
        for (size, compression) in sizes.into_iter().zip([Compression::None, Compression::Suited]) {
            let (section, header, pieces) = read(&chunks(&streams, size), compression);
            assert_eq!(&section[..8], b"DATA\x02\x00\x01\x00");
            assert_eq!((header.launch, header.first_warp, header.last_warp), (9, 0, 12));
            assert_eq!(header.accesses, streams.iter().map(|(.., recorded)| recorded).sum::<u64>());
            assert_eq!(
                DataHeader::parse(&section[SECTION_HEADER_BYTES..][..DATA_HEADER_BYTES], 3),
                Ok(header)
            );
            assert_eq!(pieces.len(), 5);
            for (piece, (warp, stream, _)) in pieces.iter().zip(&streams) {
                let words = |entry: &[[u8; 4]; 4]| entry.map(u32::from_le_bytes);
                let entries: Vec<[u32; 4]> = stream.as_chunks().0.as_chunks().0.iter().map(words).collect();
                assert_eq!((piece.warp, piece.chunks), (*warp, count(stream.len().div_ceil(size))));
                // The same groups as from the entries in the order in which they were recorded.
                assert_eq!(piece.groups.sites, EntryReader::default().read(&entries));
                assert_eq!(piece.groups.cut.is_some(), room == 300);
            }
        }
    }
}

#[test]
fn bytes_are_frozen() {
    let streams = streams(2, 5, 100);
    let section = read(&chunks(&streams, 200 * 16), Compression::None).0;
    assert_eq!((section.len(), crc32fast::hash(&section)), (1961, 574_432_350));
}

#[test]
fn the_table_of_a_tile_is_read_as_it_was_written() {
    let streams = streams(3, 20, 300);
    let tile = Tile::encode(&chunks(&streams, 60 * 16));
    let mut payload = Vec::new();
    tile.write(&mut payload);
    assert!(payload.len() <= MAX_TILE_BYTES as usize);
    let [count, accesses] = [tile.chunks.len() as u64, tile.accesses].map(|number| number as u32);
    assert_eq!(Tile::read(count, accesses, &payload), Some(tile));
    assert_eq!(Tile::read(u32::MAX, 0, &payload), None);
    // The largest tile: bits of all values, in as many chunks as possible.
    let random = |at: u32| {
        let [a, b, c] = [0, 1, 2].map(|word| hash(at, word, 7) as u32 | 1 << 31);
        if at.is_multiple_of(2) {
            [a, (b & 0x7fff) << 16 | 2, c, 0]
        } else {
            [a, b | 0x7ff0 << 16 | 128, c, b]
        }
    };
    let entries = bytes(&(0..MAX_TILE_ENTRIES).map(random).collect::<Vec<_>>());
    let all = [(0, entries, 0)];
    payload.clear();
    Tile::encode(&chunks(&all, 8 * 16)).write(&mut payload);
    assert!((10 << 10..=MAX_TILE_BYTES as usize).contains(&payload.len()), "{} bytes", payload.len());
}

#[test]
fn a_whole_stream_has_nothing_loose_and_a_cut_one_is_cut() {
    let whole = pieces(&streams(1, 40, usize::MAX), 160);
    for site in &whole[0].groups.sites {
        assert!(site.loose.is_empty() && site.groups.iter().all(|group| group.missing == 0));
    }
    let lossy = pieces(&streams(1, 40, 300), 160);
    let cut = lossy[0].groups.cut.unwrap();
    for site in &lossy[0].groups.sites {
        assert!(site.groups.iter().all(|group| group.missing == 0 || group.time >= cut));
    }
}

#[test]
fn pieces_that_are_joined_are_the_whole() {
    let streams = streams(1, 60, usize::MAX);
    let whole = pieces(&streams, 16 * MAX_TILE_ENTRIES as usize).remove(0).groups;
    let (_, stream, _) = &streams[0];
    for piece in [16, 48, 160, 5 * 16 * 31] {
        let parts = stream.chunks(piece).map(groups_of).collect();
        assert_eq!(PieceGroups::join(parts), whole, "pieces of {piece} bytes");
    }
}

#[test]
fn damage_is_an_error() {
    let streams = streams(2, 4, 40);
    let section = read(&chunks(&streams, 160), Compression::None).0;
    let body = &section[SECTION_HEADER_BYTES..];
    for length in 0..body.len() {
        assert!(decode_data(&body[..length], 7).is_err(), "length {length}");
    }
    for at in 0..body.len() {
        for bit in 0..8 {
            let mut damaged = body.to_vec();
            damaged[at] ^= 1 << bit;
            // No panic, and never more than the section announces.
            if let Ok((header, pieces)) = decode_data(&damaged, 0) {
                let entries: usize =
                    pieces.iter().flat_map(|piece| &piece.groups.sites).map(SiteGroups::entries).sum();
                assert_eq!(entries, header.entries as usize);
            }
        }
    }
}

#[test]
fn entries_that_no_kernel_writes_are_counted() {
    let good = DataEntry::Values { site: 1, of: Owner::Lane(3), count: 1, base: 7, step: 0 };
    let stream = bytes(&[[0; 4], good.to_words(), [1, 2, 3, 4]]);
    let groups = groups_of(&stream);
    assert_eq!(groups.damaged, 2);
    assert_eq!(groups.sites[0].loose.len(), 1);
}

proptest! {
    #[test]
    fn any_entries_are_read_as_they_were(
        entries in prop::collection::vec((any::<[u32; 4]>(), 0u16..4, 0u32..3, any::<bool>()), 0..200),
        chunk in 1usize..20,
    ) {
        // Mostly valid entries, in an order that no kernel writes.
        let words = entries.into_iter().map(|([a, b, c, d], site, form, is_small)| {
            let count = 1 + b % 1023;
            let of = if a & 1 == 0 { Owner::Lane(c % 32) } else { Owner::Group(1 + c % 32) };
            let base = if is_small { u64::from(d % 100) } else { u64::from(a) << 32 | u64::from(d) };
            let step = if count == 1 { 0 } else { b as i32 };
            match form {
                0 => DataEntry::Header { mask: a, site, time: c, spread: is_small.then_some(d as i32) }.to_words(),
                1 => DataEntry::Values { site, of, count, base, step }.to_words(),
                _ => [a, b, c, d],
            }
        });
        let words: Vec<[u32; 4]> = words.collect();
        let stream = bytes(&words);
        let mut all: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        all.insert(3, stream.clone());
        all.insert(4, stream);
        let streams: Vec<_> = all.into_iter().map(|(warp, stream)| (warp, stream, 0)).collect();
        let chunks = chunks(&streams, 16 * chunk);
        if chunks.is_empty() {
            return Ok(());
        }
        let whole = EntryReader::default().read(&words);
        for compression in [Compression::None, Compression::Suited] {
            let (_, _, pieces) = read(&chunks, compression);
            prop_assert!(pieces.iter().all(|piece| piece.groups.sites == whole));
        }
    }
}
