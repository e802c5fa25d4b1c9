//! The logs of streams, merged into one sequence of runs each.
//!
//! A warp takes a stream: it counts the runs of the logs, claims memory for all of them, and writes a key for each, log by log. If only one log has any,
//! nothing has to be sorted, and the runs are copied at once. Otherwise the keys are sorted (see `sort`), by the warp alone, or, if they are
//! more than its part of shared memory holds, by all warps of its block, one such stream after the other. In the end the warp cuts the merged runs into stretches.
//!
//! Keys are times after the earliest, so that times may go round once. Where a log shows that they have gone round further, as they do in half a minute,
//! one lane merges the logs, run by run.
//!
//! # What it takes
//! On paper, for an H200: how often a warp waits for the L2 cache (600 cycles), how often for shared memory or the L1 cache (40), and its instructions (2.5
//! cycles, as long as few warps are at it), which make thousands of cycles. Before, a warp took the next runs of all logs step by step, one to three of them,
//! with 150 instructions and a wait each; and the links of the longest log were a chain of waits.
//!
//! ```text
//!                       before: L2  instructions  cycles    now: L2   L1  instructions  cycles
//! 32 logs of 17 runs           290           41k    280k         25   65            6k     33k
//! 32 logs of 300 runs        4,850          720k  4,700k        165  430           51k    244k
//! one log of 100 runs           30            1k     20k         14    0            1k     12k
//! 2 logs of 1,000 runs       1,150          150k  1,060k         45   27           18k     72k
//! ```
//!
//! What is left is mostly reading the logs: three waits for 217 runs, and the steps of lanes through a window.
//!
//! A long stream is the block's: it is the longest that the launch ends with, and the other warps of the block have nothing else to do. A short one is its
//! warp's: most of its time are waits at the beginning and at the end, which the warps of a block have at the same time then.
//!
//! The steps are functions that are not inlined, and hand on what they have found on the block's board: in one, with what each needs kept through all, the
//! kernel took 146 registers.

use warptrace_format::Memory;
use warptrace_format::pool::PoolDescriptor;

use super::Launches;
use super::board::{Board, MOST_WARPS, NEAR_RUNS, Order, Place, Sums, ToDo};
use super::cut::{cut, most_bytes, room};
use super::logs::{Logs, merged};
use super::sort::{Far, Key, Keys, Near, Team, gather, sort, unsorted};
use super::warp_ops::{ALL, NEVER, by_first, earliest, least, sum, sum_of_events, sum_up_to};
use crate::log::{Extent, at_unit};
use crate::merge::Merge;
use crate::pool;
use crate::recorder::Codec;
use crate::simt::{self, WARP_LANES};
use crate::state::plan;
use crate::unit::Run;

/// Merges the logs of all streams. From all threads of blocks of up to [`MOST_WARPS`] whole warps.
#[inline(always)]
pub(super) fn merge_all(launches: Launches, streams: u32) {
    let warps = (simt::block_threads() / WARP_LANES).min(MOST_WARPS);
    let mut first = simt::block_idx()[0] * warps;
    while first < streams {
        let stream = first + simt::warp_in_block();
        take_logs(launches.table, launches.count, stream, streams);
        sort_alone();
        simt::sync_threads();
        let lane = simt::lane();
        let mut long = simt::ballot(ALL, lane < warps && Board::of(lane).is_to(ToDo::SortTogether));
        while long != 0 {
            sort_together(long.trailing_zeros());
            long &= long - 1;
        }
        // Nobody looks at another warp's part any more.
        simt::sync_threads();
        finish();
        first = first.saturating_add(simt::grid_size()[0] * warps);
    }
}

/// What a track's events are recorded as.
#[inline(always)]
fn codec_of(track: u32) -> Codec {
    if track == 0 { plan().codec } else { Codec::Raw }
}

/// A lane's share of a stream's runs.
#[derive(Clone, Copy)]
struct Share {
    kept: u32,
    sums: Sums,
}

impl Share {
    const NOTHING: Self = Self { kept: 0, sums: Sums { attempted: 0, lost: 0, fits: true } };

    /// Takes a run into account, which is `kept` or lost.
    #[inline(always)]
    fn count(&mut self, run: Run, kept: bool, codec: Codec, room: u32) {
        self.sums.attempted += u64::from(run.count);
        if kept {
            self.kept += 1;
            self.sums.fits &= most_bytes(codec, run.count, room) <= room;
        } else {
            self.sums.lost += u64::from(run.count);
        }
    }

    /// Those of all lanes together.
    #[inline(always)]
    fn of_all(self) -> Self {
        Self {
            kept: sum(self.kept),
            sums: Sums {
                attempted: sum_of_events(self.sums.attempted),
                lost: sum_of_events(self.sums.lost),
                fits: simt::ballot(ALL, self.sums.fits) == ALL,
            },
        }
    }
}

/// Finds the stream with this number of so many, and reads its logs, if its warp has started. If only one log has runs, they are merged then.
#[inline(never)]
fn take_logs(table: u64, count: u32, number: u32, streams: u32) {
    let (board, lane) = (Board::of(simt::warp_in_block()), simt::lane());
    // What others have read there.
    simt::sync_warp(ALL);
    let is_there = number < streams;
    let number = number.min(streams - 1);
    let launch = Launches { table, count }.of_stream(number);
    let index = number - launch.first_stream;
    let (track, warp) = (index / launch.warps, index % launch.warps);
    let account = launch.accounts + u64::from(pool::ACCOUNT_BYTES) * u64::from(index);
    let slice = launch.slices + index * launch.slice_units;
    let mut started = false;
    if lane == 0 {
        started = is_there && pool::finish_account(account);
        let sequence = if started { pool::account_chunks(account) } else { 0 };
        board.set_place(&Place { account, slice, sequence, warp, launch: launch.launch, track });
    }
    if simt::ballot(ALL, started) != 0 {
        read_logs(&pool::descriptor(), board, slice, codec_of(track));
    }
    simt::sync_warp(ALL);
}

/// Reads the logs in a slice: their keys come into the claimed memory then, if there is more than one, and on the board is where each begins.
#[inline(always)]
fn read_logs(pool: &PoolDescriptor, board: Board, slice: u32, codec: Codec) {
    let lane = simt::lane();
    let log = Extent::read(pool.logs, slice, lane);
    let lost_from = earliest(log.lost_from);
    let logs = Logs::read(pool, log);
    let up_to = sum_up_to(logs.runs);
    let runs = simt::shuffle(ALL, up_to, WARP_LANES - 1);
    if runs == 0 {
        return;
    }
    let having = simt::ballot(ALL, logs.runs != 0);
    let lists = having.count_ones();
    let to = by_first(|| pool::claim_merged(pool, runs));
    let base = earliest(logs.first_time()).unwrap_or(0);
    // What is recorded is a beginning.
    let (mut some_lost, mut lost_after) = (to == 0, 0);
    if let Some(from) = lost_from {
        let after = from.wrapping_sub(base);
        lost_after = if to == 0 || (after as i32) < 0 { 0 } else { after };
        some_lost = true;
    }
    let is_single = lists == 1;
    let order = Order { to, runs, lists, kept: 0 };
    let is_near = runs <= NEAR_RUNS;
    let (near, far) = (unsorted(Near::halves(board), lists), unsorted(Far::halves(pool, &order), lists));
    let room = room(pool);
    let (mut share, mut first_lost) = (Share::NOTHING, NEVER);
    logs.for_each(board.memory, up_to - logs.runs, |place, unit, run| {
        let after = run.time.wrapping_sub(base);
        let kept = !some_lost || after < lost_after;
        share.count(run, kept, codec, room);
        if is_single && kept {
            at_unit(pool.logs, to + place).set128(0, merged(run));
        } else if is_single {
            first_lost = first_lost.min(place);
        } else if is_near {
            near.set(place, Key { after, unit });
        } else if to != 0 {
            far.set(place, Key { after, unit });
        }
    });
    let Share { kept, sums } = share.of_all();
    let is_sorted = least(first_lost).min(runs) == kept;
    // The slots are no longer needed.
    simt::sync_warp(ALL);
    let lower = (1 << lane) - 1;
    if logs.runs != 0 {
        board.set_start((having & lower).count_ones(), up_to - logs.runs);
    } else {
        board.set_start(lists + (!having & lower).count_ones(), runs);
    }
    if lane == 0 {
        board.set_start(WARP_LANES, runs);
        board.set_order(&Order { kept, ..order });
        board.set_sums(&sums);
        board.set_to_do(if kept == 0 {
            ToDo::Cut
        } else if is_single {
            if is_sorted { ToDo::Cut } else { ToDo::MergeOneByOne }
        } else if is_near {
            ToDo::SortAlone
        } else {
            ToDo::SortTogether
        });
    }
}

/// Sorts the warp's stream, if it is to do that alone.
#[inline(never)]
fn sort_alone() {
    let board = Board::of(simt::warp_in_block());
    if board.is_to(ToDo::SortAlone) {
        let (pool, order) = (pool::descriptor(), board.order());
        let keys = Near::halves(board);
        sort::<false, _>(board, &order, keys, Team);
        if !board.is_unsorted() {
            gather::<false, _>(&pool, &order, keys, Team);
        }
    }
}

/// Sorts a warp's stream together with the block.
#[inline(never)]
fn sort_together(warp: u32) {
    let (pool, board) = (pool::descriptor(), Board::of(warp));
    let order = board.order();
    let keys = Far::halves(&pool, &order);
    sort::<true, _>(board, &order, keys, Team);
    if !board.is_unsorted() {
        gather::<true, _>(&pool, &order, keys, Team);
    }
}

/// Cuts what has been merged, and adds it all to the account.
#[inline(never)]
fn finish() {
    let board = Board::of(simt::warp_in_block());
    if board.is_to(ToDo::Nothing) {
        return;
    }
    let (pool, place) = (pool::descriptor(), board.place());
    let (mut order, mut sums) = (board.order(), board.sums());
    if board.is_to(ToDo::MergeOneByOne) || board.is_unsorted() {
        let Share { kept, sums: anew } = merge_one_by_one(&pool, board, &place, &order);
        (order.kept, sums) = (kept, anew);
    }
    let lost = cut(&pool, &place, &order, sums.fits, codec_of(place.track));
    let lost = sums.lost + sum_of_events(lost);
    if simt::lane() == 0 {
        pool::add_to_own_account(place.account, sums.attempted, lost);
    }
}

/// The same as all this by one lane, whatever times there are. It takes long.
#[inline(always)]
fn merge_one_by_one(pool: &PoolDescriptor, board: Board, place: &Place, order: &Order) -> Share {
    let mut share = Share::NOTHING;
    // What others have read there.
    simt::sync_warp(ALL);
    if simt::lane() == 0 {
        let mut merge = Merge::open(board.memory, pool.logs, pool.log_units, place.slice);
        let (room, codec) = (room(pool), codec_of(place.track));
        let mut left = order.runs;
        while left != 0 {
            left -= 1;
            let Some(run) = merge.next() else { break };
            let kept = merge.lost_from.is_none_or(|from| (run.time.wrapping_sub(from) as i32) < 0);
            if kept {
                at_unit(pool.logs, order.to + share.kept).set128(0, merged(run));
            }
            share.count(run, kept, codec, room);
        }
    }
    simt::sync_warp(ALL);
    share.of_all()
}
