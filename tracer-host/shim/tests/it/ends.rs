//! Tests of failed kernels, of traces that end early, and of processes that end.

use warptrace_analysis::words::early_end;
use warptrace_decoder::Problem;
use warptrace_format::file::MAGIC;
use warptrace_spec::Spaces;

use super::*;

#[test]
fn a_kernel_that_fails_leaves_what_came_before_it() {
    // The launch succeeds, and later calls return the error, as without the shim.
    for sync in [false, true] {
        let words = ["proc", &data("kernels.ptx"), "fail-last"];
        let Some(traced) = both_with(&words, &[(RUN_SPEC, &spec(|spec| spec.sync = sync))]) else { return };
        assert!(traced.stdout().contains("synchronize: error 719"), "{}", traced.stdout());
        let report = traced.report();
        assert!(report[0].contains("it ends early"), "{report:?}");
        let trace = traced.trace();
        // Without the option, records of earlier launches may be lost.
        assert!((1..=2).contains(&trace.launches().count()));
        assert_eq!(report[0].contains("--sync"), !sync, "{report:?}");
        if sync {
            assert_eq!(trace.launches().count(), 2);
            assert!(trace.verify().events > 100, "{report:?}");
        }
    }
}

#[test]
fn a_recording_that_failed_takes_the_place_of_an_earlier_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("earlier.wtrc");
    std::fs::write(&file, "an earlier trace").expect("a file");
    let variables = [(RUN_FILE, file.to_str().expect("a plain name"))];
    // Without the option, the failing launch may begin before the earlier one is drained, and nothing is left.
    let sync = spec(|spec| spec.sync = true);
    let words = ["proc", &data("kernels.ptx"), "fail-last"];
    let Some(traced) = both_with(&words, &[variables[0], (RUN_SPEC, &sync)]) else { return };
    let trace = TraceFile::open(&file).expect("a trace");
    assert!(trace.launches().count() > 0, "{:?}", traced.report());
    // The test driver cannot run a function that this kernel calls, so nothing is recorded before it fails.
    let Some(built) = built() else { return };
    let earlier = [&MAGIC[..], b"an earlier trace"].concat();
    std::fs::write(&file, &earlier).expect("a file");
    let words = ["module", &data("parts/while.fatbin"), "5", "_Z5halveyPiS_", "1", "32"];
    let traced = run_command(built, true, command_of(built, "launches").args(words), &variables);
    let report = traced.report();
    assert!(report.iter().any(|line| line.contains("earlier.earlier.wtrc")), "{report:?}");
    assert!(!file.exists());
    assert_eq!(std::fs::read(file.with_extension("earlier.wtrc")).expect("it is there"), earlier);
}

#[test]
fn logs_in_the_hosts_memory_outlive_a_kernel_that_fails() {
    for accesses in [None, Some(Spaces::ALL)] {
        let spec = spec(|spec| {
            spec.recording.host_logs = true;
            spec.recording.accesses = accesses;
        });
        let words = ["proc", &data("kernels.ptx")];
        let Some(whole) = both_with(&words, &[(RUN_SPEC, &spec)]) else { return };
        let Some(failed) = both_with(&[&words[..], &["fail-last"]].concat(), &[(RUN_SPEC, &spec)]) else {
            return;
        };
        assert!(failed.stdout().contains("synchronize: error 719"), "{}", failed.stdout());
        let (whole, trace) = (whole.trace(), failed.trace());
        let said: Vec<String> =
            trace.launches().filter_map(|info| early_end(&trace, info.number())).collect();
        let [said] = &said[..] else { panic!("{said:?}") };
        assert!(said.starts_with("launch 1 of kernel `fail` failed: "), "{said}");
        // The trap of 31 lanes ends the kernel before or after the other lane leaves the branch.
        let others = ["is at kernels.cu:54", "waits behind kernels.cu:51 for other lanes of the warp"];
        let is_expected = |other: &&str| {
            said.ends_with(&format!("; 1 warp (block 0 warp 0): 31 lanes are at kernels.cu:52, 1 lane {other}; none of 1 warp has ended"))
        };
        assert!(others.iter().any(is_expected), "{said}");
        for track in 0..trace.metadata().tracks.len() as u32 {
            let [whole, trace] = [&whole, &trace].map(|trace| {
                assert!(trace.losses(0, track).expect("accounts").losses.is_empty());
                trace.totals(0, track)
            });
            assert!(whole == trace && whole.events > 0, "{whole:?} {trace:?}");
        }
        let is_expected =
            |problem: &Problem| matches!(problem, Problem::EndedEarly { .. } | Problem::Unfinished { .. });
        let report = trace.verify();
        assert!(report.problems.iter().all(is_expected), "{report}");
    }
}

#[test]
fn a_trace_that_may_not_grow_ends_and_the_program_does_not() {
    let Some(built) = built() else { return };
    let words = ["proc", &*data("kernels.ptx")];
    let limited = || {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -f 2 && exec \"$@\"", "sh"]).arg(built.folder.join("app")).args(words);
        command
    };
    let plain = run_command(built, false, &mut limited(), &[]);
    let traced = run_command(built, true, &mut limited(), &[]);
    assert_eq!(plain.stdout(), traced.stdout(), "{:?}", traced.report());
    assert_eq!(plain.output.status, traced.output.status);
    if traced.report().iter().any(|line| line.contains("carries no GPU code")) {
        eprintln!("skipped: built without a device compiler");
        return;
    }
    assert!(traced.report().iter().any(|line| line.contains("file too large")), "{:?}", traced.report());
    assert!(traced.folder.path().join("t.wtrc").metadata().expect("it was made").len() <= 1024);
}

#[test]
fn the_report_of_a_killed_process_names_the_launch_that_hung() {
    let Some(built) = built() else { return };
    let mut command = Command::new("timeout");
    let seconds = (5 * hangs::slow()).to_string();
    command.args(["-s", "KILL", &seconds]).arg(built.folder.join("app")).args(["proc", &data("kernels.ptx")]);
    // No launch ends, and waiting for one never returns.
    let hangs = [("TEST_DRIVER_MILLISECONDS", "1000000"), ("TEST_DRIVER_HANGS", "1")];
    let report = run_command(built, true, &mut command, &hangs).report();
    if report.iter().any(|line| line.contains("carries no GPU code")) {
        eprintln!("skipped: built without a device compiler");
        return;
    }
    let words = ["the process ended before its trace did: launch 0 of ", " had not ended after ", " s"];
    assert!(report.iter().any(|line| words.iter().all(|word| line.contains(word))), "{report:?}");
}

#[test]
fn forked_children_touch_nothing_and_those_forked_early_are_traced() {
    let Some(traced) = both(&["dlsym", &data("kernels.ptx"), "fork"]) else { return };
    assert_eq!(traced.verified().0, 1, "{:?}", traced.report());
    let Some(traced) = both(&["dlsym", &data("kernels.ptx"), "early-fork"]) else { return };
    assert_eq!(traced.verified().0, 1, "{:?}", traced.report());
}

#[test]
fn a_process_that_ends_without_a_word_leaves_its_frames() {
    for action in ["exit", "abort"] {
        let words = ["linked", &data("kernels.ptx"), action];
        let Some(traced) = both_with(&words, &[(RUN_SPEC, &spec(|spec| spec.sync = true))]) else { return };
        let trace = traced.trace();
        assert!(trace.verify().events > 100, "{action}: {:?}", traced.report());
    }
    // The trace ends with its context, even if a destructor destroys that.
    let Some(built) = built() else { return };
    let words = ["proc", &data("kernels.ptx"), "parts", "late-reset"];
    let traced = run(built, true, &words, &[]);
    assert_eq!(launch_count(&traced.folder.path().join("t-2.wtrc")), 1, "{:?}", traced.report());
    let Some(traced) = both(&["proc", &data("kernels.ptx"), "reset", "abort"]) else { return };
    assert_eq!(traced.verified().0, 1, "{:?}", traced.report());
}
