//! Packs the chunks of the data track into tiles ([`tile`]), which take a fraction of their bytes.
//!
//! Warps reserve chunks in any order, and neighbouring warps have similar entries. So a first kernel stores the
//! first chunk of each stream in a table. The second kernel takes streams with few chunks in the order of
//! their numbers, and then the chunks of all other streams in their own order: these are consecutive.
//!
//! A block of threads packs as many of them as fit into a tile, and then the next ones. It sorts the entries
//! by site (a bitonic sort, Batcher 1968), finds the sizes of all columns, reserves memory for the tile, and
//! writes the columns one after the other.

use core::ptr::with_exposed_provenance_mut;

use warptrace_abi::data::DataEntry;
use warptrace_abi::log::ENTRY_BYTES;
use warptrace_device::atomic;
use warptrace_device::simt::{self, WARP_LANES};
use warptrace_format::Memory;
use warptrace_format::chunk::CHUNK_HEADER_BYTES;
use warptrace_format::data::tile::{
    BLOCK, Column, DEVICE_TILE_ENTRIES, MAX_TILE_CHUNKS, PARAMETER_BYTES, Part, Placed, TABLE_BYTES,
    TileChunk, block_bytes, code_bytes, code_of, column_header, shift_of,
};

use crate::memory::{GlobalMemory, SharedMemory, block_memory};
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

/// Repeats statements for each number below a constant of at most 3, so that arrays stay in registers.
macro_rules! unrolled {
    ($number:ident < $count:ident, $body:block) => {
        unrolled!($number < $count, $body, 0 1 2)
    };
    ($number:ident < $count:ident, $body:block, $($at:literal)*) => {$(
        if $at < $count {
            let $number: usize = $at;
            $body
        }
    )*};
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

    /// Writes a key for each valid entry: its site, its position in the tile, and its kind. The other keys up to
    /// `all` come last. Completes the table.
    #[inline(always)]
    fn read_keys(&mut self, all: u32) {
        let (lane, mut keys, mut table) = (simt::lane(), memory(0), memory(TABLE));
        let mut at = self.entries + simt::linear_thread();
        while at < all {
            keys.set32(4 * at, NEVER);
            at += simt::block_threads();
        }
        let mut number = simt::warp_in_block();
        while number < self.chunks {
            let [chunk, start, entries, _] = table.get128(TABLE_BYTES * number);
            let payload = self.job.chunk(chunk);
            let (mut at, mut valid, mut cut, mut cuts) = (lane, 0, [0; 2], 0);
            while at < entries {
                let words = payload.get128(CHUNK_HEADER_BYTES + ENTRY_BYTES * at);
                let mut key = NEVER;
                match DataEntry::from_words(words) {
                    None => {}
                    Some(DataEntry::Cut { time }) => (cut, cuts) = ([at + 1, time], cuts + 1),
                    Some(_) => {
                        let entry = Placed { chunk: number, words };
                        valid += 1;
                        self.accesses += entry.accesses();
                        key = entry.site() << SITE_SHIFT | (start + at) << POSITION_SHIFT | entry.kind();
                    }
                }
                keys.set32(4 * (start + at), key);
                memory(CHUNKS).set8(start + at, number as u8);
                at += WARP_LANES;
            }
            warp::sync_warp();
            let [valid, cuts] = [valid, cuts].map(sum);
            // A stream has one such entry; of several, the last one counts.
            let last = warp::maximum(cut[0]);
            let time = warp::shuffle(cut[1], last.wrapping_sub(1) % WARP_LANES);
            let cut = (last != 0).then_some(time);
            if lane == 0 {
                let damaged = entries - valid - cuts;
                let [.., counts, time] =
                    TileChunk { warp: 0, sequence: 0, entries: valid, damaged, cut }.to_words();
                table.set128(TABLE_BYTES * number, [chunk, start, counts, time]);
            }
            number += warps();
        }
        warp::sync_threads();
    }

    /// Returns the key at a position; [`NEVER`] after the end.
    #[inline(always)]
    fn key(&self, position: u32) -> u32 {
        let key = memory(0).get32(4 * position.min(self.entries - 1));
        if position < self.entries { key } else { NEVER }
    }

    /// Returns an entry with the chunk, site and kind of a key.
    #[inline(always)]
    fn outline(key: u32) -> Placed {
        let chunk = memory(CHUNKS).get8(key >> POSITION_SHIFT & (DEVICE_TILE_ENTRIES - 1));
        Placed::outline(chunk.into(), key >> SITE_SHIFT, key & 3)
    }

    /// Counts valid entries and headers, and copies the headers, and then the values, in the order of their
    /// keys. Each warp has a part of the keys.
    #[inline(always)]
    fn split(&mut self) {
        let (lane, mut sums) = (simt::lane(), memory(SUMS));
        let each = self.entries.div_ceil(warps()).next_multiple_of(WARP_LANES);
        let first = simt::warp_in_block() * each;
        let end = self.entries.min(first + each);
        let is_values = |key: u32| key != NEVER && key & 2 != 0;
        let is_header = |key: u32| key != NEVER && key & 2 == 0;
        let (mut at, mut headers, mut values) = (first, 0, 0);
        while at < end {
            let key = self.key(at + lane);
            headers += warp::ballot(is_header(key)).count_ones();
            values += warp::ballot(is_values(key)).count_ones();
            at += WARP_LANES;
        }
        if lane == 0 {
            sums.set64(8 * simt::warp_in_block(), [headers, values]);
        }
        warp::sync_threads();
        let ([mut own_headers, mut own_values], mut all, mut other) = ([0; 2], [0; 2], 0);
        while other < warps() {
            let [headers, values] = sums.get64(8 * other);
            let is_before = u32::from(other < simt::warp_in_block());
            own_headers += headers * is_before;
            own_values += values * is_before;
            all = [all[0] + headers, all[1] + values];
            other += 1;
        }
        let [headers, values] = all;
        at = first;
        while at < end {
            let key = self.key(at + lane);
            let [of_headers, of_values] = [warp::ballot(is_header(key)), warp::ballot(is_values(key))];
            let below = (1 << lane) - 1;
            let to = if is_values(key) {
                headers + own_values + (of_values & below).count_ones()
            } else {
                own_headers + (of_headers & below).count_ones()
            };
            if key != NEVER {
                let chunk = u32::from(memory(CHUNKS).get8(key >> POSITION_SHIFT & (DEVICE_TILE_ENTRIES - 1)));
                let [number, start, ..] = memory(TABLE).get128(TABLE_BYTES * chunk);
                let from = (key >> POSITION_SHIFT & (DEVICE_TILE_ENTRIES - 1)) - start;
                let words = self.job.chunk(number).get128(CHUNK_HEADER_BYTES + ENTRY_BYTES * from);
                memory(ENTRIES).set128(16 * to, words);
            }
            warp::sync_warp();
            own_headers += of_headers.count_ones();
            own_values += of_values.count_ones();
            at += WARP_LANES;
        }
        (self.headers, self.entries) = (headers, headers + values);
        warp::sync_threads();
    }

    #[inline(always)]
    fn count(&self, part: Part) -> u32 {
        match part {
            Part::All => self.entries,
            Part::Headers => self.headers,
            Part::Values => self.entries - self.headers,
        }
    }

    /// Returns an entry of a part by its number in it, and the entry before it.
    #[inline(always)]
    fn entry(&self, part: Part, number: u32) -> [Placed; 2] {
        let placed = |number: u32| match part {
            Part::All => Self::outline(memory(0).get32(4 * number)),
            Part::Headers => Placed { chunk: 0, words: memory(ENTRIES).get128(16 * number) },
            Part::Values => Placed { chunk: 0, words: memory(ENTRIES).get128(16 * (self.headers + number)) },
        };
        let before = if number == 0 { Placed::default() } else { placed(number - 1) };
        [before, placed(number)]
    }

    #[inline(always)]
    fn find_shift(&mut self) {
        let (mut bits, mut number) = (0, simt::linear_thread());
        while number < self.count(Part::Values) {
            let [before, entry] = self.entry(Part::Values, number);
            bits |= entry.alignment(&before);
            number += simt::block_threads();
        }
        warp::sync_warp();
        let ([low, high], accesses) = (either(bits), sum(self.accesses));
        let mut sums = memory(SUMS);
        if simt::lane() == 0 {
            sums.set128(16 * simt::warp_in_block(), [low, high, accesses, 0]);
        }
        warp::sync_threads();
        let (mut all, mut other) = (0, 0);
        self.accesses = 0;
        while other < warps() {
            let [low, high, accesses, _] = sums.get128(16 * other);
            all |= u64::from(low) | u64::from(high) << 32;
            self.accesses += accesses;
            other += 1;
        }
        self.shift = shift_of(all);
        warp::sync_threads();
    }

    /// Finds the sizes of all columns in both packings, and stores for each column its prediction, whether bits
    /// are packed, and its bytes.
    #[inline(always)]
    fn find_sizes(&self) {
        use Column::{Base, Chunk, Count, Kind, Mask, Owner, Site, Spread, Step, Time};
        self.sizes_of(Part::All, 0, [(Site, 0), (Chunk, 0), (Kind, 0)]);
        self.sizes_of(Part::Headers, 3, [(Mask, 0), (Time, 0), (Spread, 0)]);
        self.sizes_of(Part::Values, 6, [(Owner, 0), (Count, 0)]);
        self.sizes_of(Part::Values, 8, [(Step, 0), (Step, 1), (Step, 2)]);
        self.sizes_of(Part::Values, 11, [(Base, 0), (Base, 1)]);
        warp::sync_threads();
        let number = simt::linear_thread();
        if number < COLUMNS {
            let column = Column::at(number);
            let mut candidate = if column == Base { 11 } else { number };
            let [mut best, mut by] = [[0, 0, NEVER, 0], [0; 4]];
            while by[0] < column.predictions() {
                let [mut as_bits, mut as_bytes, mut other] = [0, self.count(column.part()).div_ceil(4), 0];
                while other < warps() {
                    let [bits, bytes] = memory(SUMS).get64(WARP_SUMS * other + 8 * candidate);
                    (as_bits, as_bytes, other) = (as_bits + bits, as_bytes + bytes, other + 1);
                }
                if as_bits < best[2] {
                    best = [by[0], 1, as_bits, 0];
                }
                if as_bytes < best[2] {
                    best = [by[0], 0, as_bytes, 0];
                }
                (by[0], candidate) = (by[0] + 1, candidate + 1);
            }
            memory(CHOICES).set128(16 * number, best);
        }
        warp::sync_threads();
    }

    /// Stores the warp's parts of the sizes of columns with their predictions, from the candidate `first` on.
    #[inline(always)]
    fn sizes_of<const N: usize>(&self, part: Part, first: u32, candidates: [(Column, u32); N]) {
        let (lane, count) = (simt::lane(), self.count(part));
        let (mut as_bits, mut as_bytes) = ([0; N], [0; N]);
        let mut block = BLOCK * simt::warp_in_block();
        while block < count {
            let values = (count - block).min(BLOCK);
            let (mut bits, mut at) = ([0; N], lane);
            while at < values {
                let [before, entry] = self.entry(part, block + at);
                unrolled!(number < N, {
                    let (column, by) = candidates[number];
                    let value = column.residual(by, self.shift, &before, &entry);
                    bits[number] |= value;
                    as_bytes[number] += code_bytes(code_of(value, column.is_wide()), column.is_wide());
                });
                at += WARP_LANES;
            }
            warp::sync_warp();
            unrolled!(number < N, {
                let all = if candidates[number].0.is_wide() {
                    let [low, high] = either(bits[number]);
                    u64::from(low) | u64::from(high) << 32
                } else {
                    either_word(bits[number] as u32).into()
                };
                as_bits[number] += 1 + block_bytes(values, all);
            });
            block += BLOCK * warps();
        }
        unrolled!(number < N, {
            let bytes = sum(as_bytes[number]);
            if lane == 0 {
                let at = WARP_SUMS * simt::warp_in_block() + 8 * (first + number as u32);
                memory(SUMS).set64(at, [as_bits[number], bytes]);
            }
        });
    }

    /// Reserves memory for the tile and writes its header. Returns the address of the columns and of the payload;
    /// `None` if it does not fit.
    #[inline(always)]
    fn reserve(&self) -> Option<(GlobalMemory, GlobalMemory)> {
        let (mut length, mut number, mut predictions) = (TABLE_BYTES * self.chunks + PARAMETER_BYTES, 0, 0);
        while number < COLUMNS {
            let column = Column::at(number);
            let [by, is_bits, bytes, _] = memory(CHOICES).get128(16 * number);
            length += column_header(self.count(column.part()), column.is_wide(), is_bits != 0).1 + bytes;
            predictions = predictions << 4 | by;
            number += 1;
        }
        let bytes = (CHUNK_HEADER_BYTES + length).next_multiple_of(ALIGN);
        let mut shared = memory(PLACE);
        if simt::linear_thread() == 0 {
            // SAFETY: `cursor` is the address of the counter.
            let at = unsafe { atomic::add_u32(with_exposed_provenance_mut(self.job.cursor as usize), bytes) };
            shared.set32(0, at);
        }
        warp::sync_threads();
        let at = shared.get32(0);
        if at > self.job.capacity || bytes > self.job.capacity - at {
            return None;
        }
        let mut base = GlobalMemory::new(self.job.target + u64::from(at) + u64::from(CHUNK_HEADER_BYTES));
        if simt::linear_thread() == 0 {
            let mut header = GlobalMemory::new(base.address() - u64::from(CHUNK_HEADER_BYTES));
            header.set128(0, [self.chunks, 0, self.accesses, length]);
            header.set128(16, [self.launch, self.job.data_track, 0, 0]);
            base.set8(TABLE_BYTES * self.chunks, self.shift as u8);
            base.set8(TABLE_BYTES * self.chunks + 1, predictions as u8);
        }
        let columns = base.address() + u64::from(TABLE_BYTES * self.chunks + PARAMETER_BYTES);
        Some((GlobalMemory::new(columns), base))
    }

    #[inline(always)]
    fn write_table(&self, mut payload: GlobalMemory) {
        let mut number = simt::linear_thread();
        while number < self.chunks {
            let [chunk, _, counts, time] = memory(TABLE).get128(TABLE_BYTES * number);
            let [warp, sequence, ..] = self.job.chunk(chunk).get128(0);
            payload.set128(TABLE_BYTES * number, [warp, sequence, counts, time]);
            number += simt::block_threads();
        }
    }

    /// Writes a column. Returns the memory behind it.
    #[inline(always)]
    fn write_column(
        &self,
        column: Column,
        [by, is_bits, bytes, _]: [u32; 4],
        mut to: GlobalMemory,
    ) -> GlobalMemory {
        let (count, is_wide, lane) = (self.count(column.part()), column.is_wide(), simt::lane());
        let (header, header_bytes) = column_header(count, is_wide, is_bits != 0);
        // Each warp computes the values of its blocks. Sums of blocks are their widths, or the bytes of values.
        let (mut values, mut sums) = (memory(VALUES), memory(SUMS));
        warp::sync_threads();
        let mut first = BLOCK * simt::warp_in_block();
        // All values are 0 if the blocks have only widths.
        let is_zero = is_bits != 0 && bytes == count.div_ceil(BLOCK);
        while first < count && is_zero {
            if lane == 0 {
                sums.set32(4 * (first / BLOCK), 0);
            }
            first += BLOCK * warps();
        }
        while first < count {
            let (mut bits, mut length, mut at) = (0, 0, first + lane);
            while at < count.min(first + BLOCK) {
                let [before, entry] = self.entry(column.part(), at);
                let value = column.residual(by, self.shift, &before, &entry);
                values.set64(8 * at, [value as u32, (value >> 32) as u32]);
                bits |= value;
                length += code_bytes(code_of(value, is_wide), is_wide);
                at += WARP_LANES;
            }
            warp::sync_warp();
            let ([low, high], length) = (either(bits), sum(length));
            let width = 64 - (u64::from(low) | u64::from(high) << 32).leading_zeros();
            if lane == 0 {
                sums.set32(4 * (first / BLOCK), if is_bits != 0 { width } else { length });
            }
            first += BLOCK * warps();
        }
        warp::sync_threads();
        let mut at = simt::linear_thread();
        while at < header_bytes {
            to.set8(at, (u32::from_le_bytes(header) >> (8 * at)) as u8);
            at += simt::block_threads();
        }
        let column = Packed { values, sums, count, is_wide };
        let packed = GlobalMemory::new(to.address() + u64::from(header_bytes));
        if is_bits != 0 {
            column.write_bits(packed);
        } else {
            column.write_bytes(packed);
        }
        GlobalMemory::new(packed.address() + u64::from(bytes))
    }
}

/// Values of a column in shared memory.
#[derive(Clone, Copy)]
struct Packed {
    values: SharedMemory,
    /// For each block of values, the width or the bytes.
    sums: SharedMemory,
    count: u32,
    is_wide: bool,
}

impl Packed {
    #[inline(always)]
    fn get(&self, at: u32) -> u64 {
        let [low, high] = self.values.get64(8 * at);
        u64::from(low) | u64::from(high) << 32
    }

    #[inline(always)]
    fn values_in(&self, block: u32) -> u32 {
        (self.count - BLOCK * block).min(BLOCK)
    }

    /// Returns where each block of values begins, in the lane with its number: `bytes` are its bytes.
    #[inline(always)]
    fn starts(&self, first: u32, bytes: impl Fn(u32) -> u32) -> u32 {
        let lane = simt::lane();
        let block = lane.min(self.count.div_ceil(BLOCK).max(1) - 1);
        let own = bytes(block) * u32::from(BLOCK * lane < self.count);
        first + sum_up_to(own) - own
    }

    /// Writes blocks of packed bits: their widths, and then their values. A warp writes a block, and a lane a
    /// byte at a time.
    #[inline(always)]
    fn write_bits(&self, mut to: GlobalMemory) {
        let blocks = self.count.div_ceil(BLOCK);
        let bits_of = |block: u32| self.values_in(block) * self.sums.get32(4 * block);
        let starts = self.starts(blocks, |block| bits_of(block).div_ceil(8));
        let mut block = simt::warp_in_block();
        while block < blocks {
            let (width, start) = (self.sums.get32(4 * block), warp::shuffle(starts, block));
            let bytes = bits_of(block).div_ceil(8);
            if simt::lane() == 0 {
                to.set8(block, width as u8);
            }
            let mut at = simt::lane();
            while at < bytes {
                // `filled` is negative for the bits of the first value that are in bytes before.
                let mut value = 8 * at / width;
                let (mut byte, mut filled) = (0, (value * width).wrapping_sub(8 * at));
                while filled.cast_signed() < 8 && value < self.values_in(block) {
                    let bits = self.get(BLOCK * block + value);
                    byte |=
                        if filled.cast_signed() < 0 { bits >> filled.wrapping_neg() } else { bits << filled };
                    (value, filled) = (value + 1, filled.wrapping_add(width));
                }
                to.set8(start + at, byte as u8);
                at += WARP_LANES;
            }
            warp::sync_warp();
            block += warps();
        }
    }

    /// Writes control bytes, and then the bytes of values (Stream VByte).
    #[inline(always)]
    fn write_bytes(&self, mut to: GlobalMemory) {
        let code = |at: u32| if at < self.count { code_of(self.get(at), self.is_wide) } else { 0 };
        let controls = self.count.div_ceil(4);
        let mut at = simt::linear_thread();
        while at < controls {
            let own = 4 * at;
            to.set8(at, (code(own) | code(own + 1) << 2 | code(own + 2) << 4 | code(own + 3) << 6) as u8);
            at += simt::block_threads();
        }
        warp::sync_warp();
        let starts = self.starts(controls, |block| self.sums.get32(4 * block));
        let mut block = simt::warp_in_block();
        while BLOCK * block < self.count {
            let mut start = warp::shuffle(starts, block);
            let mut first = BLOCK * block;
            while first < self.count.min(BLOCK * (block + 1)) {
                let own = first + simt::lane();
                // Without a branch, which the compiler may extend over the shuffles.
                let value = self.get(own.min(self.count - 1));
                let length =
                    code_bytes(code_of(value, self.is_wide), self.is_wide) * u32::from(own < self.count);
                let (end, mut byte) = (start + sum_up_to(length), 0);
                while byte < length {
                    to.set8(end - length + byte, (value >> (8 * byte)) as u8);
                    byte += 1;
                }
                warp::sync_warp();
                start = warp::shuffle(end, WARP_LANES - 1);
                first += WARP_LANES;
            }
            block += warps();
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

/// Sorts the first `all` keys, a power of two of at least 32. Keys in groups of 32 are exchanged by shuffles.
#[inline(never)]
fn sort_keys(all: u32) {
    let mut keys = memory(0);
    sort_groups(all, 2, WARP_LANES);
    let mut size = 2 * WARP_LANES;
    while size <= all {
        let mut distance = size / 2;
        while distance >= WARP_LANES {
            warp::sync_threads();
            let mut pair = simt::linear_thread();
            while pair < all / 2 {
                let low = 2 * pair - (pair & (distance - 1));
                let (one, other) = (keys.get32(4 * low), keys.get32(4 * (low + distance)));
                if (one > other) == (low & size == 0) {
                    keys.set32(4 * low, other);
                    keys.set32(4 * (low + distance), one);
                }
                pair += simt::block_threads();
            }
            distance /= 2;
        }
        warp::sync_threads();
        sort_groups(all, size, size);
        size *= 2;
    }
    warp::sync_threads();
}

/// Takes the steps for the sizes from `first` to `last` that exchange keys less than 32 apart.
#[inline(always)]
fn sort_groups(all: u32, first: u32, last: u32) {
    let (lane, mut keys) = (simt::lane(), memory(0));
    let mut group = WARP_LANES * simt::warp_in_block();
    while group < all {
        let (mut key, mut size) = (keys.get32(4 * (group + lane)), first);
        while size <= last {
            let mut distance = (size / 2).min(WARP_LANES / 2);
            while distance > 0 {
                let other = warp::shuffle_xor(key, distance);
                let is_low = (lane & distance == 0) == ((group + lane) & size == 0);
                key = if is_low { key.min(other) } else { key.max(other) };
                distance /= 2;
            }
            size *= 2;
        }
        keys.set32(4 * (group + lane), key);
        group += WARP_LANES * warps();
    }
}
