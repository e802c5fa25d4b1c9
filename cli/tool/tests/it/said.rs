//! Messages: damaged texts, messages of several lines, and standard error redirected to a trace.
#![cfg(unix)]

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use assert_cmd::cargo::cargo_bin;
use warptrace_format::file::{EarlyEnd, LaunchInfo, LocationInfo, SourceText};

use warptrace_host::HostMessage;

use crate::support::{Folder, json, metadata, recorded, run, text, write_launch, writer};

/// Writes a launch of one event in line 1 of `k.cu`, whose text the trace contains, and a launch that failed.
fn with_text(folder: &Folder, name: &str, kept: &str) -> PathBuf {
    let path = folder.at(name);
    let mut metadata = metadata("k");
    let file = "k.cu".to_owned();
    metadata.locations = vec![LocationInfo { file, line: 1, ..LocationInfo::new(1, "entry", "") }];
    let mut writer = writer(&path, &metadata);
    let text = SourceText { name: "k.cu".to_owned(), text: kept.to_owned() };
    writer.write_message(&HostMessage::Text(text)).unwrap();
    write_launch(&mut writer, 0, [1, 32], &[&[1, 0, 255, 0, 255, 255]]);
    writer.begin_launch(&LaunchInfo::new(1, 0, [1, 1, 1], [32, 1, 1], 0).unwrap()).unwrap();
    writer.end_early(1, &EarlyEnd::failed("first\nsecond\r\n\tthird")).unwrap();
    writer.finish().unwrap();
    path
}

fn note(folder: &Folder, trace: &Path) -> String {
    let (code, _, errors) = run(&["report", text(trace), "-o", text(&folder.at("page.html"))]);
    assert_eq!(code, 0, "{errors}");
    errors
}

#[test]
fn of_a_text_that_is_not_shown_the_page_says_why() {
    let folder = Folder::new();
    let whole = with_text(&folder, "whole.wtrc", "__global__ void k() {}\n");
    assert!(!note(&folder, &whole).contains("Source"), "{}", note(&folder, &whole));

    let mut bytes = fs::read(&whole).unwrap();
    let at = bytes.windows(4).position(|tag| tag == b"TEXT").unwrap();
    // In the body, after a header of 32 bytes.
    bytes[at + 40] ^= 1;
    let damaged = folder.at("damaged.wtrc");
    fs::write(&damaged, bytes).unwrap();
    let said = note(&folder, &damaged);
    assert!(said.contains("a text in the trace is damaged, perhaps that of this file"), "{said}");

    let long = with_text(&folder, "long.wtrc", &"\n".repeat((1 << 18) + 1));
    let said = note(&folder, &long);
    assert!(said.contains("its text in the trace has more than 262,144 lines"), "{said}");
}

#[test]
fn a_message_of_several_lines_is_one_line_everywhere() {
    let folder = Folder::new();
    let path = with_text(&folder, "a.wtrc", "");
    let json = json(&["info", text(&path)]);
    assert_eq!(json["launches"][1]["error"], "first; second; third");
    assert!(run(&["info", text(&path)]).1.contains("first; second; third"));
}

#[test]
fn no_error_is_appended_to_a_trace() {
    let (folder, trace) = recorded(&[]);
    let before = fs::read(&trace).unwrap();
    let new = folder.at("new.wtrc");
    for arguments in [
        &["diff", "no such file", text(&trace)][..],
        &["man", "-o", text(&trace)],
        &["demo", "--kernel", "nope", "-o", text(&trace)],
        &["demo", "--device", "cuda", "--memory", "1", "-o", text(&new)],
        &["run", "-o", text(&new), "--shim", text(&trace), "--", "/bin/true"],
        &["run", "-o", text(&trace), "--", "/bin/true"],
    ] {
        let appended = File::options().append(true).open(&trace).unwrap();
        let output = Command::new(cargo_bin("warptrace"))
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(appended)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("error: "), "{arguments:?}");
        assert!(fs::read(&trace).unwrap() == before, "{arguments:?}");
    }
}

#[test]
fn errors_about_places_say_what_to_name() {
    let (_folder, trace) = recorded(&[]);
    let (_, _, errors) = run(&["man", "-o", text(&trace)]);
    assert!(errors.contains("is a file: name a folder"), "{errors}");
    let (_, _, errors) = run(&["info", "-"]);
    assert!(errors.contains("a trace is read from a file, not from standard input"), "{errors}");
}

#[test]
fn what_is_replaced_keeps_no_right_to_run_as_its_owner() {
    let (folder, trace) = recorded(&[]);
    let output = folder.at("a.csv");
    fs::write(&output, "old").unwrap();
    fs::set_permissions(&output, fs::Permissions::from_mode(0o4640)).unwrap();
    assert_eq!(run(&["decode", text(&trace), "--format", "csv", "-o", text(&output)]).0, 0);
    assert_eq!(fs::metadata(&output).unwrap().permissions().mode() & 0o7777, 0o640);
}
