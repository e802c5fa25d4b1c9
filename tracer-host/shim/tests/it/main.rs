//! Runs programs with the shim. They must have the same output and exit code as without it, and their traces
//! must be complete. The driver is a test double (`driver/lib.rs`) that interprets kernels.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), target_env = "gnu"))]

mod accesses;
mod accounts;
mod built;
mod clocks;
mod devices;
mod ends;
mod frameworks;
mod graphs;
mod hangs;
mod images;
mod launches;
mod memory;
mod options;
mod packing;
mod parts;
mod ranges;
mod stacks;

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;
use warptrace_abi::run::{REPORT_PREFIX, RUN_FILE, RUN_PTXAS, RUN_REPORT, RUN_SPEC};
use warptrace_analysis::fuzzing::check_trace;
use warptrace_decoder::{KeptText, TraceFile};
use warptrace_format::codec::{CodecSpec, EclParams};
use warptrace_format::file::LaunchInfo;
use warptrace_spec::{MemorySize, RunSpec};

use crate::built::{Built, built};

struct ShimRun {
    folder: TempDir,
    output: Output,
}

impl ShimRun {
    fn stdout(&self) -> String {
        String::from_utf8(self.output.stdout.clone()).expect("text")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn report(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for entry in std::fs::read_dir(self.folder.path()).expect("a folder").flatten() {
            if entry.file_name().to_string_lossy().starts_with(REPORT_PREFIX) {
                let text = std::fs::read_to_string(entry.path()).expect("a report");
                lines.extend(text.lines().skip(1).map(str::to_owned));
            }
        }
        lines
    }

    fn trace(&self) -> TraceFile {
        TraceFile::open(self.folder.path().join("t.wtrc")).expect("a trace")
    }

    fn verified(&self) -> (u64, u64) {
        let trace = self.trace();
        let report = trace.verify();
        assert!(report.is_ok(), "{report}");
        check_trace(&trace);
        (report.launches, report.events)
    }
}

fn data(name: &str) -> String {
    format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn spec(change: impl FnOnce(&mut RunSpec)) -> String {
    let mut spec = RunSpec::default();
    spec.recording.memory = Some(MemorySize(8 << 20));
    change(&mut spec);
    spec.to_text()
}

fn run(built: &Built, traced: bool, words: &[&str], variables: &[(&str, &str)]) -> ShimRun {
    let program = if words[0] == "linked" { "app-linked" } else { "app" };
    run_command(built, traced, command_of(built, program).args(words), variables)
}

fn command_of(built: &Built, program: &str) -> Command {
    Command::new(built.folder.join(program))
}

fn run_command(built: &Built, traced: bool, command: &mut Command, variables: &[(&str, &str)]) -> ShimRun {
    let folder = prepare(built, traced, command, variables);
    let output = command.output().expect("it runs");
    ShimRun { folder, output }
}

/// Returns the folder for the command's files.
fn prepare(built: &Built, traced: bool, command: &mut Command, variables: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    command
        .env("LD_LIBRARY_PATH", &built.folder)
        .env("TEST_DRIVER_LOG", folder.path().join("log"))
        .env("XDG_CACHE_HOME", folder.path())
        .env_remove("LD_PRELOAD");
    if traced {
        command
            .env("LD_PRELOAD", &built.shim)
            .env(RUN_FILE, folder.path().join("t.wtrc"))
            .env(RUN_REPORT, folder.path())
            .env(RUN_SPEC, spec(|_| ()));
    }
    command.envs(variables.iter().copied());
    folder
}

/// Runs the program without and with the shim, and checks that output and exit code are the same.
fn both(words: &[&str]) -> Option<ShimRun> {
    both_with(words, &[])
}

/// Like [`both`], with more environment variables.
fn both_with(words: &[&str], variables: &[(&str, &str)]) -> Option<ShimRun> {
    let built = built()?;
    let plain = run(built, false, words, variables);
    let traced = run(built, true, words, variables);
    assert_eq!(plain.stdout(), traced.stdout(), "{words:?}: {:?}", traced.report());
    assert_eq!(plain.output.status, traced.output.status, "{words:?}");
    // QEMU writes a line if a signal ends the program.
    let [before, now] = [&plain, &traced].map(|run| String::from_utf8_lossy(&run.output.stderr));
    assert_eq!(before, now, "{words:?}");
    // The tracer's kernels need a device compiler at build time.
    if traced.report().iter().any(|line| line.contains("carries no GPU code")) {
        eprintln!("skipped: built without a device compiler");
        return None;
    }
    Some(traced)
}

fn launch_count(path: &Path) -> usize {
    let trace = TraceFile::open(path).expect("a trace");
    assert!(trace.verify().is_ok());
    trace.launches().count()
}

#[test]
fn what_a_device_reads_comes_behind_what_an_adopted_stream_was_given() {
    let Some(built) = built() else { return };
    // Copies run only when they are waited for. Copies of another stream would run earlier.
    let run = run_command(built, false, &mut command_of(built, "adopted"), &[("TEST_DRIVER_LATE", "1")]);
    let errors = String::from_utf8_lossy(&run.output.stderr);
    assert_eq!((run.stdout().as_str(), run.output.status.code()), ("in order\n", Some(0)), "{errors}");
}

#[test]
fn a_program_is_traced_however_it_finds_the_driver() {
    let image = data("kernels.ptx");
    for way in ["dlsym", "dlvsym", "proc", "thread", "linked"] {
        let Some(traced) = both(&[way, &image]) else { return };
        assert_eq!(traced.verified().0, 1, "{way}: {:?}", traced.report());
        assert!(traced.verified().1 > 100, "{way}: {:?}", traced.report());
        assert!(traced.log().contains("image traced PTX") && traced.log().contains("launch walk$traced"));
        assert!(traced.report()[0].contains("events of 1 launch, 1 kernel"), "{:?}", traced.report());
    }
}

#[test]
fn where_the_source_has_no_lines_the_trace_keeps_the_ptx() {
    let text = std::fs::read_to_string(data("kernels.ptx")).expect("it is there");
    let is_source = |line: &&str| line.trim_start().starts_with(".loc");
    let bare: String = text.lines().filter(|line| !is_source(line)).map(|line| format!("{line}\n")).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bare.ptx");
    std::fs::write(&path, &bare).expect("a file");
    let Some(traced) = both(&["dlsym", path.to_str().expect("a path")]) else { return };
    let trace = TraceFile::open(traced.folder.path().join("t.wtrc")).expect("a trace");
    let location = &trace.metadata().locations[0];
    let Ok(KeptText::Whole(kept)) = trace.text(&location.file, usize::MAX) else { panic!("it is kept") };
    // Lines of other kernels are empty.
    assert_eq!(kept.text.lines().count(), bare.lines().count());
    assert!(kept.text.lines().zip(bare.lines()).all(|(kept, own)| kept == own || kept.is_empty()));
    assert!(kept.text.contains(".entry walk(") && !kept.text.contains(".entry fail("));
    assert!(location.line > 0 && kept.text.lines().count() >= location.line as usize);
    let Some(traced) = both(&["dlsym", &data("kernels.ptx")]) else { return };
    let trace = TraceFile::open(traced.folder.path().join("t.wtrc")).expect("a trace");
    assert!(trace.metadata().locations.iter().any(|location| location.file.ends_with(".cu")));
}

#[test]
fn images_of_all_kinds_are_traced_or_said_not_to_be() {
    for (image, more) in [
        ("kernels-none.fatbin", "twice"),
        ("kernels-speed.fatbin", "library"),
        ("kernels-size.fatbin", "extra"),
    ] {
        // The fatbins have PTX for at most sm_80, and machine code for sm_90 with embedded PTX. The shim
        // takes the latter.
        for prefix in ["", "wrapped:"] {
            let Some(traced) = both(&["dlsym", &format!("{prefix}{}", data(image)), more]) else { return };
            assert!(traced.verified().1 > 100, "{image}: {:?}", traced.report());
            let warned = traced.report().iter().any(|line| line.contains("what depends on __CUDA_ARCH__"));
            assert!(!warned, "{image}: {:?}", traced.report());
        }
    }
    let Some(traced) = both(&["dlsym", &format!("file:{}", data("kernels-size.fatbin"))]) else { return };
    assert_eq!(traced.verified().0, 1);
    let skips = [("TEST_DRIVER_SKIPS", "1")];
    let Some(traced) = both_with(&["dlsym", &data("kernels-cubin.fatbin")], &skips) else { return };
    let lines = traced.report();
    assert!(
        lines[1].contains("not traced: 1 launch of walk: only machine code; build with -gencode"),
        "{lines:?}"
    );
    assert_eq!(traced.verified(), (1, 0));
}

#[test]
fn functions_are_listed_without_their_copies() {
    let Some(traced) = both(&["dlsym", &data("kernels.ptx"), "list"]) else { return };
    assert!(traced.stdout().contains("functions 3"), "{}", traced.stdout());
}

#[test]
fn what_a_program_compiles_to_machine_code_is_traced_from_ptx() {
    let Some(built) = built() else { return };
    let words = ["dlsym", &data("kernels.ptx"), "nvrtc"];
    let plain = run(built, false, &words, &[]);
    let traced = run(built, true, &words, &[]);
    // The test driver cannot run machine code, so the launch fails without the shim.
    assert!(plain.log().contains("image machine code") && plain.stdout().contains("compiled: yes"));
    assert!(traced.log().contains("image traced PTX") && traced.stdout().contains("compiled: yes"));
}

#[test]
fn a_single_text_that_a_program_links_is_traced() {
    let Some(built) = built() else { return };
    for (action, is_traced) in [("link", true), ("link-two", false)] {
        let traced = run(built, true, &["proc", &data("kernels.ptx"), action], &[]);
        let log = traced.log();
        // The first image is the program's. The copy and the tracer's image follow.
        let first = log.lines().find(|line| line.starts_with("image "));
        let expected = if is_traced { "image PTX" } else { "image machine code" };
        assert_eq!(first, Some(expected), "{action}: {log}");
        assert_eq!(log.contains("launch walk$traced"), is_traced, "{action}: {log}");
    }
}

#[test]
fn attributes_are_set_on_the_copy_too() {
    let Some(traced) = both(&["proc", &data("kernels.ptx")]) else { return };
    let log = traced.log();
    assert!(
        log.contains("attribute 9 50 of walk\n") && log.contains("attribute 9 50 of walk$traced"),
        "{log}"
    );
}

#[test]
fn what_the_driver_refuses_is_loaded_as_it_is() {
    let Some(built) = built() else { return };
    let words = ["dlsym", &data("kernels-size.fatbin")];
    let plain = run(built, false, &words, &[]);
    let variables = [("TEST_DRIVER_REFUSES", "1"), (RUN_PTXAS, "/nowhere/ptxas")];
    let traced = run(built, true, &words, &variables);
    assert_eq!((plain.stdout(), plain.output.status), (traced.stdout(), traced.output.status));
    assert!(traced.report()[1].contains("the driver refused its PTX"), "{:?}", traced.report());
    assert!(traced.log().contains("image fatbin") && traced.log().contains("launch walk ["));
}

#[test]
fn kernels_that_were_not_asked_for_run_as_they_are() {
    let Some(built) = built() else { return };
    let words = ["dlsym", &data("kernels.ptx")];
    for (pattern, is_traced) in [("w*k", true), ("scale*", false)] {
        let named = spec(|spec| spec.recording.window.kernels = vec![pattern.to_owned()]);
        let traced = run(built, true, &words, &[(RUN_SPEC, &named)]);
        assert_eq!(
            traced.log().contains("launch walk$traced"),
            is_traced,
            "{pattern}: {:?}",
            traced.report()
        );
    }
}

#[test]
fn as_many_launches_are_recorded_as_were_asked_for() {
    let Some(built) = built() else { return };
    let words = ["dlsym", &data("kernels.ptx"), "twice"];
    let traced = run(built, true, &words, &[(RUN_SPEC, &spec(|spec| spec.recording.window.first = Some(1)))]);
    let log = traced.log();
    assert!(log.contains("launch walk$traced") && log.contains("launch walk ["), "{log}");
    assert!(traced.report().contains(&"not traced, as asked: 1 launch".to_owned()), "{:?}", traced.report());
    let recorded = |launch: &&LaunchInfo| launch.is_recorded();
    assert_eq!((traced.verified().0, traced.trace().launches().filter(recorded).count()), (2, 1));
}

fn longer_walk(more: &str) -> String {
    let text = std::fs::read_to_string(data("kernels.ptx")).expect("it is there");
    let (before, walk) = text.split_at(text.find(".entry walk(").expect("it is there"));
    let end = walk.find("\tret;").expect("it returns");
    format!("{before}{}{more}{}", &walk[..end], &walk[end..])
}

#[test]
fn a_location_says_which_blocks_always_follow_it() {
    let text = longer_walk("\tbra $next;\n$next:\n");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("jump.ptx");
    std::fs::write(&path, text).expect("a file");
    let Some(traced) = both(&["dlsym", path.to_str().expect("a plain name")]) else { return };
    let trace = traced.trace();
    let locations = &trace.metadata().locations;
    let found: Vec<&str> = locations
        .iter()
        .filter(|location| location.function == "walk")
        .map(|location| location.description.as_str())
        .filter(|description| description.contains("; then always block "))
        .collect();
    assert_eq!(found.len(), 1, "{locations:?}");
}

#[test]
fn what_a_codec_cannot_name_runs_untraced() {
    let Some(built) = built() else { return };
    // The codec `ecl` supports 255 locations.
    let blocks: String =
        (0..260).map(|number| format!("\t@%p1 bra $more{number};\n$more{number}:\n")).collect();
    let text = longer_walk(&blocks);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("many.ptx");
    std::fs::write(&path, text).expect("a file");
    let words = ["dlsym", path.to_str().expect("a plain name")];
    let plain = run(built, false, &words, &[]);
    let traced = run(
        built,
        true,
        &words,
        &[(RUN_SPEC, &spec(|spec| spec.recording.codec = CodecSpec::Ecl(EclParams::DEFAULT)))],
    );
    assert_eq!((plain.stdout(), plain.output.status), (traced.stdout(), traced.output.status));
    if traced.report().iter().any(|line| line.contains("carries no GPU code")) {
        return;
    }
    assert!(traced.report().iter().any(|line| line.contains("255")), "{:?}", traced.report());
    assert_eq!(traced.verified(), (1, 0));
}

#[test]
fn damaged_images_are_the_drivers_to_judge() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("damaged");
    let mut fatbin = std::fs::read(data("kernels-size.fatbin")).expect("a fixture");
    for at in [16, 24, 60, 128, 200, 900] {
        fatbin[at] ^= 0x55;
        std::fs::write(&path, &fatbin).expect("a file");
        let path = path.to_str().expect("a plain name");
        if both(&["dlsym", path]).is_none() {
            return;
        }
    }
    std::fs::write(&path, ".version 9.9\n.target sm_80\n.visible .entry walk(){ frobnicate.u32; ret; }")
        .expect("a file");
    let Some(traced) = both(&["dlsym", path.to_str().expect("a plain name")]) else { return };
    assert!(traced.stdout().contains("error"), "{}", traced.stdout());
}

#[test]
fn one_process_writes_a_file() {
    let Some(built) = built() else { return };
    let words = ["dlsym", &data("kernels.ptx")];
    let first = run(built, true, &words, &[]);
    let folder = first.folder.path().to_str().expect("a plain name").to_owned();
    let file = first.folder.path().join("t.wtrc");
    if !file.exists() {
        return;
    }
    let same = [(RUN_FILE, file.to_str().expect("a plain name")), (RUN_REPORT, &folder)];
    let before = std::fs::read(&file).expect("a trace");
    let second = run(built, true, &words, &same);
    assert_eq!(second.stdout(), first.stdout());
    assert_eq!(std::fs::read(&file).expect("a trace"), before);
    assert!(
        first.report().iter().any(|line| line.contains("another process writes")),
        "{:?}",
        first.report()
    );
}

#[test]
fn programs_without_cuda_never_notice() {
    let Some(built) = built() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let app = built.folder.join("app");
    for (program, words) in
        [("sh", &["-c", "echo $((6 * 7)); exit 3"][..]), (app.to_str().expect("plain"), &["dlsym", "x"])]
    {
        let run = |traced: bool| {
            let mut command = Command::new(program);
            command.args(words).env_remove("LD_LIBRARY_PATH").env_remove("LD_PRELOAD");
            if traced {
                command.env("LD_PRELOAD", &built.shim).env(RUN_FILE, folder.path().join("t.wtrc"));
                command.env(RUN_REPORT, folder.path());
            }
            command.output().expect("it runs")
        };
        assert_eq!(run(false), run(true), "{program}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}
