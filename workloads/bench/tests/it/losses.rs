//! Recordings with too little device memory for the trace.

use std::collections::BTreeMap;

use crate::support::{Folder, SMALL, run, text};

/// A program with diverging lanes, and memory for only a part of their logs.
const WALKS: [&str; 4] = ["--walks", "256", "--rounds", "64"];
const TOO_SMALL: [&str; 2] = ["--memory", "1MiB"];

fn result(output: &str) -> &str {
    output.lines().find(|line| line.starts_with("result")).expect("a line with the result")
}

#[test]
fn the_result_is_unchanged_and_the_losses_are_exact() {
    let folder = Folder::new();
    let (whole, (code, whole_output, errors)) = folder.record("stress", "whole.wtrc", &WALKS);
    assert_eq!((code, errors.as_str()), (0, ""));
    let (path, (code, output, errors)) =
        folder.record("stress", "part.wtrc", &[&WALKS[..], &TOO_SMALL].concat());
    assert_eq!(code, 3, "{errors}");
    assert!(errors.contains("--memory (now 1 MiB)"), "says what to do: {errors}");
    assert_eq!(result(&output), result(&whole_output));

    let launch = |path: &str| {
        let (code, output, _) = run(&["info", path, "--json"]);
        assert_eq!(code, 0);
        let info: serde_json::Value = serde_json::from_str(&output).unwrap();
        let number = |field: &str| info["launches"][0][field].as_u64().unwrap();
        (number("events"), number("lost"))
    };
    let (attempted, none) = launch(text(&whole));
    assert_eq!(none, 0);
    let (recorded, lost) = launch(text(&path));
    assert!(recorded > 0 && lost > 0, "{recorded} recorded, {lost} lost");
    assert_eq!(recorded + lost, attempted);

    let (code, output, errors) = run(&["verify", text(&path)]);
    assert_eq!(code, 3, "{output}{errors}");
    assert!(output.contains(&format!("events lost: {lost}")), "names {lost} lost events: {output}");
}

fn events(path: &str) -> BTreeMap<Vec<String>, Vec<String>> {
    let (code, output, _) = run(&["decode", path, "--format", "csv"]);
    assert_eq!(code, 0);
    let mut warps: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    for line in output.lines().skip(1) {
        let fields: Vec<_> = line.split(',').map(str::to_owned).collect();
        // Marks of losses are not events.
        if fields[7] == "0" {
            assert!(["memory", "overwritten"].contains(&&*fields[11]), "{line}");
            continue;
        }
        warps.entry(fields[..6].to_vec()).or_default().push(line.to_owned());
    }
    warps
}

#[test]
fn what_was_recorded_is_a_beginning_of_each_warps_events() {
    let folder = Folder::new();
    let (whole, _) = folder.record("stress", "whole.wtrc", &WALKS);
    let (part, _) = folder.record("stress", "part.wtrc", &[&WALKS[..], &TOO_SMALL].concat());
    let (whole, part) = (events(text(&whole)), events(text(&part)));
    assert!(!part.is_empty() && part.keys().all(|warp| whole.contains_key(warp)));
    for (warp, events) in &part {
        assert!(whole[warp].starts_with(events), "{warp:?}");
    }
    let number = |warps: &BTreeMap<_, Vec<String>>| warps.values().map(Vec::len).sum::<usize>();
    assert!(number(&part) < number(&whole));
}

fn places(lines: &[String]) -> Vec<&str> {
    lines.iter().map(|line| line.splitn(8, ',').last().unwrap()).collect()
}

#[test]
fn with_rings_it_is_the_end_of_each_warps_events() {
    const RING: [&str; 2] = ["--policy", "ring"];
    let folder = Folder::new();
    let (whole, (code, whole_output, _)) =
        folder.record("stress", "whole.wtrc", &[&WALKS[..], &RING].concat());
    assert_eq!(code, 0, "with enough memory nothing is lost");
    let (part, (code, output, errors)) =
        folder.record("stress", "part.wtrc", &[&WALKS[..], &TOO_SMALL, &RING, &["--dual"]].concat());
    assert_eq!((code, result(&output)), (3, result(&whole_output)));
    assert!(errors.contains("of each warp an end") && errors.contains("--memory (now 1 MiB)"), "{errors}");
    let (all, end) = (events(text(&whole)), events(text(&part)));
    assert!(end.keys().eq(all.keys()), "each warp has an end");
    for (warp, events) in &end {
        assert!(places(&all[warp]).ends_with(&places(events)), "{warp:?}");
    }
    let number = |warps: &BTreeMap<_, Vec<String>>| warps.values().map(Vec::len).sum::<usize>();
    let (recorded, attempted) = (number(&end), number(&all));
    assert!(recorded < attempted);

    let output = run(&["info", text(&part)]).1;
    assert!(output.contains("policy `ring`"), "{output}");
    let (code, output, _) = run(&["verify", text(&part)]);
    assert_eq!(code, 3, "{output}");
    assert!(output.contains("later events were written over them"), "{output}");
    assert!(output.contains("different: 0, not comparable: 0") && !output.contains("as far as both go: 0"));
}

#[test]
fn memory_for_nothing_says_how_much_is_needed() {
    let folder = Folder::new();
    for (memory, needed) in [("0", "KiB of device memory"), ("100000", "KiB`, ")] {
        let (path, (code, output, errors)) =
            folder.record("fractal", "none.wtrc", &[&SMALL[..], &["--memory", memory]].concat());
        assert_eq!((code, output.as_str()), (1, ""), "{errors}");
        assert!(errors.contains(needed) && errors.contains("--memory"), "{errors}");
        assert!(!path.exists());
    }
    let large = ["--width", "256", "--depth", "20", "--memory", "1MiB"];
    let (_, (code, _, errors)) = folder.record("fractal", "small.wtrc", &large);
    assert_eq!(code, 1);
    assert!(errors.contains("a launch of 2048 warps") && errors.contains("--memory 1195KiB"), "{errors}");
}

#[test]
fn record_and_info_tell_the_memory() {
    let folder = Folder::new();
    let (path, (code, output, _)) =
        folder.record("fractal", "a.wtrc", &[&SMALL[..], &["--memory", "24M"]].concat());
    assert_eq!(code, 0);
    let line = output.lines().find(|line| line.starts_with("memory")).unwrap();
    assert!(line.starts_with("memory     24.00 MiB of 24.00 MiB on the device, "), "{line}");
    let output = run(&["info", text(&path)]).1;
    assert!(output.contains("memory       device memory used at most: 24.00 MiB of 24.00 MiB\n"), "{output}");
    let json: serde_json::Value = serde_json::from_str(&run(&["info", text(&path), "--json"]).1).unwrap();
    let properties = json["metadata"]["properties"].as_array().unwrap();
    assert!(properties.contains(&serde_json::json!(["memory_limit", (24 << 20).to_string()])));
}
