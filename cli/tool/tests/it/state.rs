//! Every command reports the missing parts of a file, in one sentence.

use std::fs;
use std::path::Path;

use serde_json::Value;
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{ChunkRef, DeviceInfo, LaunchInfo, Metadata};

use crate::support::{Folder, account, json, metadata, recorded, run, text, writer};

fn dual(path: &Path) {
    let metadata = Metadata::new("test", DeviceInfo::simulator("sim"), vec![CodecSpec::Raw; 2])
        .with_kernel("k", "")
        .with_location(1, "ENTER", "");
    let mut writer = writer(path, &metadata);
    writer.begin_launch(&LaunchInfo::new(0, 0, [1, 1, 1], [32, 1, 1], 0).unwrap()).unwrap();
    let payload = [1, 0, 1, 0, 0, 0x80];
    for track in 0..2 {
        let chunk = ChunkRef { track, warp: 0, sequence: 0, events: 1, payload: &payload };
        writer.write_chunks(0, &[chunk]).unwrap();
        let lost = 5 * u64::from(track);
        let account = WarpAccount { attempted: 1 + lost, recorded: 1, lost, chunks: 1, finished: 1 };
        writer.end_launch(0, track, &[account]).unwrap();
    }
    writer.finish().unwrap();
}

/// Writes a trace of one event, with another number of events in the warp's counts.
fn told(path: &Path, recorded: u64) {
    let mut writer = writer(path, &metadata("k").with_location(1, "ENTER", ""));
    writer.begin_launch(&LaunchInfo::new(0, 0, [1, 1, 1], [32, 1, 1], 0).unwrap()).unwrap();
    let payload = [1, 0, 1, 0, 0, 0x80];
    let chunk = ChunkRef { track: 0, warp: 0, sequence: 0, events: 1, payload: &payload };
    writer.write_chunks(0, &[chunk]).unwrap();
    writer.end_launch(0, 0, &[account(recorded)]).unwrap();
    writer.finish().unwrap();
}

fn all_say(folder: &Folder, path: &Path, part: &str) {
    let file = text(path);
    let out = folder.at("out");
    let mut commands: Vec<Vec<&str>> = vec![
        vec!["info", file],
        vec!["verify", file],
        vec!["decode", file, "-o", text(&out)],
        vec!["report", file, "-o", text(&out)],
    ];
    for format in ["perfetto", "firefox", "lcov"] {
        commands.push(vec!["export", file, "--to", format, "-o", text(&out)]);
    }
    for view in ["top", "lines", "loops", "warps", "paths", "edges", "stats"] {
        commands.push(vec![view, file]);
    }
    for command in commands {
        let (code, output, errors) = run(&command);
        // Commands that need the counts refuse damaged ones.
        let refuses = code == 1 && errors.contains("cannot ") && errors.contains("ACCT: checksum");
        assert!(code == 0 || refuses || command[0] == "verify" && code == 3, "{command:?}: {errors}");
        let all = format!("{output}{errors}");
        assert!(refuses || all.contains("INCOMPLETE trace: ") && all.contains(part), "{command:?}: {all}");
    }
    for view in ["info", "verify", "top", "lines", "loops", "warps", "paths", "edges", "stats"] {
        let (code, output, _) = run(&[view, file, "--json"]);
        if code == 1 {
            continue;
        }
        let json: Value = serde_json::from_str(&output).unwrap();
        assert!(json["state"].as_str().unwrap().contains(part), "{view}: {}", json["state"]);
    }
}

#[test]
fn losses_of_the_twin_are_said() {
    let folder = Folder::new();
    let path = folder.at("dual.wtrc");
    dual(&path);
    all_say(&folder, &path, "5 events of 1 warp lost in the raw twin");
}

#[test]
fn accounts_that_tell_of_other_events_are_said() {
    let folder = Folder::new();
    let path = folder.at("a.wtrc");
    told(&path, 8);
    all_say(&folder, &path, "7 events fewer than accounts tell of");
    told(&path, 0);
    all_say(&folder, &path, "1 event more than accounts tell of");
}

#[test]
fn damaged_accounts_are_said() {
    let (folder, path) = recorded(&[]);
    let mut bytes = fs::read(&path).unwrap();
    let accounts = bytes.windows(4).position(|tag| tag == b"ACCT").unwrap();
    // The first byte of the columns: the section's checksum no longer matches.
    bytes[accounts + 48] ^= 0x40;
    fs::write(&path, bytes).unwrap();
    all_say(&folder, &path, "accounts that cannot be read (ACCT: checksum of the body");
}

#[test]
fn a_whole_trace_is_called_complete() {
    let (_folder, path) = recorded(&[]);
    let json = json(&["info", text(&path)]);
    assert_eq!(
        (&json["whole"], &json["state"]),
        (&Value::Bool(true), &Value::from("complete by its accounts"))
    );
}

#[test]
fn a_state_does_not_claim_what_was_not_read_and_verify_says_a_cause_once() {
    let (_folder, path) = recorded(&["--codec", "raw"]);
    let mut bytes = fs::read(&path).unwrap();
    let frame = bytes.windows(4).position(|tag| tag == b"FRAM").unwrap();
    // After the headers: the damage is found only when the frame is read.
    bytes[frame + 100] ^= 1;
    fs::write(&path, bytes).unwrap();
    let (_, output, _) = run(&["info", text(&path)]);
    assert!(output.lines().next().unwrap().ends_with(", complete by its accounts"), "{output}");
    let (code, output, _) = run(&["verify", text(&path)]);
    let problems: Vec<&str> = output.lines().filter(|line| line.starts_with("  - ")).collect();
    assert_eq!((code, problems.len()), (3, 2), "{output}");
    assert!(problems[0].contains("FRAM: checksum of the body"), "{output}");
    assert!(problems[1].contains("warps are in frames that cannot be read"), "{output}");
}

#[test]
fn bytes_behind_the_end_are_no_loss() {
    let (folder, path) = recorded(&[]);
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend(b"\n");
    fs::write(&path, &bytes).unwrap();
    let state = format!(
        "complete by its accounts, 1 byte behind the end of the trace, from offset {} on, that is no part of it",
        bytes.len() - 1
    );
    let (_, output, _) = run(&["info", text(&path)]);
    assert!(output.lines().next().unwrap().ends_with(&state), "{output}");
    let (code, output, errors) = run(&["decode", text(&path), "-o", text(&folder.at("out"))]);
    assert_eq!((code, output.as_str(), errors), (0, "", format!("warning: {state}\n")));
    let (code, output, _) = run(&["verify", text(&path)]);
    assert!(
        code == 3 && output.contains("\nresult    problems: 1\n  - the file has 1 byte behind"),
        "{output}"
    );
}
