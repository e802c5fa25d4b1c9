//! Launches that the program has named.

use std::fs::File;
use std::path::PathBuf;

use serde_json::Value;
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{DeviceInfo, LaunchInfo, LocationInfo, Metadata};
use warptrace_host::HostMessage;
use warptrace_host::writer::{ChunkRef, TraceWriter, WriterOptions};

use crate::support::{Folder, compare_with_reference, run, text};

/// Four launches of one warp, of which the last has no label; the third has more events.
pub(crate) fn labelled(folder: &Folder) -> PathBuf {
    let path = folder.at("labelled.wtrc");
    let device = DeviceInfo::simulator("simulator");
    let mut metadata = Metadata::new("test", device, vec![CodecSpec::Raw]).with_kernel("matmul", "");
    metadata.locations = vec![LocationInfo::new(1, "entry", "")];
    let file = File::create(&path).unwrap();
    let mut writer = TraceWriter::create(file, &metadata, WriterOptions::default()).unwrap();
    let labels =
        [(0, "forward"), (1, "aten::mm@torch"), (2, "forward")].map(|(launch, label)| (launch, label.into()));
    writer.write_message(&HostMessage::Labels(labels.to_vec())).unwrap();
    for number in 0..4 {
        writer.begin_launch(&LaunchInfo::new(number, 0, [1, 1, 1], [32, 1, 1], 0).unwrap()).unwrap();
        let events = if number == 2 { 3 } else { 1 };
        let payload = [1, 0, 255, 0, 255, 255].repeat(events);
        let events = events as u32;
        let chunk = ChunkRef { track: 0, warp: 0, sequence: 0, events, payload: &payload };
        writer.write_chunks(number, &[chunk]).unwrap();
        let recorded = u64::from(events);
        let account = WarpAccount { attempted: recorded, recorded, lost: 0, chunks: 1, finished: 1 };
        writer.end_launch(number, 0, &[account]).unwrap();
    }
    writer.finish().unwrap();
    path
}

/// What a command prints.
fn printed(arguments: &[&str]) -> String {
    let (code, output, errors) = run(arguments);
    assert_eq!((code, errors.as_str()), (0, ""), "{arguments:?}");
    output
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(arguments)).unwrap()
}

#[test]
fn the_label_stands_with_the_launch_in_every_view() {
    let folder = Folder::new();
    let path = labelled(&folder);
    let path = text(&path);
    let info = printed(&["info", path]);
    let of_launch =
        |number: &str| info.lines().find(|line| line.trim().starts_with(&format!("{number} "))).unwrap();
    assert!(info.lines().any(|line| line.trim_end().ends_with("in file  label")), "{info}");
    assert!(of_launch("1").trim_end().ends_with("aten::mm@torch"), "{info}");
    assert!(!info.contains("forward2") && of_launch("2").trim_end().ends_with("forward"), "{info}");
    let launches = json(&["info", path, "--json"])["launches"].take();
    assert_eq!((&launches[1]["label"], launches[3].get("label")), (&Value::from("aten::mm@torch"), None));

    let stats = printed(&["stats", path]);
    let row = |label: &str| stats.lines().find(|line| line.trim().starts_with(label)).unwrap();
    let cells =
        |label: &str| row(label).split_whitespace().skip(1).take(3).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(cells("forward"), ["2", "2", "4"], "{stats}");
    assert_eq!(
        (cells("aten::mm@torch"), cells("(none)")),
        (vec!["1".to_owned(); 3], vec!["1".to_owned(); 3])
    );
    let labels = json(&["stats", path, "--json"])["labels"].take();
    assert_eq!((&labels[0]["label"], &labels[0]["visits"]), (&Value::from("forward"), &Value::from(4)));
    assert_eq!(labels.as_array().unwrap().len(), 3);

    assert_eq!(json(&["warps", path, "--json"])["warps"][0]["label"], "forward");
    let decoded = printed(&["decode", path, "--launch", "1"]);
    assert!(decoded.contains("launch 1 (aten::mm@torch) matmul block 0,0,0 warp 0"), "{decoded}");
    assert!(printed(&["decode", path, "--launch", "3"]).contains("launch 3 matmul block"));
    assert!(printed(&["paths", path]).contains("launch 0 (forward) block 0 warp 0"));

    let out = folder.at("perfetto");
    printed(&["export", path, "--to", "perfetto", "-o", text(&out)]);
    let perfetto = std::fs::read(out).unwrap();
    for name in ["launch 1 (aten::mm@torch) matmul", "launch 3 matmul"] {
        assert!(perfetto.windows(name.len()).any(|window| window == name.as_bytes()), "{name}");
    }
}

#[test]
fn the_second_reader_knows_labels_too() {
    let folder = Folder::new();
    compare_with_reference(&[labelled(&folder)]);
}
