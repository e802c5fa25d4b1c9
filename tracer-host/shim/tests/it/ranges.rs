//! Tests of launches in NVTX ranges: their labels, and recording of selected ranges.

use std::path::{Path, PathBuf};
use std::process::Command;

use warptrace_abi::run::RUN_SPEC;
use warptrace_decoder::TraceFile;

use super::{ShimRun, built, command_of, data, run_command, spec};

const INJECTION: &str = "NVTX_INJECTION64_PATH";

/// Returns the folder of NVTX's header from `cargo xtask setup --tests`; prints a message without it.
fn header() -> Option<PathBuf> {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.toolchain/readers/nvidia/nvtx/include");
    if !include.join("nvtx3/nvToolsExt.h").is_file() {
        eprintln!("NVTX's header is left out: {} does not have it", include.display());
        return None;
    }
    Some(include)
}

fn programs() -> Vec<String> {
    let Some(built) = built() else { return Vec::new() };
    let mut programs = vec!["ranges".to_owned()];
    if let Some(include) = header() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/ranges.c");
        // Other tests compile the same program at the same time.
        let name = format!("ranges-nvtx-{}", std::process::id());
        let mut cc = Command::new("cc");
        cc.args(["-w", "-DHAS_NVTX", "-pthread", "-o"]).arg(built.folder.join(&name)).arg(source);
        assert!(cc.arg(format!("-I{}", include.display())).arg("-ldl").status().expect("cc runs").success());
        programs.push(name);
    }
    programs
}

fn run(program: &str, action: &str, variables: &[(&str, &str)]) -> Option<ShimRun> {
    let built = built()?;
    let image = data("kernels.ptx");
    let command = || {
        let mut command = command_of(built, program);
        command.args([&*image, action]).env_remove(INJECTION);
        command
    };
    let plain = run_command(built, false, &mut command(), variables);
    let traced = run_command(built, true, command().env(INJECTION, &built.shim), variables);
    assert_eq!(plain.stdout(), traced.stdout(), "{:?}", traced.report());
    if traced.report().iter().any(|line| line.contains("carries no GPU code")) {
        eprintln!("skipped: built without a device compiler");
        return None;
    }
    Some(traced)
}

fn labels(trace: &TraceFile) -> Vec<Option<&str>> {
    trace.launches().map(|launch| trace.label(launch.number())).collect()
}

const LABELS: [Option<&str>; 9] = [
    None,
    Some("step 1"),
    Some("forward@own"),
    Some("mm \\u{1b}[31mé"),
    None,
    Some("step 1"),
    Some("whole"),
    None,
    Some("step 2"),
];

#[test]
fn a_launch_is_called_as_the_range_that_its_thread_was_in() {
    for program in programs() {
        let Some(traced) = run(&program, "", &[]) else { return };
        assert_eq!(traced.verified().0, 9, "{:?}", traced.report());
        assert_eq!(labels(&traced.trace()), LABELS, "{program}");
        assert_eq!(String::from_utf8_lossy(&traced.output.stderr), "depths 0 1\n");
        let Some(graph) = run(&program, "graph", &[]) else { return };
        let all = [&LABELS[..8], &[Some("step 2"), Some("step 2"), None, None]].concat();
        assert_eq!(labels(&graph.trace()), all, "{program}");
    }
}

#[test]
fn launches_within_a_range_are_recorded_alone() {
    for program in programs() {
        for (names, expected) in [
            (&["step 1"][..], &LABELS[1..4]),
            (&["*@own", "whole"], &LABELS[2..4]),
            (&["mm*"], &LABELS[3..4]),
        ] {
            let text = spec(|spec| {
                spec.recording.window.nvtx = names.iter().map(|&name| name.to_owned()).collect();
            });
            let Some(traced) = run(&program, "", &[(RUN_SPEC, &text)]) else { return };
            // One launch in `step 1` comes after the inner ranges.
            let more = match names[0] {
                "step 1" => &LABELS[5..6],
                "*@own" => &LABELS[6..7],
                _ => &[],
            };
            let (trace, report) = (traced.trace(), traced.report());
            assert_eq!(labels(&trace), [expected, more].concat(), "{names:?}: {report:?}");
            let left = 9 - expected.len() - more.len();
            let said =
                format!("not traced: {left} launches in no range that --nvtx names ({})", names.join(" "));
            assert!(report.contains(&said), "{report:?}");
            let window = trace.metadata().property("window").expect("it says what was recorded");
            assert_eq!(window, format!("within ranges {}", names.join(" ")));
            assert_eq!(traced.verified().0 as usize, 9 - left);
            assert_eq!(traced.log().matches("launch walk [").count(), left, "they run as they are");
        }
    }
}

#[test]
fn of_a_graph_launches_within_a_range_are_recorded_alone() {
    for program in programs() {
        let text = spec(|spec| spec.recording.window.nvtx = vec!["step 2".to_owned()]);
        let Some(graph) = run(&program, "graph", &[(RUN_SPEC, &text)]) else { return };
        assert_eq!(labels(&graph.trace()), [Some("step 2"); 2], "{:?}", graph.report());
    }
}

#[test]
fn where_no_launch_is_in_such_a_range_it_is_said_and_nothing_is_recorded() {
    for program in programs() {
        let text = spec(|spec| spec.recording.window.nvtx = vec!["stop".to_owned()]);
        for (action, expected) in [
            ("", "9 launches in no range that --nvtx names (stop); they were in step 1, forward@own, "),
            ("none", "1 launch in no range that --nvtx names (stop); the program opened no range"),
        ] {
            let Some(traced) = run(&program, action, &[(RUN_SPEC, &text)]) else { return };
            let report = traced.report();
            assert!(report[0].starts_with(&format!("nothing was traced: {expected}")), "{report:?}");
            assert!(!traced.folder.path().join("t.wtrc").exists());
        }
    }
}

#[test]
fn labels_that_come_again_are_stored_once() {
    let [few, many] = ["3", "30"].map(|launches| {
        let traced = run("ranges", "many", &[("TEST_LAUNCHES", launches)])?;
        let trace = traced.trace();
        let is_right =
            |(number, label): (usize, Option<&str>)| label == Some(&format!("step {}", number % 3));
        assert!(labels(&trace).into_iter().enumerate().all(is_right), "{:?}", labels(&trace));
        let bytes = std::fs::read(traced.folder.path().join("t.wtrc")).expect("a trace");
        Some(bytes.windows(6).filter(|window| window.starts_with(b"step ")).count())
    });
    assert_eq!((few, many), (few.map(|_| 3), many.map(|_| 3)));
}
