//! Merges the logs of a stream into one sequence, on the host. Counterpart of the merging kernel.

use warptrace_abi::log::Entry;
use warptrace_format::LANES;
use warptrace_format::SliceMemory;

use super::memory::{DeviceMemory, StreamName, Words};
use crate::chunks;
use crate::codec::Codec;
use crate::lane_log::{LaneLog, LogMemory, StreamLogs, is_later};
use crate::merge::serial::{HEADS_BYTES, SerialMerge};
use crate::merged::{RunSums, Share, merged_words};
use crate::warp::NEVER;

pub(super) struct Merged<'a> {
    pub(super) runs: &'a mut [Words],
    pub(super) sums: RunSums,
}

/// Memory that a task reuses between streams.
#[derive(Default)]
pub(super) struct Scratch {
    /// One key per run: the start time in the upper half, the index of the entry in the lower half.
    keys: Vec<u64>,
}

fn latest(clocks: impl Iterator<Item = u64>) -> Option<u64> {
    clocks.reduce(|latest, clock| if is_later(clock, latest) { clock } else { latest })
}

/// Returns the earliest of some times. Times may wrap: they are compared relative to the first.
pub(super) fn earliest(times: impl Iterator<Item = u32>) -> Option<u32> {
    let mut base = None;
    let since = |time: u32| {
        let base = *base.get_or_insert(time.wrapping_sub(1 << 31));
        time.wrapping_sub(base)
    };
    let minimum = times.map(since).min()?;
    base.map(|base| base.wrapping_add(minimum))
}

pub(super) enum Merging<'a> {
    Nothing,
    /// The pool has no chunk or no memory for the runs at the moment. The stream waits for another round.
    Waits,
    /// The merged runs. Empty if all memory for merged runs is too small for them.
    Done(Merged<'a>),
}

pub(super) fn merge<'a>(
    memory: &'a DeviceMemory<'_>,
    name: StreamName,
    codec: Codec,
    scratch: &mut Scratch,
) -> Merging<'a> {
    let launch = memory.launch(name);
    let stream = StreamLogs::new(launch, name.track * launch.warps + name.warp, name.warp);
    let (logs, room) = (memory.logs(), memory.room(codec, name.track));
    let mut lanes = [LaneLog::default(); LANES as usize];
    for (lane, log) in lanes.iter_mut().enumerate() {
        *log = LaneLog::read(logs, stream, lane as u32);
    }
    // With rings, skips the runs that began before the last loss of any lane.
    let mut passed_over = 0;
    if let Some(clock) = latest(lanes.iter().filter_map(|log| log.oldest)) {
        passed_over = lanes.iter_mut().map(|log| log.pass_over(logs, stream, clock)).sum();
    }
    let keys = lanes.iter().fold(0_u32, |sum, log| sum.saturating_add(log.start.remaining));
    if keys == 0 {
        return Merging::Nothing;
    }
    let runs = if chunks::are_used_up(&memory.pool) { None } else { memory.claim_merged(keys) };
    if runs.is_none() && keys <= memory.merged_entries() {
        return Merging::Waits;
    }
    let lost_from = earliest(lanes.iter().filter_map(|log| log.lost_from));
    let first_time = |log: &LaneLog| {
        let mut cursor = log.start;
        cursor.seek(logs, stream).map(|entry| entry.time)
    };
    let base = earliest(lanes.iter().filter_map(first_time)).unwrap_or(0);
    // Keeps the runs that began less than `before` after the first.
    let mut before = NEVER;
    if let Some(from) = lost_from {
        let since = from.wrapping_sub(base);
        before = if (since as i32) < 0 { 0 } else { since };
    }
    if runs.is_none() {
        before = 0;
    }
    let mut share = Share::NOTHING.with_lost(passed_over);
    scratch.keys.clear();
    let mut is_sorted = true;
    for log in &lanes {
        let (mut cursor, mut last) = (log.start, 0);
        while let Some(entry) = cursor.seek(logs, stream) {
            let since = entry.time.wrapping_sub(base).min(NEVER - 1);
            share.count(entry, since < before, room);
            scratch.keys.push(u64::from(since) << 32 | u64::from(cursor.index));
            is_sorted &= last <= since;
            last = since;
            cursor.advance();
        }
    }
    let runs = match runs {
        Some(runs) if share.kept != 0 => runs,
        _ => return Merging::Done(Merged { runs: &mut [], sums: share.sums }),
    };
    // A single log keeps its order, if its losses are all at the end.
    let single = lanes.iter().filter(|log| log.start.remaining != 0).count() == 1;
    if single {
        is_sorted = scratch.keys[..share.kept as usize].iter().all(|key| (key >> 32) < u64::from(before));
    } else if is_sorted {
        sort(&mut scratch.keys);
    }
    if is_sorted {
        for (run, key) in runs.iter_mut().zip(&scratch.keys[..share.kept as usize]) {
            *run = merged_words(Entry::from_words(logs.entry(*key as u32)));
        }
    } else {
        let mut heads = [0; HEADS_BYTES as usize];
        let mut merge = SerialMerge::open(SliceMemory(&mut heads), logs, stream);
        share = Share::NOTHING.with_lost(merge.passed_over);
        for _ in 0..keys {
            let Some(entry) = merge.next() else { break };
            let kept = merge.lost_from.is_none_or(|from| (entry.time.wrapping_sub(from) as i32) < 0);
            if kept {
                runs[share.kept as usize] = merged_words(entry);
            }
            share.count(entry, kept, room);
        }
    }
    Merging::Done(Merged { runs: &mut runs[..share.kept as usize], sums: share.sums })
}

/// Sorts keys by time. Equal times keep their order: lower lanes first, and log order within a lane.
fn sort(keys: &mut [u64]) {
    // The standard sort is stable, and it detects and merges sorted lists.
    keys.sort_by_key(|key| key >> 32);
}
