//! Device memory that is too small for the trace.

use std::collections::BTreeMap;

use crate::support::{Folder, run, text};

/// A program whose lanes go ways of their own, and memory for a part of their logs.
const WALKS: [&str; 2] = ["--walks", "256"];
const TOO_SMALL: [&str; 2] = ["--memory", "1MiB"];

/// The line that says what became of the program.
fn result(output: &str) -> &str {
    output.lines().find(|line| line.starts_with("result")).expect("a line with the result")
}

#[test]
fn the_result_is_unchanged_and_the_losses_are_exact() {
    let folder = Folder::new();
    let (whole, (code, whole_output, errors)) = folder.record_program("stress", "whole.wtrc", &WALKS);
    assert_eq!((code, errors.as_str()), (0, ""));
    let (path, (code, output, errors)) =
        folder.record_program("stress", "part.wtrc", &[WALKS, TOO_SMALL].concat());
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

#[test]
fn what_was_recorded_is_a_beginning_of_each_warps_events() {
    let folder = Folder::new();
    let (whole, _) = folder.record_program("stress", "whole.wtrc", &WALKS);
    let (part, _) = folder.record_program("stress", "part.wtrc", &[WALKS, TOO_SMALL].concat());
    let events = |path: &str| {
        let (code, output, _) = run(&["decode", path, "--format", "csv"]);
        assert_eq!(code, 0);
        let mut warps: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
        for line in output.lines().skip(1) {
            let fields: Vec<_> = line.split(',').map(str::to_owned).collect();
            // Marks are no events.
            if fields[7] == "0" {
                assert_eq!(fields[11], "memory");
                continue;
            }
            warps.entry(fields[..6].to_vec()).or_default().push(line.to_owned());
        }
        warps
    };
    let (whole, part) = (events(text(&whole)), events(text(&part)));
    assert!(!part.is_empty() && part.keys().all(|warp| whole.contains_key(warp)));
    for (warp, events) in &part {
        assert!(whole[warp].starts_with(events), "{warp:?}");
    }
    let number = |warps: &BTreeMap<_, Vec<String>>| warps.values().map(Vec::len).sum::<usize>();
    assert!(number(&part) < number(&whole));
}

#[test]
fn memory_for_nothing_says_how_much_is_needed() {
    let folder = Folder::new();
    for (memory, needed) in [("0", "1 MiB"), ("100000", "1 MiB")] {
        let (path, (code, output, errors)) = folder.record("none.wtrc", &["--memory", memory]);
        assert_eq!((code, output.as_str()), (1, ""), "{errors}");
        assert!(errors.contains(needed) && errors.contains("--memory"), "{errors}");
        assert!(!path.exists());
    }
    let large = ["--width", "256", "--depth", "20", "--memory", "2MiB"];
    let (_, (code, _, errors)) = folder.record_program("fractal", "small.wtrc", &large);
    assert_eq!(code, 1);
    assert!(errors.contains("a launch of 2048 warps") && errors.contains("--memory 15MiB"), "{errors}");
}

#[test]
fn record_and_info_tell_the_memory() {
    let folder = Folder::new();
    let (path, (code, output, _)) = folder.record("a.wtrc", &["--memory", "24M"]);
    assert_eq!(code, 0);
    let line = output.lines().find(|line| line.starts_with("memory")).unwrap();
    assert!(line.starts_with("memory     24.00 MiB of 24.00 MiB on the device, "), "{line}");
    let output = run(&["info", text(&path)]).1;
    assert!(output.contains("memory       device memory used at most: 24.00 MiB of 24.00 MiB\n"), "{output}");
    let json: serde_json::Value = serde_json::from_str(&run(&["info", text(&path), "--json"]).1).unwrap();
    let properties = json["metadata"]["properties"].as_array().unwrap();
    assert!(properties.contains(&serde_json::json!(["memory_limit", (24 << 20).to_string()])));
}
