//! Classes of streams: encoding a class once gives the same result as encoding each stream.

use super::{CHUNK_BYTES, ECL, PREDICT, ROOM, Schedule, logs, memory, with_gaps};
use crate::device_memory::{DeviceMemory, Room};
use crate::made_runs::{LANES, Numbers};
use crate::merging::logs::Logs;
use warptrace_format::codec::CodecSpec;

/// Returns `count` streams. Some repeat one of a few kinds at other times, the others are unique.
fn streams(numbers: &mut Numbers, count: u64) -> Vec<Logs> {
    let one = |numbers: &mut Numbers, length: usize| {
        let mut lengths = vec![0; LANES];
        lengths[numbers.below(LANES as u64) as usize] = length;
        logs(numbers, &lengths, 100, 50)
    };
    let mut kinds: Vec<_> = [0, 1, 1, 6, 7, 8, 31, 32, 33, 40, 300].map(|length| one(numbers, length)).into();
    // The same runs with another last count, without the last run, or in other entries.
    let mut other = kinds[9].clone();
    other.lanes.iter_mut().filter_map(|runs| runs.last_mut()).for_each(|run| run.count += 1);
    let mut shorter = kinds[9].clone();
    shorter.lanes.iter_mut().for_each(|runs| runs.truncate(runs.len().saturating_sub(1)));
    let gaps = with_gaps(numbers, kinds[9].clone(), 3);
    kinds.extend([other, shorter, gaps]);
    // Logs of several lanes; the same with another run in between, and with entries without a run.
    for lengths in [&[5, 3][..], &[1; LANES], &[0, 40, 0, 88], &[4; LANES], &[4, 125]] {
        kinds.push(logs(numbers, lengths, 100, 50));
    }
    let mut other = kinds[14].clone();
    other.lanes[1].iter_mut().for_each(|run| run.time += 120);
    kinds.extend([other, with_gaps(numbers, kinds[14].clone(), 3)]);
    // Streams with losses belong to no class.
    let mut stopped = kinds[10].clone();
    stopped.lost_from[0] = Some(5000);
    kinds.push(stopped);
    let repeated = |numbers: &mut Numbers| {
        let mut logs = kinds[numbers.below(kinds.len() as u64) as usize].clone();
        let later = numbers.below(1 << 12);
        logs.lanes.iter_mut().flatten().for_each(|run| run.time += later);
        logs.lost_from.iter_mut().flatten().for_each(|time| *time += later);
        logs
    };
    (0..count).map(|_| repeated(numbers)).collect()
}

/// Returns the key by which streams are compared; `None` if the stream belongs to no class.
fn key(logs: &Logs, by_kernel: bool) -> Option<Vec<[u32; 2]>> {
    let mut runs: Vec<_> = logs.lanes.iter().flatten().copied().collect();
    let is_single = logs.lanes.iter().filter(|runs| !runs.is_empty()).count() == 1;
    let is_short = is_single || runs.len() <= 128 || !by_kernel;
    if runs.is_empty() || !is_short || logs.lost_from.iter().any(Option::is_some) {
        return None;
    }
    let entries = runs.len();
    if !by_kernel || !is_single {
        runs.retain(|run| run.count != 0);
        runs.sort_by_key(|run| run.time);
    }
    let mut key: Vec<_> = runs.iter().map(|run| [run.words()[0], run.words()[1]]).collect();
    // The kernel also compares entries without a run.
    key.resize(if by_kernel { entries } else { key.len() }, [0; 2]);
    Some(key)
}

/// Uses tables of several sizes. Returns the numbers of encoded streams.
fn check(streams: &[Logs], codec: CodecSpec, room: Room) -> Vec<usize> {
    let memory: DeviceMemory = memory(streams, Room { times: false, ..room });
    let whole = memory.clone().encode_natively(codec, Schedule::Sequential);
    let mut encoded = Vec::new();
    // One slot is a hash of no bits, 16 slots are one of 4.
    for (slots, by_kernel) in [(1, false), (1, true), (16, true), (1 << 12, true)] {
        let mut memory = memory.clone();
        let firsts = memory.find_classes(slots, by_kernel);
        let keys: Vec<_> = streams.iter().map(|logs| key(logs, by_kernel)).collect();
        let distinct = |number: usize| keys[number].is_none() || !keys[..number].contains(&keys[number]);
        let least = (0..keys.len()).filter(|number| distinct(*number)).count();
        for (number, &first) in firsts.iter().enumerate() {
            let first = first as usize;
            assert_eq!(firsts[first] as usize, first, "the first of a class is in it");
            assert!(
                first == number || keys[first].is_some() && keys[first] == keys[number],
                "{number} is like {first}"
            );
        }
        let classes = (0..).zip(&firsts).filter(|(number, first)| number == *first).count();
        assert!(classes >= least);
        if !by_kernel || slots > 16 {
            assert_eq!(classes, least, "equal streams are one class");
        }
        encoded.push(classes);
        let natively = memory.clone().encode_natively(codec, Schedule::Parallel);
        natively.assert_same(&whole);
        memory.encode_by_kernels(codec).assert_same(&whole);
    }
    encoded
}

fn check_seeds(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let mut numbers = Numbers(5 + seed);
        let streams = streams(&mut numbers, 120);
        let room = match seed % 4 {
            3 => Room { chunks: 2, chunk_bytes: CHUNK_BYTES, merged: 700, ..ROOM },
            _ => Room { segment: 16, ..ROOM },
        };
        let encoded = check(&streams, [PREDICT, ECL, CodecSpec::Raw][seed as usize % 3], room);
        // With one slot, only one class has several streams.
        assert!(encoded[1] > encoded[3] && encoded[3] < 90, "{encoded:?} of 120");
    }
}

#[test]
fn streams_with_equal_logs_are_encoded_once() {
    check_seeds(0..4);
}

mod full {
    #[test]
    fn ten_thousand_streams_are_encoded_as_without_classes() {
        super::check_seeds(4..88);
    }
}
