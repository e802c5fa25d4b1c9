//! Merging of logs built by hand, compared with a sort.

mod classes;
mod data;
mod logs;
mod packing;

use crate::device_memory::{AMPLE, DeviceMemory, Encoded, LogWriter, Room};
use crate::made_runs::{LANES, MadeRun, Numbers};
use logs::{Logs, logs, with_gaps};
use warptrace_abi::log::{ENTRY_BYTES, MAX_KEY_COUNT};
use warptrace_encode::native::Schedule;
use warptrace_format::chunk::{CHUNK_HEADER_BYTES, DeviceTimes, bytes_of_times};
use warptrace_format::codec::{CodecSpec, EclParams, PredictParams};

const CHUNK_BYTES: u32 = 1024;
/// Values in the header of a chunk that waits for its stretch: the encoder to use.
const RAW_SERIAL: u32 = u32::MAX;
const ECL_SERIAL: u32 = u32::MAX - 1;
const PREDICT_SERIAL: u32 = u32::MAX - 2;
const PREDICT_COOPERATIVE: u32 = u32::MAX - 3;

const PREDICT: CodecSpec = CodecSpec::Predict(PredictParams::DEFAULT);
const ECL: CodecSpec = CodecSpec::Ecl(EclParams::DEFAULT);
const ROOM: Room = Room { chunks: 2000, chunk_bytes: CHUNK_BYTES, first: 8, segment: 8, ..AMPLE };

fn memory(streams: &[Logs], room: Room) -> DeviceMemory {
    let mut writer = LogWriter::new(DeviceMemory::new(room, streams.len() as u32, 32, 1));
    // All runs in the order of their times, like warps that run at the same time.
    let mut all: Vec<_> = Vec::new();
    for (stream, logs) in streams.iter().enumerate() {
        for (lane, runs) in logs.lanes.iter().enumerate() {
            all.extend(runs.iter().enumerate().map(|(number, run)| (run.time, stream, lane, number)));
        }
    }
    all.sort_unstable();
    for (_, stream, lane, number) in all {
        // Some logs reserve a segment when the previous one is full, others when they need it.
        writer.append(stream as u32, lane as u32, streams[stream].lanes[lane][number].words());
        if lane % 2 == 0 {
            writer.reserve(stream as u32, lane as u32);
        }
    }
    for (stream, logs) in (0..).zip(streams) {
        (0..).zip(&logs.lost_from).for_each(|(lane, time)| writer.lose(stream, lane, *time));
    }
    writer.finish()
}

#[derive(Debug, PartialEq, Eq)]
struct Merged {
    runs: Vec<[u32; 4]>,
    stretches: Vec<u32>,
    attempted: u64,
    lost: u64,
}

fn merge(memory: &DeviceMemory, codec: CodecSpec, threads: u32) -> Vec<Merged> {
    let mut memory = memory.clone();
    let before = memory.logs.contents();
    drop(memory.merge_by_kernel(codec, 2, threads));
    let (pool, claims) = (memory.pool(), memory.claims());
    let after = memory.logs.contents();
    let end = (pool.merged_from * ENTRY_BYTES) as usize;
    assert!(after[..end] == before[..end], "merging writes into no log");
    let word = |at: usize| u32::from_le_bytes(after[at..][..4].try_into().expect("four bytes"));
    let chunks = memory.chunks.contents();
    let mut waiting: Vec<[u32; 8]> = chunks
        .chunks(pool.chunk_bytes as usize)
        .take(claims.chunks.min(pool.chunk_count) as usize)
        .map(|chunk| {
            std::array::from_fn(|at| u32::from_le_bytes(chunk[4 * at..][..4].try_into().expect("four bytes")))
        })
        .collect();
    waiting.sort_unstable();
    let serial = waiting.iter().filter(|header| header[3] != PREDICT_COOPERATIVE).count();
    assert_eq!(claims.serial as usize, serial, "who encodes knows how many are for one thread");
    let accounts = memory.accounts();
    let unfinished = accounts.iter().filter(|account| account.finished == 0).count();
    assert_eq!(unfinished, claims.waiting as usize, "who waits is not finished");
    let mut merged: Vec<_> = accounts
        .iter()
        .map(|account| {
            assert_eq!(account.recorded, 0);
            Merged {
                runs: Vec::new(),
                stretches: Vec::new(),
                attempted: account.attempted,
                lost: account.lost,
            }
        })
        .collect();
    for [warp, sequence, runs, waits, launch, track, low, high] in waiting {
        let stream = &mut merged[warp as usize];
        assert_eq!((launch, track, sequence), (0, 0, stream.stretches.len() as u32));
        let first = ((u64::from(low) | u64::from(high) << 32) - pool.logs) / u64::from(ENTRY_BYTES);
        assert!(first >= pool.merged_from.into() && first + u64::from(runs) <= pool.merged_end.into());
        let words = |run: u64| std::array::from_fn(|at| word((run * 16) as usize + 4 * at));
        let runs_here: Vec<[u32; 4]> = (first..first + u64::from(runs)).map(words).collect();
        // With predict, a chunk's counts stay below 2^24 if each is below 2^24 divided by the number of runs.
        let most = (1 << 24) / ((pool.chunk_bytes - CHUNK_HEADER_BYTES - 64) / 12 + 1);
        let fits = runs_here.iter().all(|run| run[2] < most);
        let expected = match codec {
            CodecSpec::Raw => RAW_SERIAL,
            CodecSpec::Ecl(_) => ECL_SERIAL,
            _ if fits => PREDICT_COOPERATIVE,
            _ => PREDICT_SERIAL,
        };
        assert_eq!(waits, expected);
        stream.runs.extend(runs_here);
        stream.stretches.push(runs);
    }
    merged
}

fn encode(memory: &DeviceMemory, codec: CodecSpec) -> Encoded {
    let native = memory.clone().encode_natively(codec, Schedule::Sequential);
    let kernels = memory.clone().encode_by_kernels(codec);
    native.assert_same(&kernels);
    if native.rounds.len() == 1 {
        assert_eq!(native.rounds, kernels.rounds);
    }
    native
}

fn check(streams: &[Logs], codec: CodecSpec, room: Room, threads: u32) -> Vec<Merged> {
    check_as(streams, codec, Room { times: false, ..room }, threads);
    check_as(streams, codec, Room { times: true, ..room }, threads)
}

fn check_as(streams: &[Logs], codec: CodecSpec, room: Room, threads: u32) -> Vec<Merged> {
    let memory = memory(streams, room);
    let merged = merge(&memory, codec, threads);
    for (number, (found, logs)) in merged.iter().zip(streams).enumerate() {
        let (runs, attempted, lost) = logs.expected();
        let wrong = found.runs.iter().zip(&runs).position(|(found, expected)| found != expected);
        assert_eq!(wrong, None, "the first run of stream {number} that is wrong");
        assert_eq!(found.runs.len(), runs.len(), "runs of stream {number}");
        assert_eq!((found.attempted, found.lost), (attempted, lost), "events of stream {number}");
        // 12 bytes per run with predict, and 8 for its time.
        let fits = (CHUNK_BYTES - CHUNK_HEADER_BYTES - 64) / if room.times { 20 } else { 12 };
        if codec == PREDICT && !runs.is_empty() && !found.stretches.contains(&(runs.len() as u32)) {
            assert!(found.stretches.iter().rev().skip(1).all(|&runs| runs == fits), "chunks are full");
        }
    }
    let encoded = encode(&memory, codec);
    for (stream, merged) in encoded.streams.iter().zip(&merged) {
        assert_eq!((stream.account.attempted, stream.account.lost), (merged.attempted, merged.lost));
    }
    for (warp, merged) in (0..).zip(&merged).filter(|_| room.times) {
        let of_warp = encoded.chunks.iter().filter(|(header, _)| header.warp == warp);
        let times = of_warp.flat_map(|(header, payload)| {
            let times = &payload[payload.len() - bytes_of_times(header.runs) as usize..];
            DeviceTimes::new(header.runs, times).runs().map(|(time, _)| time)
        });
        let times: Vec<u32> = times.collect();
        let expected: Vec<u32> = merged.runs.iter().map(|run| run[3]).collect();
        // A run that two chunks share is in both.
        if codec == PREDICT {
            assert_eq!(times, expected, "the times of stream {warp}");
        }
        assert!(times.len() >= expected.len());
    }
    merged
}

#[test]
fn one_log_is_taken_as_it_is() {
    let mut numbers = Numbers(1);
    let streams: Vec<_> = [1, 2, 3, 9, 10, 100, 1500]
        .into_iter()
        .enumerate()
        .map(|(stream, runs)| {
            let mut lengths = vec![0; LANES];
            lengths[5 * stream] = runs;
            let logs = logs(&mut numbers, &lengths, 100, 50);
            if stream % 2 == 0 { with_gaps(&mut numbers, logs, 5) } else { logs }
        })
        .collect();
    for codec in [PREDICT, ECL, CodecSpec::Raw] {
        check(&streams, codec, ROOM, 128);
    }
}

/// Merges logs of all lengths. `is_part`: only with half of the codecs and sizes.
fn check_lengths(is_part: bool) {
    let mut numbers = Numbers(2);
    let mut streams = Vec::new();
    for runs in [1, 2, 3, 15, 16, 17, 100] {
        streams.push(logs(&mut numbers, &[runs; LANES], 1 << 20, 64));
    }
    for count in [2, 3, 5, 16, 17, 31] {
        streams.push(logs(&mut numbers, &vec![40; count], 7, 1000));
    }
    let mut uneven = vec![3; LANES];
    uneven[7] = 5000;
    streams.push(logs(&mut numbers, &uneven, 0, 30));
    streams.push(logs(&mut numbers, &[0, 1000, 0, 1000], 0, 30));
    for _ in 0..12 {
        let lengths: Vec<_> = (0..LANES).map(|_| (numbers.below(40) * numbers.below(2)) as usize).collect();
        streams.push(logs(&mut numbers, &lengths, 0, 100));
    }
    check(&streams, PREDICT, ROOM, 128);
    check(&streams, ECL, Room { first: 16, segment: 32, ..ROOM }, 32);
    if !is_part {
        check(&streams, CodecSpec::Raw, Room { first: 32, segment: 16, ..ROOM }, 64);
    }
    let streams: Vec<_> = streams.into_iter().map(|logs| with_gaps(&mut numbers, logs, 3)).collect();
    check(&streams, PREDICT, Room { first: 16, segment: 64, ..ROOM }, 128);
    if !is_part {
        check(&streams, ECL, Room { first: 8, segment: 128, claimable: 1 << 17, ..ROOM }, 96);
    }
    // First segments that are read in pieces and exceed most logs; the longest log continues after them.
    for first in if is_part { &[1024][..] } else { &[256, 1024, 4096] } {
        check(&streams, PREDICT, Room { first: *first, segment: 8, ..ROOM }, 128);
    }
}

#[test]
fn logs_of_many_lengths_become_one_sequence() {
    check_lengths(true);
}

mod full {
    use super::*;

    #[test]
    fn logs_of_any_lengths_become_one_sequence() {
        check_lengths(false);
    }

    #[test]
    fn data_of_any_length_is_copied_by_kernels_as_natively() {
        data::check_copies(&[(3, 4, 512), (40, 3, 512), (200, 30, 1024), (400, 2, 4096), (0, 1, 512)]);
    }

    #[test]
    fn a_thousand_tiles_of_the_kernel_are_those_of_the_host() {
        packing::check_random_tiles(1000);
    }
}

#[test]
fn entries_without_a_run_are_passed_over() {
    let mut numbers = Numbers(9);
    let gap = |time| MadeRun { mask: 77, location: 0, count: 0, time };
    let empty = |length: u64| (0..length).map(gap).collect::<Vec<_>>();
    let mut streams = vec![Logs::new(vec![empty(3); LANES]), Logs::new(vec![empty(20); LANES])];
    let mut logs = logs(&mut numbers, &[30; 5], 0, 10);
    logs.lanes[6] = empty(50);
    logs.lanes[2].extend(empty(9).into_iter().map(|run| MadeRun { time: run.time + 1000, ..run }));
    streams.push(logs);
    for lane in 0..2 {
        let mut lanes = vec![Vec::new(); LANES];
        lanes[lane] = empty(1);
        streams.push(Logs::new(lanes));
    }
    for codec in [PREDICT, CodecSpec::Raw] {
        check(&streams, codec, ROOM, 64);
    }
}

#[test]
fn times_may_wrap() {
    let mut numbers = Numbers(3);
    // Once, in the middle; for half of the range; and repeatedly, so that no base precedes all times.
    let streams = [
        logs(&mut numbers, &[30; LANES], (1 << 32) - 500, 64),
        logs(&mut numbers, &[90; LANES], (1 << 32) - 500, 64),
        logs(&mut numbers, &[30; LANES], (1 << 31) - 500, (1 << 31) / 31),
        logs(&mut numbers, &[30; LANES], (1 << 31) - 500, 1 << 29),
        logs(&mut numbers, &[90; 3], 5, 1 << 30),
        logs(&mut numbers, &[90], 5, 1 << 31),
    ];
    check(&streams, PREDICT, ROOM, 128);
    let gaps: Vec<_> = streams.into_iter().map(|logs| with_gaps(&mut numbers, logs, 4)).collect();
    check(&gaps, PREDICT, ROOM, 128);
}

#[test]
fn of_the_same_time_the_lower_lane_comes_first() {
    let mut numbers = Numbers(4);
    let streams: Vec<_> = [20, 200]
        .into_iter()
        .map(|runs| {
            // Times repeat, but never in the same log.
            let mut logs = logs(&mut numbers, &[runs; LANES], 0, 2);
            for runs in &mut logs.lanes {
                for (number, run) in runs.iter_mut().enumerate() {
                    run.time = number as u64;
                }
            }
            logs
        })
        .collect();
    check(&streams, PREDICT, ROOM, 128);
}

#[test]
fn from_the_first_loss_on_all_is_lost() {
    let mut numbers = Numbers(5);
    let mut streams = Vec::new();
    for lengths in [vec![20; LANES], vec![70; LANES], vec![100]] {
        let whole = logs(&mut numbers, &lengths, (1 << 32) - 1000, 50);
        let mut times: Vec<_> = whole.lanes.iter().flatten().map(|run| run.time).collect();
        times.sort_unstable();
        for from in [0, times[0], times[times.len() / 2], times[times.len() - 1], times[times.len() - 1] + 1]
        {
            let mut logs = whole.clone();
            logs.lost_from[0] = Some(from.max(1 << 31));
            logs.lost_from[9] = Some(from.max(1 << 31) + 300);
            streams.push(logs.clone());
            streams.push(with_gaps(&mut numbers, logs, 6));
        }
    }
    check(&streams, ECL, ROOM, 128);
    // Times too far from the loss to determine their order. Each event is still either recorded or lost.
    let mut logs = logs(&mut numbers, &[40], 0, 1 << 28);
    logs.lost_from[0] = Some(logs.lanes[0][20].time);
    let memory = memory(&[logs], ROOM);
    let found = &merge(&memory, ECL, 128)[0];
    let recorded: u64 = found.runs.iter().map(|run| u64::from(run[2])).sum();
    assert_eq!(found.attempted, recorded + found.lost);
    encode(&memory, ECL);
}

#[test]
fn what_finds_no_chunk_waits_and_what_fits_nowhere_is_lost() {
    let mut numbers = Numbers(6);
    let streams = [
        logs(&mut numbers, &[20; LANES], 0, 50),
        logs(&mut numbers, &[50; LANES], 0, 50),
        logs(&mut numbers, &[50], 0, 50),
    ];
    // Enough for the first and third stream, never for the second.
    let short = memory(&streams, Room { merged: 1000, ..ROOM });
    let few = merge(&short, PREDICT, 128);
    let [first, second, third] = [0, 1, 2].map(|stream: usize| streams[stream].expected());
    assert_eq!((&few[0].runs, few[0].lost), (&first.0, 0));
    assert_eq!((few[1].runs.len(), few[1].attempted, few[1].lost), (0, second.1, second.1));
    assert_eq!((&few[2].runs, few[2].lost), (&third.0, 0));
    encode(&short, PREDICT);
    let whole = encode(&memory(&streams, ROOM), PREDICT);
    let in_turn = encode(&memory(&streams, Room { merged: 1700, ..ROOM }), PREDICT);
    in_turn.assert_same(&whole);
    assert_eq!((whole.rounds.len(), in_turn.rounds.len()), (1, 2));
    let whole = encode(&memory(&streams[..2], ROOM), CodecSpec::Raw);
    for chunks in 1..12 {
        let short = memory(&streams[..2], Room { chunks, ..ROOM });
        let found = merge(&short, CodecSpec::Raw, 128);
        assert!(found.iter().map(|stream| stream.stretches.len()).sum::<usize>() == chunks as usize);
        for (found, expected) in found.iter().zip([&first, &second]) {
            assert!(expected.0.starts_with(&found.runs), "what is there is a beginning");
            let attempted = if found.runs.is_empty() { 0 } else { expected.1 };
            assert_eq!((found.attempted, found.lost), (attempted, 0), "what waits is not lost");
        }
        let found = encode(&short, CodecSpec::Raw);
        found.assert_same(&whole);
        assert_eq!(found.rounds.len(), whole.chunks.len().div_ceil(chunks as usize));
    }
}

/// Returns logs with a run of the maximum count, followed by `more` copies of it.
fn with_long_runs(numbers: &mut Numbers, more: usize) -> Logs {
    let mut logs = logs(numbers, &[20; LANES], 0, 50);
    logs.lanes[3][9].count = MAX_KEY_COUNT;
    let long = logs.lanes[3][9];
    for _ in 0..more {
        logs.lanes[3].insert(9, long);
    }
    logs
}

#[test]
fn a_run_that_fits_into_no_chunk_makes_one_stretch_of_all() {
    let mut numbers = Numbers(7);
    let logs = with_long_runs(&mut numbers, 300);
    // With ecl it may be too long; with predict the counts of large chunks may be too high.
    for (codec, chunk_bytes) in [(ECL, 1024), (CodecSpec::Raw, 4096), (PREDICT, 64 << 10)] {
        let room = Room { chunk_bytes, chunks: (64 << 20) / chunk_bytes, merged: 1 << 12, ..ROOM };
        let found = &merge(&memory(std::slice::from_ref(&logs), room), codec, 128)[0];
        assert_eq!(found.stretches, [940]);
        assert_eq!((&found.runs, found.attempted, found.lost), (&logs.expected().0, logs.expected().1, 0));
        encode(&memory(std::slice::from_ref(&logs), room), codec);
    }
    assert!(check(&[logs], PREDICT, ROOM, 128)[0].stretches.len() > 1);
}

#[test]
fn a_stretch_of_any_length_goes_on_after_a_full_pool() {
    let mut numbers = Numbers(10);
    let logs = with_long_runs(&mut numbers, 20);
    // With raw, each run exceeds a chunk; with ecl, many do; with predict, few.
    for (codec, rooms) in [(CodecSpec::Raw, [50, 181, 900]), (ECL, [1, 2, 5]), (PREDICT, [1, 2, 3])] {
        let memory =
            |chunks| memory(std::slice::from_ref(&logs), Room { chunks, chunk_bytes: 16 << 10, ..ROOM });
        let whole = encode(&memory(900), codec);
        assert_eq!((whole.lost(), whole.rounds.len()), (0, 1));
        for chunks in rooms {
            let found = encode(&memory(chunks), codec);
            found.assert_same(&whole);
            assert_eq!(
                found.rounds.len(),
                whole.chunks.len().div_ceil(chunks as usize),
                "{codec:?}, {chunks} chunks"
            );
        }
    }
}

#[test]
fn logs_that_are_damaged_lead_nowhere() {
    let mut numbers = Numbers(8);
    let streams: Vec<_> = (0..4).map(|_| logs(&mut numbers, &[60; LANES], 0, 50)).collect();
    let whole = memory(&streams, Room { claimable: 1 << 14, merged: 1 << 14, ..ROOM });
    let entries = whole.merged_from();
    for _ in 0..24 {
        let mut damaged = whole.clone();
        let mut bytes = damaged.logs.contents();
        for _ in 0..20 {
            // Overwrites links, runs and ends: outside of memory, in other logs, and backwards.
            let entry = numbers.below(entries.into());
            let near = (entry + 64).saturating_sub(numbers.below(128)) / 8 * 8;
            let word = [u32::MAX, 0, near as u32, numbers.below(1 << 13) as u32][numbers.below(4) as usize];
            let at = (entry * 16 + 8 * numbers.below(2)) as usize;
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        damaged.logs.write(&bytes);
        merge(&damaged, PREDICT, 128);
        damaged.run_natively(PREDICT, Schedule::Parallel);
    }
}
