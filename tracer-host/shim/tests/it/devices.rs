//! Tests of processes with several devices, each with a launching thread. Each device has a separate file.

use std::path::PathBuf;

use warptrace_abi::run::{RUN_FILE, RUN_SPEC};
use warptrace_analysis::{Selection, accesses};
use warptrace_decoder::TraceFile;
use warptrace_spec::{RunSpec, Spaces};

use super::{ShimRun, built, command_of, data, run_command, spec};

/// Three devices: with two, the next device would also be the previous one.
const FEW: u32 = 3;

/// Records only the launched kernel. Splicing the others would take time, on each device.
fn of_one_kernel(spec: &mut RunSpec) {
    spec.recording.window.kernels = vec!["transpose".to_owned()];
}

/// Runs the program without and with the shim, and checks that the output is the same.
fn record(
    devices: u32,
    name: &str,
    what: &str,
    variables: &[(&str, &str)],
) -> Option<(ShimRun, tempfile::TempDir)> {
    let (built, files) = (built()?, tempfile::tempdir().expect("a folder"));
    let devices = devices.to_string();
    let file = files.path().join(name);
    let mut all = vec![("TEST_DRIVER_DEVICES", &*devices), (RUN_FILE, file.to_str().expect("a plain name"))];
    all.extend(variables);
    let run = |traced| {
        let mut command = command_of(built, "devices");
        run_command(built, traced, command.args([&data("memory.ptx"), &devices, what]), &all)
    };
    let (plain, traced) = (run(false), run(true));
    assert!(!plain.stdout().contains("error"), "{}", plain.stdout());
    assert_eq!(plain.stdout(), traced.stdout(), "{what}: {:?}", traced.report());
    if traced.report().iter().any(|line| line.contains("carries no GPU code")) {
        eprintln!("skipped: built without a device compiler");
        return None;
    }
    Some((traced, files))
}

fn traces(folder: &tempfile::TempDir) -> Vec<(PathBuf, TraceFile)> {
    let entries = std::fs::read_dir(folder.path()).expect("a folder").flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let open = |path: PathBuf| {
        let trace = TraceFile::open(&path).expect("a trace");
        let report = trace.verify();
        assert!(report.is_ok(), "{}: {report}", path.display());
        (path, trace)
    };
    paths.into_iter().map(open).collect()
}

/// Returns the device of a trace. Checks its number of launches: the program launches once more than the
/// device's number.
fn device_of(trace: &TraceFile) -> u32 {
    let origin = trace.metadata().origin.as_deref().expect("it is told");
    let device = origin.device.expect("a device");
    let uuid = format!("GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae{device:02x}");
    assert_eq!(origin.device_uuid.as_deref(), Some(&*uuid));
    assert_eq!(trace.launches().len(), device as usize + 1);
    device
}

fn check_files(count: u32) {
    let spec = [(RUN_SPEC, &*spec(of_one_kernel))];
    let Some((_, files)) = record(count, "t.%d.wtrc", "", &spec) else { return };
    let found = traces(&files);
    assert_eq!(found.len(), count as usize);
    for (device, (path, trace)) in (0..).zip(&found) {
        assert!(path.ends_with(format!("t.{device}.wtrc")), "{}", path.display());
        assert_eq!(device_of(trace), device);
    }
    // Without the device in the name, files are numbered in order of their start.
    let Some((_, files)) = record(count, "t.wtrc", "", &spec) else { return };
    let found = traces(&files);
    let mut devices: Vec<u32> = found.iter().map(|(_, trace)| device_of(trace)).collect();
    devices.sort_unstable();
    assert_eq!(devices, Vec::from_iter(0..count));
    let last = &found[count as usize - 1].0;
    assert!(found[0].0.ends_with("t-2.wtrc") && last.ends_with("t.wtrc"), "{}", last.display());
}

#[test]
fn each_device_has_a_file_of_its_own() {
    check_files(FEW);
}

fn check_new_context(count: u32) {
    let variables = [("RANK", "5"), (RUN_SPEC, &*spec(of_one_kernel))];
    let Some((_, files)) = record(count, "r%r.%d.wtrc", "again", &variables) else { return };
    let found = traces(&files);
    let name = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    let mut names: Vec<String> = found.iter().map(|(path, _)| name(path)).collect();
    names.sort();
    assert_eq!(names.len(), count as usize + 1);
    assert_eq!(names[..3], ["r5.0-2.wtrc", "r5.0.wtrc", "r5.1.wtrc"]);
    assert!(found.iter().all(|(path, trace)| name(path).contains(&format!(".{}", device_of(trace)))));
}

#[test]
fn a_context_that_is_made_anew_has_a_file_of_its_own() {
    check_new_context(FEW);
}

#[test]
fn without_what_a_name_needs_nothing_is_recorded_and_that_is_said() {
    for (name, said) in
        [("t.%r.wtrc", "no launcher told this process its rank"), ("t.%x", "`%x` in the name")]
    {
        let Some((traced, files)) = record(FEW, name, "", &[]) else { return };
        assert!(traces(&files).is_empty());
        assert!(traced.report().iter().any(|line| line.contains(said)), "{:?}", traced.report());
    }
}

fn check_memory_of_others(count: u32) {
    let spec = spec(|spec| {
        of_one_kernel(spec);
        spec.recording.accesses = Some(Spaces::ALL);
    });
    for (what, is_peer) in [("", false), ("peer", true)] {
        let Some((_, files)) = record(count, "t.%d.wtrc", what, &[(RUN_SPEC, &spec)]) else { return };
        for (_, trace) in traces(&files) {
            let device = device_of(&trace);
            let found = accesses(&trace, &Selection::default()).expect("sound");
            // All accessed memory is known. With `peer`, a device reads memory of the next device.
            assert_eq!(found.unknown_buffer, Some(0));
            assert!(found.outside.is_empty(), "{device}: {:?}", found.outside);
            let touched = found.buffers.iter().filter(|buffer| buffer.accesses > 0);
            let mut names: Vec<&str> = touched.map(|buffer| &*buffer.name).collect();
            names.sort_unstable();
            let next = format!("of device {}", (device + 1) % count);
            assert_eq!(names, if is_peer { ["", &next] } else { ["", ""] }, "{device}");
        }
    }
}

#[test]
fn memory_of_other_devices_is_named_so() {
    check_memory_of_others(FEW);
}

mod full {
    const MANY: u32 = 8;

    #[test]
    fn each_of_many_devices_has_a_file_of_its_own() {
        super::check_files(MANY);
    }

    #[test]
    fn beside_many_devices_a_context_that_is_made_anew_has_a_file_of_its_own() {
        super::check_new_context(MANY);
    }

    #[test]
    fn memory_of_many_other_devices_is_named_so() {
        super::check_memory_of_others(MANY);
    }
}
