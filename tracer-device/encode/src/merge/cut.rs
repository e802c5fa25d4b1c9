//! Cuts merged runs into stretches that are certain to fit into a chunk each.

use warptrace_abi::pool::PoolDescriptor;
use warptrace_device::simt::{self, WARP_LANES};
use warptrace_format::Memory;

use super::shared::{MergedRuns, Stream};
use crate::chunks::{self, Waiting};
use crate::codec::Codec;
use crate::memory::at_entry;
use crate::merged::{COUNT_AT, Room};
use crate::warp::{self, by_first, sum_of_events_up_to, sum_up_to};

/// Consecutive stretches, one per lane.
struct Stretches {
    /// First run of the lane's stretch, and its number of runs.
    first: u32,
    runs: u32,
    /// Number of stretches, and the position after the last one.
    count: u32,
    end: u32,
}

/// Returns the encoder for the stretches of a stream. `fits`: each run fits into a chunk.
#[inline(always)]
const fn waiting_for(codec: Codec, fits: bool) -> Waiting {
    match codec {
        Codec::Raw => Waiting::RawSerial,
        Codec::Ecl => Waiting::EclSerial,
        Codec::Predict if fits => Waiting::PredictCooperative,
        Codec::Predict => Waiting::PredictSerial,
    }
}

pub(super) struct Cut {
    /// Whether any stretch of it waits in a chunk.
    pub(super) is_begun: bool,
    /// Whether all of it waits in chunks or was recorded before.
    pub(super) is_whole: bool,
}

/// Cuts the merged runs of a stream that are not recorded yet, and writes each stretch's description into a
/// reserved chunk, as long as the pool has chunks. If a run may not fit into a chunk, all runs form one
/// stretch, whose encoder reserves further chunks. All lanes of the warp call it.
#[inline(always)]
pub(super) fn cut(
    pool: &PoolDescriptor,
    stream: &Stream,
    merged: &MergedRuns,
    fits: bool,
    codec: Codec,
) -> Cut {
    let lane = simt::lane();
    let waiting = waiting_for(codec, fits);
    let room = Room::new(pool, codec, stream.track);
    let (mut done, mut sequence) = (0, stream.sequence);
    if sequence != 0 {
        done = pass_over(pool, merged, chunks::account_recorded(stream.account));
    }
    while done < merged.kept {
        let stretches = if fits {
            next_stretches(pool, merged, room, done)
        } else {
            Stretches { first: done, runs: merged.kept - done, count: 1, end: merged.kept }
        };
        let first = by_first(|| chunks::claim_chunks(pool, stretches.count));
        let claimed = pool.chunk_count.saturating_sub(first).min(stretches.count);
        if lane < claimed {
            let runs = at_entry(pool.logs, merged.first + stretches.first).address();
            let mut header = chunks::chunk(pool, first + lane);
            header.set128(0, [stream.warp, sequence + lane, stretches.runs, waiting as u32]);
            header.set128(16, [stream.launch, stream.track, runs as u32, (runs >> 32) as u32]);
        }
        if lane == 0 && !matches!(waiting, Waiting::PredictCooperative) {
            chunks::count_serial(pool, claimed);
        }
        done = stretches.end;
        sequence += claimed;
        if claimed < stretches.count {
            done = warp::shuffle(stretches.first, claimed);
            break;
        }
    }
    Cut { is_begun: sequence != stream.sequence, is_whole: done >= merged.kept }
}

/// Skips the first `recorded` events and returns the number of skipped runs. Reduces the count of a run that
/// was recorded partly. All lanes of the warp call it.
#[inline(always)]
fn pass_over(pool: &PoolDescriptor, merged: &MergedRuns, recorded: u64) -> u32 {
    let lane = simt::lane();
    let (mut done, mut remaining) = (0, recorded);
    while done < merged.kept {
        let mut run = at_entry(pool.logs, merged.first + (done + lane).min(merged.kept - 1));
        let is_there = done + lane < merged.kept;
        let count = if is_there { u64::from(run.get32(COUNT_AT)) } else { 0 };
        let up_to = sum_of_events_up_to(count);
        let whole = warp::ballot(is_there && up_to <= remaining).count_ones();
        let part = remaining.wrapping_sub(up_to - count);
        if lane == whole && is_there && part != 0 {
            run.set32(COUNT_AT, (count - part) as u32);
        }
        done += whole;
        if whole < WARP_LANES {
            break;
        }
        let [low, high] =
            [up_to as u32, (up_to >> 32) as u32].map(|half| warp::shuffle(half, WARP_LANES - 1));
        remaining -= u64::from(low) | u64::from(high) << 32;
    }
    warp::sync_warp();
    done
}

/// Cuts the next stretches from the run `done` onward: one per lane, or fewer if no run remains.
#[inline(always)]
fn next_stretches(pool: &PoolDescriptor, merged: &MergedRuns, room: Room, done: u32) -> Stretches {
    let (lane, remaining) = (simt::lane(), merged.kept - done);
    if let Codec::Predict = room.codec {
        // All stretches have the same length.
        let each = room.predict_runs();
        let before = remaining.min(lane * each);
        return Stretches {
            first: done + before,
            runs: each.min(remaining - before),
            count: remaining.div_ceil(each).min(WARP_LANES),
            end: done + remaining.min(WARP_LANES * each),
        };
    }
    let mut stretches = Stretches { first: 0, runs: 0, count: 0, end: done };
    while stretches.count < WARP_LANES && stretches.end < merged.kept {
        let runs = fitting(pool, room, merged.first + stretches.end, merged.kept - stretches.end);
        if lane == stretches.count {
            (stretches.first, stretches.runs) = (stretches.end, runs);
        }
        stretches.count += 1;
        stretches.end += runs;
    }
    stretches
}

/// Returns how many of the `remaining` runs from an entry on surely fit into a chunk. All lanes call it.
#[inline(always)]
fn fitting(pool: &PoolDescriptor, room: Room, index: u32, remaining: u32) -> u32 {
    let lane = simt::lane();
    let (mut runs, mut bytes) = (0, 0);
    while runs < remaining {
        let own = runs + lane;
        let mut count = 0;
        if own < remaining {
            count = at_entry(pool.logs, index + own).get32(COUNT_AT);
        }
        let up_to = sum_up_to(room.max_bytes(count));
        let fit = warp::ballot(own < remaining && up_to <= room.bytes - bytes).count_ones();
        runs += fit;
        if fit < WARP_LANES {
            break;
        }
        bytes += warp::shuffle(up_to, WARP_LANES - 1);
    }
    runs
}
