//! Copies the logs of addresses and values into chunks unchanged, lane by lane. This needs no sorting, no
//! encoding, and no memory for merged runs. All chunks of a stream except the last hold the same number of
//! entries. If the pool has too few chunks, another round computes the number of entries already copied from
//! the number of chunks.

use warptrace_abi::data::{DataEntry, accesses};
use warptrace_abi::pool::PoolDescriptor;
use warptrace_device::simt::{self, WARP_LANES};
use warptrace_format::Memory;
use warptrace_format::chunk::CHUNK_HEADER_BYTES;

use super::logs::Logs;
use super::shared::{self, MergedRuns, Step, WarpShared};
use crate::chunks;
use crate::lane_log::{Cursor, DeviceLogs, LaneLog, StreamLogs};
use crate::launches::Launches;
use crate::merged::RUN_BYTES;
use crate::warp::{self, by_first, earliest, sum, sum_up_to};

const KEY: u32 = 4;

#[derive(Clone, Copy)]
struct Pieces {
    each: u32,
    /// Entries that are in chunks already.
    done: u32,
    total: u32,
    /// Index of the first reserved chunk, and number of reserved chunks that exist.
    first: u32,
    count: u32,
}

impl Pieces {
    /// Returns the chunk and offset of an entry; `None` if it is in a chunk already, or no chunk is left.
    #[inline(always)]
    fn place(self, pool: &PoolDescriptor, position: u32) -> Option<(u32, u32)> {
        let since = position.wrapping_sub(self.done);
        let chunk = since / self.each.max(1);
        if position < self.done || chunk >= self.count || self.first.wrapping_add(chunk) >= pool.chunk_count {
            return None;
        }
        Some((self.first + chunk, CHUNK_HEADER_BYTES + (since - chunk * self.each) * RUN_BYTES))
    }

    #[inline(always)]
    fn put(self, pool: &PoolDescriptor, position: u32, words: [u32; 4]) {
        if let Some((chunk, at)) = self.place(pool, position) {
            chunks::chunk(pool, chunk).set128(at, words);
        }
    }
}

/// Counts the entries of a stream's logs, one lane per log. Returns the lane's cursor at its first entry.
#[inline(always)]
pub(super) fn count_data(pool: &PoolDescriptor, work: WarpShared, logs: StreamLogs, account: u64) -> Cursor {
    let memory = DeviceLogs { logs: pool.logs, end: pool.merged_from };
    let log = LaneLog::read(memory, logs, simt::lane());
    let keys = sum(log.start.remaining);
    let lost_from = earliest(log.lost_from);
    if simt::lane() == 0 {
        if keys == 0 {
            chunks::set_finished(account, true);
        } else {
            // `lists` and `kept` store whether events were lost, and when.
            let (lists, kept) = (u32::from(lost_from.is_some()), lost_from.unwrap_or(0));
            work.set_merged(&MergedRuns { first: 0, keys, lists, kept });
            work.set_next(Step::Copy);
        }
    }
    log.start
}

/// Copies the logs of the warp's stream if it has addresses and values. `first` is the lane's first entry.
#[inline(never)]
pub(super) fn copy_data(table: u64, count: u32, first: Cursor) {
    let work = WarpShared::new(simt::warp_in_block());
    if !work.next_is(Step::Copy) {
        return;
    }
    let (pool, stream, merged, lane) = (shared::pool(), work.stream(), work.merged(), simt::lane());
    let has_lost = merged.lists;
    let mut pieces = Pieces {
        each: pool.data_entries(),
        done: 0,
        total: merged.keys.saturating_add(has_lost),
        first: 0,
        count: 0,
    };
    pieces.done = stream.sequence.saturating_mul(pieces.each).min(pieces.total);
    let wanted = (pieces.total - pieces.done).div_ceil(pieces.each.max(1));
    pieces.first = by_first(|| chunks::claim_chunks(&pool, wanted));
    pieces.count = pool.chunk_count.saturating_sub(pieces.first).min(wanted);
    let entries = first.remaining;
    let start = sum_up_to(entries) - entries;
    let logs = Logs::new(&pool, stream.logs, first);
    let mut end = logs.for_each(work.slots(), start, |position, _, words| pieces.put(&pool, position, words));
    // Entries missing from a damaged log.
    while end < start + entries {
        pieces.put(&pool, end, [0; 4]);
        end += 1;
    }
    if lane == 0 && has_lost != 0 {
        // Where events were lost, only the upper bits of the time are known.
        pieces.put(&pool, merged.keys, DataEntry::Cut { time: merged.kept & !1 }.to_words());
    }
    // Makes the entries of other lanes visible.
    warp::sync_warp();
    let of = Launches { table, count }.get(stream.launch);
    let (launch, number) = (of.launch, of.first_stream + stream.track * of.warps + stream.warp);
    let (mut recorded, mut chunk) = (0_u64, 0);
    while chunk < pieces.count {
        let here = (pieces.total - pieces.done - chunk * pieces.each).min(pieces.each);
        let mut memory = chunks::chunk(&pool, pieces.first + chunk);
        let (mut own, mut at) = (0, lane);
        while at < here {
            own += accesses(memory.get32(CHUNK_HEADER_BYTES + at * RUN_BYTES + KEY));
            at += WARP_LANES;
        }
        let in_chunk = sum(own);
        if lane == 0 {
            memory.set128(0, [stream.warp, stream.sequence + chunk, in_chunk, here * RUN_BYTES]);
            memory.set128(16, [launch, stream.track, 0, number]);
        }
        recorded += u64::from(in_chunk);
        chunk += 1;
    }
    if lane == 0 {
        chunks::add_to_account(stream.account, [recorded, recorded, 0], pieces.count);
        if pieces.count == wanted {
            chunks::set_finished(stream.account, true);
        } else {
            chunks::count_waiting(&pool);
        }
        work.set_next(Step::Nothing);
    }
    warp::sync_warp();
}
