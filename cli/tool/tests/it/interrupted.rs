//! Recordings of `demo` that signals end.

use std::fs::File;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use crate::support::{Folder, recorded, run, text};

fn kill(child: &Child, signal: &str) {
    let kill = format!("kill -{signal} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

#[test]
fn an_interrupted_recording_says_where_its_warps_are_and_so_does_its_trace() {
    let (_folder, path) = recorded(&[]);
    for (signal, number, rank, of_rank) in [("INT", 2, "", ""), ("TERM", 15, "1", "rank 1: ")] {
        let demo = ["demo", "--device", "sim", "--width", "1024", "--depth", "1000000", "--memory", "512MiB"];
        let mut child = Command::new(assert_cmd::cargo::cargo_bin("warptrace"))
            .args(demo)
            .args(["-o", text(&path)])
            .envs(Some(("RANK", rank)).filter(|_| !rank.is_empty()))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let files = format!("/proc/{}/fd", child.id());
        let is_open = |file: std::io::Result<std::fs::DirEntry>| {
            file.is_ok_and(|file| std::fs::read_link(file.path()).is_ok_and(|file| file == path))
        };
        while !std::fs::read_dir(&files).unwrap().any(is_open) {
            assert!(child.try_wait().unwrap().is_none(), "it still runs");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        std::thread::sleep(std::time::Duration::from_millis(500));
        kill(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(number));
        let told = String::from_utf8(output.stderr).unwrap();
        let first = told.lines().find_map(|line| line.strip_prefix("interrupted: ")).unwrap();
        let first = first.strip_prefix(of_rank).unwrap();
        assert!(first.starts_with("launch 0 of kernel `mandelbrot` had not ended: "), "{told}");
        let (code, top, _) = run(&["top", text(&path)]);
        assert!(code == 0 && top.starts_with(&format!("{first}\n")), "{top}");
    }
}

#[test]
fn a_signal_while_no_kernel_runs_ends_the_recording_when_it_is_whole() {
    let folder = Folder::new();
    let pipe = folder.at("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let demo = ["demo", "--device", "sim", "--width", "64", "--depth", "16", "--policy", "stream"];
    let child = Command::new(assert_cmd::cargo::cargo_bin("warptrace"))
        .args(demo)
        .args(["-o", text(&pipe)])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut trace = Vec::new();
    let mut reader = File::open(&pipe).unwrap();
    // The file's head is written before the first launch.
    reader.read_exact(&mut [0; 16]).unwrap();
    kill(&child, "INT");
    reader.read_to_end(&mut trace).unwrap();
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.signal(), Some(2), "{told}");
    assert!(told.contains("interrupted: "), "{told}");
}
