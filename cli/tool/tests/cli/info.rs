//! `warptrace info`.

use serde_json::Value;

use crate::support::{Folder, WARPS, run, text};

#[test]
fn names_device_codec_launch_and_locations() {
    let folder = Folder::new();
    let path = folder.recorded("a.wtrc", &[]);
    let (code, output, errors) = run(&["info", text(&path)]);
    assert_eq!((code, errors.as_str()), (0, ""));
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
    let folder = Folder::new();
    let path = folder.recorded("a.wtrc", &[]);
    let (code, output, errors) = run(&["info", text(&path), "--json"]);
    assert_eq!((code, errors.as_str()), (0, ""));
    let info: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(info["complete"], true);
    assert_eq!(info["file_bytes"], path.metadata().unwrap().len());
    let launch = &info["launches"][0];
    assert_eq!(launch["kernel"], "fractal");
    assert_eq!(launch["warps"], WARPS);
    assert_eq!(launch["lost"], 0);
    let events = run(&["decode", text(&path), "--format", "jsonl"]).1.lines().count();
    assert_eq!(launch["events"], events);
    assert_eq!(launch["device_bytes_raw"], 5 * events);
}

#[test]
fn an_unfinished_trace_says_so() {
    let folder = Folder::new();
    let path = folder.recorded("a.wtrc", &[]);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();
    let (code, output, _) = run(&["info", text(&path), "--json"]);
    assert_eq!(code, 0);
    let info: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(info["complete"], false);
}
