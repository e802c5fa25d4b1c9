//! Sorting of a tile's entries.

use warptrace_abi::data::DataEntry;
use warptrace_abi::log::ENTRY_BYTES;
use warptrace_device::simt::{self, WARP_LANES};
use warptrace_format::Memory;
use warptrace_format::chunk::CHUNK_HEADER_BYTES;
use warptrace_format::data::tile::{DEVICE_TILE_ENTRIES, Part, Placed, TABLE_BYTES, TileChunk};

use super::{CHUNKS, ENTRIES, POSITION_SHIFT, SITE_SHIFT, SUMS, TABLE, Tile, memory, warps};
use crate::warp::{self, NEVER, sum};

impl Tile<'_> {
    /// Writes a key for each valid entry: its site, its position in the tile, and its kind. The other keys up to
    /// `all` come last. Completes the table.
    #[inline(always)]
    pub(super) fn read_keys(&mut self, all: u32) {
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
    pub(super) fn split(&mut self) {
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
    pub(super) fn count(&self, part: Part) -> u32 {
        match part {
            Part::All => self.entries,
            Part::Headers => self.headers,
            Part::Values => self.entries - self.headers,
        }
    }

    /// Returns an entry of a part by its number in it, and the entry before it.
    #[inline(always)]
    pub(super) fn entry(&self, part: Part, number: u32) -> [Placed; 2] {
        let placed = |number: u32| match part {
            Part::All => Self::outline(memory(0).get32(4 * number)),
            Part::Headers => Placed { chunk: 0, words: memory(ENTRIES).get128(16 * number) },
            Part::Values => Placed { chunk: 0, words: memory(ENTRIES).get128(16 * (self.headers + number)) },
        };
        let before = if number == 0 { Placed::default() } else { placed(number - 1) };
        [before, placed(number)]
    }
}

/// Sorts the first `all` keys, a power of two of at least 32. Keys in groups of 32 are exchanged by shuffles.
#[inline(never)]
pub(super) fn sort_keys(all: u32) {
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
