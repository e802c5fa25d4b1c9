//! Profiles for the Firefox Profiler, read as its documentation defines the tables.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::{export, json, mis};
use crate::support::{Folder, run, text};

/// Checks the order of samples.
fn weights(path: &Path) -> BTreeMap<(String, String), (u64, String, u64)> {
    let profile: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut sums: BTreeMap<(String, String), (u64, String, u64)> = BTreeMap::new();
    // Depths of samples and of the loops around them.
    let mut depths = [0; 2];
    for thread in profile["threads"].as_array().unwrap() {
        let at = |table: &str, column: &str, row: u64| &thread[table][column][row as usize];
        let number = |table: &str, column: &str, row: u64| at(table, column, row).as_u64().unwrap();
        let string = |index: u64| thread["stringArray"][index as usize].as_str().unwrap().to_owned();
        let samples = &thread["samples"];
        let length = samples["length"].as_u64().unwrap();
        for column in ["stack", "weight", "timeDeltas"] {
            assert_eq!(samples[column].as_array().unwrap().len() as u64, length);
        }
        assert!(samples["timeDeltas"].as_array().unwrap().iter().all(|delta| delta.as_f64().unwrap() >= 0.0));
        for sample in 0..length {
            let stack = number("samples", "stack", sample);
            let function = number("frameTable", "func", number("stackTable", "frame", stack));
            let name = |function| string(number("funcTable", "name", function));
            let mut root = number("stackTable", "prefix", stack);
            while let Some(caller) = at("stackTable", "prefix", root).as_u64() {
                let around = number("frameTable", "func", number("stackTable", "frame", root));
                assert!(name(around).starts_with("loop at "), "{} is around", name(around));
                depths[1] += 1;
                root = caller;
            }
            depths[0] += 1;
            let kernel = number("frameTable", "func", number("stackTable", "frame", root));
            let file = string(number("funcTable", "fileName", function));
            let line = number("funcTable", "lineNumber", function);
            assert_eq!(thread["processName"], name(kernel));
            let sum = sums.entry((name(kernel), name(function))).or_insert((0, file, line));
            sum.0 += number("samples", "weight", sample);
        }
    }
    assert!(depths[1] > 0, "no stack has a loop: {depths:?}");
    sums
}

const WEIGHTS: [(&str, &[&str]); 5] = [
    ("lanes", &["--weight", "lanes"]),
    ("idle", &["--weight", "idle"]),
    ("visits", &["--weight", "visits"]),
    ("warp_cycles", &["--weight", "cycles"]),
    ("idle_lane_cycles", &["--weight", "idle-cycles"]),
];

#[test]
fn weights_of_locations_are_those_of_the_analysis() {
    let folder = Folder::new();
    compare(&folder, &mis(&folder), &[&[("lanes", &[][..])], &WEIGHTS[..3]].concat());
}

#[test]
fn of_a_trace_with_times_samples_lie_where_their_time_is() {
    let folder = Folder::new();
    let arguments = ["--graph", "road:1024", "--grid", "16x64", "--times", "runs"];
    let trace = folder.traced("mis", "timed.wtrc", &arguments);
    let said = export(&trace, "firefox", &folder.at("profile.json"), &[]);
    assert!(said.contains(" warp-cycles, "), "{said}");
    compare(&folder, &trace, &[&[("warp_cycles", &[][..])], &WEIGHTS[..]].concat());
    let profile: Value = serde_json::from_slice(&std::fs::read(folder.at("profile.json")).unwrap()).unwrap();
    let facts = profile["meta"]["extra"][0]["entries"].as_array().unwrap();
    let axis = facts.iter().find(|fact| fact["label"] == "axis").unwrap()["value"].as_str().unwrap();
    assert!(axis.starts_with("Time of each warp from its first run on"), "{axis}");
    // The samples end with the longest warp; a microsecond is a cycle.
    let warps = json(&["warps", text(&trace), "--kernel", "mis_find"]);
    let longest =
        warps["warps"].as_array().unwrap().iter().map(|warp| warp["cycles"].as_u64().unwrap()).max();
    let threads = profile["threads"].as_array().unwrap().iter();
    let lasts = threads.map(|thread| {
        let deltas = thread["samples"]["timeDeltas"].as_array().unwrap();
        deltas.iter().map(|delta| delta.as_f64().unwrap() * 1000.0).sum::<f64>()
    });
    let (last, longest) = (lasts.fold(0.0, f64::max), longest.unwrap() as f64);
    assert!(last <= longest && last > 0.9 * longest, "{last} of {longest}");
    let (code, _, errors) =
        run(&["export", text(&mis(&folder)), "--to", "firefox", "--weight", "cycles", "-o", "none.json"]);
    assert_eq!(code, 1);
    assert!(
        errors.contains("the trace has no times of runs, so no warp-cycles: record it with `--times runs`"),
        "{errors}"
    );
}

fn compare(folder: &Folder, trace: &Path, all: &[(&str, &[&str])]) {
    for &(weight, arguments) in all {
        let out = folder.at("profile.json");
        export(trace, "firefox", &out, arguments);
        let found = weights(&out);
        let mut expected = BTreeMap::new();
        for kernel in ["mis_init", "mis_find"] {
            let figures = json(&["lines", text(trace), "--kernel", kernel]);
            for line in figures["lines"].as_array().unwrap() {
                let sum = line[weight].as_u64().unwrap();
                assert_eq!(line["names"].as_array().unwrap().len(), 1);
                if sum > 0 {
                    let name = line["names"][0].as_str().unwrap().to_owned();
                    let place =
                        (sum, line["file"].as_str().unwrap().to_owned(), line["line"].as_u64().unwrap());
                    expected.insert((kernel.to_owned(), name), place);
                }
            }
        }
        assert!(expected.len() > 5);
        assert_eq!(found, expected, "{weight}");
    }
}

#[test]
fn long_launches_are_cut_into_few_stretches_that_lose_nothing() {
    let folder = Folder::new();
    let trace = folder.traced("fractal", "a.wtrc", &["--width", "64", "--depth", "3000"]);
    let out = folder.at("profile.json");
    export(&trace, "firefox", &out, &[]);
    let sum: u64 = weights(&out).values().map(|(sum, ..)| sum).sum();
    assert_eq!(json(&["lines", text(&trace)])["totals"]["lanes"], sum);
    let profile: Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    let samples = profile["threads"][0]["samples"]["length"].as_u64().unwrap();
    assert!((100..5 * 256).contains(&samples), "{samples}");
}
