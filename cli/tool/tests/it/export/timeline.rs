//! Timelines: Perfetto's own format, read by the classes that Perfetto publishes, and Chrome's JSON.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::{Run, Warp, decoded, export, lines, lossy, mis, read_with};
use crate::support::{Folder, run, text};

const PERFETTO: &str = "perfetto.protos.perfetto.trace.perfetto_trace_pb2";

/// Runs of each warp, and marks: name, event, how many events, why.
type Timeline = (BTreeMap<Warp, Vec<Run>>, BTreeMap<Warp, Vec<Value>>);

/// A mask in hexadecimal digits or as a number.
fn mask(value: &Value) -> u64 {
    match value.as_str() {
        Some(text) => u64::from_str_radix(text.strip_prefix("0x").unwrap(), 16).unwrap(),
        None => value.as_u64().unwrap(),
    }
}

/// Returns a slice of `length` microseconds as a run; checks its arguments.
fn run_of(name: &Value, first_event: u64, length: u64, arguments: &Value) -> Run {
    let number = |argument: &str| arguments[argument].as_u64().unwrap();
    assert_eq!(number("count"), length);
    assert_eq!(number("lanes"), u64::from(mask(&arguments["mask"]).count_ones()));
    assert!(arguments["file"].as_str().unwrap().ends_with(".rs") && number("line") > 0);
    let name = name.as_str().unwrap().to_owned();
    Run { location: number("location"), mask: mask(&arguments["mask"]), name, first_event, count: length }
}

/// The warp that `block 1,2,3` and `warp 4` name.
fn warp_of(launch: &str, block: &str, warp: &str) -> Warp {
    let launch = launch.split(' ').nth(1).unwrap().parse().unwrap();
    let block: Vec<u64> =
        block.strip_prefix("block ").unwrap().split(',').map(|axis| axis.parse().unwrap()).collect();
    (launch, block.try_into().unwrap(), warp.strip_prefix("warp ").unwrap().parse().unwrap())
}

fn perfetto(path: &Path) -> Option<(Timeline, Value)> {
    let tracks = read_with("read_perfetto.py", PERFETTO, &[text(path)])?;
    let mut timeline = Timeline::default();
    let tracks = tracks.as_array().unwrap();
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
        // Functions and loops are slices, too, and have no runs' arguments.
        for slice in slices.iter().filter(|slice| !slice[3]["count"].is_null()) {
            let (begin, end) = (micros(&slice[1]), micros(&slice[2]));
            let found = run_of(&slice[0], begin, end - begin, &slice[3]);
            timeline.0.entry(warp).or_default().push(found);
        }
        for mark in track["marks"].as_array().unwrap() {
            let mark = json!([mark[0], micros(&mark[1]), mark[2]["events"], mark[2]["why"]]);
            timeline.1.entry(warp).or_default().push(mark);
        }
    }
    Some((timeline, about))
}

fn chrome(path: &Path) -> (Timeline, Value) {
    let file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut timeline = Timeline::default();
    let (mut processes, mut threads) = (BTreeMap::new(), BTreeMap::new());
    let mut nested = BTreeMap::new();
    for event in file["traceEvents"].as_array().unwrap() {
        let [process, thread] = ["pid", "tid"].map(|id| event[id].as_u64().unwrap());
        let name = || event["args"]["name"].as_str().unwrap().to_owned();
        let warp = || {
            let thread: &String = &threads[&(process, thread)];
            let (block, warp) = thread.split_at(thread.find(" warp").unwrap());
            let launch: &String = &processes[&process];
            warp_of(launch, block, &warp[1..])
        };
        match (event["ph"].as_str().unwrap(), event["name"].as_str().unwrap()) {
            ("M", "process_name") => assert_eq!(processes.insert(process, name()), None),
            ("M", "thread_name") => assert_eq!(threads.insert((process, thread), name()), None),
            ("M", "process_sort_index" | "thread_sort_index") => {}
            ("X", _) if event["cat"] == "nest" => {
                assert!(event["dur"].as_u64().unwrap() > 0);
                nested.entry(warp()).or_insert_with(Vec::new).push(slice(event));
            }
            ("X", _) => {
                let [start, length] = ["ts", "dur"].map(|field| event[field].as_u64().unwrap());
                let found = run_of(&event["name"], start, length, &event["args"]);
                timeline.0.entry(warp()).or_default().push(found);
            }
            ("i", mark) => {
                let mark = json!([mark, event["ts"], event["args"]["events"], event["args"]["why"]]);
                timeline.1.entry(warp()).or_default().push(mark);
            }
            other => panic!("{other:?}"),
        }
    }
    check_nested(&timeline.0, &nested);
    (timeline, file["otherData"].clone())
}

/// First event, end and name of a slice.
fn slice(event: &Value) -> (u64, u64, String) {
    let [start, length] = ["ts", "dur"].map(|field| event[field].as_u64().unwrap());
    (start, start + length, event["name"].as_str().unwrap().to_owned())
}

/// Slices of functions and loops lie in each other, and begin and end where runs do.
fn check_nested(runs: &BTreeMap<Warp, Vec<Run>>, nested: &BTreeMap<Warp, Vec<(u64, u64, String)>>) {
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

/// The marks that `decode` prints.
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
        for format in ["chrome", "perfetto"] {
            let out = folder.at(format);
            export(&trace, format, &out, chosen);
            let found = if format == "chrome" { Some(chrome(&out)) } else { perfetto(&out) };
            let Some(((runs, marks), about)) = found else { continue };
            assert_eq!(runs, expected, "{format} {chosen:?}");
            assert!(std::fs::read(&out).unwrap().windows(8).any(|text| text == b"loop at "), "{format}");
            assert!(marks.is_empty());
            let about = if format == "chrome" { &about } else { &about[2] };
            assert!(about["axis"].as_str().unwrap().starts_with("Event order, not time"));
            assert_eq!(about["whole"], "true");
        }
    }
}

fn check_marks(policies: &[&str]) {
    let folder = Folder::new();
    for policy in policies {
        let trace = lossy(&folder, &["--policy", policy]);
        let (expected, expected_marks) = (decoded(&trace, &[]), marks(&trace));
        assert!(!expected_marks.is_empty());
        for format in ["chrome", "perfetto"] {
            let out = folder.at(format);
            let (code, _, errors) = run(&["export", text(&trace), "--to", format, "-o", text(&out)]);
            assert!(code == 0 && errors.starts_with("warning: INCOMPLETE trace: "), "{errors}");
            let found = if format == "chrome" { Some(chrome(&out)) } else { perfetto(&out) };
            let Some(((runs, marks), about)) = found else { continue };
            assert_eq!((&runs, &marks), (&expected, &expected_marks), "{format} {policy}");
            let about = if format == "chrome" {
                about
            } else {
                assert_eq!(about[0], "INCOMPLETE trace");
                about[2].clone()
            };
            assert_eq!(about["whole"], "false");
            assert!(about["missing"].as_str().unwrap().contains("were lost"));
        }
    }
}

#[test]
fn marks_stand_where_a_ring_lacks_events() {
    check_marks(&["ring"]);
}

mod full {
    use super::*;

    #[test]
    fn marks_stand_where_events_are_missing() {
        check_marks(&["stop", "ring"]);
    }
}
