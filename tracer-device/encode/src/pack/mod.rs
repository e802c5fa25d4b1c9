//! Packs the chunks of the data track into tiles ([`tile`]), which take a fraction of their bytes.
//!
//! Warps reserve chunks in any order, and neighbouring warps have similar entries. So a first kernel stores the
//! first chunk of each stream in a table. The second kernel takes streams with few chunks in the order of
//! their numbers, and then the chunks of all other streams in their own order: these are consecutive.
//!
//! A block of threads packs as many of them as fit into a tile, and then the next ones. It sorts the entries
//! by site (a bitonic sort, Batcher 1968), finds the sizes of all columns, reserves memory for the tile, and
//! writes the columns one after the other.

mod keys;
mod sizes;
mod write;

use warptrace_abi::log::ENTRY_BYTES;
use warptrace_device::simt::{self, WARP_LANES};
use warptrace_format::Memory;
use warptrace_format::chunk::CHUNK_HEADER_BYTES;
use warptrace_format::data::tile::{BLOCK, Column, DEVICE_TILE_ENTRIES, MAX_TILE_CHUNKS, TABLE_BYTES};

use self::keys::sort_keys;
use crate::memory::{GlobalMemory, block_memory};
use crate::warp::{self, NEVER, sum, sum_up_to};

/// Maximum warps of a block.
pub(crate) const MAX_WARPS: u32 = 8;
/// Alignment of packed chunks in bytes.
const ALIGN: u32 = 16;
const COLUMNS: u32 = Column::ALL.len() as u32;
/// Columns, counted once for each prediction.
const CANDIDATES: u32 = 13;

// The block's shared memory: sort keys; for each entry its chunk; the entries, first all headers and then all
// values; values of a column; the chunks of the tile; sums of warps or of blocks of values; the choice for each
// column; and where the tile is packed.
const CHUNKS: u32 = 4 * DEVICE_TILE_ENTRIES;
const ENTRIES: u32 = CHUNKS + DEVICE_TILE_ENTRIES;
const VALUES: u32 = ENTRIES + 16 * DEVICE_TILE_ENTRIES;
const TABLE: u32 = VALUES + 8 * DEVICE_TILE_ENTRIES;
const SUMS: u32 = TABLE + TABLE_BYTES * MAX_TILE_CHUNKS;
const WARP_SUMS: u32 = 8 * CANDIDATES;
const CHOICES: u32 = SUMS + WARP_SUMS * MAX_WARPS;
const PLACE: u32 = CHOICES + 16 * COLUMNS;
const SHARED_BYTES: u32 = PLACE + 16;
const _: () = assert!(SHARED_BYTES <= 48 << 10 && DEVICE_TILE_ENTRIES / BLOCK <= 2 * CANDIDATES);
// A key has 15 bits for the site, 10 for the position and 2 for the kind. A table of chunks has a byte for each.
const _: () = assert!(DEVICE_TILE_ENTRIES <= 1 << 10 && MAX_TILE_CHUNKS <= 1 << 8);
const SITE_SHIFT: u32 = 12;
const POSITION_SHIFT: u32 = 2;

block_memory! {
    /// Returns the block's memory from `at` onward. Only the kernel that packs calls it.
    fn memory(at) = "warptrace_packing", SHARED_BYTES;
}

/// Packs chunks of the data track in the pool.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct PackJob {
    /// Address of the first chunk, a multiple of 16.
    pub chunks: u64,
    /// Address of the counter of packed bytes, a `u32`. It may exceed the capacity: tiles beyond it are not
    /// written.
    pub cursor: u64,
    /// Address of the packed chunks, a multiple of 16.
    pub target: u64,
    /// Address of a `u32` for each stream: its first chunk among these. The first kernel sets it; before, all
    /// bytes are 0xff. The chunks of a stream are consecutive.
    pub table: u64,
    /// Bytes of a chunk, header included.
    pub chunk_bytes: u32,
    /// Number of chunks.
    pub count: u32,
    /// Number of chunks and of streams for each block of the grid, at least 1.
    pub each: u32,
    /// The data track.
    pub data_track: u32,
    /// Bytes that fit at `target`.
    pub capacity: u32,
    /// Number of streams of all launches.
    pub streams: u32,
}

const _: () = assert!(size_of::<PackJob>() == 56);

/// Chunks that a stream may have to be taken in the order of streams.
const FEW: u32 = 4;

impl PackJob {
    #[inline(always)]
    fn chunk(&self, number: u32) -> GlobalMemory {
        GlobalMemory::new(self.chunks + u64::from(number) * u64::from(self.chunk_bytes))
    }

    /// Returns the stream of a chunk of the data track; `None` for other and unused chunks.
    #[inline(always)]
    fn stream_of(&self, number: u32) -> Option<u32> {
        let chunk = self.chunk(number);
        let [_, track, _, stream] = chunk.get128(16);
        (track == self.data_track && chunk.get32(12) >= ENTRY_BYTES).then_some(stream)
    }

    #[inline(always)]
    fn is_of(&self, number: u32, stream: u32) -> bool {
        number < self.count && self.stream_of(number) == Some(stream)
    }

    /// Returns the first chunk of a stream among these; [`NEVER`] if it has none.
    #[inline(always)]
    fn first_of(&self, stream: u32) -> u32 {
        if stream < self.streams { self.table_at(stream).get32(0) } else { NEVER }
    }

    #[inline(always)]
    fn table_at(&self, stream: u32) -> GlobalMemory {
        GlobalMemory::new(self.table + 4 * u64::from(stream))
    }

    /// Returns the chunks that a stream may have to be taken with others. They fit into a tile.
    #[inline(always)]
    fn few(&self) -> u32 {
        let entries = (self.chunk_bytes - CHUNK_HEADER_BYTES) / ENTRY_BYTES;
        (DEVICE_TILE_ENTRIES / entries.max(1)).clamp(1, FEW)
    }

    /// Returns a stream's chunks: the first one, and how many, if they are few; otherwise none.
    #[inline(always)]
    fn few_of(&self, stream: u32) -> (u32, u32) {
        let (first, mut chunks) = (self.first_of(stream), 0);
        while first != NEVER && chunks <= self.few() && self.is_of(first + chunks, stream) {
            chunks += 1;
        }
        (first, if chunks > self.few() { 0 } else { chunks })
    }

    /// Returns true if a chunk is of a stream with more than few chunks.
    #[inline(always)]
    fn is_of_many(&self, number: u32) -> bool {
        let Some(stream) = self.stream_of(number) else { return false };
        let first = self.first_of(stream);
        first == NEVER || self.is_of(first.saturating_add(self.few()), stream)
    }
}

/// Stores the first chunk of each stream. A grid of any size calls it.
#[inline(always)]
pub(crate) fn place_chunks(job: &PackJob) {
    let mut number = simt::global_thread_x();
    while number < job.count {
        if let Some(stream) = job.stream_of(number)
            && stream < job.streams
            && (number == 0 || job.stream_of(number - 1) != Some(stream))
        {
            job.table_at(stream).set32(0, number);
        }
        number = number.saturating_add(simt::grid_threads_x());
    }
}

/// Packs the chunks of a job. All threads of blocks of up to [`MAX_WARPS`] whole warps call it.
#[inline(always)]
pub(crate) fn pack_data(job: &PackJob) {
    let each = job.each.max(1);
    let from = simt::block_idx()[0].saturating_mul(each);
    let mut in_order = true;
    loop {
        let end = from.saturating_add(each).min(if in_order { job.streams } else { job.count });
        let mut first = from;
        while first < end {
            let mut tile = Tile {
                job,
                in_order,
                first,
                end,
                launch: 0,
                chunks: 0,
                entries: 0,
                headers: 0,
                accesses: 0,
                shift: 0,
            };
            tile.find();
            first = tile.end;
            if tile.chunks != 0 {
                tile.pack();
            }
        }
        if !in_order {
            return;
        }
        in_order = false;
    }
}

#[derive(Clone, Copy)]
struct Tile<'a> {
    job: &'a PackJob,
    /// True for streams with few chunks, false for the chunks of other streams.
    in_order: bool,
    /// The examined streams or chunks.
    first: u32,
    end: u32,
    launch: u32,
    chunks: u32,
    /// Valid entries, and the headers among them.
    entries: u32,
    headers: u32,
    /// Accesses of the entries that this thread has read.
    accesses: u32,
    shift: u32,
}

#[inline(always)]
fn warps() -> u32 {
    simt::block_threads() / WARP_LANES
}

impl Tile<'_> {
    /// Returns the number of entries of a chunk.
    #[inline(always)]
    fn entries_of(&self, number: u32) -> u32 {
        let most = (self.job.chunk_bytes - CHUNK_HEADER_BYTES).min(DEVICE_TILE_ENTRIES * ENTRY_BYTES);
        self.job.chunk(number).get32(12).min(most) / ENTRY_BYTES
    }

    /// Returns the chunks at a position: the first one, and how many.
    #[inline(always)]
    fn chunks_at(&self, position: u32) -> (u32, u32) {
        if self.in_order {
            self.job.few_of(position)
        } else {
            (position, self.job.is_of_many(position).into())
        }
    }

    /// Finds the chunks that fit into a tile. The first warp stores them, each with its number, the position of
    /// its first entry, and its entries.
    #[inline(always)]
    fn find(&mut self) {
        let (lane, mut table) = (simt::lane(), memory(TABLE));
        let (mut at, mut is_full) = (self.first, false);
        // Other warps may still read the chunks of the previous tile.
        warp::sync_threads();
        while at < self.end && !is_full {
            let (first, mut chunks) = self.chunks_at((at + lane).min(self.end - 1));
            chunks *= u32::from(at + lane < self.end);
            let (mut entries, mut launch, mut number) = (0, 0, 0);
            while number < chunks {
                entries += self.entries_of(first + number);
                launch = self.job.chunk(first).get32(16);
                number += 1;
            }
            warp::sync_warp();
            let having = warp::ballot(chunks != 0);
            if self.chunks == 0 && having != 0 {
                self.launch = warp::shuffle(launch, having.trailing_zeros());
            }
            let to = self.entries + sum_up_to(entries);
            let place = self.chunks + sum_up_to(chunks);
            let fits = to <= DEVICE_TILE_ENTRIES && place <= MAX_TILE_CHUNKS && launch == self.launch;
            let over = warp::ballot(chunks != 0 && !fits);
            let taken = if over == 0 { having } else { having & ((1 << over.trailing_zeros()) - 1) };
            chunks *= taken >> lane & 1;
            entries *= taken >> lane & 1;
            let (mut start, mut number) = (to - entries, 0);
            while number < chunks && simt::warp_in_block() == 0 {
                let own = self.entries_of(first + number);
                table.set128(TABLE_BYTES * (place - chunks + number), [first + number, start, own, 0]);
                (start, number) = (start + own, number + 1);
            }
            warp::sync_warp();
            self.chunks += sum(chunks);
            self.entries += sum(entries);
            is_full = over != 0;
            at = if is_full { at + over.trailing_zeros() } else { at.saturating_add(WARP_LANES) };
        }
        self.end = at.min(self.end);
        warp::sync_threads();
    }

    #[inline(always)]
    fn pack(mut self) {
        let all = self.entries.next_power_of_two().max(WARP_LANES);
        self.read_keys(all);
        sort_keys(all);
        self.split();
        self.find_shift();
        self.find_sizes();
        let Some((mut to, base)) = self.reserve() else { return };
        self.write_table(base);
        let mut number = 0;
        while number < COLUMNS {
            to = self.write_column(Column::at(number), memory(CHOICES).get128(16 * number), to);
            number += 1;
        }
    }
}

/// Combines the bits of all lanes.
#[inline(always)]
fn either(bits: u64) -> [u32; 2] {
    [bits as u32, (bits >> 32) as u32].map(either_word)
}

#[inline(always)]
fn either_word(mut bits: u32) -> u32 {
    let mut step = 1;
    while step < WARP_LANES {
        bits |= warp::shuffle_xor(bits, step);
        step *= 2;
    }
    bits
}
