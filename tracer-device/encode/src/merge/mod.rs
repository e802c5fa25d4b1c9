//! Merges the logs of each stream into one sequence of runs. A warp takes a stream, counts the entries of its
//! logs, reserves memory for all of them, and writes a key for each entry, log by log. If only one log has
//! entries, no sort is needed, and the warp copies the runs directly. Otherwise the keys are sorted (`sort`).
//! The warp sorts them alone if they fit into its part of shared memory. If not, all warps of the block sort
//! them, one such stream after another. Finally, the warp cuts the merged runs into stretches.
//!
//! If chunks or memory for merged runs are used up, a stream waits for another round and is merged again. Its
//! account then holds the length of the prefix that is already recorded. Keys are times since the earliest
//! run, so times may wrap once. They wrap about every half minute. If a log shows that its times have wrapped
//! again, one lane merges the logs run by run (`serial`).
//!
//! All warps of a block sort a long stream, because such a stream determines the end of the launch, and the
//! other warps have no other work. One warp sorts a short stream: most of its time is latency at the
//! beginning and at the end, and the warps of a block wait at the same time.
//!
//! The steps are functions that are not inlined, and pass their results in the block's shared memory. As one
//! function, with all values live throughout, the kernel used 146 registers.

mod cut;
mod data;
mod logs;
pub(crate) mod serial;
mod shared;
mod sort;

use warptrace_abi::log::Entry;
use warptrace_abi::pool::PoolDescriptor;
use warptrace_device::simt::{self, WARP_LANES};
use warptrace_format::Memory;

use self::cut::{Cut, cut};
use self::data::{copy_data, count_data};
use self::logs::Logs;
use self::serial::SerialMerge;
pub(crate) use self::shared::MAX_WARPS;
use self::shared::{Kept, MAX_SHARED_KEYS, MergedRuns, Step, Stream, WarpShared};
use self::sort::{GlobalKeys, Key, Keys, SharedKeys, Team, gather, sort, unsorted};
use crate::chunks;
use crate::classes;
use crate::codec::Codec;
use crate::lane_log::{Cursor, DeviceLogs, LaneLog, StreamLogs};
use crate::launches::{Launches, StreamOf, account};
use crate::memory::at_entry;
use crate::merged::{Room, RunSums, Share, merged_words};
use crate::warp::{self, ALL, NEVER, by_first, earliest, latest, minimum, sum, sum_of_events, sum_up_to};

/// Merges the logs of all streams. All threads of blocks of up to [`MAX_WARPS`] whole warps call it.
#[inline(always)]
pub(crate) fn merge_streams(pool: &PoolDescriptor, launches: Launches, streams: u32, codec: Codec) {
    shared::share(pool, codec);
    let warps = (simt::block_threads() / WARP_LANES).min(MAX_WARPS);
    let mut first = simt::block_idx()[0] * warps;
    while first < streams {
        let stream = first + simt::warp_in_block();
        let log = take_stream(launches.table, launches.count, stream, streams, pool.classes);
        copy_data(launches.table, launches.count, log);
        read_logs(log);
        sort_by_warp();
        warp::sync_threads();
        let lane = simt::lane();
        let mut long = warp::ballot(lane < warps && WarpShared::new(lane).next_is(Step::SortByBlock));
        while long != 0 {
            sort_by_block(long.trailing_zeros());
            long &= long - 1;
        }
        // No warp reads another warp's shared memory after this point.
        warp::sync_threads();
        finish();
        first = first.saturating_add(simt::grid_size()[0] * warps);
    }
}

impl Share {
    #[inline(always)]
    fn of_all(self) -> Self {
        Self {
            kept: sum(self.kept),
            sums: RunSums {
                attempted: sum_of_events(self.sums.attempted),
                lost: sum_of_events(self.sums.lost),
                fits: warp::ballot(self.sums.fits) == ALL,
            },
        }
    }
}

/// Takes the stream with this number, if it exists and represents its class: counts the entries of its logs,
/// reserves memory, and stores the parameters to read them. Returns the lane's cursor at its first entry.
#[inline(never)]
fn take_stream(table: u64, count: u32, number: u32, streams: u32, classes: u64) -> Cursor {
    let (work, lane) = (WarpShared::new(simt::warp_in_block()), simt::lane());
    // Other lanes may still read the shared memory.
    warp::sync_warp();
    let is_there = number < streams;
    let number = number.min(streams - 1);
    let StreamOf { launch, index, in_launch, track, warp } = Launches { table, count }.stream(number);
    let logs = StreamLogs::new(&launch, in_launch, warp);
    let account = account(&launch, in_launch);
    // Excludes streams that an earlier round has finished.
    let is_there = is_there && !chunks::is_finished(account) && classes::is_first(classes, number);
    if lane == 0 {
        work.set_next(Step::Nothing);
        if is_there {
            let sequence = chunks::account_chunks(account);
            work.set_stream(&Stream { account, logs, sequence, warp, launch: index, track });
        }
    }
    let mut first = Cursor::default();
    if is_there {
        let pool = shared::pool();
        first = if pool.is_data(track) {
            count_data(&pool, work, logs, account)
        } else {
            count_entries(&pool, work, logs, account)
        };
    }
    warp::sync_warp();
    first
}

/// Counts the entries of a stream's logs, one lane per log, and reserves memory for the merged runs. If
/// memory or chunks are used up, the stream waits for another round. If the entries exceed the total memory
/// for merged runs, they are lost. In rings, skips the runs that began before the last loss of any lane.
#[inline(always)]
fn count_entries(pool: &PoolDescriptor, work: WarpShared, logs: StreamLogs, account: u64) -> Cursor {
    let lane = simt::lane();
    let memory = DeviceLogs { logs: pool.logs, end: pool.merged_from };
    let mut log = LaneLog::read(memory, logs, lane);
    let mut passed_over = 0;
    if let Some(clock) = latest(log.oldest) {
        passed_over = sum_of_events(log.pass_over(memory, logs, clock));
    }
    let lost_from = earliest(log.lost_from);
    let entries = log.start.remaining;
    let up_to = sum_up_to(entries);
    let keys = warp::shuffle(up_to, WARP_LANES - 1);
    if keys == 0 {
        if lane == 0 {
            chunks::set_finished(account, true);
        }
        return Cursor::default();
    }
    let first = by_first(|| if chunks::are_used_up(pool) { NEVER } else { chunks::claim_merged(pool, keys) });
    if first == NEVER && keys <= pool.merged_end.saturating_sub(pool.merged_from) {
        if lane == 0 {
            chunks::count_waiting(pool);
        }
        return Cursor::default();
    }
    let having = warp::ballot(entries != 0);
    let lists = having.count_ones();
    let mut cursor = log.start;
    let first_time = cursor.seek(memory, logs).map(|entry| entry.time);
    let base = earliest(first_time).unwrap_or(0);
    // The recorded part is a prefix.
    let mut kept = Kept { base, before: NEVER, passed_over };
    if let Some(from) = lost_from {
        let since = from.wrapping_sub(base);
        kept.before = if (since as i32) < 0 { 0 } else { since };
    }
    if first == NEVER {
        kept.before = 0;
    }
    let lower = (1 << lane) - 1;
    if entries != 0 {
        work.set_start((having & lower).count_ones(), up_to - entries);
    } else {
        work.set_start(lists + (!having & lower).count_ones(), keys);
    }
    if lane == 0 {
        work.set_start(WARP_LANES, keys);
        work.set_merged(&MergedRuns { first, keys, lists, kept: 0 });
        work.set_kept(kept);
        work.set_next(Step::Read);
    }
    log.start
}

/// Reads the logs of the warp's stream. `first` is at the start of the lane's log. Writes the keys of the
/// runs, or, if only one log has entries, the merged runs.
#[inline(never)]
fn read_logs(first: Cursor) {
    let work = WarpShared::new(simt::warp_in_block());
    if !work.next_is(Step::Read) {
        return;
    }
    let (pool, merged, stream) = (shared::pool(), work.merged(), work.stream());
    let room = Room::new(&pool, shared::codec().of_track(stream.track), stream.track);
    let Kept { base, before, passed_over } = work.kept();
    let entries = first.remaining;
    let is_single = merged.lists == 1;
    let in_shared = merged.keys <= MAX_SHARED_KEYS;
    let shared = unsorted(SharedKeys::halves(work), merged.lists);
    let global = unsorted(GlobalKeys::halves(&pool, &merged), merged.lists);
    let set_key = |position: u32, key: Key| {
        if in_shared {
            shared.set(position, key);
        } else if merged.first != NEVER {
            global.set(position, key);
        }
    };
    let (mut share, mut first_lost) = (Share::NOTHING, NEVER);
    let start = sum_up_to(entries) - entries;
    let logs = Logs::new(&pool, stream.logs, first);
    let mut end = logs.for_each(work.slots(), start, |position, index, words| {
        let entry = Entry::from_words(words);
        // `NEVER` is reserved for entries without a run.
        let since = entry.time.wrapping_sub(base).min(NEVER - 1);
        let kept = since < before;
        share.count(entry, kept, room);
        if !is_single {
            set_key(position, Key { since, index });
        } else if kept {
            at_entry(pool.logs, merged.first + position).set128(0, merged_words(entry));
        } else {
            first_lost = first_lost.min(position);
        }
    });
    while !is_single && end < start + entries {
        set_key(end, Key::NO_RUN);
        end += 1;
    }
    let Share { kept, sums } = share.of_all().with_lost(passed_over);
    let is_sorted = minimum(first_lost) >= kept;
    if simt::lane() == 0 {
        work.set_merged(&MergedRuns { kept, ..merged });
        work.set_sums(&sums);
        work.set_next(if kept == 0 {
            Step::Cut
        } else if is_single {
            if is_sorted { Step::Cut } else { Step::MergeSerially }
        } else if in_shared {
            Step::SortByWarp
        } else {
            Step::SortByBlock
        });
    }
    warp::sync_warp();
}

#[inline(never)]
fn sort_by_warp() {
    let work = WarpShared::new(simt::warp_in_block());
    if work.next_is(Step::SortByWarp) {
        let (pool, merged) = (shared::pool(), work.merged());
        let keys = SharedKeys::halves(work);
        sort::<false, _>(work, &merged, keys, Team);
        if !work.is_unsorted() {
            gather::<false, _>(&pool, &merged, keys, Team);
        }
    }
}

/// Sorts the stream of a warp of the block. All threads of the block call it.
#[inline(never)]
fn sort_by_block(warp: u32) {
    let (pool, work) = (shared::pool(), WarpShared::new(warp));
    let merged = work.merged();
    let keys = GlobalKeys::halves(&pool, &merged);
    sort::<true, _>(work, &merged, keys, Team);
    if !work.is_unsorted() {
        gather::<true, _>(&pool, &merged, keys, Team);
    }
}

/// Cuts the merged runs and updates the account.
#[inline(never)]
fn finish() {
    let work = WarpShared::new(simt::warp_in_block());
    if work.next_is(Step::Nothing) {
        return;
    }
    let (pool, stream) = (shared::pool(), work.stream());
    let codec = shared::codec().of_track(stream.track);
    let (mut merged, mut sums) = (work.merged(), work.sums());
    if work.next_is(Step::MergeSerially) || work.is_unsorted() {
        let Share { kept, sums: anew } = merge_serially(&pool, work, &stream, &merged, codec);
        (merged.kept, sums) = (kept, anew);
    }
    let Cut { is_begun, is_whole } = cut(&pool, &stream, &merged, sums.fits, codec);
    if simt::lane() == 0 {
        // Added once per stream, not once per round.
        if stream.sequence == 0 && (is_begun || is_whole) {
            chunks::add_to_account(stream.account, [sums.attempted, 0, sums.lost], 0);
        }
        if is_whole {
            chunks::set_finished(stream.account, true);
        } else {
            chunks::count_waiting(&pool);
        }
    }
}

/// Merges a stream with one lane, for arbitrary times. This is slow.
#[inline(always)]
fn merge_serially(
    pool: &PoolDescriptor,
    work: WarpShared,
    stream: &Stream,
    merged: &MergedRuns,
    codec: Codec,
) -> Share {
    let mut share = Share::NOTHING;
    // Other lanes may still read the shared memory.
    warp::sync_warp();
    if simt::lane() == 0 {
        let memory = DeviceLogs { logs: pool.logs, end: pool.merged_from };
        let mut merge = SerialMerge::open(work.slots(), memory, stream.logs);
        share = share.with_lost(merge.passed_over);
        let room = Room::new(pool, codec, stream.track);
        let mut remaining = merged.keys;
        while remaining != 0 {
            remaining -= 1;
            let Some(entry) = merge.next() else { break };
            let kept = merge.lost_from.is_none_or(|from| (entry.time.wrapping_sub(from) as i32) < 0);
            if kept {
                at_entry(pool.logs, merged.first + share.kept).set128(0, merged_words(entry));
            }
            share.count(entry, kept, room);
        }
    }
    warp::sync_warp();
    share.of_all()
}
