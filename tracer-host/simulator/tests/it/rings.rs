//! Merging of rings filled by hand, compared with a sort.

use crate::device_memory::{AMPLE, DeviceMemory, Encoded, Room, UNTOUCHED};
use crate::made_runs::{LANES, MadeRun, Numbers};
use warptrace_abi::log::MAX_KEY_COUNT;
use warptrace_encode::native::Schedule;
use warptrace_format::Event;
use warptrace_format::codec::{CodecSpec, PredictParams};

const PREDICT: CodecSpec = CodecSpec::Predict(PredictParams::DEFAULT);
const ROOM: Room = Room { chunks: 6000, chunk_bytes: 1024, ..AMPLE };

impl MadeRun {
    /// Returns the words of the log entry, at some cycle of the time unit.
    fn ring_words(self) -> [u32; 4] {
        assert!(self.count <= MAX_KEY_COUNT);
        let clock = self.time << 4 | u64::from(self.mask & 15);
        [self.mask, u32::from(self.location) << 16 | self.count, clock as u32, (clock >> 32) as u32]
    }
}

type Lanes = Vec<Vec<MadeRun>>;

/// Returns true if a lane switches to the other half before it has a run for it, which is allowed in kernels.
const fn is_early(lane: usize) -> bool {
    lane.is_multiple_of(3)
}

/// Returns how many of a lane's first runs a ring of this many entries has overwritten.
fn overwritten(lane: usize, runs: &[MadeRun], entries: usize) -> usize {
    // A half has one entry less, and is overwritten as a whole.
    let half = entries / 2 - 1;
    let halves = if is_early(lane) { runs.len() / half + 1 } else { runs.len().div_ceil(half) };
    halves.saturating_sub(2) * half
}

/// Returns the recorded events and the numbers of attempted and lost ones, without losses in the kernel.
fn expected<'a>(lanes: &'a Lanes, entries: usize) -> (Vec<Event>, u64, u64) {
    let keep = |(lane, runs): (usize, &'a Vec<MadeRun>)| {
        let lost = overwritten(lane, runs, entries);
        (lost, &runs[lost..])
    };
    let kept: Vec<_> = lanes.iter().enumerate().map(keep).collect();
    let first_run = |runs: &[MadeRun]| runs.iter().find(|run| run.count != 0).map(|run| run.time);
    let lossy = kept.iter().filter(|(lost, _)| *lost != 0);
    let from = lossy.filter_map(|(_, runs)| first_run(runs)).max().unwrap_or(0);
    let mut runs: Vec<_> = kept
        .iter()
        .enumerate()
        .flat_map(|(lane, (_, runs))| runs.iter().map(move |&run| ((run.time, lane), run)))
        .filter(|(_, run)| run.count != 0)
        .collect();
    runs.sort_by_key(|&(key, _)| key);
    let attempted = runs.iter().map(|(_, run)| u64::from(run.count)).sum();
    let (recorded, lost): (Vec<_>, Vec<_>) = runs.into_iter().partition(|(_, run)| run.time >= from);
    let event = |run: MadeRun| Event { location: run.location, mask: run.mask };
    let events = recorded.into_iter().flat_map(|(_, run)| (0..run.count).map(move |_| event(run)));
    (events.collect(), attempted, lost.iter().map(|(_, run)| u64::from(run.count)).sum())
}

fn memory(streams: &[Lanes], room: Room) -> DeviceMemory {
    let mut memory = DeviceMemory::new(room, streams.len() as u32, 32, 1);
    let mut entries = vec![[UNTOUCHED; 4]; memory.merged_from() as usize];
    let launch = memory.logged_launch();
    for (stream, lanes) in (0..).zip(streams) {
        for (lane, runs) in lanes.iter().enumerate() {
            let first = launch.first_segment(stream, lane as u32);
            let (mut next, mut link) = (first, first + room.segment - 1);
            for run in runs {
                if next == link {
                    link ^= room.segment;
                    next = link + 1 - room.segment;
                }
                entries[next as usize] = run.ring_words();
                next += 1;
            }
            if next == link && is_early(lane) {
                next = (link + 1 - room.segment) ^ room.segment;
            }
            let lost = overwritten(lane, runs, room.first as usize);
            let state = [lost as u32, (lost >> 32) as u32, next - first, 0];
            entries[(first + room.segment - 1) as usize] = state;
        }
    }
    let bytes: Vec<u8> = entries.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
    memory.logs.write(&bytes);
    memory
}

fn encode(memory: &DeviceMemory) -> Encoded {
    let native = memory.clone().encode_natively(PREDICT, Schedule::Sequential);
    native.assert_same(&memory.clone().encode_by_kernels(PREDICT));
    native
}

/// Returns the number of skipped events.
fn check(streams: &[Lanes], room: Room) -> u64 {
    let found = encode(&memory(streams, room));
    let mut passed_over = 0;
    for (number, (found, lanes)) in found.streams.iter().zip(streams).enumerate() {
        let (events, attempted, lost) = expected(lanes, room.first as usize);
        let wrong = found.events.iter().zip(&events).position(|(found, expected)| found != expected);
        assert_eq!((wrong, found.events.len()), (None, events.len()), "events of stream {number}, {room:?}");
        assert_eq!((found.account.attempted, found.account.lost), (attempted, lost), "stream {number}");
        passed_over += lost;
    }
    passed_over
}

/// Returns lanes of [`crate::made_runs::lanes`]. Lane 0 begins with an entry without a run, as in a kernel.
fn lanes(numbers: &mut Numbers, lengths: &[usize], start: u64, max_between: u64) -> Lanes {
    let mut lanes = crate::made_runs::lanes(numbers, lengths, start, max_between);
    lanes[0].insert(0, MadeRun { mask: u32::MAX, location: 0, count: 0, time: 0 });
    lanes
}

#[test]
fn rings_of_any_lengths_become_the_end_of_one_sequence() {
    let mut numbers = Numbers(2);
    let mut streams = Vec::new();
    for runs in [0, 1, 6, 7, 8, 13, 14, 15, 21, 22, 40, 300] {
        streams.push(lanes(&mut numbers, &[runs; LANES], 1 << 20, 64));
        streams.push(lanes(&mut numbers, &[runs], 7, 1000));
        streams.push(lanes(&mut numbers, &[3, runs, 0, 5000], 7, 100));
    }
    for _ in 0..12 {
        let lengths: Vec<_> = (0..LANES).map(|_| (numbers.below(60) * numbers.below(3)) as usize).collect();
        streams.push(lanes(&mut numbers, &lengths, 0, 100));
    }
    let passed_over: Vec<_> =
        [16, 32, 128, 512, 4096].map(|entries| check(&streams, ROOM.rings(entries))).into();
    assert!(passed_over[0] > 1_000 && passed_over[2] > 1_000, "{passed_over:?}");
}

#[test]
fn what_lanes_did_long_before_is_not_taken_for_new() {
    let mut numbers = Numbers(3);
    let mut streams = Vec::new();
    // The lower 32 bits of one lane's clock, in units, have wrapped since the last event of the others.
    for rounds in 1..6_u64 {
        for after in [0, 50, 1 << 31, (1 << 32) - 50] {
            let mut old = lanes(&mut numbers, &[12; LANES], 1_000, 50);
            old[5] = lanes(&mut numbers, &[0, 100], (rounds << 32) + after, 50).swap_remove(1);
            streams.push(old);
        }
    }
    for entries in [16, 64] {
        assert!(check(&streams, ROOM.rings(entries)) > 1_000);
    }
}

#[test]
fn pieces_of_a_run_and_runs_of_one_time_stay_in_order() {
    let mut numbers = Numbers(4);
    let streams: Vec<_> = [8, 20, 200]
        .into_iter()
        .map(|runs| {
            let mut lanes = lanes(&mut numbers, &[runs; LANES], 0, 2);
            for runs in &mut lanes {
                for (number, run) in runs.iter_mut().enumerate() {
                    // Several entries of each lane have the same time, and all lanes have the same times.
                    run.time = 1 + number as u64 / 3;
                }
            }
            lanes
        })
        .collect();
    check(&streams, ROOM.rings(16));
    check(&streams, ROOM.rings(64));
}

#[test]
fn rings_that_are_damaged_lead_nowhere() {
    let mut numbers = Numbers(5);
    let streams: Vec<_> = (0..6).map(|_| lanes(&mut numbers, &[50; LANES], 0, 100)).collect();
    let room = ROOM.rings(32);
    for _ in 0..60 {
        let mut memory = memory(&streams, room);
        let launch = memory.logged_launch();
        let mut bytes = memory.logs.contents();
        for _ in 0..40 {
            let at = match numbers.below(2) {
                0 => (numbers.below(6 * 32) * 32 + 15) * 16 + numbers.below(16),
                _ => numbers.below(6 * 32 * 32 * 16),
            };
            let at = u64::from(launch.first_segments) * 16 + at;
            bytes[at as usize] = numbers.below(256) as u8;
        }
        memory.logs.write(&bytes);
        encode(&memory);
    }
}
