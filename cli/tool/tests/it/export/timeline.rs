//! Timelines in Perfetto's format.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::{ExportedRun, Warp, decoded, export, lines, lossy, mis, perfetto_file};
use crate::support::{Folder, run, text};

/// Runs of each warp, and marks: name, event, number of events, reason.
type Timeline = (BTreeMap<Warp, Vec<ExportedRun>>, BTreeMap<Warp, Vec<Value>>);

/// Returns a slice of `length` microseconds as a run; checks its arguments.
fn run_of(name: &Value, first_event: u64, length: u64, arguments: &Value) -> ExportedRun {
    let number = |argument: &str| arguments[argument].as_u64().unwrap();
    assert_eq!(number("count"), length);
    assert_eq!(number("lanes"), u64::from(number("mask").count_ones()));
    assert!(arguments["file"].as_str().unwrap().ends_with(".rs") && number("line") > 0);
    let name = name.as_str().unwrap().to_owned();
    ExportedRun { location: number("location"), mask: number("mask"), name, first_event, count: length }
}

/// Returns the warp of names such as `block 1,2,3` and `warp 4`.
fn warp_of(launch: &str, block: &str, warp: &str) -> Warp {
    let launch = launch.split(' ').nth(1).unwrap().parse().unwrap();
    let block: Vec<u64> =
        block.strip_prefix("block ").unwrap().split(',').map(|axis| axis.parse().unwrap()).collect();
    (launch, block.try_into().unwrap(), warp.strip_prefix("warp ").unwrap().parse().unwrap())
}

fn perfetto(path: &Path) -> (Timeline, Value) {
    let tracks = perfetto_file::tracks(path);
    let mut timeline = Timeline::default();
    let mut nested: BTreeMap<Warp, Vec<(u64, u64, String)>> = BTreeMap::new();
    let about = tracks[0]["marks"][0].clone();
    assert_eq!(tracks[0]["path"], json!(["about this trace"]));
    for track in &tracks[1..] {
        let [launch, block, warp] = [0, 1, 2].map(|level| track["path"][level].as_str());
        let (Some(launch), Some(block), Some(warp)) = (launch, block, warp) else {
            assert_eq!((&track["slices"], &track["marks"]), (&json!([]), &json!([])));
            continue;
        };
        let warp = warp_of(launch, block, warp);
        let micros = |time: &Value| {
            assert_eq!(time.as_u64().unwrap() % 1_000, 0);
            time.as_u64().unwrap() / 1_000
        };
        let slices = track["slices"].as_array().unwrap();
        for slice in slices {
            let (begin, end) = (micros(&slice[1]), micros(&slice[2]));
            // Slices of functions and loops have no arguments of runs.
            if slice[3]["count"].is_null() {
                let name = slice[0].as_str().unwrap().to_owned();
                nested.entry(warp).or_default().push((begin, end, name));
            } else {
                let found = run_of(&slice[0], begin, end - begin, &slice[3]);
                timeline.0.entry(warp).or_default().push(found);
            }
        }
        for mark in track["marks"].as_array().unwrap() {
            let mark = json!([mark[0], micros(&mark[1]), mark[2]["events"], mark[2]["why"]]);
            timeline.1.entry(warp).or_default().push(mark);
        }
    }
    check_nested(&timeline.0, &nested);
    (timeline, about)
}

/// Checks that slices of functions and loops are nested, and begin and end where runs do.
fn check_nested(runs: &BTreeMap<Warp, Vec<ExportedRun>>, nested: &BTreeMap<Warp, Vec<(u64, u64, String)>>) {
    for (warp, slices) in nested {
        let begins: Vec<u64> = runs[warp].iter().map(|run| run.first_event).collect();
        let ends: Vec<u64> = runs[warp].iter().map(|run| run.first_event + run.count).collect();
        for (start, end, name) in slices {
            assert!(begins.contains(start) && ends.contains(end), "{name} of {warp:?}");
            for (other, other_end, _) in slices {
                let is_apart = end <= other || other_end <= start;
                let is_inside = start >= other && end <= other_end || start <= other && end >= other_end;
                assert!(is_apart || is_inside, "{name} of {warp:?}");
            }
        }
    }
}

fn marks(path: &Path) -> BTreeMap<Warp, Vec<Value>> {
    let mut marks: BTreeMap<Warp, Vec<Value>> = BTreeMap::new();
    for line in lines(path, &[]).into_iter().filter(|line| line["location"] == 0) {
        let warp =
            (line["launch"].as_u64().unwrap(), super::block(&line["block"]), line["warp"].as_u64().unwrap());
        marks.entry(warp).or_default().push(json!([line["name"], line["event"], line["lost"], line["why"]]));
    }
    marks
}

#[test]
fn slices_are_the_runs_that_decode_prints() {
    let folder = Folder::new();
    let trace = mis(&folder);
    for chosen in [&[][..], &["--launch", "1", "--block", "2"]] {
        let expected = decoded(&trace, chosen);
        assert!(!expected.is_empty());
        let out = folder.at("out.pftrace");
        export(&trace, "perfetto", &out, chosen);
        let ((runs, marks), about) = perfetto(&out);
        assert_eq!(runs, expected, "{chosen:?}");
        assert!(std::fs::read(&out).unwrap().windows(8).any(|text| text == b"loop at "));
        assert!(marks.is_empty());
        assert!(about[2]["axis"].as_str().unwrap().starts_with("Event order, not time"));
        assert_eq!(about[2]["whole"], "true");
    }
}

#[test]
fn marks_stand_where_events_are_missing() {
    let folder = Folder::new();
    for policy in ["stop", "ring"] {
        let trace = lossy(&folder, &["--policy", policy]);
        let (expected, expected_marks) = (decoded(&trace, &[]), marks(&trace));
        assert!(!expected_marks.is_empty());
        let out = folder.at("out.pftrace");
        let (code, _, errors) = run(&["export", text(&trace), "--to", "perfetto", "-o", text(&out)]);
        assert!(code == 0 && errors.starts_with("warning: INCOMPLETE trace: "), "{errors}");
        let ((runs, marks), about) = perfetto(&out);
        assert_eq!((&runs, &marks), (&expected, &expected_marks), "{policy}");
        assert_eq!(about[0], "INCOMPLETE trace");
        assert_eq!(about[2]["whole"], "false");
        assert!(about[2]["missing"].as_str().unwrap().contains("were lost"));
    }
}
