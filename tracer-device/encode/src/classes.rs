//! Classes: streams whose logs hold the same runs, however long these took.
//!
//! Streams of converged warps, in which one lane has a log, are looked at. A warp takes a stream, hashes the
//! masks and keys of its entries, and looks the hash up in a table in global memory. Where the table names
//! another stream, the entries of both are compared one by one: the hash says where to look, and no more. A
//! stream that equals no other, or finds no slot, is a class by itself.
//!
//! Entries are compared as they are. Streams whose logs hold the same runs in other entries, as entries
//! without a run may lie between them, are two classes.

use core::ptr::with_exposed_provenance_mut;

use warptrace_abi::pool::{NO_STREAM, PoolDescriptor};
use warptrace_device::atomic;
use warptrace_device::simt::{self, WARP_LANES};
use warptrace_format::Memory;

use crate::lane_log::{Cursor, DeviceLogs, LaneLog, Layout, LogMemory, StreamLogs, follow};
use crate::launches::{Launches, StreamOf};
use crate::memory::GlobalMemory;
use crate::warp::{ballot, by_first, shuffle, sum};

/// Slots that a stream looks at.
const MAX_TRIES: u32 = 16;

/// Finds the class of each stream. From any number of whole warps.
#[inline(always)]
pub(crate) fn find_classes(pool: &PoolDescriptor, launches: Launches, streams: u32) {
    let warps = simt::block_threads() / WARP_LANES;
    let mut number = simt::block_idx()[0] * warps + simt::warp_in_block();
    while number < streams {
        let first = first_of_class(pool, launches, number, streams);
        if simt::lane() == 0 {
            at(pool.classes, number).set32(0, first);
        }
        number = number.saturating_add(simt::grid_size()[0] * warps);
    }
}

/// Whether a stream is the first of its class, or no classes were found.
#[inline(always)]
pub(crate) fn is_first(classes: u64, number: u32) -> bool {
    classes == 0 || at(classes, number).get32(0) == number
}

/// Whether streams of a track can have classes: those that have no times, and are no addresses and values.
#[inline(always)]
pub(crate) fn has_classes(pool: &PoolDescriptor, logs: StreamLogs, track: u32) -> bool {
    !pool.is_data(track) && pool.time_bytes(track) == 0 && matches!(logs.layout, Layout::Linked)
}

#[inline(always)]
fn at(array: u64, index: u32) -> GlobalMemory {
    GlobalMemory::new(array + 4 * u64::from(index))
}

/// The first stream of a stream's class. From all lanes of a warp.
#[inline(always)]
fn first_of_class(pool: &PoolDescriptor, launches: Launches, number: u32, streams: u32) -> u32 {
    let Some(log) = SingleLog::of(pool, launches, number) else { return number };
    let table = pool.classes + 4 * u64::from(streams);
    let (mut slot, mut tries) = (log.hash(), 0);
    while tries < MAX_TRIES {
        slot &= pool.class_slots - 1;
        let found = by_first(|| {
            let slot = with_exposed_provenance_mut((table + 4 * u64::from(slot)) as usize);
            // SAFETY: a slot of the table.
            unsafe { atomic::compare_exchange_u32(slot, NO_STREAM, number) }
        });
        if found == NO_STREAM {
            return number;
        }
        if let Some(other) = SingleLog::of(pool, launches, found)
            && log.equals(other)
        {
            return found;
        }
        slot += 1;
        tries += 1;
    }
    number
}

/// The log of a stream in which one lane has one. The same in all lanes of the warp that reads it.
#[derive(Clone, Copy)]
struct SingleLog {
    memory: DeviceLogs,
    stream: StreamLogs,
    track: u32,
    cursor: Cursor,
}

impl SingleLog {
    /// That of a stream; `None` if no lane or several have one, something was lost, or the stream can be in no class.
    #[inline(always)]
    fn of(pool: &PoolDescriptor, launches: Launches, number: u32) -> Option<Self> {
        let StreamOf { launch, in_launch, track, warp, .. } = launches.stream(number);
        let stream = StreamLogs::new(&launch, in_launch, warp);
        if !has_classes(pool, stream, track) {
            return None;
        }
        let memory = DeviceLogs { logs: pool.logs, end: pool.merged_from };
        let log = LaneLog::read(memory, stream, simt::lane());
        let having = ballot(log.start.remaining != 0);
        if having.count_ones() != 1 || ballot(log.lost_from.is_some()) != 0 {
            return None;
        }
        let of_owner = |word: u32| shuffle(word, having.trailing_zeros());
        let Cursor { index, link, remaining } = log.start;
        let cursor = Cursor { index: of_owner(index), link: of_owner(link), remaining: of_owner(remaining) };
        Some(Self { memory, stream, track, cursor })
    }

    /// How many entries follow each other from the cursor on, at most one for each lane; 0 at the end.
    #[inline(always)]
    fn row(&mut self) -> u32 {
        let cursor = &mut self.cursor;
        if cursor.remaining != 0 && cursor.index == cursor.link {
            // The link was there when the entries were counted.
            let Some(segment) = follow(self.memory, cursor.link, self.stream) else { return 0 };
            cursor.index = segment;
            cursor.link = segment + (self.stream.segment_entries - 1);
        }
        (cursor.link - cursor.index).min(cursor.remaining).min(WARP_LANES)
    }

    /// The mask and the key of the lane's entry of a row.
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

    /// A hash of masks and keys in their order.
    #[inline(always)]
    fn hash(mut self) -> u32 {
        let (mut hash, mut position) = (0_u32, self.track + 1);
        loop {
            let row = self.row();
            if row == 0 {
                break;
            }
            if simt::lane() < row {
                let [mask, key] = self.of_lane();
                hash = hash.wrapping_add(mix(mask ^ mix(key ^ mix(position + simt::lane()))));
            }
            self.pass(row);
            position = position.wrapping_add(row);
        }
        sum(hash)
    }

    /// Whether the other log has the same masks and keys in the same order.
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

/// Mixes the bits of a word: the finaliser of MurmurHash3 (Austin Appleby, public domain).
#[inline(always)]
fn mix(word: u32) -> u32 {
    let word = (word ^ word >> 16).wrapping_mul(0x85eb_ca6b);
    let word = (word ^ word >> 13).wrapping_mul(0xc2b2_ae35);
    word ^ word >> 16
}
