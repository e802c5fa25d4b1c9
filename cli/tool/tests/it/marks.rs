//! Missing parts of a trace in the output of every command.

use std::path::{Path, PathBuf};

use serde_json::Value;
use warptrace_format::account::WarpAccount;
use warptrace_format::chosen::ChosenWarps;
use warptrace_format::file::EarlyEnd;
use warptrace_host::writer::{ChunkRef, LaunchInfo};

use crate::support::{Folder, account, metadata, run, text, writer};

/// Writes two launches of four warps. In the first one, warps 0 and 2 have two events, and warps 1 and 2 lost
/// some. The second one ended early, before its warp 0 had finished; its warps 2 and 3 were not chosen.
fn write(path: &Path, policy: &str, end: &EarlyEnd) {
    let mut metadata = metadata("walk").with_location(1, "STEP", "");
    metadata.policy = policy.to_owned().into();
    let mut writer = writer(path, &metadata);
    let first = LaunchInfo::new(0, 0, [2, 1, 1], [64, 1, 1], 0).unwrap();
    let chosen = ChosenWarps { first_block: 0, blocks: 1, block_step: 1, first_warp: 0, block_warps: 2 };
    let second = LaunchInfo::new(1, 0, [2, 1, 1], [64, 1, 1], 0).unwrap().with_chosen(chosen).unwrap();
    writer.begin_launches(&[first, second]).unwrap();
    let payload = &[1, 0, 3, 0, 0, 0, 1, 0, 1, 0, 0, 0];
    let chunk = |warp| ChunkRef { track: 0, warp, sequence: 0, events: 2, payload };
    writer.write_batch(&[(0, chunk(0)), (0, chunk(2)), (1, chunk(0))]).unwrap();
    let none = WarpAccount { finished: 1, ..WarpAccount::default() };
    let two = WarpAccount { attempted: 2, recorded: 2, chunks: 1, ..none };
    let lost =
        |account: WarpAccount, lost| WarpAccount { attempted: account.attempted + lost, lost, ..account };
    writer.end_launch(0, 0, &[two, lost(none, 1), lost(two, 12_345), none]).unwrap();
    writer
        .end_launch(1, 0, &[WarpAccount { finished: 0, ..two }, WarpAccount { finished: 0, ..none }])
        .unwrap();
    writer.end_early(1, end).unwrap();
    writer.finish().unwrap();
}

fn written(folder: &Folder, policy: &str, end: &EarlyEnd) -> PathBuf {
    let path = folder.at(policy);
    write(&path, policy, end);
    path
}

pub(crate) fn unfinished(folder: &Folder) -> PathBuf {
    written(folder, "stream", &EarlyEnd::Interrupted)
}

fn output(arguments: &[&str]) -> String {
    let (code, output, errors) = run(arguments);
    assert!(code == 0 || arguments[0] == "verify" && code == 3, "{arguments:?}: {errors}");
    output
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&output(arguments)).unwrap()
}

#[test]
fn decode_marks_where_events_are_missing() {
    let folder = Folder::new();
    for (policy, end) in [
        ("stop", EarlyEnd::failed("a misaligned\naddress \u{1b}[2J")),
        ("stream", EarlyEnd::Interrupted),
        ("ring", EarlyEnd::Interrupted),
    ] {
        let path = written(&folder, policy, &end);
        for format in ["text", "csv", "jsonl"] {
            let (code, printed, errors) = run(&["decode", text(&path), "--format", format]);
            assert_eq!(code, 0, "{errors}");
            assert_eq!(errors.contains("launch 1 of kernel `walk` "), format != "text", "{errors}");
            insta::assert_snapshot!(format!("decode_{policy}_{format}"), printed);
        }
    }
}

#[test]
fn info_and_verify_say_how_much_is_missing_and_why() {
    let folder = Folder::new();
    for (policy, end) in
        [("stop", EarlyEnd::failed("a misaligned address")), ("stream", EarlyEnd::Interrupted)]
    {
        let path = written(&folder, policy, &end);
        let info = output(&["info", text(&path)]);
        let from = info.find("losses\n").unwrap();
        let to = from + info[from..].find("\n\n").unwrap();
        insta::assert_snapshot!(format!("info_{policy}"), &info[from..to]);
        let verified = output(&["verify", text(&path)]);
        insta::assert_snapshot!(format!("verify_{policy}"), verified.split_once('\n').unwrap().1);
    }
}

#[test]
fn json_tells_the_same() {
    let folder = Folder::new();
    let path = written(&folder, "stop", &EarlyEnd::failed("a misaligned address"));
    let rows = |with_warps: bool| {
        let mut rows = serde_json::json!([
            {"launch": 0, "track": 0, "reason": "memory", "warps": 2, "events": 12_346,
                "in_warps": [{"first": 1, "last": 1, "events": 1}, {"first": 2, "last": 2, "events": 12_345}], "left_out": 0},
            {"launch": 1, "track": 0, "reason": "died", "warps": 2, "events": null,
                "in_warps": [{"first": 0, "last": 1, "events": null}], "left_out": 0},
            {"launch": 1, "track": 0, "reason": "not_chosen", "warps": 2, "events": null, "in_warps": [],
                "left_out": 0},
        ]);
        for row in rows.as_array_mut().unwrap() {
            if !with_warps {
                row.as_object_mut().unwrap().retain(|field, _| field != "in_warps" && field != "left_out");
            }
        }
        rows
    };
    let info = json(&["info", text(&path), "--json"]);
    assert_eq!(info["losses"], rows(false));
    let launches = info["launches"].as_array().unwrap();
    let ends: Vec<_> = launches.iter().map(|launch| (&launch["ended"], &launch["error"])).collect();
    assert_eq!(
        ends,
        [(&"completed".into(), &Value::Null), (&"failed".into(), &"a misaligned address".into())]
    );
    assert_eq!(info["lost_by_reason"]["memory"], serde_json::json!({"warps": 2, "events": 12_346}));
    let verified = json(&["verify", text(&path), "--json"]);
    assert_eq!(verified["losses"], rows(true));
    assert_eq!((&verified["ok"], &verified["lost_events"]), (&false.into(), &12_346.into()));
    assert_eq!((&verified["unfinished_warps"], &verified["problems_left_out"]), (&2.into(), &0.into()));
    assert_eq!(verified["problems"].as_array().unwrap().len(), 3);
}

#[test]
fn filters_choose_among_marks_too() {
    let folder = Folder::new();
    let path = written(&folder, "stop", &EarlyEnd::Interrupted);
    let marks = |more: &[&str]| -> Vec<String> {
        let printed = output(&[&["decode", text(&path), "--format", "csv"], more].concat());
        let marks = printed.lines().filter(|line| line.contains("[lost]"));
        marks.map(|line| line.split(',').nth(10).unwrap().to_owned()).collect()
    };
    assert_eq!(marks(&[]), ["1", "12345"]);
    assert_eq!(marks(&["--warp", "1"]), ["1"]);
    assert_eq!(marks(&["--block", "1"]), ["12345"]);
    assert_eq!(marks(&["--block", "0", "--warp", "0"]), Vec::<String>::new());
    assert_eq!(marks(&["--launch", "1"]), Vec::<String>::new());
}

/// Returns the sum of lost events, which must be the same in every view.
fn lost_in_views(path: &Path) -> u64 {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let sum =
        |value: &Value| value["losses"].as_array().unwrap().iter().map(|row| number(&row["events"])).sum();
    let (info, verified) = (json(&["info", text(path), "--json"]), json(&["verify", text(path), "--json"]));
    let printed = output(&["decode", text(path), "--format", "csv"]);
    let mut csv = csv::Reader::from_reader(printed.as_bytes());
    // A mark of an unfinished warp has no number.
    let csv: u64 = csv.records().map(|record| record.unwrap()[10].parse::<u64>().unwrap_or(0)).sum();
    let printed = output(&["decode", text(path), "--format", "jsonl"]);
    let lines = printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let jsonl: u64 = lines.map(|line| number(&line["lost"])).sum();
    let in_warps = |row: &Value| -> u64 {
        let warps = |range: &Value| number(&range["last"]) - number(&range["first"]) + 1;
        let rows = row["in_warps"].as_array().unwrap().iter();
        rows.map(|range| warps(range) * number(&range["events"])).sum()
    };
    let by_warp: u64 = verified["losses"].as_array().unwrap().iter().map(in_warps).sum();
    let lost = number(&verified["lost_events"]);
    assert_eq!([sum(&info), sum(&verified), by_warp, csv, jsonl], [lost; 5]);
    lost
}

#[test]
fn all_views_of_a_recording_agree() {
    let folder = Folder::new();
    let walks = ["--walks", "256", "--rounds", "64", "--memory", "1MiB"];
    let path = folder.traced("stress", "stop", &walks);
    assert!(lost_in_views(&path) > 0);
    assert_eq!(json(&["info", text(&path), "--json"])["losses"][0]["reason"], "memory");
    // Timeouts of real recordings depend on timing, so these files are written by the test.
    for (policy, why) in [("stream", "timeout"), ("ring", "overwritten")] {
        let path = written(&folder, policy, &EarlyEnd::Interrupted);
        assert_eq!(lost_in_views(&path), 12_346);
        assert_eq!(json(&["info", text(&path), "--json"])["losses"][0]["reason"], why);
    }
    let path = folder.recorded("window", &["--blocks", "1/4"]);
    assert_eq!(lost_in_views(&path), 0);
    assert_eq!(json(&["info", text(&path), "--json"])["losses"][0]["reason"], "not_chosen");
    let large = ["--width", "256", "--depth", "20", "--memory", "1MiB"];
    let path = folder.traced("fractal", "failed", &large);
    assert_eq!(lost_in_views(&path), 0);
    let launch = &json(&["info", text(&path), "--json"])["launches"][0];
    assert_eq!(launch["ended"], "failed");
    assert!(launch["error"].as_str().unwrap().contains("a launch of 2048 warps"), "{launch}");
}

/// No view calls a launch whole that failed or was interrupted, whether all of it exists or nothing.
#[test]
fn a_launch_that_ended_early_is_incomplete_whatever_its_accounts_say() {
    let folder = Folder::new();
    for has_accounts in [true, false] {
        let path = folder.at("early.wtrc");
        let mut writer = writer(&path, &metadata("walk").with_location(1, "STEP", ""));
        let launch = |number| LaunchInfo::new(number, 0, [1, 1, 1], [32, 1, 1], 0).unwrap();
        writer.begin_launches(&[launch(0), launch(1)]).unwrap();
        let payload = &[1, 0, 3, 0, 0, 0, 1, 0, 1, 0, 0, 0];
        let whole = account(2);
        let chunk = ChunkRef { track: 0, warp: 0, sequence: 0, events: 2, payload };
        writer.write_batch(&[(0, chunk)]).unwrap();
        writer.end_launch(0, 0, &[whole]).unwrap();
        if has_accounts {
            writer.write_batch(&[(1, chunk)]).unwrap();
            writer.end_launch(1, 0, &[whole]).unwrap();
        }
        writer.end_early(1, &EarlyEnd::Interrupted).unwrap();
        writer.finish().unwrap();
        for view in ["top", "lines", "warps", "stats"] {
            let said = output(&[view, text(&path)]);
            assert!(said.starts_with("INCOMPLETE trace: "), "{view}: {said}");
            let why = if has_accounts { "1 launch interrupted" } else { "1 warp not finished" };
            assert!(said.lines().next().unwrap().contains(why), "{view}: {said}");
            assert_eq!(json(&[view, text(&path), "--json"])["whole"], false, "{view}");
        }
        let page = output(&["report", text(&path), "-o", "-"]);
        assert!(page.contains("INCOMPLETE trace: ") && !page.contains("whole trace"), "{page}");
        // A selected part may be whole.
        assert_eq!(json(&["lines", text(&path), "--launch", "0", "--json"])["whole"], true);
    }
}
