//! Cutting merged runs into stretches, each of which is sure to fit into a chunk.

use warptrace_format::Memory;
use warptrace_format::chunk::CHUNK_HEADER_BYTES;
use warptrace_format::pool::PoolDescriptor;

use super::board::{Order, Place};
use super::warp_ops::{ALL, by_first, sum_up_to};
use super::{ALONE, TOGETHER};
use crate::log::at_unit;
use crate::pool;
use crate::recorder::Codec;
use crate::simt::{self, WARP_LANES};
use crate::space::GlobalMemory;

/// Bytes of a chunk's payload that a stretch leaves free, for what an encoder keeps back.
const SLACK: u32 = 64;
/// Bytes of a run with `predict`, if all counts of a chunk together are less than 2^24.
const PREDICT_RUN_BYTES: u32 = 12;
/// Stands for the bytes of a run that may be too long for any chunk.
pub(super) const ANY_LENGTH: u32 = u32::MAX;

/// Bytes that a run takes at most, in a chunk with so much `room`: 6 an event; 11, which is the most that an event can lengthen `ecl`; 12 a run with
/// `predict`, if all counts of a chunk together are less than 2^24.
#[inline(always)]
pub(super) fn most_bytes(codec: Codec, count: u32, room: u32) -> u32 {
    match codec {
        Codec::Raw if count < 1 << 20 => 6 * count,
        Codec::Ecl if count < 1 << 20 => 11 * count,
        Codec::Predict if count < (1 << 24) / (room / PREDICT_RUN_BYTES + 1) => PREDICT_RUN_BYTES,
        _ => ANY_LENGTH,
    }
}

/// Bytes of a chunk that a stretch may take.
#[inline(always)]
pub(super) fn room(pool: &PoolDescriptor) -> u32 {
    pool.chunk_bytes - CHUNK_HEADER_BYTES - SLACK
}

/// Stretches that follow each other, one to each lane.
struct Stretches {
    /// The lane's: its first run, and how many.
    first: u32,
    runs: u32,
    /// How many there are, and where the last one ends.
    count: u32,
    end: u32,
}

/// Cuts the merged runs of a stream, each of which `fits` into a chunk, or may not. Leaves a stretch in a chunk each; answers for each lane its share of the
/// events for which there was no chunk. From all lanes of the warp.
#[inline(always)]
pub(super) fn cut(pool: &PoolDescriptor, place: &Place, order: &Order, fits: bool, codec: Codec) -> u64 {
    let lane = simt::lane();
    let left = if matches!(codec, Codec::Predict) && fits { TOGETHER } else { ALONE };
    let (mut done, mut sequence) = (0, place.sequence);
    while done < order.kept {
        let stretches = if fits {
            next_stretches(pool, order, codec, done)
        } else {
            Stretches { first: done, runs: order.kept - done, count: 1, end: order.kept }
        };
        let first = by_first(|| GlobalMemory::new(pool.claims, true).fetch_add(0, stretches.count));
        let chunks = pool.chunk_count.saturating_sub(first).min(stretches.count);
        if lane < chunks {
            let runs = at_unit(pool.logs, order.to + stretches.first).address();
            let mut header = pool::chunk(pool, first + lane);
            header.set128(0, [place.warp, sequence + lane, stretches.runs, left]);
            header.set128(16, [place.launch, place.track, runs as u32, (runs >> 32) as u32]);
        }
        if lane == 0 && left == ALONE {
            GlobalMemory::new(pool.claims, true).fetch_add(12, chunks);
        }
        done = stretches.end;
        sequence += chunks;
        if chunks < stretches.count {
            done = simt::shuffle(ALL, stretches.first, chunks);
            break;
        }
    }
    let (mut lost, mut rest) = (0, done + lane);
    while rest < order.kept {
        lost += u64::from(at_unit(pool.logs, order.to + rest).get32(8));
        rest += WARP_LANES;
    }
    lost
}

/// The next stretches from the run `done` on, as many as there are lanes, or as are left.
#[inline(always)]
fn next_stretches(pool: &PoolDescriptor, order: &Order, codec: Codec, done: u32) -> Stretches {
    let (lane, left) = (simt::lane(), order.kept - done);
    if let Codec::Predict = codec {
        // All are of one length.
        let each = room(pool) / PREDICT_RUN_BYTES;
        let before = left.min(lane * each);
        return Stretches {
            first: done + before,
            runs: each.min(left - before),
            count: left.div_ceil(each).min(WARP_LANES),
            end: done + left.min(WARP_LANES * each),
        };
    }
    let mut stretches = Stretches { first: 0, runs: 0, count: 0, end: done };
    while stretches.count < WARP_LANES && stretches.end < order.kept {
        let runs = fitting(pool, codec, order.to + stretches.end, order.kept - stretches.end);
        if lane == stretches.count {
            (stretches.first, stretches.runs) = (stretches.end, runs);
        }
        stretches.count += 1;
        stretches.end += runs;
    }
    stretches
}

/// How many of the `left` runs from a unit on are sure to fit into a chunk. From all lanes of a warp, together.
#[inline(always)]
fn fitting(pool: &PoolDescriptor, codec: Codec, unit: u32, left: u32) -> u32 {
    let (room, lane) = (room(pool), simt::lane());
    let (mut runs, mut bytes) = (0, 0);
    while runs < left {
        let own = runs + lane;
        let count = if own < left { at_unit(pool.logs, unit + own).get32(8) } else { 0 };
        let up_to = sum_up_to(most_bytes(codec, count, room));
        let fit = simt::ballot(ALL, own < left && up_to <= room - bytes).count_ones();
        runs += fit;
        if fit < WARP_LANES {
            break;
        }
        bytes += simt::shuffle(ALL, up_to, WARP_LANES - 1);
    }
    runs
}
