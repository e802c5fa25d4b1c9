//! The logs of streams, merged into one sequence of runs each.
//!
//! A warp takes a stream: it counts the runs of the logs, claims memory for all of them, and writes a key for each, log by log. If only one log has any,
//! nothing has to be sorted, and the runs are copied at once. Otherwise the keys are sorted (see `sort`), by the warp alone, or, of a long stream, by all
//! warps of its block, one such stream after the other. In the end the warp cuts the merged runs into stretches.
//!
//! Keys are times after the earliest, so that times may go round once. Where a log shows that they have gone round further, as they do in half a minute,
//! one lane merges the logs, run by run.

use warptrace_format::Memory;
use warptrace_format::pool::PoolDescriptor;

use super::Launches;
use super::board::{Board, MOST_WARPS, Order};
use super::cut::{Merged, cut, most_bytes, room};
use super::logs::{Logs, Run, run};
use super::sort::{Key, Keys, Team, gather, sort};
use super::warp_ops::{ALL, NEVER, by_first, earliest, least, sum, sum_of_events, sum_up_to};
use crate::log::{Extent, at_unit};
use crate::merge::Merge;
use crate::pool;
use crate::recorder::Codec;
use crate::simt::{self, WARP_LANES};
use crate::state::{Plan, plan};

/// Runs from which on a stream is long: a block of four warps has work for each of its threads then, as many keys as a thread takes at once.
const LONG: u32 = 512;
/// Keys that a thread takes at once. Those of a warp alone are few, and other warps work while it waits; of a long stream others wait for the end.
const AT_ONCE_ALONE: usize = 2;
const AT_ONCE_TOGETHER: usize = 4;

/// Merges the logs of all streams. From all threads of blocks of up to [`MOST_WARPS`] whole warps.
#[inline(always)]
pub(super) fn merge_all(launches: Launches, streams: u32) {
    let (plan, pool) = (plan(), pool::descriptor());
    let warps = (simt::block_threads() / WARP_LANES).min(MOST_WARPS);
    let (warp, lane) = (simt::warp_in_block(), simt::lane());
    let board = Board::of(warp);
    let mut first = simt::block_idx()[0] * warps;
    while first < streams {
        let stream = Stream::open(plan, launches, first + warp, streams);
        let taken = stream.take_logs(&pool, board);
        let order = taken.order;
        let together = taken.is_to_be_sorted && order.runs >= LONG && warps > 1;
        if lane == 0 {
            board.set_order(order, together);
        }
        simt::sync_warp(ALL);
        if taken.is_to_be_sorted && !together {
            sort::<false, AT_ONCE_ALONE>(&pool, board, &order, Team);
            if !board.is_unsorted() {
                gather::<false, AT_ONCE_ALONE>(&pool, &order, Team);
            }
        }
        simt::sync_threads();
        let mut long = simt::ballot(ALL, lane < warps && Board::of(lane).is_for_all());
        while long != 0 {
            let board = Board::of(long.trailing_zeros());
            let order = board.order();
            sort::<true, AT_ONCE_TOGETHER>(&pool, board, &order, Team);
            if !board.is_unsorted() {
                gather::<true, AT_ONCE_TOGETHER>(&pool, &order, Team);
            }
            long &= long - 1;
        }
        // Nobody looks at another warp's part any more.
        simt::sync_threads();
        stream.finish(&pool, board, taken);
        first = first.saturating_add(simt::grid_size()[0] * warps);
    }
}

/// What a warp has left on a track.
#[derive(Clone, Copy)]
struct Stream {
    /// Whether there is one.
    is_there: bool,
    account: u64,
    /// Unit of its slice.
    slice: u32,
    codec: Codec,
    warp: u32,
    launch: u32,
    track: u32,
    /// How many chunks it has. Of the first lane.
    chunks: u32,
}

/// A stream's logs, taken: sums of the lane's share of the runs, and what is left to do.
#[derive(Clone, Copy)]
struct Taken {
    order: Order,
    is_to_be_sorted: bool,
    /// Whether the logs have to be merged run by run.
    is_disordered: bool,
    attempted: u64,
    lost: u64,
    /// Whether each run that is kept fits into a chunk.
    fits: bool,
}

impl Taken {
    const NOTHING: Self = Self {
        order: Order { to: 0, runs: 0, lists: 0, kept: 0 },
        is_to_be_sorted: false,
        is_disordered: false,
        attempted: 0,
        lost: 0,
        fits: true,
    };

    /// Takes a run into account; answers whether it is `kept`.
    #[inline(always)]
    fn count(&mut self, run: Run, kept: bool, codec: Codec, room: u32) {
        self.attempted += u64::from(run.count);
        if kept {
            self.order.kept += 1;
            self.fits &= most_bytes(codec, run.count) <= room;
        } else {
            self.lost += u64::from(run.count);
        }
    }
}

impl Stream {
    /// The stream with this number of so many, if its warp has started.
    #[inline(always)]
    fn open(plan: Plan, launches: Launches, number: u32, streams: u32) -> Self {
        let number_there = number.min(streams - 1);
        let launch = launches.of_stream(number_there);
        let index = number_there - launch.first_stream;
        let (track, warp) = (index / launch.warps, index % launch.warps);
        let account = launch.accounts + u64::from(pool::ACCOUNT_BYTES) * u64::from(index);
        let (mut started, mut chunks) = (false, 0);
        if simt::lane() == 0 && number < streams {
            started = pool::finish_account(account);
            chunks = pool::account_chunks(account);
        }
        Self {
            is_there: simt::ballot(ALL, started) != 0,
            account,
            slice: launch.slices + index * launch.slice_units,
            codec: if track == 0 { plan.codec } else { Codec::Raw },
            warp,
            launch: launch.launch,
            track,
            chunks,
        }
    }

    /// Reads the logs. If only one has runs, they are merged then; otherwise their keys are in the claimed memory, and on the board is where each log's start.
    #[inline(always)]
    fn take_logs(&self, pool: &PoolDescriptor, board: Board) -> Taken {
        let mut taken = Taken::NOTHING;
        if !self.is_there {
            return taken;
        }
        let lane = simt::lane();
        let log = Extent::read(pool.logs, self.slice, lane);
        let lost_from = earliest(log.lost_from);
        let logs = Logs::read(pool, log);
        let up_to = sum_up_to(logs.runs);
        let runs = simt::shuffle(ALL, up_to, WARP_LANES - 1);
        let having = simt::ballot(ALL, logs.runs != 0);
        let lists = having.count_ones();
        if runs == 0 {
            return taken;
        }
        let to = by_first(|| pool::claim_merged(pool, runs));
        let base = earliest(logs.first_time()).unwrap_or(0);
        // What is recorded is a beginning.
        let lost_after = match lost_from.map(|from| from.wrapping_sub(base)) {
            None => u64::MAX,
            Some(after) if (after as i32) < 0 => 0,
            Some(after) => u64::from(after),
        };
        let is_single = lists == 1;
        let order = Order { to, runs, lists, kept: 0 };
        let keys = Keys::unsorted(pool, &order);
        let room = room(pool);
        let mut first_lost = NEVER;
        logs.for_each(board.memory, up_to - logs.runs, |place, unit, run| {
            let after = run.time.wrapping_sub(base);
            let kept = u64::from(after) < lost_after && to != 0;
            taken.count(run, kept, self.codec, room);
            if !is_single && to != 0 {
                keys.set(place, Key { after, unit });
            } else if kept {
                at_unit(pool.logs, to + place).set128(0, run.merged());
            } else {
                first_lost = first_lost.min(place);
            }
        });
        taken.order = Order { kept: sum(taken.order.kept), ..order };
        taken.is_to_be_sorted = !is_single && to != 0 && taken.order.kept != 0;
        taken.is_disordered = is_single && least(first_lost).min(runs) != taken.order.kept;
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
        }
        taken
    }

    /// Cuts what has been merged, and adds it all to the account.
    #[inline(always)]
    fn finish(&self, pool: &PoolDescriptor, board: Board, taken: Taken) {
        let mut taken = taken;
        if taken.order.runs == 0 {
            return;
        }
        if taken.is_disordered || (taken.is_to_be_sorted && board.is_unsorted()) {
            taken = self.merge_one_by_one(pool, board, taken.order);
        }
        let merged = Merged {
            to: taken.order.to,
            runs: taken.order.kept,
            fits: simt::ballot(ALL, taken.fits) == ALL,
            codec: self.codec,
            warp: self.warp,
            launch: self.launch,
            track: self.track,
            sequence: simt::shuffle(ALL, self.chunks, 0),
        };
        let lost = taken.lost + cut(pool, merged);
        let (attempted, lost) = (sum_of_events(taken.attempted), sum_of_events(lost));
        if simt::lane() == 0 {
            pool::add_to_own_account(self.account, attempted, lost);
        }
    }

    /// The same by one lane, whatever times there are. It takes long.
    #[inline(always)]
    fn merge_one_by_one(&self, pool: &PoolDescriptor, board: Board, order: Order) -> Taken {
        let mut taken = Taken::NOTHING;
        // What other lanes have read there.
        simt::sync_warp(ALL);
        if simt::lane() == 0 && order.to != 0 {
            let mut merge = Merge::open(board.memory, pool.logs, pool.log_units, self.slice);
            let room = room(pool);
            let mut left = order.runs;
            while left != 0 {
                left -= 1;
                let Some(unit) = merge.next() else { break };
                let run = run(unit);
                let kept = merge.lost_from.is_none_or(|from| (run.time.wrapping_sub(from) as i32) < 0);
                if kept {
                    at_unit(pool.logs, order.to + taken.order.kept).set128(0, run.merged());
                }
                taken.count(run, kept, self.codec, room);
            }
        }
        simt::sync_warp(ALL);
        let kept = simt::shuffle(ALL, taken.order.kept, 0);
        Taken { order: Order { kept, ..order }, ..taken }
    }
}
