//! Classes: streams whose logs hold the same runs, regardless of their times. A warp takes a stream, hashes
//! the masks and keys of its entries, and looks up the hash in a table in global memory. If the table names
//! another stream, the warp compares the entries of both, so a hash collision is harmless. A stream without
//! an equal, or without a free slot, is a class by itself.
//!
//! If only one lane has a log, as in converged warps, its entries are compared in their order. If several
//! lanes have logs, the entries are first ordered by time, in shared memory. Such streams with more than
//! [`MAX_ENTRIES`] entries are not compared. Neither are streams that have lost events.

use core::ptr::with_exposed_provenance_mut;

use warptrace_abi::log::Entry;
use warptrace_abi::pool::{NO_STREAM, PARTED, PoolDescriptor};
use warptrace_device::atomic;
use warptrace_device::simt::{self, WARP_LANES};
use warptrace_format::Memory;

use crate::lane_log::{Cursor, DeviceLogs, LaneLog, Layout, LogMemory, StreamLogs, follow};
use crate::launches::{Launches, StreamOf};
use crate::memory::{GlobalMemory, SharedMemory, block_memory};
use crate::warp::{ALL, NEVER, ballot, by_first, earliest, shuffle, sum, sum_up_to, sync_warp};

/// Maximum table slots that a lookup visits.
const MAX_TRIES: u32 = 16;
/// Maximum entries per reading lane, for a stream with several logs.
const PARTS: usize = 4;
/// Maximum entries of such a stream.
const MAX_ENTRIES: u32 = PARTS as u32 * WARP_LANES;
pub(crate) const MAX_WARPS: u32 = 8;

/// Bytes of a warp's shared memory: mask and key of each entry, their times, then the sorted masks and keys.
const WARP_BYTES: u32 = SORTED + 8 * MAX_ENTRIES;
const TIMES: u32 = 8 * MAX_ENTRIES;
const SORTED: u32 = TIMES + 4 * MAX_ENTRIES;

/// Finds the class of each stream. All threads of blocks of up to [`MAX_WARPS`] whole warps call it.
#[inline(always)]
pub(crate) fn find_classes(pool: &PoolDescriptor, launches: Launches, streams: u32) {
    let warps = simt::block_threads() / WARP_LANES;
    let mut number = simt::block_idx()[0] * warps + simt::warp_in_block();
    while number < streams {
        let class = class_of(pool, launches, number, streams);
        if simt::lane() == 0 {
            at(pool.classes, number).set32(0, class);
        }
        number = number.saturating_add(simt::grid_size()[0] * warps);
    }
}

/// Returns true if a stream represents its class, or if classes were not requested.
#[inline(always)]
pub(crate) fn is_first(classes: u64, number: u32) -> bool {
    classes == 0 || at(classes, number).get32(0) & !PARTED == number
}

/// Returns true if streams of a track can share a class: they have no times and hold no addresses or values.
#[inline(always)]
pub(crate) fn has_classes(pool: &PoolDescriptor, logs: StreamLogs, track: u32) -> bool {
    !pool.is_data(track) && pool.time_bytes(track) == 0 && matches!(logs.layout, Layout::Linked)
}

#[inline(always)]
fn at(array: u64, index: u32) -> GlobalMemory {
    GlobalMemory::new(array + 4 * u64::from(index))
}

/// Returns the value for a stream in the array of classes. All lanes of a warp call it.
#[inline(always)]
fn class_of(pool: &PoolDescriptor, launches: Launches, number: u32, streams: u32) -> u32 {
    let Some(logs) = StreamRead::of(pool, launches, number) else { return number };
    let table = Table { slots: pool.classes + 4 * u64::from(streams), mask: pool.class_slots - 1 };
    let other = |found| StreamRead::of(pool, launches, found);
    if logs.having.count_ones() == 1 {
        let log = logs.single();
        return table.find(number, log.hash(), |found| {
            other(found).is_some_and(|other| other.having.count_ones() == 1 && log.equals(other.single()))
        });
    }
    let Some(runs) = logs.merged() else { return number | PARTED };
    let first = table.find(number, runs.hash(), |found| {
        other(found).and_then(StreamRead::merged).is_some_and(|other| runs.equals(&other))
    });
    first | PARTED
}

#[derive(Clone, Copy)]
struct Table {
    slots: u64,
    /// Number of slots minus 1.
    mask: u32,
}

impl Table {
    /// Finds a stream equal to `number`, starting at the slot of its hash. Inserts `number` into the first
    /// free slot otherwise. Returns the representative. All lanes of a warp call it.
    #[inline(always)]
    fn find(self, number: u32, hash: u32, equals: impl Fn(u32) -> bool) -> u32 {
        let (mut slot, mut tries) = (hash, 0);
        while tries < MAX_TRIES {
            slot &= self.mask;
            let found = by_first(|| {
                let slot = with_exposed_provenance_mut((self.slots + 4 * u64::from(slot)) as usize);
                // SAFETY: the masked index is a slot of the table.
                unsafe { atomic::compare_exchange_u32(slot, NO_STREAM, number) }
            });
            if found == NO_STREAM {
                return number;
            }
            if equals(found) {
                return found;
            }
            slot += 1;
            tries += 1;
        }
        number
    }
}

#[derive(Clone, Copy)]
struct StreamRead {
    memory: DeviceLogs,
    stream: StreamLogs,
    track: u32,
    start: Cursor,
    /// Mask of the lanes that have a log.
    having: u32,
}

impl StreamRead {
    /// Locates the logs of a stream. `None` if it has no entries, has lost events, or can have no class.
    #[inline(always)]
    fn of(pool: &PoolDescriptor, launches: Launches, number: u32) -> Option<Self> {
        let StreamOf { launch, in_launch, track, warp, .. } = launches.stream(number);
        let stream = StreamLogs::new(&launch, in_launch, warp);
        if !has_classes(pool, stream, track) {
            return None;
        }
        let memory = DeviceLogs { logs: pool.logs, end: pool.merged_from };
        let LaneLog { start, lost_from, .. } = LaneLog::read(memory, stream, simt::lane());
        let having = ballot(start.remaining != 0);
        if having == 0 || ballot(lost_from.is_some()) != 0 {
            return None;
        }
        Some(Self { memory, stream, track, start, having })
    }

    #[inline(always)]
    fn single(self) -> SingleLog {
        let of_owner = |word: u32| shuffle(word, self.having.trailing_zeros());
        let Cursor { index, link, remaining } = self.start;
        let cursor = Cursor { index: of_owner(index), link: of_owner(link), remaining: of_owner(remaining) };
        SingleLog { memory: self.memory, stream: self.stream, track: self.track, cursor }
    }

    /// Merges the entries of all logs. `None` if there are too many, or if the times of a log have wrapped.
    #[inline(always)]
    fn merged(self) -> Option<MergedRuns> {
        let (mut shared, lane) = (WarpShared::new(), simt::lane());
        let behind = sum_up_to(self.start.remaining);
        let entries = shuffle(behind, WARP_LANES - 1);
        if entries > MAX_ENTRIES {
            return None;
        }
        let mut cursor = self.start;
        let mut next = cursor.seek_words(self.memory, self.stream);
        let base = earliest(next.map(|words| Entry::from_words(words).time)).unwrap_or(0);
        // Other lanes may still read the previous stream.
        sync_warp();
        let (mut at, mut last, mut ascends) = (behind - self.start.remaining, 0, true);
        while let Some([mask, key, low, high]) = next {
            let since = Entry::from_words([mask, key, low, high]).time.wrapping_sub(base).min(NEVER - 1);
            ascends &= last <= since;
            last = since;
            shared.set_entry(at, [mask, key], since);
            at += 1;
            cursor.advance();
            next = cursor.seek_words(self.memory, self.stream);
        }
        // Entries without a run come last.
        while at < behind {
            shared.set_entry(at, [0; 2], NEVER);
            at += 1;
        }
        if ballot(ascends) != ALL {
            return None;
        }
        sync_warp();
        at = lane;
        while at < entries {
            let (since, mut rank, mut other) = (shared.since(at), 0, 0);
            while other < entries {
                // At equal times, the lower lane comes first; a lane's entries keep their order.
                let before = shared.since(other);
                rank += u32::from(before < since || before == since && other < at);
                other += 1;
            }
            shared.set_sorted(rank, shared.entry(at));
            at += WARP_LANES;
        }
        sync_warp();
        let mut runs = [[0; 2]; PARTS];
        for (part, run) in (0..).zip(&mut runs) {
            let at = lane + WARP_LANES * part;
            if at < entries {
                *run = shared.sorted(at);
            }
        }
        Some(MergedRuns { track: self.track, entries, runs })
    }
}

/// With several logs. Ordered by start time.
struct MergedRuns {
    track: u32,
    entries: u32,
    /// This lane's part: runs `lane`, `lane + 32`, and so on.
    runs: [[u32; 2]; PARTS],
}

impl MergedRuns {
    #[inline(always)]
    fn hash(&self) -> u32 {
        let mut hash = 0_u32;
        for (part, &run) in (0..).zip(&self.runs) {
            let at = simt::lane() + WARP_LANES * part;
            hash = hash.wrapping_add(if at < self.entries { mix_run(run, at + self.track) } else { 0 });
        }
        sum(hash)
    }

    #[inline(always)]
    fn equals(&self, other: &Self) -> bool {
        let mut are_equal = self.track == other.track && self.entries == other.entries;
        for (run, other) in self.runs.iter().zip(&other.runs) {
            are_equal &= run == other;
        }
        ballot(are_equal) == ALL
    }
}

/// The log of a stream with only one. Uniform across the reading warp.
#[derive(Clone, Copy)]
struct SingleLog {
    memory: DeviceLogs,
    stream: StreamLogs,
    track: u32,
    cursor: Cursor,
}

impl SingleLog {
    /// Returns the number of consecutive entries at the cursor, at most one per lane; 0 at the end.
    #[inline(always)]
    fn row(&mut self) -> u32 {
        let cursor = &mut self.cursor;
        if cursor.remaining != 0 && cursor.index == cursor.link {
            // The link was valid when the entries were counted.
            let Some(segment) = follow(self.memory, cursor.link, self.stream) else { return 0 };
            cursor.index = segment;
            cursor.link = segment + (self.stream.segment_entries - 1);
        }
        (cursor.link - cursor.index).min(cursor.remaining).min(WARP_LANES)
    }

    #[inline(always)]
    fn of_lane(&self) -> [u32; 2] {
        let [mask, key, ..] = self.memory.entry(self.cursor.index + simt::lane());
        [mask, key]
    }

    #[inline(always)]
    fn pass(&mut self, row: u32) {
        self.cursor.index += row;
        self.cursor.remaining -= row;
    }

    #[inline(always)]
    fn hash(mut self) -> u32 {
        let (mut hash, mut position) = (0_u32, self.track);
        loop {
            let row = self.row();
            if row == 0 {
                break;
            }
            if simt::lane() < row {
                hash = hash.wrapping_add(mix_run(self.of_lane(), position + simt::lane()));
            }
            self.pass(row);
            position = position.wrapping_add(row);
        }
        sum(hash)
    }

    /// Returns true if the other log has the same masks and keys in the same order.
    #[inline(always)]
    fn equals(mut self, mut other: Self) -> bool {
        if self.track != other.track || self.cursor.remaining != other.cursor.remaining {
            return false;
        }
        while self.cursor.remaining != 0 {
            let row = self.row().min(other.row());
            let differs = simt::lane() < row && self.of_lane() != other.of_lane();
            if row == 0 || ballot(differs) != 0 {
                return false;
            }
            self.pass(row);
            other.pass(row);
        }
        true
    }
}

#[inline(always)]
fn mix_run([mask, key]: [u32; 2], at: u32) -> u32 {
    mix(mask ^ mix(key ^ mix(at + 1)))
}

/// Mixes the bits of a word: the finaliser of MurmurHash3 (Austin Appleby, public domain).
#[inline(always)]
fn mix(word: u32) -> u32 {
    let word = (word ^ word >> 16).wrapping_mul(0x85eb_ca6b);
    let word = (word ^ word >> 13).wrapping_mul(0xc2b2_ae35);
    word ^ word >> 16
}

#[derive(Clone, Copy)]
struct WarpShared(SharedMemory);

impl WarpShared {
    #[inline(always)]
    fn new() -> Self {
        Self(memory(WARP_BYTES * (simt::warp_in_block() % MAX_WARPS)))
    }

    #[inline(always)]
    fn set_entry(&mut self, at: u32, entry: [u32; 2], since: u32) {
        self.0.set64(8 * at, entry);
        self.0.set32(TIMES + 4 * at, since);
    }

    #[inline(always)]
    fn entry(self, at: u32) -> [u32; 2] {
        self.0.get64(8 * at)
    }

    #[inline(always)]
    fn since(self, at: u32) -> u32 {
        self.0.get32(TIMES + 4 * at)
    }

    #[inline(always)]
    fn sorted(self, at: u32) -> [u32; 2] {
        self.0.get64(SORTED + 8 * at)
    }

    #[inline(always)]
    fn set_sorted(&mut self, at: u32, entry: [u32; 2]) {
        self.0.set64(SORTED + 8 * at, entry);
    }
}

block_memory! {
    /// Returns the block's memory from `at` onward. Only the kernel that finds classes calls it.
    fn memory(at) = "warptrace_comparing", WARP_BYTES * MAX_WARPS;
}
