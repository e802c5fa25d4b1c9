//! Tests of recording options.

use std::collections::BTreeMap;

use warptrace_abi::run::RUN_SPEC;
use warptrace_analysis::words::{self, Names};
use warptrace_analysis::{Selection, analyse};
use warptrace_decoder::TraceFile;
use warptrace_format::Counting;
use warptrace_format::file::{COMMAND, PROGRAM};
use warptrace_spec::{RunSpec, Times};

use super::{both_with, built, data, run, spec};

/// Locations of each lane, by launch and warp. Reconvergence and the order of lanes differ between runs.
type Warps = BTreeMap<(u32, u32), Vec<Vec<u16>>>;

fn warps(trace: &TraceFile, track: u32) -> Warps {
    let mut warps = BTreeMap::new();
    for launch in trace.launches() {
        for warp in (0..launch.warps()).filter(|warp| launch.is_chosen(*warp)) {
            let events = trace.decode_warp(launch.number(), warp, track).expect("a warp of the trace");
            let events = events.map(|event| event.map(|event| (event.location, event.mask)));
            let events: Vec<(u16, u32)> = events.collect::<Result<_, _>>().expect("sound");
            let of = |lane: u32| {
                let of_lane = events.iter().filter(|(_, mask)| mask >> lane & 1 != 0);
                of_lane.map(|(location, _)| *location).collect()
            };
            warps.insert((launch.number(), warp), (0..32).map(of).collect());
        }
    }
    warps
}

fn recorded(change: impl FnOnce(&mut RunSpec)) -> Option<TraceFile> {
    let words = ["dlsym", &data("kernels.ptx"), "twice"];
    let traced = both_with(&words, &[(RUN_SPEC, &spec(change))])?;
    assert_eq!(traced.verified().0, 2, "{:?}", traced.report());
    Some(traced.trace())
}

#[test]
fn a_window_has_what_the_whole_trace_has_of_its_warps() {
    let Some(whole) = recorded(|_| ()) else { return };
    let whole = warps(&whole, 0);
    assert!(whole.len() == 6 && whole.values().flatten().all(|events| !events.is_empty()), "{}", whole.len());
    let of = |launch: &dyn Fn(u32) -> bool, warp: &dyn Fn(u32) -> bool| -> Warps {
        let chosen = whole.iter().filter(|((number, at), _)| launch(*number) && warp(*at));
        chosen.map(|(key, lanes)| (*key, lanes.clone())).collect()
    };
    let per_block = warps_per_block();
    let Some(trace) = recorded(|spec| spec.recording.window.launches = "1..".parse().unwrap()) else {
        return;
    };
    assert_eq!(warps(&trace, 0), of(&|launch| launch == 1, &|_| true));
    let Some(trace) = recorded(|spec| spec.recording.window.blocks = "1/2".parse().unwrap()) else { return };
    assert_eq!(warps(&trace, 0), of(&|_| true, &|warp| (warp / per_block).is_multiple_of(2)));
    let Some(trace) = recorded(|spec| spec.recording.window.warps = "1".parse().unwrap()) else { return };
    assert_eq!(warps(&trace, 0), of(&|_| true, &|warp| warp % per_block == 1));
    assert!(trace.metadata().properties.iter().any(|(name, what)| name == "window" && what == "warps 1"));
    assert_eq!(trace.metadata().counting(), Some(Counting::Proven));
    for name in [PROGRAM, COMMAND] {
        let line = trace.metadata().property(name).expect("a command line");
        assert!(line.contains(" dlsym ") && line.ends_with("kernels.ptx twice"), "{line}");
    }
    let Some(trace) = recorded(|spec| spec.recording.window.max_events = Some(10)) else { return };
    assert_eq!(warps(&trace, 0), of(&|launch| launch == 0, &|_| true));
    let Some(trace) = recorded(|spec| spec.recording.window.max_events = Some(1 << 40)) else { return };
    assert_eq!(warps(&trace, 0), whole);
}

/// The first instructions of `walk` in this test. The second warp delays the others at a barrier.
const LATE: &str = "{
    .reg .pred %other;
    .reg .b32 %turn<2>;
    mov.u32 %turn0, %tid.x;
    shr.u32 %turn0, %turn0, 5;
    setp.ne.u32 %other, %turn0, 1;
    mov.u32 %turn1, 0;
    @%other bra THERE;
AGAIN:
    add.u32 %turn1, %turn1, 1;
    setp.lt.u32 %other, %turn1, 500;
    @%other bra AGAIN;
THERE:
    bar.sync 0;
}
";

#[test]
fn who_comes_late_to_a_barrier_is_known() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = std::fs::read_to_string(data("kernels.ptx")).expect("the kernels");
    let (before, behind) = text.split_once("\tld.param.u64 \t%rd2, [walk_param_0];").expect("walk begins so");
    let image = folder.path().join("late.ptx");
    let changed = format!("{before}{LATE}\tld.param.u64 \t%rd2, [walk_param_0];{behind}");
    std::fs::write(&image, changed).expect("it can be written");
    for points in ["waits", "blocks"] {
        let spec = spec(|spec| {
            spec.points = points.parse().unwrap();
            spec.recording.times = Times::Runs;
        });
        let Some(traced) = both_with(&["dlsym", image.to_str().unwrap(), "block"], &[(RUN_SPEC, &spec)])
        else {
            return;
        };
        traced.verified();
        let trace = traced.trace();
        let analysis = analyse(&trace, &Selection::default()).unwrap();
        let [wait] = &analysis.waits[..] else { panic!("{:?}", analysis.waits) };
        assert!(wait.point.name.ends_with(" bar.sync 0") && wait.open_lanes == 0, "{wait:?}");
        let known = wait.info.as_deref().and_then(words::barrier);
        assert_eq!(known.as_deref(), Some("barrier 0"), "{wait:?}");
        let warps: u64 = trace.launches().map(|launch| u64::from(launch.warps())).sum();
        let blocks: u64 = trace.launches().map(|launch| u64::from(launch.blocks())).sum();
        assert_eq!(wait.waits, warps);
        let arrivals = wait.arrivals.expect("they are compared");
        assert_eq!((arrivals.compared, arrivals.last_warp, arrivals.last), (blocks, 1, blocks));
        // Each other warp waits at least one cycle for each of 1,500 instructions.
        assert!(wait.cycles > (warps - blocks) * 1_400 && arrivals.alone_cycles > blocks * 1_400, "{wait:?}");
        let said = words::time(&trace, &analysis, &Names::new(&trace)).unwrap();
        assert!(said.contains(" bar.sync 0") && said.contains("warp 1 of its block comes last"), "{said}");
    }
}

/// Returns the warps per block of the program's launches.
fn warps_per_block() -> u32 {
    let trace = recorded(|_| ()).expect("it was recorded before");
    trace.launches().next().expect("a launch").warps_per_block()
}

#[test]
fn a_dual_recording_has_everything_twice() {
    let Some(trace) = recorded(|spec| spec.recording.dual = true) else { return };
    assert_eq!(trace.metadata().tracks.len(), 2);
    let events = warps(&trace, 0);
    assert!(events.len() == 6 && events == warps(&trace, 1));
}

#[test]
fn lanes_are_recorded_from_a_visit_on() {
    let Some(trace) = recorded(|_| ()) else { return };
    let whole = warps(&trace, 0);
    let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
    whole.values().flatten().flatten().for_each(|location| *counts.entry(*location).or_default() += 1);
    let (location, _) = counts.into_iter().max_by_key(|(_, count)| *count).expect("a location");
    let Some(trace) = recorded(|spec| {
        spec.recording.window.after = Some(format!("{location}:3").parse().unwrap());
    }) else {
        return;
    };
    let after = warps(&trace, 0);
    assert_eq!(after.len(), whole.len());
    for (warp, lanes) in &after {
        let whole = &whole[warp];
        assert!(lanes.concat().len() < whole.concat().len(), "{warp:?}: what comes before is not there");
        let mut pairs = whole.iter().zip(lanes);
        assert!(pairs.all(|(whole, lane)| whole.ends_with(lane)), "{warp:?}");
    }
    // With an unknown location nothing is traced, and the report says so.
    let Some(built) = built() else { return };
    let nowhere = spec(|spec| spec.recording.window.after = Some("NOWHERE:3".parse().unwrap()));
    let traced = run(built, true, &["dlsym", &data("kernels.ptx")], &[(RUN_SPEC, &nowhere)]);
    assert!(
        traced.report().iter().any(|line| line.contains("has no location `NOWHERE`")),
        "{:?}",
        traced.report()
    );
    assert!(traced.log().contains("launch walk ["));
}

#[test]
fn what_cannot_be_read_is_said_and_the_program_runs_untraced() {
    let Some(built) = built() else { return };
    let words = ["dlsym", &data("kernels.ptx")];
    let plain = run(built, false, &words, &[]);
    for (text, part) in [
        (
            r#"{"recording": {"memory": "12 apples"}}"#,
            "recording.memory: it is `12 apples`: a size is a number",
        ),
        (r#"{"recording": {"policy": "stream"}}"#, "record with `stop` and more memory"),
        ("--memory 8MiB", "WARPTRACE_RUN_SPEC is wrong"),
    ] {
        let traced = run(built, true, &words, &[(RUN_SPEC, text)]);
        assert_eq!((plain.stdout(), plain.output.status), (traced.stdout(), traced.output.status), "{text}");
        let report = traced.report();
        assert!(report.len() == 1 && report[0].contains(part), "{text}: {report:?}");
        assert!(traced.log().contains("launch walk [") && !traced.log().contains("traced PTX"), "{text}");
        assert!(!traced.folder.path().join("t.wtrc").exists(), "{text}");
    }
}
