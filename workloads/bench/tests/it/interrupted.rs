//! Recordings that are ended from outside while a kernel runs.
#![cfg(unix)]

use std::fs::File;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::support::{Folder, run, text};

/// Starts to record a kernel that takes long into a pipe, so that there is nothing to wait for but its bytes.
fn started(path: &Path, policy: &str) -> (Child, File) {
    let pipe = path.with_extension("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let child = Command::new(assert_cmd::cargo::cargo_bin("warptrace-bench"))
        .args(["record", "stress", "--walks", "8192", "--rounds", "1024", "--device", "sim"])
        .args(["--codec", "predict", "--policy", policy, "--memory", "8MiB", "-o", text(&pipe)])
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

/// Sends a recording a signal as soon as there is something of the kernel in the trace, and writes to `path`
/// what there is in the end.
fn interrupted(path: &Path, signal: &str) -> Output {
    let (child, mut reader) = started(path, "stream");
    let mut trace = vec![0; 50_000];
    reader.read_exact(&mut trace).expect("the kernel takes long");
    kill(&child, signal);
    reader.read_to_end(&mut trace).unwrap();
    std::fs::write(path, trace).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_recording_that_keeps_nothing_of_a_running_kernel_says_what_to_do() {
    let folder = Folder::new();
    for (policy, name, signal) in [("stop", "INT", 2), ("ring", "TERM", 15)] {
        // Whoever opens the trace listens to signals.
        let (child, _reader) = started(&folder.at(name), policy);
        kill(&child, name);
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.signal(), Some(signal), "{told}");
        assert!(told.contains("record again with `--policy stream`"), "{told}");
    }
}

/// Interrupts a recording into a folder; returns what it says.
fn says_where_warps_stand(folder: &Folder, name: &str, number: i32) -> String {
    let output = interrupted(&folder.at("trace"), name);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.signal(), Some(number), "{told}");
    assert!(told.contains("interrupted: kernel `stress`, launch 0: "), "{told}");
    assert!(told.contains("of 256 warps have not ended") && told.contains("last came past "), "{told}");
    told
}

#[test]
fn a_recording_that_is_to_end_says_where_warps_stand() {
    says_where_warps_stand(&Folder::new(), "TERM", 15);
}

#[test]
fn an_interrupted_recording_says_where_warps_stand() {
    let folder = Folder::new();
    let told = says_where_warps_stand(&folder, "INT", 2);
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
    shows_where_warps_stand(&told, &path);
}

/// `top` says first how many warps have not ended and where they stand, as the recording told.
fn shows_where_warps_stand(told: &str, path: &Path) {
    let words: Vec<&str> = told.split_whitespace().collect();
    let of = words.iter().position(|word| *word == "of").unwrap();
    let (code, top, _) = run(&["top", text(path)]);
    assert_eq!(code, 0);
    let lines: Vec<&str> = top.lines().collect();
    assert_eq!(lines[0], format!("INCOMPLETE trace: {} warps not finished", words[of - 1]), "{top}");
    assert!(lines[2].starts_with("  ") && lines[2].contains(" of stress: "), "{top}");
    let (code, output, _) = run(&["top", text(path), "--json"]);
    assert_eq!(code, 0);
    let found: serde_json::Value = serde_json::from_str(&output).unwrap();
    let standing = found["standing"].as_array().unwrap();
    let warps: u64 = standing.iter().map(|group| group["warps"].as_u64().unwrap()).sum();
    assert_eq!(found["losses"]["unfinished_warps"], warps);
    assert_eq!(words[of - 1].replace(',', ""), warps.to_string());
    // So does the page: what the warps of the first group repeat is its title.
    let (code, page, _) = run(&["report", text(path), "-o", "-"]);
    assert_eq!(code, 0);
    let (before, behind) = page.split_once("<h1>").unwrap();
    assert!(before.contains(lines[0]), "{before}");
    assert!(before.contains("launch 0 of kernel <code>stress</code> was interrupted"), "{before}");
    assert!(behind.starts_with(&format!("{}</h1>", lines[2].trim())), "{behind}");
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
