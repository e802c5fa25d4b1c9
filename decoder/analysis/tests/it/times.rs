//! Cycles of locations, warps and loops: constructed traces with known sums, and programs on the simulator.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use std::collections::BTreeMap;

use crate::support::{TimedEvents, event, metadata, recorded, with_times, written};
use warptrace_analysis::words::{self, Names};
use warptrace_analysis::{Analysis, Distribution, Selection, Time, analyse, compare};
use warptrace_decoder::TraceFile;
use warptrace_format::LocationKind;
use warptrace_format::file::{LaunchInfo, Metadata};

const TABLE: [(u16, &str, u32); 4] = [(1, "enter", 3), (2, "then", 5), (3, "else", 5), (4, "leave", 9)];
const ALL: u32 = u32::MAX;

fn all(trace: &TraceFile) -> Analysis {
    analyse(trace, &Selection::default()).unwrap()
}

fn launch(threads: u32) -> LaunchInfo {
    LaunchInfo::new(0, 0, [1, 1, 1], [threads, 1, 1], 0).unwrap()
}

fn run(location: u16, mask: u32, times: u32, begin: u32) -> TimedEvents {
    (event(location, mask), times, begin)
}

fn trace_of(
    launch: &LaunchInfo,
    warps: &BTreeMap<u32, Vec<TimedEvents>>,
    has_times: impl Fn(u32) -> bool,
) -> TraceFile {
    let trace = TraceFile::from_bytes(with_times(&metadata(&TABLE), launch, warps, 2, has_times)).unwrap();
    warptrace_analysis::fuzzing::check_trace(&trace);
    trace
}

fn time(numbers: [u64; 5]) -> Option<Time> {
    let [lane_cycles, warp_cycles, active_lane_cycles, idle_lane_cycles, timed_visits] = numbers;
    let mut time = Time::default();
    (time.lane_cycles, time.warp_cycles, time.timed_visits) = (lane_cycles, warp_cycles, timed_visits);
    (time.active_lane_cycles, time.idle_lane_cycles) = (active_lane_cycles, idle_lane_cycles);
    Some(time)
}

/// Returns the runs of a warp whose halves diverge and reconverge. A unit of time is two cycles.
fn parted() -> Vec<TimedEvents> {
    vec![
        run(1, ALL, 1, 100),
        run(2, 0x0000_ffff, 3, 110),
        run(3, 0xffff_0000, 1, 115),
        run(2, 0x0000_00ff, 2, 125),
        run(4, ALL, 1, 150),
    ]
}

#[test]
fn each_cycle_of_a_lane_and_of_a_warp_belongs_to_one_location() {
    let analysis = all(&trace_of(&launch(32), &BTreeMap::from([(0, parted())]), |_| true));
    let found: Vec<_> = analysis.locations.iter().map(|location| location.time).collect();
    let expected = [
        // Half of the lanes continue after 10 units, half after 15.
        time([2 * (16 * 10 + 16 * 15), 2 * 10, 2 * 320, 0, 1]),
        // 8 of 16 lanes return at 125, the others wait until 150; the warp is elsewhere from 115 to 125.
        time([
            2 * (8 * 15 + 8 * 40 + 8 * 25),
            2 * (5 + 25),
            2 * (16 * 5 + 8 * 25),
            2 * (16 * 5 + 24 * 25),
            5,
        ]),
        time([2 * 16 * 35, 2 * 10, 2 * 160, 2 * 160, 1]),
        // The last run has no end.
        time([0; 5]),
    ];
    assert_eq!(found, expected);
    let warp = analysis.warps.iter().next().unwrap().time.unwrap();
    assert_eq!((warp.cycles, warp.median_cycles), (2 * 50, 2 * 50));
    let all = analysis.time.unwrap();
    // From the first to the last start time of the warp, and of each of its lanes.
    assert_eq!((all.warp_cycles, all.lane_cycles, all.timed_visits), (2 * 50, 2 * 32 * 50, 7));
    assert_eq!(analysis.losses.untimed_events, Some(0));
    // 10 cycles over three visits, 50 over two.
    let mut visits = Distribution::default();
    [(3, 2), (4, 1), (25, 2)].iter().for_each(|&(cycles, times)| visits.add(cycles, times));
    assert_eq!(analysis.locations[1].visit_cycles, Some(visits));
    let line = &analysis.lines[1];
    let mut sum = expected[1].unwrap();
    sum.add(&expected[2].unwrap());
    assert_eq!((line.line, line.time), (5, Some(sum)));
    assert_eq!(analysis.kernels[0].time, analysis.time);
    // The loop at `then` has no other location: 5 trips of 8 lanes, 3 of 8.
    let head = analysis.loops().next().unwrap();
    assert_eq!((head.point.location, head.loop_lane_cycles, head.trips.sum()), (2, Some(2 * 640), 64));
}

#[test]
fn a_location_that_is_looked_at_has_its_time_of_each_warp() {
    let trace = trace_of(&launch(32), &BTreeMap::from([(0, parted())]), |_| true);
    let of = |focus| analyse(&trace, &Selection { focus: Some(focus), ..Selection::default() }).unwrap();
    assert_eq!(
        [1, 2, 3, 4].map(|at| of(at).warps.iter().next().unwrap().time.unwrap().cycles),
        [20, 60, 20, 0]
    );
}

#[test]
fn lanes_that_a_warp_does_not_have_are_not_idle() {
    let warps = BTreeMap::from([(0, vec![run(1, 0xf, 1, 10), run(2, 0x3, 1, 20), run(4, 0xf, 1, 30)])]);
    let found = all(&trace_of(&launch(8), &warps, |_| true)).time;
    assert_eq!(found, time([2 * 4 * 20, 2 * 20, 2 * (4 + 2) * 10, 2 * (4 + 6) * 10, 2]));
}

#[test]
fn a_run_that_begins_before_the_one_ahead_of_it_begins_with_it() {
    let warps =
        BTreeMap::from([(0, vec![run(1, 1, 1, 10), run(2, 1, 1, 7), run(3, 1, 1, 12), run(4, 1, 1, 12)])]);
    let analysis = all(&trace_of(&launch(32), &warps, |_| true));
    let cycles: Vec<u64> = analysis.locations.iter().map(|at| at.time.unwrap().warp_cycles).collect();
    assert_eq!((cycles, analysis.warps.iter().next().unwrap().time.unwrap().cycles), (vec![0, 4, 0, 0], 4));
}

#[test]
fn missing_times_are_told_and_not_guessed() {
    let warps = BTreeMap::from([(0, parted()), (1, parted())]);
    let analysis = all(&trace_of(&launch(64), &warps, |warp| warp == 1));
    assert_eq!(analysis.losses.untimed_events, Some(8));
    assert_eq!(analysis.time.unwrap().warp_cycles, 100);
    assert_eq!(analysis.warps.iter().map(|warp| warp.time.unwrap().cycles).collect::<Vec<_>>(), [0, 100]);
    let first = words::losses(&analysis);
    assert!(
        first.starts_with("INCOMPLETE trace: ") && first.contains("; times of 8 events missing; "),
        "{first}"
    );
}

#[test]
fn a_late_warp_is_named_with_the_line_that_takes_the_time() {
    let quick = || vec![run(1, ALL, 1, 0), run(2, ALL, 4, 10), run(4, ALL, 1, 50)];
    let mut warps: BTreeMap<u32, Vec<TimedEvents>> = (0..8).map(|warp| (warp, quick())).collect();
    warps.insert(5, vec![run(1, ALL, 1, 0), run(3, 1, 90, 10), run(4, ALL, 1, 1_010)]);
    let launch = LaunchInfo::new(0, 0, [8, 1, 1], [32, 1, 1], 0).unwrap();
    let trace = trace_of(&launch, &warps, |_| true);
    let analysis = all(&trace);
    assert_eq!(words::latest(&analysis).map(|warp| warp.warp), Some(5));
    // 7 warps of 100 cycles and one of 2,020; at line 5 7 times 80 with all lanes, 2,000 with one.
    assert_eq!(
        words::time(&trace, &analysis, &Names::new(&trace)).unwrap(),
        "94% of all warp time is at k.rs:5, 7.8 of 32 lanes active on average; \
         launch 0 block 5 warp 0 took 2,020 cycles, the median of its launch 100"
    );
}

#[test]
fn programs_on_the_simulator_add_up_on_any_number_of_threads() {
    for trace in ["fractal-runs", "stress-runs"].map(recorded) {
        let analysis = all(&trace);
        let mut lanes_time = 0;
        for warp in analysis.warps.iter() {
            let (mut of_warp, mut of_lanes) = (None, [None; 32]);
            trace
                .decode_warp(warp.launch, warp.warp, 0)
                .unwrap()
                .each_item(|found| {
                    let begin = found.begin.unwrap();
                    let seen = |times: &mut Option<(u64, u64)>| {
                        *times = Some((times.map_or(begin, |at| at.0), begin));
                    };
                    seen(&mut of_warp);
                    let mask = found.item.body()[0].mask;
                    (0..32).filter(|lane| mask >> lane & 1 == 1).for_each(|lane| seen(&mut of_lanes[lane]));
                })
                .unwrap();
            let (first, last) = of_warp.unwrap();
            assert_eq!(warp.time.unwrap().cycles, last - first, "{warp:?}");
            lanes_time += of_lanes.iter().flatten().map(|(first, last)| last - first).sum::<u64>();
        }
        let sum = analysis.time.unwrap();
        assert!(sum.warp_cycles > 0);
        assert_eq!((sum.lane_cycles, analysis.losses.untimed_events), (lanes_time, Some(0)));
        assert!(analysis.losses.is_whole());
        for threads in [1, 3, 8] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert_eq!(pool.install(|| all(&trace)), analysis, "{threads} threads");
        }
    }
}

#[test]
fn a_trace_without_times_has_no_time() {
    let plain = recorded("fractal");
    let analysis = all(&plain);
    assert!(analysis.time.is_none() && analysis.losses.untimed_events.is_none());
    assert!(analysis.locations.iter().all(|at| at.time.is_none() && at.visit_cycles.is_none()));
    assert!(analysis.warps.iter().all(|warp| warp.time.is_none()));
    assert_eq!(words::time(&plain, &analysis, &Names::new(&plain)), None);
    // Constructed traces without sections are equal except for times.
    let events = parted().iter().flat_map(|&(event, times, _)| vec![event; times as usize]).collect();
    let bytes = written(&metadata(&TABLE), &launch(32), &BTreeMap::from([(0, events)]), |_, _| {});
    let without = TraceFile::from_bytes(bytes).unwrap();
    let with = trace_of(&launch(32), &BTreeMap::from([(0, parted())]), |_| true);
    let comparison = compare([&without, &with], &Selection::default()).unwrap();
    assert!(comparison.changed.is_empty() && comparison.greatest_percent() == 0.0);
    assert_eq!(words::ratios(&comparison).len(), 1);
    let same = compare([&with, &with], &Selection::default()).unwrap();
    assert_eq!(words::ratios(&same)[1], "all: warp-cycles 1.00 times, 100 -> 100");
}

fn barrier() -> Metadata {
    let mut metadata = metadata(&TABLE);
    metadata.locations[1].kind = LocationKind::Barrier;
    metadata.locations[2].kind = LocationKind::Waited;
    metadata
}

#[test]
fn who_comes_last_to_a_barrier_is_named() {
    // Two blocks of four warps arrive twice. Warp 2 is 10 and then 300 units later than the others, but in
    // the second block warp 0 is the last one the first time, by 15 units.
    let mut warps = BTreeMap::new();
    for (block, warp) in (0..2).flat_map(|block| (0..4).map(move |warp| (block, warp))) {
        let late = if warp == 2 { [10, 300] } else { [0, 0] };
        let first = if block == 0 { 100 + late[0] } else { 100 + 15 * u32::from(warp == 0) };
        let (second, gone) = (200 + late[1], [112, 120][block as usize]);
        let runs = vec![
            run(1, ALL, 1, 50),
            run(2, ALL, 1, first),
            run(3, ALL, 1, gone),
            run(2, ALL, 1, second),
            run(3, ALL, 1, 510),
            run(4, ALL, 1, 520),
        ];
        warps.insert(4 * block + warp, runs);
    }
    let launch = LaunchInfo::new(0, 0, [2, 1, 1], [128, 1, 1], 0).unwrap();
    let trace = TraceFile::from_bytes(with_times(&barrier(), &launch, &warps, 2, |_| true)).unwrap();
    let analysis = all(&trace);
    let [wait] = &analysis.waits[..] else { panic!("{:?}", analysis.waits) };
    let first = [3 * 12 + 2, 3 * 20 + 5];
    let cycles = 2 * (first[0] + first[1] + 2 * (3 * 310 + 10));
    assert_eq!(
        (wait.point.location, wait.waits, wait.cycles, wait.lane_cycles),
        (2, 16, cycles, 32 * cycles)
    );
    assert_eq!((wait.wait_cycles.max(), wait.open_lanes), (620, 0));
    let found = wait.arrivals.unwrap();
    assert_eq!((found.compared, found.not_compared), (4, 0));
    assert_eq!((found.last_warp, found.last, found.alone_cycles), (2, 3, 2 * (10 + 300 + 300)));
    let said = words::time(&trace, &analysis, &Names::new(&trace)).unwrap();
    assert!(
        said.contains("of all lanes' time they wait at then (k.rs:5), where warp 2 of its block comes last 75% of the time"),
        "{said}"
    );
    for threads in [1, 3, 8] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert_eq!(pool.install(|| all(&trace)), analysis, "{threads} threads");
    }
}

#[test]
fn arrivals_that_do_not_belong_together_are_not_compared() {
    let half = 0xffff;
    let warps = BTreeMap::from([
        (0, vec![run(2, half, 1, 10), run(2, !half, 1, 12), run(3, ALL, 1, 20), run(4, ALL, 1, 21)]),
        // The second wait is not over when the warp ends.
        (1, vec![run(2, ALL, 1, 15), run(3, ALL, 1, 20), run(2, ALL, 1, 30)]),
    ]);
    let trace = TraceFile::from_bytes(with_times(&barrier(), &launch(64), &warps, 2, |_| true)).unwrap();
    let wait = &all(&trace).waits[0];
    assert_eq!((wait.waits, wait.cycles, wait.lane_cycles), (3, 2 * (10 + 8 + 5), 2 * (16 * 18 + 32 * 5)));
    assert_eq!((wait.open_lanes, wait.arrivals), (32, None));
}

#[test]
fn waits_of_one_line_are_told_as_one() {
    let mut metadata = metadata(&[(1, "a", 5), (2, "b", 5), (3, "c", 5), (4, "d", 5), (5, "e", 9)]);
    for (at, kind) in [LocationKind::Barrier, LocationKind::Waited].into_iter().cycle().take(4).enumerate() {
        metadata.locations[at].kind = kind;
    }
    let runs = |late: u32| {
        let at = [10 + late, 60, 70 + late, 120, 130];
        (1..=5).zip(at).map(|(location, begin)| run(location, ALL, 1, begin)).collect::<Vec<TimedEvents>>()
    };
    let warps = BTreeMap::from([(0, runs(0)), (1, runs(40))]);
    let trace = TraceFile::from_bytes(with_times(&metadata, &launch(64), &warps, 2, |_| true)).unwrap();
    let analysis = all(&trace);
    assert_eq!(analysis.waits.len(), 2);
    let said = words::time(&trace, &analysis, &Names::new(&trace)).unwrap();
    // 120 of 200 units; twice 40 units of two cycles.
    assert!(
        said.ends_with(
            "; 60% of all lanes' time they wait at k.rs:5, \
             where warp 1 of its block comes last 100% of the time, 160 cycles behind all others"
        ),
        "{said}"
    );
}
