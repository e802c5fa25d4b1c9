//! Streamed logs yield the same runs as kept logs with enough memory.

mod kernels;

use std::sync::atomic::{AtomicBool, Ordering};

use crate::device_memory::{AMPLE, DeviceMemory};
use crate::streamed_memory::{Host, Room, Runs};
use kernels::{anything, apart, fractal, long_runs};
use warptrace_abi::log::{ENTRY_BYTES, Entry, LaunchLogs};
use warptrace_device::{KernelCall, simt};
use warptrace_format::Counting;
use warptrace_sim::{Interaction, Launch, Recording, SimError, Simulator};

/// Threads of a block: a whole warp and one of eight lanes.
const THREADS: u32 = 40;
const RAW: Recording = Recording { counting: Counting::Never, ..Recording::DEFAULT };
const DUAL: Recording = Recording { dual: true, ..RAW };
const COUNTED: Recording = Recording { dual: true, counting: Counting::All, ..RAW };
/// Maximum waits in nanoseconds: of lanes that must not lose events, and of lanes that must.
const PATIENT: u64 = u64::MAX;
const IMPATIENT: u64 = 1_000_000;

fn launch(blocks: u32, seed: u64, interaction: Interaction) -> Launch<'static> {
    Launch::new([blocks, 1, 1], [THREADS, 1, 1]).seed(seed).interaction(interaction).threads(2)
}

fn lanes(warp: u32) -> u32 {
    if warp.is_multiple_of(2) { 32 } else { THREADS - 32 }
}

fn kept(call: &KernelCall, blocks: u32, recording: Recording, launch: Launch<'_>) -> Runs {
    let warps = 2 * blocks;
    let room = crate::device_memory::Room { claimable: 1 << 18, ..AMPLE };
    let mut memory = DeviceMemory::new(room, warps, THREADS, recording.tracks());
    memory.record(call, recording, launch);
    let logs = memory.launch_logs();
    let bytes = memory.logs.contents();
    let mut runs = Runs::new();
    for stream in 0..warps * recording.tracks() {
        for lane in 0..lanes(stream % warps) {
            let found = of_lane(&logs, &bytes, stream, lane);
            if !found.is_empty() {
                runs.insert((stream, lane), found);
            }
        }
    }
    assert!(memory.accounts().iter().all(|account| account.lost == 0), "there is room for all");
    runs
}

fn of_lane(logs: &LaunchLogs, bytes: &[u8], stream: u32, lane: u32) -> Vec<Entry> {
    let entry = |index: u32| -> [u32; 4] {
        let offset = (index * ENTRY_BYTES) as usize;
        std::array::from_fn(|at| {
            u32::from_le_bytes(bytes[offset + 4 * at..][..4].try_into().expect("4 bytes"))
        })
    };
    let mut first = logs.first_segment(0, stream, 0);
    let mut length = logs.first_entries;
    if lane != 0 {
        // The reserved first segments are a list.
        (first, length) = (entry(first)[2], logs.segment_entries);
        while first != 0 && entry(first)[1] != lane {
            first = entry(first)[0];
        }
    }
    let (mut runs, mut header) = (Vec::new(), 1);
    while first != 0 {
        let link = first + length - 1;
        let [next, free, ..] = entry(link);
        let end = if next == 0 { link - free } else { link };
        runs.extend((first + header..end).map(|index| Entry::from_words(entry(index))));
        (first, length, header) = (next, logs.segment_entries, 0);
    }
    runs
}

fn run(
    kernel: &(dyn Fn() + Sync),
    recording: Recording,
    launch: Launch<'_>,
    host: &mut Host,
    max_wait: u64,
    mut serve: impl FnMut(&mut Host),
) {
    // SAFETY: all memory has the given sizes and outlives the launch; the host uses atomics of eight bytes.
    let launch = unsafe { launch.streamed(host.logs(max_wait), recording) }.clock(host.clock);
    std::thread::scope(|scope| {
        let kernel = scope.spawn(move || Simulator::new().launch(&launch, kernel));
        while !kernel.is_finished() {
            serve(host);
            std::thread::yield_now();
        }
        kernel.join().expect("no panic").expect("a correct kernel");
    });
}

/// Serves, and advances the clock for lanes that need more memory than exists.
fn serve_in_time(host: &mut Host) {
    host.serve();
    host.pass_time();
}

fn check_ended(host: &Host, warps: u32) {
    for warp in 0..warps {
        assert_eq!(host.ended(warp), u32::MAX >> (32 - lanes(warp)), "warp {warp}");
    }
}

fn events(runs: &Runs, stream: u32) -> u64 {
    let of_stream = runs.iter().filter(|((of, _), _)| *of == stream);
    of_stream.flat_map(|(_, runs)| runs).map(|run| u64::from(run.count)).sum()
}

/// Asserts that the recorded runs are a subsequence of `whole`. Returns the number of lost events.
fn check_part(host: &Host, whole: &Runs) -> u64 {
    let found = host.runs();
    for (of, runs) in &found {
        let mut rest = whole[of].iter();
        assert!(runs.iter().all(|run| rest.any(|other| other == run)), "stream and lane {of:?}");
    }
    for (stream, &lost) in host.lost().iter().enumerate() {
        let (recorded, attempted) = (events(&found, stream as u32), events(whole, stream as u32));
        assert_eq!(recorded + lost, attempted, "stream {stream}");
    }
    host.lost().iter().sum()
}

fn check_same(call: &KernelCall, blocks: u32, recording: Recording, interaction: Interaction) {
    let warps = 2 * blocks;
    let open = THREADS * recording.tracks() * if interaction == Interaction::Global { blocks } else { 2 };
    for seed in 0..3 {
        let launch = launch(blocks, seed, interaction);
        let whole = kept(call, blocks, recording, launch);
        for (segments, entries) in [(open, 4), (open + 100, 8), (8 * open, 128)] {
            let room = Room { segments, entries, slots: segments.next_power_of_two() };
            let mut host = Host::new(room, warps, recording.tracks());
            run(&|| thread(call)(), recording, launch, &mut host, PATIENT, Host::serve);
            host.read();
            check_ended(&host, warps);
            assert!(host.runs() == whole, "seed {seed}, {room:?}");
            assert!(host.lost().iter().all(|&lost| lost == 0));
            assert_eq!(host.state(), (host.claimed() as u64, false));
        }
    }
}

fn thread(call: &KernelCall) -> &(dyn Fn() + Send + Sync) {
    // SAFETY: no argument of these kernels is memory.
    unsafe { call.thread() }
}

#[test]
fn what_is_streamed_is_what_logs_hold_that_have_room() {
    for recording in [RAW, DUAL] {
        check_same(&fractal(40), 7, recording, Interaction::Independent);
        check_same(&fractal(40), 7, recording, Interaction::Global);
    }
}

#[test]
fn any_events_come_out() {
    for (seed, interaction) in [(1, Interaction::Independent), (2, Interaction::Global)] {
        check_same(&anything(300, seed), 5, COUNTED, interaction);
        check_same(&anything(300, seed), 5, RAW, interaction);
    }
}

#[test]
fn runs_may_be_longer_than_a_key_counts() {
    check_same(&long_runs(100_000), 1, COUNTED, Interaction::Independent);
}

#[test]
fn rounds_of_the_queue_begin_again() {
    let times = 1_000;
    let one = Launch::new([1, 1, 1], [1, 1, 1]);
    let room = Room { segments: 2, entries: 4, slots: 2 };
    let mut host = Host::new(room, 1, 1);
    let call = apart(times);
    run(&|| thread(&call)(), RAW, one, &mut host, PATIENT, Host::serve);
    host.read();
    let (tickets, _) = host.state();
    assert!(tickets > 256 * u64::from(room.slots), "{tickets} tickets have no round twice");
    let runs = &host.runs()[&(0, 0)];
    let expected = (1..=2 * times).map(|time| (if time % 2 == 1 { 1 } else { 4 }, time));
    assert!(runs.iter().map(|run| (run.location, run.time)).eq(expected));
}

#[test]
fn no_lane_waits_for_long_where_no_segments_come() {
    for interaction in [Interaction::Independent, Interaction::Global] {
        for (recording, given) in [(RAW, 0), (DUAL, 50), (COUNTED, 200)] {
            let (blocks, call) = (6, anything(100, 3));
            let launch = launch(blocks, 1, interaction);
            let whole = kept(&call, blocks, recording, launch);
            let room = Room { segments: 256, entries: 4, slots: 256 };
            let mut host = Host::new(room, 2 * blocks, recording.tracks());
            host.give(given);
            // After one lane has stopped waiting, the clock stands still and no other lane waits.
            run(&|| thread(&call)(), recording, launch, &mut host, IMPATIENT, Host::pass_time);
            assert!(host.state().1, "a lane has given up");
            assert!(host.clock.load(Ordering::Relaxed) >= IMPATIENT, "and has waited before");
            host.read();
            check_ended(&host, 2 * blocks);
            assert!(check_part(&host, &whole) > 0);
            assert_eq!(host.claimed(), given as usize);
        }
    }
}

#[test]
fn what_finds_no_segment_in_time_is_counted() {
    for interaction in [Interaction::Independent, Interaction::Global] {
        for segments in [1, 20, 70] {
            let (blocks, call) = (5, anything(200, 5));
            let launch = launch(blocks, 2, interaction);
            let whole = kept(&call, blocks, DUAL, launch);
            let room = Room { segments, entries: 4, slots: 128 };
            let mut host = Host::new(room, 2 * blocks, 2);
            host.give(segments);
            run(&|| thread(&call)(), DUAL, launch, &mut host, IMPATIENT, serve_in_time);
            host.read();
            check_ended(&host, 2 * blocks);
            let lost = check_part(&host, &whole);
            assert!(lost > 0 || segments == 70, "one warp alone has more logs than {segments}");
            assert!(host.claimed() > 0);
        }
    }
}

#[test]
fn lanes_go_on_when_there_is_memory_again() {
    let (lost_all, served) = (AtomicBool::new(false), AtomicBool::new(false));
    let each = apart(30);
    let kernel = || {
        thread(&each)();
        if simt::lane() == 0 && !lost_all.swap(true, Ordering::Release) {
            while !served.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        }
        thread(&each)();
        warptrace_device::trace::point::<7>();
    };
    let room = Room { segments: 64, entries: 4, slots: 64 };
    let mut host = Host::new(room, 2, 1);
    let launch = launch(1, 0, Interaction::Independent);
    run(&kernel, RAW, launch, &mut host, IMPATIENT, |host| {
        if lost_all.load(Ordering::Acquire) {
            host.serve();
            served.store(true, Ordering::Release);
        } else {
            host.pass_time();
        }
    });
    host.read();
    check_ended(&host, 2);
    let (lost, runs) = (host.lost(), host.runs());
    // Two lanes append a warp's runs. The last run includes all lanes.
    for (warp, &lost) in (0..).zip(&lost) {
        assert_eq!((events(&runs, warp) + lost, lost > 0), (2 * 2 * 60 + 1, true), "warp {warp}");
        let last = runs[&(warp, 0)].last().expect("some runs");
        assert_eq!((last.location, last.mask), (7, u32::MAX >> (32 - lanes(warp))));
    }
    // Lanes that had stopped waiting continued with their tickets.
    assert_eq!(host.state(), (host.claimed() as u64, false));
}

#[test]
fn a_launch_of_another_shape_records_the_warps_that_there_are() {
    let call = fractal(20);
    let launch = launch(4, 0, Interaction::Independent);
    let whole = kept(&call, 4, RAW, launch);
    for warps in [1, 3] {
        let mut host = Host::new(Room { segments: 128, entries: 4, slots: 128 }, warps, 1);
        run(&|| thread(&call)(), RAW, launch, &mut host, PATIENT, Host::serve);
        host.read();
        check_ended(&host, warps);
        let expected: Runs = whole.clone().into_iter().filter(|((stream, _), _)| *stream < warps).collect();
        assert!(host.runs() == expected);
    }
}

#[test]
fn lanes_of_a_launch_that_failed_have_not_left() {
    let kernel = || {
        warptrace_device::trace::point::<1>();
        if simt::lane() < 3 {
            return;
        }
        assert!(simt::lane() < 30, "too high");
        warptrace_device::trace::point::<2>();
    };
    let mut host = Host::new(Room { segments: 64, entries: 4, slots: 64 }, 1, 1);
    host.give(64);
    // SAFETY: all memory has the given sizes and outlives the launch.
    let launch = unsafe { Launch::new([1, 1, 1], [32, 1, 1]).streamed(host.logs(PATIENT), RAW) };
    let error = Simulator::new().launch(&launch, &kernel).expect_err("it panics");
    assert!(matches!(error, SimError::Panicked { .. }), "{error}");
    assert_eq!(host.ended(0), 7);
}
