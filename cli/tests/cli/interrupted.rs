//! Recordings that are ended from outside while a kernel runs.
#![cfg(unix)]

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Folder, run, text};

/// Starts to record a kernel that takes long, and waits until there is something of it in the file.
fn start(path: &Path) -> Child {
    let arguments = ["record", "stress", "--walks", "65536", "--rounds", "64", "--device", "sim"];
    let child = Command::new(assert_cmd::cargo::cargo_bin("warptrace"))
        .args(arguments)
        .args(["--codec", "predict", "--policy", "stream", "--memory", "24MiB", "-o", text(path)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while std::fs::metadata(path).map_or(0, |file| file.len()) < 200_000 {
        assert!(started.elapsed() < Duration::from_secs(200), "nothing comes of the kernel");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

fn signal(child: Child, name: &str) -> Output {
    let kill = format!("kill -{name} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    child.wait_with_output().unwrap()
}

#[test]
fn an_interrupted_recording_says_where_warps_stand() {
    let folder = Folder::new();
    for name in ["INT", "TERM"] {
        let path = folder.at(name);
        let output = signal(start(&path), name);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{told}");
        assert!(told.contains("interrupted: kernel `stress`, launch 0: "), "{told}");
        assert!(told.contains("of 2,048 warps have not ended") && told.contains("last came past "), "{told}");
        let (code, verified, _) = run(&["verify", text(&path)]);
        assert_eq!(code, 3);
        assert!(verified.contains(", complete") && verified.contains("warps did not finish"), "{verified}");
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
}

/// `top` says first how many warps have not ended and where they stand, as `record` told.
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
    // So does the page: before the finding.
    let (code, page, _) = run(&["report", text(path), "-o", "-"]);
    assert_eq!(code, 0);
    let (before, _) = page.split_once("<h1>").unwrap();
    assert!(
        before.contains(lines[0]) && before.contains(&format!("<li>{}</li>", lines[2].trim())),
        "{before}"
    );
    assert!(before.contains("launch 0 of kernel `stress` was interrupted"), "{before}");
}

#[test]
fn what_is_left_of_a_killed_recording_can_be_read() {
    let folder = Folder::new();
    let path = folder.at("killed");
    let output = signal(start(&path), "KILL");
    assert_eq!(output.status.code(), None);
    let (code, told, error) = run(&["info", text(&path)]);
    assert_eq!(code, 0, "{error}");
    assert!(told.contains("policy `stream`"), "{told}");
    let (code, decoded, error) = run(&["decode", text(&path), "--format", "csv"]);
    assert_eq!(code, 0, "{error}");
    assert!(decoded.lines().count() > 1_000, "{error}");
}
