//! Compares the figures of every view with figures that DuckDB computes from the CSV of `decode`, and times
//! with those from the Parquet export.
//!
//! `tests/readers/figures.sql` contains the definitions of `docs/reference/answers.md` in SQL, event by event
//! and lane by lane.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Folder, read_with, run, text};

fn duckdb(folder: &Folder, trace: &Path, other: Option<&Path>) -> Option<Value> {
    let write = |name: &str, arguments: &[&str]| {
        let (code, output, errors) = run(arguments);
        assert_eq!(code, 0, "{arguments:?}: {errors}");
        let path = folder.at(name);
        std::fs::write(&path, output).unwrap();
        path
    };
    let info = write("info.json", &["info", text(trace), "--json"]);
    let tables = folder.at("tables");
    std::fs::create_dir_all(&tables).unwrap();
    let (code, _, errors) = run(&["export", text(trace), "--to", "parquet", "-o", text(&tables)]);
    assert_eq!(code, 0, "{errors}");
    let mut files = vec![write("events.csv", &["decode", text(trace), "--format", "csv"]), info, tables];
    files.extend(other.map(|other| write("other.csv", &["decode", text(other), "--format", "csv"])));
    read_with("figures.py", "duckdb", &files.iter().map(|file| text(file)).collect::<Vec<_>>())
}

fn tool(arguments: &[&str]) -> Value {
    let (code, output, errors) = run(&[arguments, &["--json"]].concat());
    assert_eq!(code, 0, "{arguments:?}: {errors}");
    serde_json::from_str(&output).unwrap()
}

/// Returns true if the tool shows the value that DuckDB computes.
fn is_same(field: &str, exact: &Value, shown: &Value) -> bool {
    match (exact, shown) {
        (Value::Object(exact), _) => exact.iter().all(|(field, exact)| is_same(field, exact, &shown[field])),
        (Value::Array(exact), Value::Array(shown)) if field == "powers_of_two" => {
            // The tool omits zeros at the end.
            let rest = exact.get(shown.len()..).unwrap_or(&[]);
            exact.starts_with(shown) && rest.iter().all(|number| number == 0)
        }
        (Value::Number(exact), Value::Number(shown)) if exact.is_f64() => {
            let [exact, shown] = [exact, shown].map(|number| number.as_f64().unwrap());
            (exact - shown).abs() <= 1e-9 * exact.abs()
        }
        _ => exact == shown,
    }
}

/// Rows with equal fields `key` belong together.
fn compare(what: &str, exact: &Value, shown: &Value, key: &[&str]) {
    let by_key = |rows: &Value| -> BTreeMap<String, Value> {
        let rows = rows.as_array().unwrap().iter();
        let key = |row: &Value| key.iter().map(|field| format!("{field} {} ", row[field])).collect();
        rows.map(|row| (key(row), row.clone())).collect()
    };
    let [exact, shown] = [exact, shown].map(by_key);
    let names = |rows: &BTreeMap<String, Value>| rows.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&exact), names(&shown), "{what}");
    for (row, exact) in &exact {
        for (field, exact) in exact.as_object().unwrap() {
            let shown = &shown[row][field];
            assert!(is_same(field, exact, shown), "{what} {row}{field}: {exact} in SQL, {shown} in the tool");
        }
    }
}

fn compare_causes(folder: &Folder, name: &str, trace: &Path) {
    let files = ["events.csv", "info.json"].map(|name| folder.at(name));
    let files = files.each_ref().map(|file| text(file));
    let exact = read_with("causes.py", "csv", &files).unwrap();
    let shown = tool(&["causes", text(trace)]);
    let by_location = |rows: &Value, amounts: &[&str]| -> Value {
        let row = |row: &Value| match amounts {
            [amount] => (row["location"].to_string(), row[*amount].clone()),
            _ => (row["location"].to_string(), amounts.iter().map(|amount| row[*amount].clone()).collect()),
        };
        Value::Object(rows.as_array().unwrap().iter().map(row).collect())
    };
    let rows = shown["causes"].as_array().unwrap().iter().map(|row| {
        let mut row = row.clone();
        row["places"] = by_location(&row["places"], &["idle"]);
        row["reconvergences"] = by_location(&row["reconvergences"], &["times", "events"]);
        row
    });
    compare(name, &exact["causes"], &rows.collect(), &["location"]);
    // Each idle lane slot has one cause, also by line and by kernel.
    let idle = |rows: &Value, field: &str| -> u64 {
        rows.as_array().unwrap().iter().map(|row| row[field].as_u64().unwrap()).sum()
    };
    let total = shown["totals"]["idle"].as_u64().unwrap();
    assert_eq!(idle(&shown["causes"], "idle"), total, "{name}");
    let stats = tool(&["stats", text(trace)]);
    for kernel in stats["kernels"].as_array().unwrap() {
        let charged = kernel["causes"].as_object().unwrap().values();
        assert_eq!(kernel["idle"], charged.map(|idle| idle.as_u64().unwrap()).sum::<u64>(), "{name}");
    }
    let begin = shown["causes"].as_array().unwrap().iter().find(|cause| cause["location"] == 0);
    let begin = begin.map_or(0, |cause| cause["idle"].as_u64().unwrap());
    for rows in [&stats["locations"], &tool(&["lines", text(trace)])["lines"]] {
        assert_eq!(idle(rows, "caused") + begin, total, "{name}");
    }
}

fn compare_times(name: &str, trace: &Path, exact: &Value) {
    let ask = |view: &str| tool(&[view, text(trace)]);
    let stats = ask("stats");
    compare(name, &exact["location_times"], &stats["locations"], &["location"]);
    compare(name, &exact["kernel_times"], &stats["kernels"], &["kernel"]);
    compare(name, &exact["line_times"], &ask("lines")["lines"], &["file", "line"]);
    compare(name, &exact["warp_times"], &ask("warps")["warps"], &["launch", "warp"]);
    let rows = |field: &str| exact[field].as_array().unwrap().iter();
    for field in ["lane_cycles", "warp_cycles", "active_lane_cycles", "idle_lane_cycles", "timed_visits"] {
        let sum = rows("kernel_times").map(|row| row[field].as_u64()).sum::<Option<u64>>();
        assert_eq!(stats["totals"][field], json!(sum), "{name} {field}");
    }
    let launches = stats["schedule"]["launches"].as_array().cloned().unwrap_or_default();
    compare(name, &exact["schedule"], &json!(launches), &["launch"]);
    let locations = stats["locations"].as_array().unwrap();
    let visited: Vec<&Value> =
        locations.iter().filter(|row| row["timed_visits"].as_u64() > Some(0)).collect();
    compare(name, &exact["visit_times"], &json!(visited), &["location"]);
    let mut by_kernel: BTreeMap<&str, Value> = BTreeMap::new();
    for row in rows("loop_times") {
        let kernel = row["kernel"].as_str().unwrap();
        let loops =
            by_kernel.entry(kernel).or_insert_with(|| tool(&["loops", text(trace), "--kernel", kernel]));
        // The head of the outermost loop has the time of the whole loop.
        let ids = row["locations"].as_array().unwrap();
        let heads = loops["loops"].as_array().unwrap().iter().filter(|head| ids.contains(&head["location"]));
        let most = heads.map(|head| head["loop_lane_cycles"].as_u64()).max().flatten();
        assert_eq!(json!(most), row["lane_cycles"], "{name}: {row}");
    }
}

fn compare_all(name: &str, trace: &Path, exact: &Value) {
    compare_times(name, trace, exact);
    let ask = |view: &str| tool(&[view, text(trace)]);
    let stats = ask("stats");
    compare(name, &exact["locations"], &stats["locations"], &["location"]);
    compare(name, &exact["kernels"], &stats["kernels"], &["kernel"]);
    compare(name, &exact["lines"], &ask("lines")["lines"], &["file", "line"]);
    compare(name, &exact["edges"], &ask("edges")["edges"], &["from", "to"]);
    let heads = exact["locations"].as_array().unwrap().iter();
    let heads: Vec<&Value> = heads.filter(|row| row["trips"]["max"].as_u64() > Some(1)).collect();
    compare(name, &json!(heads), &ask("loops")["loops"], &["location"]);
    let warps = &ask("warps")["warps"];
    compare(name, &exact["warps"], warps, &["launch", "warp"]);
    let paths = ask("paths");
    compare(name, &exact["paths"], &paths["paths"], &["path"]);
    let top = ask("top");
    // The CSV does not contain unfinished warps without events.
    let unfinished =
        warps.as_array().unwrap().iter().filter(|warp| warp["end"] == "unfinished").count() as u64;
    let sum = |field: &str| -> u64 {
        exact["locations"].as_array().unwrap().iter().map(|row| row[field].as_u64().unwrap()).sum()
    };
    for view in [&stats, &paths, &top] {
        for field in ["visits", "lanes", "idle", "slots"] {
            assert_eq!(view["totals"][field], sum(field), "{name} {field}");
        }
        let mut losses = view["losses"].clone();
        assert!(losses["unfinished_warps"].as_u64() >= Some(unfinished), "{name}: {losses}");
        losses["unfinished_warps"] = json!(unfinished);
        assert!(is_same("losses", &exact["losses"], &losses), "{name}: {losses}");
    }
}

fn check(program: &str, more: &[&str], times: &str) {
    let folder = Folder::new();
    let trace = folder.traced(program, "a.wtrc", &[more, &["--times", times]].concat());
    let Some(exact) = duckdb(&folder, &trace, None) else { return };
    assert_eq!(exact["losses"], json!({ "lost_events": 0, "lossy_warps": 0, "unfinished_warps": 0 }));
    assert!(exact["locations"].as_array().unwrap().len() > 2, "{program}");
    let stats = tool(&["stats", text(&trace)]);
    assert_eq!(stats["weight"], "instructions", "{program}");
    let is_timed = ["runs", "all"].contains(&times);
    assert_eq!(stats["totals"]["warp_cycles"].as_u64() > Some(0), is_timed, "{program}");
    let has_blocks = ["blocks", "all"].contains(&times);
    assert_eq!(!exact["schedule"].as_array().unwrap().is_empty(), has_blocks, "{program}");
    compare_all(program, &trace, &exact);
    compare_causes(&folder, program, &trace);
}

const MIS: [&str; 4] = ["--graph", "road:256", "--grid", "4x64"];

#[test]
fn figures_of_two_kernels_are_those_of_duckdb() {
    check("mis", &MIS, "all");
}

mod full {
    use super::*;

    #[test]
    fn every_figure_of_every_program_is_that_of_duckdb() {
        for (program, more) in [
            ("fractal", &["--width", "24", "--depth", "70"][..]),
            ("nbody", &["--bodies", "100", "--steps", "1"]),
            ("mis", &MIS),
            ("mst", &["--graph", "road:64", "--grid", "2x64"]),
            ("dmr", &["--points", "16", "--grid", "2x64"]),
            ("matmul", &["--size", "24"]),
            ("stress", &["--walks", "70", "--rounds", "2"]),
            ("fault", &["--how", "nothing", "--threads", "64"]),
        ] {
            let others = if program == "mis" { &["runs", "blocks"][..] } else { &[] };
            for times in ["off", "all"].iter().chain(others) {
                check(program, more, times);
            }
        }
    }

    #[test]
    fn what_is_missing_is_counted_as_duckdb_does() {
        let folder = Folder::new();
        let lossy =
            folder.traced("stress", "a.wtrc", &["--walks", "256", "--rounds", "64", "--memory", "1MiB"]);
        let Some(exact) = duckdb(&folder, &lossy, None) else { return };
        assert!(exact["losses"]["lost_events"].as_u64() > Some(0), "{}", exact["losses"]);
        compare_all("lossy", &lossy, &exact);
        compare_causes(&folder, "lossy", &lossy);
    }

    #[test]
    fn what_changed_is_what_duckdb_finds() {
        let folder = Folder::new();
        let arguments = ["--graph", "road:512", "--grid", "4x128"];
        let [before, after] = ["1", "2"].map(|seed| {
            let more = [&arguments[..], &["--sim-seed", seed]].concat();
            folder.traced("mis", seed, &more)
        });
        let Some(exact) = duckdb(&folder, &before, Some(&after)) else { return };
        let first_changes = exact["first_changes"].as_array().unwrap();
        assert!(first_changes.len() > 3, "{first_changes:?}");
        let shown = tool(&["diff", text(&before), text(&after)]);
        assert_eq!(shown["changed_warps"], first_changes.len());
        let first: Vec<Value> = shown["first_changes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|change| {
                let warp = change["warp"].as_u64().unwrap();
                json!({ "launch": change["launch"], "block_x": warp / 4, "warp": warp % 4, "event": change["event"] })
            })
            .collect();
        compare("diff", &exact["first_changes"], &json!(first), &["launch", "block_x", "warp"]);
    }
}
