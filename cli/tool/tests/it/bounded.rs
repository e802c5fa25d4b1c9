//! Small files that need much memory or output.
#![cfg(unix)]

use std::path::Path;

use serde_json::Value;
use warptrace_format::Event;
use warptrace_format::codec::{CodecSpec, EclParams, encode_stream};
use warptrace_format::file::{ChunkRef, DeviceInfo, LaunchInfo, LocationInfo, Metadata, SourceText};
use warptrace_format::location::{SOURCE_HASH_PREFIX, source_hash};

use warptrace_host::HostMessage;

use crate::support::{Folder, account, json, run, text, write_launch, writer};
use crate::work::{limited, lossy};

/// Writes a trace of launches of one warp, with an event at each location.
fn traced(path: &Path, metadata: &Metadata, launches: u32, texts: &[SourceText]) {
    let mut writer = writer(path, metadata);
    for text in texts {
        writer.write_message(&HostMessage::Text(text.clone())).unwrap();
    }
    let payload: Vec<u8> = metadata
        .locations
        .iter()
        .flat_map(|info| [&info.id.to_le_bytes()[..], &[1, 0, 0, 0]].concat())
        .collect();
    for launch in 0..launches {
        write_launch(&mut writer, launch, [1, 32], &[&payload]);
    }
    writer.finish().unwrap();
}

fn metadata(kernel: &str) -> Metadata {
    Metadata::new("test", DeviceInfo::simulator("sim"), vec![CodecSpec::Raw]).with_kernel(kernel, "")
}

#[test]
fn texts_of_empty_lines_cost_what_their_bytes_say() {
    let folder = Folder::new();
    let path = folder.at("a.wtrc");
    let mut metadata = metadata("k");
    let mut texts = Vec::new();
    for id in 1..=40 {
        let name = format!("{id}.cu");
        metadata.locations.push(LocationInfo {
            file: name.clone(),
            line: 1,
            ..LocationInfo::new(id, "p", "")
        });
        // Too many lines, and the maximum number.
        texts.push(SourceText { name, text: "\n".repeat(if id % 2 == 0 { 4 << 20 } else { 1 << 18 }) });
    }
    traced(&path, &metadata, 1, &texts);
    assert!(path.metadata().unwrap().len() < 64 << 10);
    let (code, _, errors) = limited(512, 20, &["report", text(&path), "-o", text(&folder.at("a.html"))]);
    assert_eq!(code, Some(0), "{errors}");
    // Each text expands to 64 MiB.
    let texts: Vec<SourceText> = texts
        .iter()
        .take(8)
        .map(|text| SourceText { name: text.name.clone(), text: "\n".repeat(64 << 20) })
        .collect();
    traced(&path, &metadata, 1, &texts);
    let (code, said, _) = limited(768, 5, &["verify", text(&path)]);
    assert!(code == Some(3) && said.contains("`--unlimited` decodes it all the same"), "{said}");
}

#[test]
fn of_a_source_that_the_trace_does_not_know_the_page_has_what_it_points_to() {
    let folder = Folder::new();
    let path = folder.at("a.wtrc");
    let source: String = (1..=60).map(|number| format!("inside_{number}_\n")).collect();
    std::fs::write(folder.at("k.py"), &source).unwrap();
    let hash = format!("{:016x}", source_hash(&source));
    for (hash, is_known) in [(None, false), (Some("0"), false), (Some(&*hash), true)] {
        let mut metadata = metadata("k");
        metadata.locations.push(LocationInfo {
            file: "k.py".into(),
            line: 30,
            ..LocationInfo::new(1, "p", "")
        });
        if let Some(hash) = hash {
            metadata = metadata.with_property(format!("{SOURCE_HASH_PREFIX}k.py"), hash);
        }
        traced(&path, &metadata, 1, &[]);
        let sources = folder.at(".");
        let (code, html, errors) = run(&["report", text(&path), "-o", "-", "--source", text(&sources)]);
        assert_eq!(code, 0, "{errors}");
        for number in 1..=60 {
            let is_near = (25..=35).contains(&number);
            assert_eq!(html.contains(&format!("inside_{number}_")), is_near || is_known, "{number} {hash:?}");
        }
    }
}

#[test]
fn names_of_kernels_are_written_once() {
    let folder = Folder::new();
    let path = folder.at("a.wtrc");
    let name = format!("kernel_{}", "x".repeat(40_000));
    let mut metadata = metadata(&name);
    metadata.locations.extend((1..=500).map(|id| LocationInfo::new(id, "short", "")));
    metadata.locations.push(LocationInfo::new(501, "y".repeat(40_000), "z".repeat(40_000)));
    traced(&path, &metadata, 500, &[]);
    for more in [&[][..], &["--json"]] {
        let (code, said, errors) = run(&[&["info", text(&path)], more].concat());
        assert_eq!(code, 0, "{errors}");
        assert!(said.len() < 600_000 && said.contains(&name), "{} bytes", said.len());
    }
}

/// Writes sections of losses: `alike` equal ones, and `unlike` ones that each differ from the previous one.
fn check_equal_losses(alike: u32, unlike: u32) {
    let folder = Folder::new();
    let path = folder.at("a.wtrc");
    for (sections, alternates, rows) in [(alike, false, 1), (unlike, true, 1 << 16)] {
        lossy(&path, 1, sections, alternates);
        let (code, said, errors) = limited(512, 60, &["verify", "--json", text(&path)]);
        assert_eq!(code, Some(3), "{errors}");
        let found: Value = serde_json::from_str(&said).expect("JSON to its end");
        let counted =
            found["losses"].as_array().unwrap().iter().find(|row| row["reason"] == "memory").unwrap();
        let listed = counted["in_warps"].as_array().unwrap();
        assert_eq!(listed.len(), rows);
        let warps: u64 =
            listed.iter().map(|row| row["last"].as_u64().unwrap() - row["first"].as_u64().unwrap() + 1).sum();
        assert_eq!(warps + counted["left_out"].as_u64().unwrap(), counted["warps"].as_u64().unwrap());
    }
}

#[test]
fn equal_losses_are_one_row() {
    check_equal_losses(20, 2);
}

#[test]
fn warps_without_account_are_one_number() {
    let folder = Folder::new();
    let path = folder.at("a.wtrc");
    let mut writer = writer(&path, &metadata("k"));
    writer.begin_launch(&LaunchInfo::new(0, 0, [100, 1, 1], [32, 1, 1], 0).unwrap()).unwrap();
    let payload = [1, 0, 1, 0, 0, 0];
    let chunk = |warp| ChunkRef { track: 0, warp, sequence: 0, events: 1, payload: &payload };
    writer.write_chunks(0, &[chunk(3), chunk(7)]).unwrap();
    drop(writer);
    for view in ["info", "verify", "top", "lines", "export"] {
        let more: &[&str] = if view == "export" { &["--to", "lcov", "-o", "-"] } else { &[] };
        let (_, said, errors) = run(&[&[view, text(&path)], more].concat());
        assert!(format!("{said}{errors}").contains("100 warps without"), "{view}: {said}{errors}");
    }
    let found = json(&["top", text(&path)]);
    assert_eq!(found["losses"]["unaccounted_warps"], 100);
}

/// Writes events whose location and kernel have long names: a few bytes result in terabytes of output.
fn with_long_names(path: &Path) {
    let codec = CodecSpec::Ecl(EclParams::new(8, 2, 8).unwrap());
    let long = long();
    let mut metadata = Metadata::new("test", DeviceInfo::simulator("sim"), vec![codec])
        .with_kernel(&long, "")
        .with_location(1, &long, "")
        .with_location(2, &long, "");
    metadata.locations.iter_mut().for_each(|location| location.file = "k.rs".into());
    let mut writer = writer(path, &metadata);
    let warps = 600;
    writer.begin_launch(&LaunchInfo::new(0, 0, [warps, 1, 1], [32, 1, 1], 0).unwrap()).unwrap();
    let stream: Vec<Event> =
        (0..2_000).map(|event| Event { location: 1 + event % 2, mask: u32::MAX }).collect();
    let chunks = encode_stream(codec, &stream, 60_000);
    let [(events, payload)] = &chunks[..] else { panic!("one chunk: {}", chunks.len()) };
    let chunk = |warp| ChunkRef { track: 0, warp, sequence: 0, events: *events, payload };
    writer.write_chunks(0, &(0..warps).map(chunk).collect::<Vec<_>>()).unwrap();
    writer.end_launch(0, 0, &vec![account((*events).into()); warps as usize]).unwrap();
    writer.finish().unwrap();
}

fn long() -> String {
    "n".repeat(2_000)
}

fn refuses(command: &[&str]) {
    let (code, _, errors) = limited(512, 40, command);
    assert_eq!(code, Some(1), "{command:?}: {errors}");
    assert!(errors.contains("the output would have more than 1"), "{command:?}: {errors}");
    assert!(errors.contains("with `--unlimited`"), "{command:?}: {errors}");
}

#[test]
fn output_has_a_limit() {
    let folder = Folder::new();
    let path = folder.at("a.wtrc");
    with_long_names(&path);
    refuses(&["decode", text(&path), "--format", "csv", "-o", "/dev/null"]);
    // One warp has 4 MB of names, all warps have 2.4 GB.
    assert_eq!(limited(512, 40, &["decode", text(&path), "--block", "7", "-o", "/dev/null"]).0, Some(0));
}

mod full {
    use super::*;

    #[test]
    fn equal_losses_are_one_row() {
        // 59 million equal warps, and 1.3 million warps that each differ from the previous one.
        check_equal_losses(900, 20);
        let folder = Folder::new();
        let path = folder.at("a.wtrc");
        lossy(&path, 1, 900, false);
        let out = folder.at("out");
        // Marks are for single warps, so the limit is reached early.
        let (code, _, errors) = limited(512, 20, &["decode", text(&path), "-o", "/dev/null"]);
        assert!(code == Some(1) && errors.contains("`--unlimited` decodes it all the same"), "{errors}");
        let (code, _, errors) = limited(512, 20, &["decode", text(&path), "-o", text(&out)]);
        assert!(code == Some(1) && !out.exists(), "{errors}");
        let (code, _, errors) = limited(512, 20, &["top", text(&path)]);
        assert!(code == Some(1) && errors.contains("`--unlimited` decodes it all the same"), "{errors}");
    }

    #[test]
    fn output_has_a_limit_that_an_option_lifts() {
        let folder = Folder::new();
        let path = folder.at("a.wtrc");
        with_long_names(&path);
        assert!(path.metadata().unwrap().len() < 12_000);

        let (file, null) = (text(&path), "/dev/null");
        for command in [
            &["decode", file, "-o", null][..],
            &["decode", file, "--format", "csv", "-o", null],
            &["decode", file, "--format", "jsonl", "-o", null],
        ] {
            refuses(command);
        }
        let out = folder.at("out");
        let (code, _, errors) = limited(512, 40, &["decode", file, "-o", text(&out)]);
        assert!(code == Some(1) && !out.exists(), "{errors}");
        let one = ["decode", file, "--block", "7", "-o", null];
        assert_eq!(limited(512, 40, &one).0, Some(0));
        assert_eq!(limited(512, 60, &["decode", file, "--unlimited", "-o", null]).0, Some(0));
        // Names are written once where the format allows it.
        let long = long();
        for format in ["perfetto", "firefox", "lcov", "parquet"] {
            if format == "parquet" && !cfg!(feature = "parquet") {
                continue;
            }
            let (code, _, errors) = limited(1024, 40, &["export", file, "--to", format, "-o", text(&out)]);
            assert_eq!(code, Some(0), "{format}: {errors}");
            let written = std::fs::read(&out).unwrap();
            let names = written.windows(2_000).filter(|part| *part == long.as_bytes()).count();
            assert!(names < 100, "{format}: {names} names in {} bytes", written.len());
        }
    }
}
