//! `warptrace info`.

use serde_json::{Value, json};
use warptrace_format::file::{COUNTING, LocationCode};
use warptrace_format::{Counting, LocationKind};

use crate::support::{Folder, WARPS, json, metadata, printed, recorded, run, text, writer};

#[test]
fn names_device_codec_launch_and_locations() {
    let (_folder, path) = recorded(&[]);
    let output = printed(&["info", text(&path)]);
    for part in ["complete", "simulator", "fractal", "depth", "ITERATE", "workloads/kernels/src/fractal.rs:"]
    {
        assert!(output.contains(part), "no `{part}` in\n{output}");
    }
}

#[test]
fn codecs_are_named_with_their_parameters() {
    let folder = Folder::new();
    let track = |more: &[&str]| {
        let output = run(&["info", text(&folder.recorded("a.wtrc", more))]).1;
        let lines = output.lines().filter_map(|line| line.strip_prefix("track ")).map(str::to_owned);
        lines.collect::<Vec<String>>()
    };
    assert_eq!(track(&["--codec", "raw"]), ["0      raw: six bytes an event"]);
    assert_eq!(track(&["--codec", "predict:4"]), ["0      predict: 16 slots"]);
    assert_eq!(
        track(&["--codec", "ecl:6,3,7", "--dual"]),
        ["0      ecl: 6 bits of hash, shift 3, window of 128 B", "1      raw: six bytes an event"]
    );
}

#[test]
fn json_holds_the_same_numbers_as_the_events() {
    let (_folder, path) = recorded(&[]);
    let info = json(&["info", text(&path)]);
    assert_eq!(info["complete"], true);
    assert_eq!(info["file_bytes"], path.metadata().unwrap().len());
    let launch = &info["launches"][0];
    assert_eq!((&launch["kernel"], &info["metadata"]["kernels"][0]["name"]), (&0.into(), &"fractal".into()));
    assert_eq!(launch["warps"], WARPS);
    assert_eq!(launch["lost"], 0);
    let events = run(&["decode", text(&path), "--format", "jsonl"]).1.lines().count();
    assert_eq!(launch["events"], events);
    assert_eq!(launch["device_bytes_raw"], 5 * events);
}

#[test]
fn an_unfinished_trace_says_so() {
    let (_folder, path) = recorded(&[]);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();
    let info = json(&["info", text(&path)]);
    assert_eq!(info["complete"], false);
}

#[test]
fn the_loops_that_were_counted_and_the_instructions_are_those_of_the_file() {
    let folder = Folder::new();
    let path = folder.at("a.wtrc");
    let said = |counting: Counting, code: [Option<LocationCode>; 2]| {
        let mut metadata = metadata("k")
            .with_location(1, "OUTER", "")
            .with_location(2, "INNER", "")
            .with_property(COUNTING, counting.name());
        for (location, code) in metadata.locations.iter_mut().zip(code) {
            (location.kind, location.code) = (LocationKind::LoopBody, code);
        }
        writer(&path, &metadata).finish().unwrap();
        let (_, output, _) = run(&["info", text(&path)]);
        let line = output.lines().find_map(|line| line.strip_prefix("counted      ")).unwrap();
        let rows = output.lines().skip_while(|line| !line.contains(" what ")).collect::<Vec<_>>().join("\n");
        let value: Value = serde_json::from_str(&run(&["info", text(&path), "--json"]).1).unwrap();
        let code = value["metadata"]["locations"].as_array().unwrap().iter().map(|row| row["code"].clone());
        (line.to_owned(), rows, code.collect::<Value>())
    };
    let code = |instructions, counted| Some(LocationCode { instructions, counted });
    let (line, rows, json) = said(Counting::Proven, [code(70, false), code(3, true)]);
    assert!(line.ends_with("; they are INNER (location 2)"), "{line}");
    assert!(rows.contains(" instructions ") && rows.contains(" 70 "), "{rows}");
    let of = |instructions: u32, counted: bool| json!({ "instructions": instructions, "counted": counted });
    assert_eq!(json, json!([of(70, false), of(3, true)]));
    assert!(said(Counting::Proven, [code(7, false); 2]).0.ends_with("; none was"));
    let (line, rows, json) = said(Counting::Proven, [None; 2]);
    assert!(line.ends_with("; which ones is not known") && !rows.contains(" instructions "), "{line}");
    assert_eq!(json, json!([null, null]));
    assert!(said(Counting::All, [None; 2]).0.ends_with("; they are OUTER (location 1), INNER (location 2)"));
    assert!(!said(Counting::Never, [code(7, false); 2]).0.contains(';'));
}
