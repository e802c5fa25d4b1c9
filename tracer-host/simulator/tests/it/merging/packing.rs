//! Tiles of the packing kernel, compared with the tiles that the host encodes.

use std::collections::BTreeMap;

use warptrace_encode::{PackJob, pack_call, place_call};
use warptrace_format::chunk::ChunkHeader;
use warptrace_format::data::tile::{DEVICE_TILE_ENTRIES, MAX_TILE_BYTES};
use warptrace_format::data::{DataEntry, ENTRY_BYTES, Owner};
use warptrace_format::file::data::{DataChunk, Tile};
use warptrace_sim::{Launch, Simulator};

use crate::device_memory::Guarded;
use crate::made_runs::Numbers;

const HEADER: usize = 32;
const DATA_TRACK: u32 = 1;
const STREAMS: u32 = 400;

/// The pool: a header and entries for each chunk.
type Chunk = (ChunkHeader, Vec<u8>);

/// Returns an entry: headers and values with near or random bases, and sometimes words that no kernel writes.
fn entry(numbers: &mut Numbers, at: u64, kinds: u64) -> [u32; 4] {
    let random = |numbers: &mut Numbers| numbers.below(1 << 32) as u32;
    let site = 1 + numbers.below(1 + kinds % 9) as u16;
    let time = if kinds.is_multiple_of(2) { 100 + 7 * at as u32 } else { random(numbers) };
    let count = 1 + numbers.below([1, 3, 1023][(kinds % 3) as usize]) as u32;
    let step = match (count, kinds % 4) {
        (1, _) => 0,
        (_, 0) => 4,
        (_, 1) => -128,
        _ => random(numbers).cast_signed(),
    };
    let base = match kinds % 5 {
        0 => 0x7f00_0000_0000 + 4096 * at,
        1 => u64::from(random(numbers)) << 32 | u64::from(random(numbers)),
        2 => (0x7f00_0000_0000_u64 + 16 * numbers.below(4096)).wrapping_sub(u64::from(step.unsigned_abs())),
        3 => 0x7f00_0000_0000 + at * (u64::from(count) * 4),
        _ => u64::from((at as f32).to_bits()),
    };
    let owner = numbers.below(32) as u32;
    match numbers.below(20) {
        0..7 => DataEntry::Header { mask: 1 << owner | random(numbers), site, time, spread: None }.to_words(),
        7..9 => DataEntry::Header { mask: u32::MAX, site, time, spread: Some(31 * owner.cast_signed()) }
            .to_words(),
        9..14 => DataEntry::Values { site, of: Owner::Lane(owner), count, base, step }.to_words(),
        14..18 => DataEntry::Values { site, of: Owner::Group(1 + owner), count, base, step }.to_words(),
        18 => DataEntry::Cut { time }.to_words(),
        _ => [0; 4].map(|_: u32| random(numbers)),
    }
}

/// Returns a pool with chunks of two launches, and between them chunks of events and unused ones.
fn pool(numbers: &mut Numbers, chunks: u32, most: u64) -> Vec<Chunk> {
    let kinds = numbers.below(1 << 20);
    // Consecutive chunks of a stream: mostly one, sometimes many. Streams are in any order.
    let (mut stream, mut left) = (numbers.below(STREAMS.into()) as u32, 0);
    let chunk = |number: u32| {
        let launch = 5 + u32::from(number > chunks / 3);
        let entries = (1 + numbers.below(most)) as usize;
        let (track, entries) = match numbers.below(8) {
            0 => (0, entries),
            1 => (DATA_TRACK, 0),
            _ => (DATA_TRACK, entries),
        };
        if left == 0 || track == 0 || entries == 0 || number == chunks / 3 + 1 {
            stream = (stream + 7) % (STREAMS + 3);
            left = [1, 1, 1, 3, 5, 40][numbers.below(6) as usize];
        }
        left -= 1;
        let words = (0..entries as u64).flat_map(|at| entry(numbers, at, kinds));
        let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        let (warp, sequence, length) = (number * 7, number % 3, bytes.len() as u32);
        (ChunkHeader { warp, sequence, events: 1, length, launch, track, runs: 0, padding: stream }, bytes)
    };
    (0..chunks).map(chunk).collect()
}

/// Packs a pool in blocks of `each` chunks and `threads` threads. Returns the counter and the memory.
fn packed(pool: &[Chunk], chunk_bytes: usize, each: u32, threads: u32, capacity: usize) -> (usize, Vec<u8>) {
    let mut chunks = Guarded::new(pool.len() * chunk_bytes);
    let mut bytes = Vec::new();
    for (number, (header, entries)) in pool.iter().enumerate() {
        let ChunkHeader { warp, sequence, events, length, launch, track, .. } = *header;
        let words = [warp, sequence, events, length, launch, track, 0, header.padding];
        bytes.extend(words.into_iter().flat_map(u32::to_le_bytes));
        bytes.extend_from_slice(entries);
        bytes.resize((number + 1) * chunk_bytes, 0xee);
    }
    chunks.write(&bytes);
    let (mut cursor, mut target) = (Guarded::zeroed(4), Guarded::zeroed(capacity));
    let mut table = Guarded::new(4 * STREAMS as usize);
    table.write(&vec![0xff; 4 * STREAMS as usize]);
    let count = pool.len() as u32;
    let job = PackJob {
        chunks: chunks.address(),
        cursor: cursor.address(),
        target: target.address(),
        table: table.address(),
        chunk_bytes: chunk_bytes as u32,
        count,
        each,
        data_track: DATA_TRACK,
        capacity: capacity as u32,
        streams: STREAMS,
    };
    for (call, grid) in [(place_call(&job), 1), (pack_call(&job), count.max(STREAMS).div_ceil(each))] {
        let launch = Launch::new([grid, 1, 1], [threads, 1, 1]).threads(1).seed(u64::from(each));
        // SAFETY: the job's memory has the required sizes.
        let thread = unsafe { call.thread() };
        Simulator::new().launch(&launch, &|| thread()).expect("a correct kernel");
    }
    assert_eq!(chunks.contents(), bytes, "packing writes into no chunk");
    let used = cursor.contents().try_into().map(u32::from_le_bytes).expect("four bytes");
    (used as usize, target.contents())
}

/// Checks the tiles in packed memory; returns the number of tiles.
fn check(pool: &[Chunk], packed: &[u8]) -> usize {
    let of_data = pool.iter().filter(|(header, entries)| header.track == DATA_TRACK && !entries.is_empty());
    let mut missing: BTreeMap<(u32, u32), &Chunk> =
        of_data.map(|chunk| ((chunk.0.launch, chunk.0.warp), chunk)).collect();
    let (mut rest, mut tiles) = (packed, 0);
    while let Some(header) = ChunkHeader::read(rest) {
        let payload = &rest[HEADER..HEADER + header.length as usize];
        assert!(payload.len() <= MAX_TILE_BYTES as usize);
        let found = Tile::read(header.warp, header.events, payload).expect("a whole table");
        let taken: Vec<&Chunk> = found
            .chunks
            .iter()
            .map(|chunk| missing.remove(&(header.launch, chunk.warp)).expect("once"))
            .collect();
        let chunks = taken.iter().map(|(header, entries)| DataChunk {
            warp: header.warp,
            sequence: header.sequence,
            entries,
        });
        let expected = Tile::encode(&chunks.collect::<Vec<_>>());
        assert_eq!(found.chunks, expected.chunks);
        let mut bytes = Vec::new();
        expected.write(&mut bytes);
        assert!(
            payload == bytes,
            "tile {tiles} of {} chunks: {} and {} bytes",
            header.warp,
            payload.len(),
            bytes.len()
        );
        assert_eq!((found.accesses, header.track), (expected.accesses, DATA_TRACK));
        rest = &rest[(HEADER + payload.len()).next_multiple_of(16)..];
        tiles += 1;
    }
    assert!(rest.is_empty() && missing.is_empty(), "{} chunks are in no tile", missing.len());
    tiles
}

/// Packs random pools, until `tiles` tiles were compared. A tile has ten columns.
pub(super) fn check_random_tiles(mut tiles: usize) {
    let mut numbers = Numbers(3);
    while tiles > 0 {
        let (each, threads) = (1 + numbers.below(300) as u32, 32 * (1 + numbers.below(8)) as u32);
        let (chunks, most) = [(40, 30), (300, 10), (7, 255), (3, 1500)][numbers.below(4) as usize];
        let pool = pool(&mut numbers, chunks, most);
        let chunk_bytes = HEADER + ENTRY_BYTES * most as usize;
        let most = most.min(DEVICE_TILE_ENTRIES.into()) as usize;
        let clamped: Vec<Chunk> = pool
            .iter()
            .map(|(header, entries)| (*header, entries[..entries.len().min(ENTRY_BYTES * most)].to_vec()))
            .collect();
        let (used, memory) = packed(&pool, chunk_bytes, each, threads, 4 << 20);
        assert!(memory[used..].iter().all(|byte| *byte == 0));
        tiles = tiles.saturating_sub(check(&clamped, &memory[..used]));
        // With less memory, the counter says how much is needed, and nothing is written beyond.
        let (needed, _) = packed(&pool, chunk_bytes, each, threads, used / 32 * 16);
        assert_eq!(needed, used);
    }
}

#[test]
fn tiles_of_the_kernel_are_those_of_the_host() {
    check_random_tiles(40);
}
