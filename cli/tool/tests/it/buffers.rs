//! Buffers of addresses.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::data::native::WarpRecorder;
use warptrace_format::file::{
    BufferInfo, BufferKind, Buffers, DeviceInfo, LaunchInfo, Metadata, SectionKind, SiteInfo, SiteKind,
    SiteSpace, encode_section,
};
use warptrace_host::HostMessage;
use warptrace_host::writer::{ChunkRef, Compression, DataChunk, TraceWriter, WriterOptions};

use crate::support::{Folder, compare_with_reference, json, printed, run, text};

/// Address of a buffer of 4,096 bytes in launch 0, and of one of 256 bytes in launch 1.
const REUSED: u64 = 0x7000_0000;
const TURNS: u32 = 32;

fn buffers() -> Vec<BufferInfo> {
    let buffer = |number, address, bytes, kind, name: &str, first, end| {
        let name = name.to_owned();
        BufferInfo { number, address, bytes, kind, name, first, end }
    };
    vec![
        buffer(0, 0x1000, 128, BufferKind::Variable, "hot\u{1b}[31m", 0, None),
        buffer(1, REUSED, 4096, BufferKind::Device, "", 0, None),
        buffer(2, REUSED, 256, BufferKind::Pool, "", 1, None),
        buffer(3, 0x9000_0000, 64, BufferKind::Device, "", 2, Some(2)),
    ]
}

/// Records two launches of one warp that make the same accesses: they read 4,096 bytes and add to one word of
/// another buffer. The buffers are written as by a recorder.
fn record(buffers: &[Buffers]) -> Vec<u8> {
    record_with(buffers, TURNS)
}

fn record_with(buffers: &[Buffers], events: u32) -> Vec<u8> {
    let metadata = Metadata::new("test", DeviceInfo::simulator("sim"), vec![CodecSpec::Raw])
        .with_kernel("sum", "sum.cu")
        .with_location(1, "row", "an iteration begins");
    let options = WriterOptions::default().with_compression(Compression::None);
    let mut writer = TraceWriter::create(Vec::new(), &metadata, options).unwrap();
    let site = |number, kind, space, line| SiteInfo::new(number, kind, space, 4).at(1, "sum.cu", line);
    writer
        .write_message(&HostMessage::Sites(vec![
            site(1, SiteKind::Load, SiteSpace::Global, 12),
            site(2, SiteKind::Reduction, SiteSpace::Global, 13),
            site(3, SiteKind::Store, SiteSpace::Shared, 14),
        ]))
        .unwrap();
    for launch in 0..2 {
        if let Some(part) = buffers.get(launch as usize) {
            writer.write_message(&HostMessage::Buffers(part.clone())).unwrap();
        }
        writer.begin_launch(&LaunchInfo::new(launch, 0, [1, 1, 1], [32, 1, 1], 0).unwrap()).unwrap();
        let mut recorder = WarpRecorder::new(usize::MAX);
        for turn in 0..TURNS {
            let mut access = |site, address: &dyn Fn(u64) -> u64| {
                let lanes: Vec<(u32, u64)> = (0..32).map(|lane| (lane, address(u64::from(lane)))).collect();
                recorder.access(site, turn * 40 + u32::from(site), &lanes);
            };
            access(1, &|lane| REUSED + 128 * u64::from(turn) + 4 * lane);
            access(2, &|_| 0x1000 + 4 * 5);
            access(3, &|lane| 4 * lane);
        }
        recorder.leave(9000, u32::MAX);
        let attempted = recorder.attempted;
        let stream: Vec<u8> = recorder.finish().concat().into_iter().flat_map(u32::to_le_bytes).collect();
        writer.write_data(launch, &[DataChunk { warp: 0, sequence: 0, entries: &stream }]).unwrap();
        let payload = [1, 0, 255, 255, 255, 255].repeat(events as usize);
        if events > 0 {
            let chunk = ChunkRef { track: 0, warp: 0, sequence: 0, events, payload: &payload };
            writer.write_chunks(launch, &[chunk]).unwrap();
        }
        let account =
            |recorded| WarpAccount { attempted: recorded, recorded, lost: 0, chunks: 1, finished: 1 };
        writer.end_launch(launch, 0, &[account(u64::from(events))]).unwrap();
        writer.end_data(launch, &[account(attempted)]).unwrap();
    }
    writer.finish().unwrap().0
}

/// A trace with all buffers in two messages. The second one contains the end of a buffer.
fn whole() -> Vec<u8> {
    whole_with(TURNS)
}

fn whole_with(events: u32) -> Vec<u8> {
    let all = buffers();
    let ended = BufferInfo { end: Some(1), ..all[1].clone() };
    let second = vec![ended, all[2].clone(), all[3].clone()];
    let parts = [all[..2].to_vec(), second].map(|buffers| Buffers { is_complete: true, buffers });
    record_with(&parts, events)
}

fn keep(folder: &Folder, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.at(name);
    fs::write(&path, bytes).unwrap();
    path
}

pub(crate) fn outside(folder: &Folder) -> PathBuf {
    keep(folder, "outside.wtrc", &whole())
}

#[test]
fn accesses_out_of_bounds_come_first() {
    let folder = Folder::new();
    let path = keep(&folder, "whole.wtrc", &whole());
    let output = printed(&["accesses", text(&path)]);
    let outside = 32 * (TURNS - 2);
    let expected = format!(
        "OUT OF BOUNDS: {outside} accesses in no buffer, first load of 4 bytes at sum.cu:12 by launch 1 block 0 warp 0 lane 0: \
         4 bytes beyond the end of #2 (256 bytes)"
    );
    assert_eq!(output.lines().next(), Some(&*expected), "{output}");
    let found = json(&["accesses", text(&path)]);
    assert_eq!((&found["all_buffers_known"], &found["unknown_buffer_accesses"]), (&true.into(), &0.into()));
    let first = &found["outside"][0];
    for (field, value) in [
        ("site", Value::from(1)),
        ("accesses", outside.into()),
        ("address", (REUSED + 256).to_string().into()),
        ("nearest", 2.into()),
        ("distance", 4.into()),
    ] {
        assert_eq!(first[field], value, "{field}");
    }
    let buffers = found["buffers"].as_array().unwrap();
    let of = |number: u64| buffers.iter().find(|buffer| buffer["buffer"] == number).unwrap();
    assert_eq!((buffers.len(), &buffers[0]["buffer"]), (3, &Value::from(0)), "the one that is accessed most");
    // Both launches add numbers of 32 lanes to the sixth word of 32. Each 64th of the buffer is half a word.
    let mut heat = vec![0; 64];
    heat[10] = 2 * 32 * u64::from(TURNS);
    assert_eq!((&of(0)["heat"], &of(0)["touched_bytes"]), (&Value::from(heat), &Value::from(32)));
    assert_eq!((&of(1)["loads"], &of(1)["sectors"]), (&(32 * TURNS).into(), &(4 * TURNS).into()));
    assert_eq!((&of(2)["loads"], &of(2)["touched_bytes"]), (&64.into(), &256.into()));
    // A request counts for a buffer only if one of its lanes is in the buffer.
    assert_eq!((&of(2)["requests"], &of(2)["sectors"]), (&2.into(), &8.into()));
    assert!(output.contains("hot") && !output.contains('\u{1b}'), "control characters are escaped: {output}");
    assert!(printed(&["info", text(&path)]).contains("buffers      4\n"));
    assert!(printed(&["verify", text(&path)]).ends_with("result    no problem found\n"));
}

#[test]
fn what_is_out_of_bounds_is_a_finding_of_every_view() {
    let folder = Folder::new();
    for (name, bytes) in [("whole.wtrc", whole()), ("no_events.wtrc", whole_with(0))] {
        let path = keep(&folder, name, &bytes);
        let output = printed(&["accesses", text(&path)]);
        let (outside, finding) = output.split_once('\n').unwrap();
        let finding = finding.lines().next().unwrap();
        assert!(outside.starts_with("OUT OF BOUNDS: "), "{output}");
        for command in ["accesses", "top"] {
            let found = json(&[command, text(&path)]);
            assert_eq!(found["outside_finding"], outside, "{command}");
        }
        let found = json(&["top", text(&path)]);
        assert_eq!(found["access_finding"], finding);
        let output = printed(&["top", text(&path)]);
        let has_events = name == "whole.wtrc";
        assert_eq!(
            output.starts_with("OUT OF BOUNDS: "),
            has_events,
            "what a trace lacks comes first: {output}"
        );
        assert!(output.contains(outside), "{output}");
        assert!(
            output.ends_with(&format!("memory  {finding}; `warptrace accesses` says more\n")),
            "{output}"
        );
        let report = folder.at("report.html");
        let (code, _, errors) = run(&["report", text(&path), "-o", text(&report)]);
        assert_eq!((code, errors.is_empty()), (0, has_events), "{errors}");
        let html = fs::read_to_string(&report).unwrap();
        let times = html.matches("OUT OF BOUNDS: ").count();
        assert_eq!(times, 1 + usize::from(has_events), "in the section, and as what matters most");
        assert!(html.contains("id=\"memory\"") && html.contains("Only memory can be shown") != has_events);
        let top = html.split("id=\"memory\"").next().unwrap();
        assert_eq!(top.contains(finding), has_events, "{finding}");
        let buffers = json(&["accesses", text(&path)])["buffers"].as_array().unwrap().len();
        assert!(buffers > 0);
        assert_eq!(html.matches("data-label=\"heat\"><code>").count(), buffers);
    }
    let path = keep(&folder, "inside.wtrc", &whole());
    let found = json(&["top", text(&path), "--launch", "0"]);
    assert_eq!((&found["outside_finding"], found["access_finding"].is_string()), (&Value::Null, true));
}

#[test]
fn decode_names_buffers() {
    let folder = Folder::new();
    let path = keep(&folder, "whole.wtrc", &whole());
    let decoded = printed(&["decode", "--accesses", "--launch", "0", text(&path)]);
    let expected = "load global 4 at sum.cu:12 x 32: #1+0 (4096 bytes), +4 a lane, +128 each time\n";
    assert!(decoded.contains(expected), "{decoded}");
    assert!(decoded.contains("+20 (128 bytes)") && !decoded.contains('\u{1b}'), "{decoded}");
    assert!(
        decoded.contains("store shared 4 at sum.cu:14 x 32: 0x0, +4 a lane, +0 each time\n"),
        "{decoded}"
    );
    let decoded = printed(&["decode", "--accesses", "--launch", "1", text(&path)]);
    let expected = ": #2+0 (256 bytes), +4 a lane, +128 each time, some in no buffer\n";
    assert!(decoded.contains(expected), "{decoded}");
    let rows = printed(&["decode", "--accesses", "--format", "jsonl", text(&path)]);
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let load = rows.iter().find(|row| row["launch"] == 1 && row["site"] == 1).unwrap();
    assert_eq!((&load["lanes"][3]["buffer"], &load["lanes"][3]["offset"]), (&2.into(), &"12".into()));
}

#[test]
fn where_not_all_is_known_nothing_is_out_of_bounds() {
    let folder = Folder::new();
    let all = buffers();
    let some = |is_complete| Buffers { is_complete, buffers: vec![all[0].clone()] };
    let none = Buffers { is_complete: true, buffers: Vec::new() };
    let path = keep(&folder, "some.wtrc", &record(&[some(false), none.clone()]));
    let output = printed(&["accesses", text(&path)]);
    assert!(!output.contains("OUT OF BOUNDS"), "{output}");
    let says = format!("{},{:03} accesses in no buffer that is known", 64 * TURNS / 1000, 64 * TURNS % 1000);
    assert!(output.contains(&says), "{output}");
    assert!(printed(&["info", text(&path)]).contains("buffers      1; there may be memory of which nothing"));
    assert_eq!(json(&["accesses", text(&path)])["outside"], Value::Array(Vec::new()));
    // Without the section, nothing is printed about buffers. An empty section means that no buffer existed.
    let path = keep(&folder, "without.wtrc", &record(&[]));
    let output = printed(&["accesses", text(&path)]);
    assert!(!output.contains("buffer") && !printed(&["info", text(&path)]).contains("buffers"), "{output}");
    assert_eq!(json(&["accesses", text(&path)])["unknown_buffer_accesses"], Value::Null);
    assert!(printed(&["decode", "--accesses", text(&path)]).contains(": 0x70000000, +4 a lane"));
    let path = keep(&folder, "empty.wtrc", &record(&[none]));
    let output = printed(&["accesses", text(&path)]);
    assert!(output.starts_with("OUT OF BOUNDS: ") && output.contains(": there is no buffer\n"), "{output}");
}

fn check_damaged(step: usize) {
    let folder = Folder::new();
    let bytes = whole();
    let mut paths = vec![keep(&folder, "whole.wtrc", &bytes)];
    let begins: Vec<usize> =
        bytes.windows(4).enumerate().filter(|(_, tag)| *tag == b"BUFS").map(|(at, _)| at).collect();
    assert_eq!(begins.len(), 2);
    for (number, &at) in begins.iter().enumerate() {
        let length = u64::from_le_bytes(bytes[at + 8..at + 16].try_into().unwrap()) as usize;
        for offset in (0..length).step_by(step) {
            let mut damaged = bytes.clone();
            damaged[at + 24 + offset] ^= 1 << (offset % 8);
            // Corrects the checksums, except in the first case.
            if offset > 0 {
                let section = encode_section(SectionKind::Buffers, &damaged[at + 24..at + 24 + length]);
                damaged[at..at + section.len()].copy_from_slice(&section);
            }
            let path = keep(&folder, &format!("{number}-{offset}.wtrc"), &damaged);
            if offset == 0 {
                let (code, output, _) = run(&["verify", text(&path)]);
                assert!(code == 3 && output.contains("BUFS"), "{output}");
                let (code, output, _) = run(&["accesses", text(&path)]);
                assert!(code == 0 && !output.contains("OUT OF BOUNDS"), "{output}");
            }
            paths.push(path);
        }
    }
    compare_with_reference(&paths);
}

#[test]
fn the_seed_of_damaged_traces_is_written_as_before() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/data/buffers-v2.wtrc");
    let written = whole();
    if std::env::var_os("WARPTRACE_OVERWRITE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(&path, &written).unwrap();
    }
    let golden = fs::read(&path).unwrap();
    assert!(golden == written, "what is written has changed: see docs/reference/format/evolution.md");
}

#[test]
fn the_second_reader_agrees_and_some_damage_is_reported() {
    check_damaged(8);
}

mod full {
    use super::*;

    #[test]
    fn the_second_reader_agrees_and_damage_is_reported() {
        check_damaged(1);
    }
}
