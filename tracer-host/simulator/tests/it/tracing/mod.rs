//! Traced kernels, from `trace_loc` to the bytes of their chunks.

mod kernels;
mod losses;

use crate::device_memory::{AMPLE, DeviceMemory, Encoded, Room, untouched};
use kernels::{
    departures, endless, high_locations, long_runs, loops, low_locations, parted, rounds, staircases,
};
use warptrace_abi::log::{ENTRY_BYTES, RESERVED_ENTRIES};
use warptrace_device::{KernelCall, simt};
use warptrace_encode::native::Schedule;
use warptrace_format::Counting;
use warptrace_format::Event;
use warptrace_format::codec::{CodecSpec, EclParams, PredictParams};
use warptrace_sim::{Interaction, Launch, SimError, Simulator};

/// Threads of a block: a whole warp and one of eight lanes.
const THREADS: u32 = 40;
const PREDICT: CodecSpec = CodecSpec::Predict(PredictParams::DEFAULT);
const ECL: CodecSpec = CodecSpec::Ecl(EclParams::DEFAULT);
#[derive(Clone, Copy, Debug)]
struct Recording {
    codec: CodecSpec,
    dual: bool,
    counting: Counting,
}

impl Recording {
    fn of_kernel(self) -> warptrace_sim::Recording {
        let Self { codec: _, dual, counting } = self;
        warptrace_sim::Recording { dual, counting, ..warptrace_sim::Recording::DEFAULT }
    }
}

const RAW: Recording = Recording { codec: CodecSpec::Raw, dual: false, counting: Counting::Never };
const DUAL: Recording = Recording { codec: PREDICT, dual: true, counting: Counting::Never };

fn logged(
    call: &KernelCall,
    blocks: u32,
    room: Room,
    recording: Recording,
    launch: Launch<'_>,
) -> DeviceMemory {
    let warps = blocks * THREADS.div_ceil(32);
    let mut memory = DeviceMemory::new(room, warps, THREADS, recording.of_kernel().tracks());
    memory.record(call, recording.of_kernel(), launch);
    memory
}

/// Merges and encodes natively. Asserts that kernels on simulated lanes make the same chunks and accounts.
fn record(call: &KernelCall, blocks: u32, room: Room, recording: Recording, launch: Launch<'_>) -> Encoded {
    let mut memory = logged(call, blocks, room, recording, launch);
    let mut again = memory.clone();
    let native = memory.encode_natively(recording.codec, Schedule::Sequential);
    let kernels = again.encode_by_kernels(recording.codec);
    native.assert_same(&kernels);
    if native.rounds.len() == 1 {
        assert_eq!(native.rounds, kernels.rounds);
    }
    native
}

fn in_turn(blocks: u32) -> Launch<'static> {
    Launch::new([blocks, 1, 1], [THREADS, 1, 1]).threads(1)
}

fn lanes(warp: u32) -> u32 {
    if warp.is_multiple_of(2) { 32 } else { THREADS - 32 }
}

fn mask(warp: u32, holds: impl Fn(u32) -> bool) -> u32 {
    (0..lanes(warp)).filter(|&lane| holds(lane)).fold(0, |mask, lane| mask | 1 << lane)
}

/// Returns the events at `location` if each lane of the warp executes `rounds(lane)` of them.
fn round_by_round(warp: u32, location: u16, rounds: impl Fn(u32) -> u32) -> impl Iterator<Item = Event> {
    (0..)
        .map(move |round| Event { location, mask: mask(warp, |lane| rounds(lane) > round) })
        .take_while(|event| event.mask != 0)
}

fn expected_rounds(blocks: u32, warp: u32) -> Vec<Event> {
    let all = mask(warp, |_| true);
    if warp == blocks * 2 - 1 {
        return vec![Event { location: 1, mask: all }, Event { location: 2, mask: all }];
    }
    let mut events = vec![Event { location: 1, mask: all }];
    events.extend(round_by_round(warp, 3, |lane| lane));
    events.push(Event { location: 4, mask: all });
    events
}

fn expected_staircases(times: u32, warp: u32) -> Vec<Event> {
    let mut one: Vec<Event> = round_by_round(warp, 3, |lane| lane).collect();
    one.push(Event { location: 4, mask: mask(warp, |_| true) });
    one.extend(round_by_round(warp, 5, |lane| 31 - lane));
    one.push(Event { location: 12, mask: mask(warp, |_| true) });
    one.repeat(times as usize)
}

fn expected_loops(times: u32, warp: u32) -> Vec<Event> {
    let all = mask(warp, |_| true);
    let mut events = Vec::new();
    for time in 0..times {
        events.push(Event { location: 1, mask: all });
        events.extend(round_by_round(warp, 2, |lane| lane % 5));
        events.extend((0..time % 3).map(|_| Event { location: 3, mask: all }));
        events.push(Event { location: 4, mask: all });
    }
    events
}

fn of_lane(events: &[Event], lane: u32) -> Vec<u16> {
    events.iter().filter(|event| event.mask >> lane & 1 != 0).map(|event| event.location).collect()
}

fn check_lanes(found: &Encoded, warps: u32, expected: impl Fn(u32, u32) -> Vec<u16>) {
    for (number, stream) in found.streams.iter().enumerate() {
        let warp = number as u32 % warps;
        assert_eq!((stream.account.attempted, stream.account.lost), (stream.events.len() as u64, 0));
        for lane in 0..lanes(warp) {
            assert_eq!(of_lane(&stream.events, lane), expected(lane, warp), "lane {lane} of stream {number}");
        }
        assert_eq!(stream.events.iter().fold(0, |all, event| all | event.mask), mask(warp, |_| true));
    }
}

fn check_whole(found: &Encoded, warps: u32, expected: impl Fn(u32) -> Vec<Event>) {
    for (number, stream) in found.streams.iter().enumerate() {
        let expected = expected(number as u32 % warps);
        let (events, account) = (&stream.events, stream.account);
        assert_eq!((account.attempted, account.lost), (expected.len() as u64, 0), "stream {number}");
        let differ = events.iter().zip(&expected).position(|(event, expected)| event != expected);
        assert_eq!((differ, events.len()), (None, expected.len()), "first wrong event of stream {number}");
    }
}

#[test]
fn every_warp_delivers_its_events_in_order() {
    for interaction in [Interaction::Independent, Interaction::Global] {
        for threads in [1, 2] {
            for recording in [RAW, DUAL] {
                let launch =
                    Launch::new([6, 1, 1], [THREADS, 1, 1]).interaction(interaction).threads(threads);
                let found = record(&rounds(6 * THREADS - 8), 6, AMPLE, recording, launch);
                check_whole(&found, 12, |warp| expected_rounds(6, warp));
            }
        }
    }
}

#[test]
fn groups_that_part_for_long_keep_each_lanes_order() {
    for interaction in [Interaction::Independent, Interaction::Global] {
        for (times, seed) in [(1, 1), (20, 2), (300, 3)] {
            let launch = in_turn(2).interaction(interaction).seed(seed);
            let found = record(&parted(times), 2, AMPLE, DUAL, launch);
            check_lanes(&found, 4, |lane, _| {
                let own = if lane % 2 == 1 { [7, 8] } else { [9, 10] };
                [own.repeat(times as usize), vec![11]].concat()
            });
        }
    }
}

#[test]
fn lanes_that_leave_the_kernel_have_written_all() {
    for recording in [RAW, DUAL] {
        let found = record(&departures(100, 3), 2, AMPLE, recording, in_turn(2));
        check_lanes(&found, 4, |lane, _| {
            let times = (3 * lane).min(100) as usize;
            let mut events = [vec![3; lane as usize], vec![4]].concat().repeat(times);
            if 3 * lane < 100 {
                events.push(6);
            }
            events
        });
    }
}

#[test]
fn a_pool_too_small_takes_several_rounds() {
    let call = rounds(6 * THREADS - 8);
    let room = Room { times: false, ..AMPLE };
    let whole = record(&call, 6, room, RAW, in_turn(6));
    for chunks in [1, 5, 11, 12] {
        let found = record(&call, 6, Room { chunks, ..room }, RAW, in_turn(6));
        found.assert_same(&whole);
        assert_eq!(found.rounds.len(), 12_usize.div_ceil(chunks as usize));
    }
}

/// Encodes with every `step`th insufficient number of chunks.
fn check_waits(step: usize) {
    let call = staircases(8);
    for codec in [CodecSpec::Raw, ECL, PREDICT] {
        let recording = Recording { codec, dual: true, counting: Counting::Never };
        let whole = record(&call, 1, AMPLE, recording, in_turn(1));
        let needed: u32 = whole.streams.iter().map(|stream| stream.account.chunks).sum();
        assert!(needed > 9, "{needed} chunks say little");
        for chunks in (1..=needed).step_by(step) {
            let found = record(&call, 1, Room { chunks, ..AMPLE }, recording, in_turn(1));
            found.assert_same(&whole);
            assert!(found.rounds.len() <= needed.div_ceil(chunks) as usize + 1, "no chunk is left unused");
        }
    }
}

#[test]
fn a_stream_of_many_chunks_may_wait_after_some_of_them() {
    check_waits(5);
}

#[test]
fn logs_of_many_segments_hold_every_event_in_order() {
    for times in [1, 2, 9, 40] {
        for (first, segment) in [(8, 8), (8, 32), (16, 16), (32, 8), (32, 128)] {
            for recording in [RAW, DUAL] {
                let room = Room { first, segment, ..AMPLE };
                let found = record(&staircases(times), 2, room, recording, in_turn(2));
                check_whole(&found, 4, |warp| expected_staircases(times, warp));
                let claimed = found.rounds[0].log_entries;
                assert!(claimed.is_multiple_of(segment.into()));
                assert!(times < 9 || claimed > 0, "{times} times in {first}, {segment}");
            }
        }
    }
}

#[test]
fn long_first_segments_hold_every_event_without_a_claim() {
    for times in [1, 9, 40] {
        for first in [2048, 4096] {
            for recording in [RAW, DUAL] {
                let room = Room { lanes: 32, first, segment: 8, claimable: 0, ..AMPLE };
                let found = record(&staircases(times), 2, room, recording, in_turn(2));
                check_whole(&found, 4, |warp| expected_staircases(times, warp));
                assert_eq!((found.lost(), found.rounds[0].log_entries), (0, 0), "{times} times in {first}");
            }
        }
    }
}

#[test]
fn chunks_of_any_size_hold_every_event() {
    for bytes in [512, 1024, 4096, 16 << 10, 64 << 10] {
        for codec in [CodecSpec::Raw, ECL, PREDICT] {
            let recording = Recording { codec, dual: true, counting: Counting::Never };
            let room = Room { chunk_bytes: bytes, chunks: (2 << 20) / bytes, ..AMPLE };
            let found = record(&staircases(25), 2, room, recording, in_turn(2));
            check_whole(&found, 4, |warp| expected_staircases(25, warp));
        }
    }
}

#[test]
fn counted_loops_have_the_events_of_a_loop_in_lock_step() {
    for codec in [CodecSpec::Raw, ECL, PREDICT] {
        for dual in [false, true] {
            let recording = Recording { codec, dual, counting: Counting::All };
            let found = record(&loops(20), 2, AMPLE, recording, in_turn(2));
            let trace = Encoded { streams: found.streams[..4].to_vec(), ..found.clone() };
            check_whole(&trace, 4, |warp| expected_loops(20, warp));
            // The twin has each lane's events, grouped by the lanes that arrived together.
            for (warp, shadow) in found.streams[4..].iter().enumerate() {
                for lane in 0..lanes(warp as u32) {
                    assert_eq!(of_lane(&shadow.events, lane), of_lane(&trace.streams[warp].events, lane));
                }
            }
        }
    }
    let found = record(&loops(20), 2, AMPLE, DUAL, in_turn(2));
    check_whole(&found, 4, |warp| expected_loops(20, warp));
}

fn check_long_runs(lengths: &[u32], recordings: &[Recording]) {
    for often in lengths.iter().copied() {
        for recording in recordings.iter().copied() {
            let room =
                Room { chunks: 20, chunk_bytes: 1 << 20, claimable: 1 << 20, merged: 1 << 20, ..AMPLE };
            let found = record(&long_runs(often), 1, room, recording, in_turn(1));
            let all = mask(0, |_| true);
            let odd = mask(0, |lane| lane % 2 == 1);
            let runs = [(1, all, 1), (2, all, often), (3, all, often), (3, odd, often), (4, all, 1)];
            let events = runs.iter().flat_map(|&(location, mask, count)| {
                std::iter::repeat_n(Event { location, mask }, count as usize)
            });
            assert!(found.streams[0].events.iter().copied().eq(events), "{often} times, {recording:?}");
            assert_eq!(found.lost(), 0);
        }
    }
}

const LONG_RUNS: [Recording; 4] = [
    Recording { codec: PREDICT, dual: false, counting: Counting::Never },
    Recording { codec: PREDICT, dual: true, counting: Counting::All },
    Recording { codec: CodecSpec::Raw, dual: false, counting: Counting::All },
    Recording { codec: ECL, dual: false, counting: Counting::All },
];

#[test]
fn a_run_may_be_longer_than_its_key_can_count() {
    check_long_runs(&[65_536], &LONG_RUNS[..2]);
}

mod full {
    use super::*;

    #[test]
    fn a_stream_of_many_chunks_may_wait_after_any_of_them() {
        check_waits(1);
    }

    #[test]
    fn runs_may_be_longer_than_their_keys_can_count() {
        check_long_runs(&[65_534, 65_535, 65_536, 100_000], &LONG_RUNS);
    }

    #[test]
    fn what_finds_no_log_memory_is_lost_and_counted() {
        losses::check_log_memory(false);
    }

    #[test]
    fn rings_have_the_end_of_each_warps_events() {
        losses::check_rings(false);
    }
}

#[test]
fn locations_have_sixteen_bits() {
    for codec in [CodecSpec::Raw, PREDICT] {
        for (call, [some, others, all]) in
            [(low_locations(), [255, 256, 4097]), (high_locations(), [65_280, 65_534, 65_535])]
        {
            let recording = Recording { codec, dual: true, counting: Counting::Never };
            let found = record(&call, 2, AMPLE, recording, in_turn(2));
            check_lanes(&found, 4, |lane, _| {
                [if lane.is_multiple_of(3) { some } else { others }, all].repeat(9)
            });
        }
    }
}

#[test]
#[should_panic(expected = "the loop has gone through 2^32 iterations")]
fn a_counted_loop_that_does_not_end_ends_the_launch() {
    logged(&endless(), 1, AMPLE, Recording { counting: Counting::All, ..RAW }, in_turn(1));
}

#[test]
fn several_at_a_time_make_the_same_as_one_by_one() {
    for codec in [CodecSpec::Raw, ECL, PREDICT] {
        let recording = Recording { codec, dual: true, counting: Counting::Never };
        let mut memory = logged(&staircases(12), 20, AMPLE, recording, in_turn(20));
        let mut again = memory.clone();
        let one = memory.encode_natively(codec, Schedule::Sequential);
        let other = again.encode_natively(codec, Schedule::Parallel);
        one.assert_same(&other);
    }
}

#[test]
fn a_launch_of_another_shape_records_the_warps_that_there_are() {
    let call = rounds(u32::MAX);
    for warps in [0, 1, 3] {
        let mut memory = DeviceMemory::new(AMPLE, warps, THREADS, 1);
        memory.record(&call, RAW.of_kernel(), in_turn(6));
        if warps != 0 {
            let found = memory.encode_natively(RAW.codec, Schedule::Sequential);
            check_whole(&found, warps, |warp| expected_rounds(6, warp));
        }
    }
}

#[test]
fn lanes_without_runs_and_those_that_have_not_left_end_no_logs() {
    let kernel = || {
        warptrace_device::trace::point::<1>();
        if simt::lane() < 3 {
            return;
        }
        warptrace_device::trace::point::<2>();
        assert!(simt::lane() < 30, "too high");
        warptrace_device::trace::point::<3>();
    };
    let room = Room { lanes: 32, ..AMPLE };
    let mut memory = DeviceMemory::new(room, 1, 32, 1);
    // SAFETY: all memory has the given sizes and outlives the launch.
    let launch = unsafe { Launch::new([1, 1, 1], [32, 1, 1]).traced(memory.launch_logs(), RAW.of_kernel()) };
    let error = Simulator::new().launch(&launch, &kernel).expect_err("it panics");
    assert!(matches!(error, SimError::Panicked { .. }), "{error}");
    let logs = memory.logs.contents();
    let bytes = (room.first * ENTRY_BYTES) as usize;
    let segments = &logs[(RESERVED_ENTRIES * ENTRY_BYTES) as usize..][..32 * bytes];
    let links: Vec<&[u8]> = segments.chunks(bytes).map(|segment| &segment[bytes - 16..]).collect();
    assert!(!untouched(links[0]), "lane 0 kept a run, and has left the kernel");
    assert!(links[1..].iter().all(|link| untouched(link)), "no other lane has done both");
}
