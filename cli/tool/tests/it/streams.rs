//! Closed pipes, standard output and standard error redirected to files, and signals.
#![cfg(unix)]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::cargo::cargo_bin;

use crate::support::{Folder, recorded, refused, run, text};

/// Runs the tool with a closed pipe as standard output; returns its exit code and standard error.
fn unread(arguments: &[&str]) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = Command::new(cargo_bin("warptrace")).args(arguments).stdout(writer).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

fn long(folder: &Folder) -> PathBuf {
    folder.traced("fractal", "long.wtrc", &["--width", "128", "--depth", "2000"])
}

#[test]
fn a_verdict_stays_if_the_reader_has_seen_enough() {
    let folder = Folder::new();
    let (before, after) = (folder.recorded("a.wtrc", &[]), folder.recorded("b.wtrc", &[]));
    let (before, file) = (text(&before), text(&after));
    assert_eq!(unread(&["info", before]), (Some(0), String::new()));
    let other = folder.traced("fractal", "c.wtrc", &["--width", "32", "--depth", "7"]);
    let other = text(&other);
    assert_eq!(unread(&["diff", before, other, "--fail-above", "0"]), (Some(4), String::new()));
    assert_eq!(unread(&["diff", before, other, "--fail-above", "0", "--json"]), (Some(4), String::new()));
    let bytes = fs::read(file).unwrap();
    fs::write(&after, &bytes[..bytes.len() - 40]).unwrap();
    assert_eq!(unread(&["verify", file]).0, Some(3));
    assert_eq!(unread(&["verify", file, "--json"]).0, Some(3));
    let program =
        ["demo", "--device", "sim", "--width", "64", "--depth", "1500", "--codec", "raw", "-o", file];
    // The minimum memory for the launch is not enough for its events.
    let errors = run(&[&program[..], &["--memory", "150KiB"]].concat()).2;
    let least = errors.split("`--memory ").nth(1).unwrap().split('`').next().unwrap();
    let lossy = [&program[..], &["--memory", least]].concat();
    assert_eq!(run(&lossy).0, 3);
    assert_eq!(unread(&lossy).0, Some(3));
}

#[test]
fn a_pipe_that_was_named_is_read_to_its_end() {
    let folder = Folder::new();
    let path = long(&folder);
    let pipe = folder.at("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let decode = ["decode", text(&path), "--format", "jsonl", "-o", text(&pipe)];
    let child = Command::new(cargo_bin("warptrace")).args(decode).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0];
    File::open(&pipe).unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(1) && errors.contains("its reader has gone before the end"),
        "{errors}"
    );
}

#[test]
fn nothing_is_added_to_a_source_or_a_trace_that_is_read() {
    let folder = Folder::new();
    let home = folder.at("home");
    fs::create_dir(&home).unwrap();
    let (source, path) = (home.join("k.cu"), home.join("a.wtrc"));
    fs::write(&source, "first\nsecond\n").unwrap();
    crate::terminal::trace_of(&path, "kernel", "k.cu");
    let whole = fs::read(&path).unwrap();
    let append = |path: &Path| File::options().append(true).open(path).unwrap();
    let command = |arguments: &[&str]| {
        let mut command = Command::new(cargo_bin("warptrace"));
        command.args(arguments).current_dir(&home).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    for page in ["page.html", "-"] {
        for stream in ["output", "error"] {
            let mut command = command(&["report", "a.wtrc", "-o", page]);
            if stream == "output" {
                command.stdout(append(&source));
            } else {
                command.stderr(append(&source));
            }
            let output = command.output().unwrap();
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8(said).unwrap();
            assert_eq!(output.status.code(), Some(1), "{page} {stream}: {said}");
            assert!(said.contains(&format!("and standard {stream} are one file")), "{page} {stream}: {said}");
            assert_eq!(fs::read_to_string(&source).unwrap(), "first\nsecond\n", "{page} {stream}");
            assert!(!home.join("page.html").exists());
        }
    }
    for reader in ["info", "verify", "decode", "top", "report"] {
        let output = command(&[reader, "a.wtrc"]).stderr(append(&path)).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.code() == Some(1) && said.contains("and standard error are one file"),
            "{reader}: {said}"
        );
        let both = command(&[reader, "a.wtrc"]).stdout(append(&path)).stderr(append(&path)).output().unwrap();
        assert_eq!(both.status.code(), Some(1), "{reader}");
        assert_eq!(fs::read(&path).unwrap(), whole, "{reader}");
    }
}

#[test]
fn a_signal_leaves_no_part() {
    let folder = Folder::new();
    let path = long(&folder);
    let out = folder.at("out");
    fs::write(&out, "what was there").unwrap();
    let is_part = |name: &String| name.starts_with(".warptrace-part-");
    for (signal, number) in [("HUP", 1), ("INT", 2), ("QUIT", 3), ("TERM", 15)] {
        let decode = ["decode", text(&path), "--format", "jsonl", "-o", text(&out)];
        let mut child =
            Command::new(cargo_bin("warptrace")).args(decode).stderr(Stdio::null()).spawn().unwrap();
        let started = Instant::now();
        while !folder.files().iter().any(is_part) {
            assert!(
                started.elapsed() < Duration::from_secs(60) && child.try_wait().unwrap().is_none(),
                "no part"
            );
        }
        let kill = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
        assert!(kill.unwrap().success());
        assert_eq!(child.wait().unwrap().signal(), Some(number));
        assert!(!folder.files().iter().any(is_part), "{:?}", folder.files());
        assert_eq!(fs::read(&out).unwrap(), b"what was there");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_deleted_file_is_written_to_as_it_is() {
    use std::os::fd::AsRawFd;

    let (folder, path) = recorded(&[]);
    let deleted = folder.at("del");
    let mut file = File::options().read(true).write(true).create_new(true).open(&deleted).unwrap();
    file.write_all(&[b'x'; 1 << 20]).unwrap();
    fs::remove_file(&deleted).unwrap();
    let before = folder.files();
    let output = Command::new(cargo_bin("warptrace"))
        .args(["decode", text(&path), "-o", "/dev/fd/0"])
        .stdin(file.try_clone().unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(folder.files(), before, "nothing is made");
    let mut written = String::new();
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap().read_to_string(&mut written).unwrap();
    assert_eq!(written, run(&["decode", text(&path)]).1);
}

#[test]
fn the_name_of_the_tool_does_not_act_on_the_terminal() {
    let output = Command::new(cargo_bin("warptrace")).arg0("a\u{1b}[2Jb").arg("--help").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("Usage: warptrace ") && !said.contains('\u{1b}'), "{said}");
}

#[test]
fn an_output_that_cannot_be_made_is_refused_at_once() {
    let folder = Folder::new();
    let link = folder.at("link");
    std::os::unix::fs::symlink("nosuch/x", &link).unwrap();
    let absent = folder.at("nosuch/x");
    for output in [text(&absent), text(&link)] {
        for command in
            [&["decode"][..], &["report"], &["export", "--to", "perfetto"], &["export", "--to", "lcov"]]
        {
            // The target is checked before anything is read.
            let arguments = [command, &["/no/such/trace", "-o", output]].concat();
            let errors = run(&arguments).2;
            assert!(errors.contains("there is no folder"), "{arguments:?}: {errors}");
        }
    }
    refused(&["man", "-o", text(&link)], "is a link to what is not there");
    refused(&["info", text(&folder.at("."))], "it is a folder; name a trace in it");
}
