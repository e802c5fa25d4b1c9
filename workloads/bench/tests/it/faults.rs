//! Recordings of a failing kernel.

use std::process::Command;

use crate::support::{Folder, run, text};

fn record(folder: &Folder, how: &[&str]) -> (u8, String) {
    let program = ["--threads", "64", "--turns", "3", "--culprit", "37"];
    let (_, (code, _, error)) = folder.record("fault", "trace", &[&program, how].concat());
    (code, error)
}

#[test]
fn a_kernel_that_fails_is_an_error_that_names_it() {
    let folder = Folder::new();
    let (code, error) = record(&folder, &["--policy", "stream"]);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("kernel `fault` failed") && error.contains("as it was asked for"), "{error}");
    // By default, the trace contains the positions of the warps.
    let path = folder.at("trace");
    let output = Command::new(assert_cmd::cargo::cargo_bin("warptrace-bench"))
        .args(["record", "fault", "--threads", "64", "--turns", "3", "--culprit", "37", "--device", "sim"])
        .args(["--memory", "64MiB", "-o", text(&path)])
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.starts_with(&format!("the trace up to here is in {}\nerror: ", path.display())), "{told}");
    let top = run(&["top", text(&path)]).1;
    let first = top.lines().next().unwrap();
    assert!(first.starts_with("launch 0 of kernel `fault` failed: "), "{top}");
    // The culprit is the only lane at the trap.
    assert!(
        first.contains("1 warp (block 0 warp 1): ") && first.contains(", 1 lane is at fault.rs:40, "),
        "{top}"
    );
    let (code, error) = record(&folder, &["--how", "nothing"]);
    assert_eq!((code, error.as_str()), (0, ""));
}

#[test]
fn what_the_simulator_cannot_do_is_said() {
    let folder = Folder::new();
    let (code, error) = record(&folder, &["--how", "stray"]);
    assert_eq!(code, 1);
    assert!(error.contains("the simulator does not guard its memory"), "{error}");
}
