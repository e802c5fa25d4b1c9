//! Launches with labels from the program.

use std::path::PathBuf;

use serde_json::Value;

use warptrace_host::HostMessage;

use crate::support::{Folder, compare_with_reference, json, metadata, printed, text, write_launch, writer};

/// Writes four launches of one warp. The last one has no label; the third one has more events.
pub(crate) fn labelled(folder: &Folder) -> PathBuf {
    let path = folder.at("labelled.wtrc");
    let mut writer = writer(&path, &metadata("matmul").with_location(1, "entry", ""));
    let labels =
        [(0, "forward"), (1, "aten::mm@torch"), (2, "forward")].map(|(launch, label)| (launch, label.into()));
    writer.write_message(&HostMessage::Labels(labels.to_vec())).unwrap();
    for number in 0..4 {
        let events = [1, 0, 255, 0, 255, 255].repeat(if number == 2 { 3 } else { 1 });
        write_launch(&mut writer, number, [1, 32], &[&events]);
    }
    writer.finish().unwrap();
    path
}

#[test]
fn the_label_stands_with_the_launch_in_every_view() {
    let folder = Folder::new();
    let path = labelled(&folder);
    let path = text(&path);
    let info = printed(&["info", path]);
    let of_launch =
        |number: &str| info.lines().find(|line| line.trim().starts_with(&format!("{number} "))).unwrap();
    assert!(info.lines().any(|line| line.trim_end().ends_with("in file label")), "{info}");
    assert!(of_launch("1").trim_end().ends_with("aten::mm@torch"), "{info}");
    assert!(!info.contains("forward2") && of_launch("2").trim_end().ends_with("forward"), "{info}");
    let launches = json(&["info", path])["launches"].take();
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
    let labels = json(&["stats", path])["labels"].take();
    assert_eq!((&labels[0]["label"], &labels[0]["visits"]), (&Value::from("forward"), &Value::from(4)));
    assert_eq!(labels.as_array().unwrap().len(), 3);

    assert_eq!(json(&["warps", path])["warps"][0]["label"], "forward");
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
