//! Tests of kernels that never end: positions of their warps.
//!
//! The test driver stops a kernel after a number of instructions. Therefore the positions do not depend on
//! the time of the question.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use warptrace_abi::run::{ASKED, HANG_PREFIX};
use warptrace_analysis::words::early_end;
use warptrace_decoder::{Problem, VerifyReport};
use warptrace_spec::OnHang;

use super::*;

const STEPS: (&str, &str) = ("TEST_DRIVER_ENDLESS", "20000");

/// Checks a trace with one unfinished launch. Returns the description of that launch, and the verify report.
fn said(path: &Path) -> (String, VerifyReport) {
    let trace = TraceFile::open(path).expect("a trace");
    assert_eq!(trace.launches().count(), 3);
    let is_expected = |problem: &Problem| {
        matches!(problem, Problem::EndedEarly { .. } | Problem::Unfinished { .. } | Problem::Lost { .. })
    };
    let report = trace.verify();
    assert!(report.problems.iter().all(is_expected), "{report}");
    check_trace(&trace);
    let said: Vec<String> = trace.launches().filter_map(|info| early_end(&trace, info.number())).collect();
    let [said] = &said[..] else { panic!("{said:?}") };
    (said.clone(), report)
}

/// Returns the factor of all times: 1, or the number in `WARPTRACE_TEST_SLOW`, for emulators.
pub(super) fn slow() -> u32 {
    std::env::var("WARPTRACE_TEST_SLOW").map_or(1, |factor| factor.parse().expect("a number"))
}

/// Runs a kernel of `hangs.cu` in the second of three streams. A thread ends the process after `seconds`.
fn hangs((kernel, grid, block): (&str, u32, u32), seconds: u32) -> Option<Command> {
    let seconds = seconds * slow();
    let mut command = Command::new(built()?.folder.join("hangs"));
    command.arg(data("hangs.ptx")).args([
        kernel,
        &grid.to_string(),
        &block.to_string(),
        &seconds.to_string(),
    ]);
    Some(command)
}

/// Runs the command, and sends a signal after its launches. Checks that the signal ends the process in time.
fn interrupted(mut hangs: Command, signal: i32, variables: &[(&str, &str)]) -> Option<ShimRun> {
    let folder = prepare(built()?, true, &mut hangs, variables);
    let mut child = hangs.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut launched = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut launched).expect("text");
    assert_eq!(launched, "launched\n");
    std::thread::sleep(Duration::from_millis(200));
    let started = Instant::now();
    // SAFETY: the child was not waited for.
    assert_eq!(unsafe { libc::kill(child.id().cast_signed(), signal) }, 0);
    let run = ShimRun { folder, output: child.wait_with_output().expect("it runs") };
    if run.report().iter().any(|line| line.contains("carries no GPU code")) {
        eprintln!("skipped: built without a device compiler");
        return None;
    }
    assert_eq!(run.output.status.signal(), Some(signal), "{:?} {:?}", run.output, run.report());
    assert!(started.elapsed() < Duration::from_secs(10) * slow(), "{:?}", started.elapsed());
    Some(run)
}

/// Runs the command, and sends SIGINT after a number of seconds. Checks that the signal ends the process.
fn interrupted_after(hangs: &Command, after: &str, variables: &[(&str, &str)]) -> Option<ShimRun> {
    let mut command = Command::new("timeout");
    command.args(["--foreground", "-k", "20", "-s", "INT", after]).arg(hangs.get_program());
    let run = run_command(built()?, true, command.args(hangs.get_args()), variables);
    if run.report().iter().any(|line| line.contains("carries no GPU code")) {
        eprintln!("skipped: built without a device compiler");
        return None;
    }
    // `timeout` exits with 124 if its signal ended the program, and with 137 if it had to kill the program.
    assert_eq!(run.output.status.code(), Some(124), "{:?} {:?}", run.output, run.report());
    Some(run)
}

#[test]
fn where_a_kernel_hangs_is_said_when_a_signal_ends_the_program() {
    for (launch, signal, expected) in [
        (
            ("lock", 1, 32),
            libc::SIGINT,
            "1 warp (block 0 warp 0): 31 lanes go round the loop at hangs.cu:7, 1 lane waits for the other lanes of the \
             warp at hangs.cu:10; none of 1 warp has ended",
        ),
        (
            ("roles", 1, 128),
            libc::SIGTERM,
            "3 warps go round the loop at hangs.cu:26 (first: block 0 warp 1); 1 warp waits at barrier 0 at hangs.cu:21 \
             (block 0 warp 0), where 3 warps of its block have not come; none of 4 warps has ended",
        ),
        (
            ("chain", 8, 32),
            libc::SIGINT,
            "5 warps go round the loop at hangs.cu:69 (first: block 3 warp 0); 3 of 8 warps have ended",
        ),
        (
            ("grid_barrier", 4, 64),
            libc::SIGINT,
            "3 warps (first: block 0 warp 0) each: 31 lanes wait at barrier 0 at hangs.cu:85, 1 lane goes round the loop \
             at hangs.cu:82; 3 warps wait at barrier 0 at hangs.cu:85 (first: block 0 warp 1); 2 of 8 warps have ended",
        ),
        (
            ("ring_of_flags", 3, 32),
            libc::SIGINT,
            "3 warps go round the loop at hangs.cu:93 (first: block 0 warp 0); none of 3 warps has ended",
        ),
        (
            ("passed_over", 1, 64),
            libc::SIGQUIT,
            "1 warp goes round the loop at hangs.cu:107 (block 0 warp 1); 1 warp waits at barrier 0 at hangs.cu:104 \
             (block 0 warp 0), where 1 warp of its block has not come; none of 2 warps has ended",
        ),
        (
            ("lock_order", 2, 32),
            libc::SIGINT,
            "2 warps go round the loop at hangs.cu:148 (first: block 0 warp 0); none of 2 warps has ended",
        ),
        (
            ("missing_lane", 1, 32),
            libc::SIGINT,
            "1 warp (block 0 warp 0): 31 lanes wait for the other lanes of the warp at hangs.cu:160, 1 lane goes round \
             the loop at hangs.cu:157; none of 1 warp has ended",
        ),
        (
            ("in_a_function", 1, 32),
            libc::SIGINT,
            "1 warp goes round the loop at hangs.cu:179 (block 0 warp 0); none of 1 warp has ended",
        ),
    ] {
        let Some(command) = hangs(launch, 20) else { return };
        let Some(run) = interrupted(command, signal, &[STEPS]) else { return };
        let (said, report) = said(&run.folder.path().join("t.wtrc"));
        assert_eq!(said, format!("launch 1 of kernel `{}` had not ended: {expected}", launch.0));
        assert!(report.events >= 6, "{report}");
        assert!(run.report()[0].ends_with("; 1 launch had not ended"), "{:?}", run.report());
    }
}

#[test]
fn positions_are_known_where_logs_are_full() {
    let Some(command) = hangs(("two_ways", 2, 64), 20) else { return };
    let spec = spec(|spec| spec.recording.memory = Some(MemorySize(1 << 20)));
    let variables = [("TEST_DRIVER_ENDLESS", "3000000"), (RUN_SPEC, &spec)];
    let Some(run) = interrupted(command, libc::SIGINT, &variables) else { return };
    let (said, report) = said(&run.folder.path().join("t.wtrc"));
    let expected = "launch 1 of kernel `two_ways` had not ended: 4 warps go round the loop at hangs.cu:168 \
                    (first: block 0 warp 0); none of 4 warps has ended";
    assert_eq!(said, expected);
    // Three million instructions make more events than fit into the memory.
    assert!((1_000..60_000).contains(&report.events), "{report}");
}

#[test]
fn a_program_that_is_asked_goes_on() {
    let (Some(built), Some(mut command)) = (built(), hangs(("roles", 1, 128), 5)) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let asked = folder.path().join(ASKED);
    let asks = std::thread::spawn(move || {
        for number in 0..4 {
            std::thread::sleep(Duration::from_millis(1000) * slow());
            // The folder may be gone if the test has failed.
            let _ = std::fs::write(&asked, number.to_string());
        }
    });
    let report = folder.path().to_str().expect("a path");
    let run = run_command(built, true, &mut command, &[STEPS, (RUN_REPORT, report)]);
    asks.join().expect("it does not panic");
    assert_eq!(
        (run.stdout().as_str(), run.output.status.code()),
        ("launched\nthe other thread went on\n", Some(3))
    );
    let entries = std::fs::read_dir(folder.path()).expect("a folder").flatten();
    let mut answers = entries.filter(|it| it.file_name().to_string_lossy().starts_with(HANG_PREFIX));
    let Some(answer) = answers.next() else {
        let text = std::fs::read_dir(folder.path()).expect("a folder").flatten();
        let text: String = text.filter_map(|it| std::fs::read_to_string(it.path()).ok()).collect();
        assert!(text.contains("carries no GPU code"), "{text}");
        return eprintln!("skipped: built without a device compiler");
    };
    let path = std::fs::read_to_string(answer.path()).expect("a path");
    assert!(said(Path::new(&path)).0.contains("3 warps go round the loop at hangs.cu:26"));
}

#[test]
fn a_launch_beyond_the_limit_ends_the_program_if_that_is_asked() {
    let (Some(built), Some(mut command)) = (built(), hangs(("lock", 1, 32), 20)) else { return };
    let spec = spec(|spec| {
        spec.launch_limit = Some(Duration::from_millis(600) * slow());
        spec.on_hang = OnHang::Stop;
    });
    let run = run_command(built, true, &mut command, &[STEPS, (RUN_SPEC, &spec)]);
    if run.report().iter().any(|line| line.contains("carries no GPU code")) {
        return eprintln!("skipped: built without a device compiler");
    }
    assert_eq!(run.output.status.signal(), Some(libc::SIGTERM), "{:?}", run.report());
    assert!(said(&run.folder.path().join("t.wtrc")).0.contains("31 lanes go round the loop at hangs.cu:7"));
}

#[test]
fn a_signal_at_any_time_ends_the_program_in_time() {
    for milliseconds in (20..400).step_by(20) {
        let Some(command) = hangs(("lock", 1, 32), 20) else { return };
        let after = format!("0.{milliseconds:03}");
        let Some(run) = interrupted_after(&command, &after, &[STEPS]) else { return };
        let path = run.folder.path().join("t.wtrc");
        if path.metadata().is_ok_and(|file| file.len() > 0) {
            TraceFile::open(&path).expect("a trace");
        }
    }
}
