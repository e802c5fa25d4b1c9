//! Recordings that are interrupted while a kernel runs.
#![cfg(unix)]

use std::fs::File;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::support::{Folder, run, text};

/// Starts to record a long-running kernel into a pipe, so that the test can wait for bytes.
fn started(path: &Path) -> (Child, File) {
    let pipe = path.with_extension("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let child = Command::new(assert_cmd::cargo::cargo_bin("warptrace-bench"))
        .args(["record", "stress", "--walks", "8192", "--rounds", "1024", "--device", "sim"])
        .args(["--codec", "predict", "--policy", "stream", "--memory", "8MiB", "-o", text(&pipe)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    (child, File::open(&pipe).unwrap())
}

fn kill(child: &Child, signal: &str) {
    let kill = format!("kill -{signal} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

/// Sends a signal once the trace contains data of the kernel. Writes the resulting trace to `path`.
fn interrupted(path: &Path, signal: &str) -> Output {
    let (child, mut reader) = started(path);
    let mut trace = vec![0; 50_000];
    reader.read_exact(&mut trace).expect("the kernel takes long");
    kill(&child, signal);
    reader.read_to_end(&mut trace).unwrap();
    std::fs::write(path, trace).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_kernel_that_hangs_is_interrupted_and_the_trace_says_where_its_warps_are() {
    let folder = Folder::new();
    for (policy, name, signal) in [("stop", "INT", 2), ("ring", "TERM", 15)] {
        let path = folder.at(policy);
        // Its lanes loop forever.
        let mut child = Command::new(assert_cmd::cargo::cargo_bin("warptrace-bench"))
            .args(["record", "fault", "--how", "hang", "--threads", "128", "--turns", "3", "--culprit", "37"])
            .args(["--device", "sim", "--policy", policy, "--memory", "8MiB", "-o", text(&path)])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while !path.exists() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(500));
        kill(&child, name);
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.signal(), Some(signal), "{told}");
        let expected = "launch 0 of kernel `fault` had not ended: ";
        assert!(told.contains(&format!("interrupted: {expected}")), "{told}");
        // The location of the loop.
        assert_eq!(told.contains(" 1 lane is at fault.rs:51, "), policy == "stop", "{told}");
        assert_eq!(told.contains("--policy stop"), policy != "stop", "{told}");
        let (code, top, _) = run(&["top", text(&path)]);
        assert!(code == 0 && (policy != "stop" || top.starts_with(expected)), "{top}");
    }
}

/// Interrupts a streamed recording into a folder, and checks its message.
fn says_what_was_interrupted(folder: &Folder, name: &str, number: i32) {
    let output = interrupted(&folder.at("trace"), name);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.signal(), Some(number), "{told}");
    assert!(told.contains("interrupted: launch 0 of kernel `stress` was interrupted\n"), "{told}");
}

#[test]
fn a_recording_that_is_to_end_says_what_was_interrupted() {
    says_what_was_interrupted(&Folder::new(), "TERM", 15);
}

#[test]
fn an_interrupted_recording_says_what_was_interrupted() {
    let folder = Folder::new();
    says_what_was_interrupted(&folder, "INT", 2);
    let path = folder.at("trace");
    let (code, verified, _) = run(&["verify", text(&path)]);
    assert_eq!(code, 3);
    assert!(
        verified.contains("1 launch interrupted") && verified.contains("warps did not finish"),
        "{verified}"
    );
    assert!(verified.contains("problems: 2"), "{verified}");
    let info: serde_json::Value = serde_json::from_str(&run(&["info", text(&path), "--json"]).1).unwrap();
    assert_eq!(info["launches"][0]["ended"], "interrupted");
    assert_eq!(info["losses"][0]["reason"], "died");
    let decoded = run(&["decode", text(&path)]).1;
    assert!(decoded.contains("did not finish: the kernel was interrupted\n"));
    assert!(decoded.ends_with("\nlaunch 0 of kernel `stress` was interrupted\n"));
    assert!(verified.contains("launch 0 of kernel `stress` was interrupted"), "{verified}");
    shows_what_is_missing(&path);
}

/// Checks that `top` and the report begin with the number of warps that did not finish.
fn shows_what_is_missing(path: &Path) {
    let (code, top, _) = run(&["top", text(path)]);
    assert_eq!(code, 0);
    let first = top.lines().next().unwrap();
    assert!(first.starts_with("INCOMPLETE trace: ") && first.ends_with(" warps not finished"), "{top}");
    let (code, page, _) = run(&["report", text(path), "-o", "-"]);
    assert_eq!(code, 0);
    let (before, _) = page.split_once("<h1>").unwrap();
    assert!(before.contains(first), "{before}");
    assert!(before.contains("launch 0 of kernel <code>stress</code> was interrupted"), "{before}");
}

#[test]
fn what_is_left_of_a_killed_recording_can_be_read() {
    let folder = Folder::new();
    let path = folder.at("killed");
    let output = interrupted(&path, "KILL");
    assert_eq!(output.status.code(), None);
    let (code, told, error) = run(&["info", text(&path)]);
    assert_eq!(code, 0, "{error}");
    assert!(told.contains("policy `stream`"), "{told}");
    let (code, decoded, error) = run(&["decode", text(&path), "--format", "csv"]);
    assert_eq!(code, 0, "{error}");
    assert!(decoded.lines().count() > 1_000, "{error}");
}
