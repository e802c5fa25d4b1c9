//! Reads before any traced write.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::data::native::WarpRecorder;
use warptrace_format::file::{
    BufferInfo, BufferKind, Buffers, DeviceInfo, LaunchInfo, Metadata, SectionKind, SiteInfo, SiteKind,
    SiteSpace, encode_preamble, encode_section, encode_sites,
};
use warptrace_host::HostMessage;
use warptrace_host::writer::{DataChunk, TraceWriter, WriterOptions};

use crate::support::{Folder, json, printed, steady_groups, text};

const OLD: u64 = 0x10000;
const LATER: u64 = 0x20000;

fn metadata() -> Metadata {
    Metadata::new("test", DeviceInfo::simulator("sim"), vec![CodecSpec::Raw]).with_kernel("k", "k.cu")
}

/// Site and first address of accesses of four bytes per lane, contiguous over lanes.
type Accessed = [(u16, u64)];

fn record(buffers: &[(u64, u32, Option<u32>)], launches: &[[&Accessed; 2]]) -> Vec<u8> {
    let options = WriterOptions::default();
    let mut writer = TraceWriter::create(Vec::new(), &metadata(), options).unwrap();
    let kinds = [SiteKind::Store, SiteKind::Load, SiteKind::Atomic, SiteKind::Load, SiteKind::Store];
    let sites = kinds.iter().zip(1..).map(|(kind, number)| {
        SiteInfo::new(number, *kind, SiteSpace::Global, 4).at(0, "k.cu", 10 + u32::from(number))
    });
    writer.write_message(&HostMessage::Sites(sites.collect())).unwrap();
    let buffer = |(&(address, first, end), number): (&(u64, u32, Option<u32>), u32)| {
        let (kind, name) = (BufferKind::Device, String::new());
        BufferInfo { number, address, bytes: 4096, kind, name, first, end }
    };
    let buffers = buffers.iter().zip(0..).map(buffer).collect();
    writer.write_message(&HostMessage::Buffers(Buffers { is_complete: true, buffers })).unwrap();
    for (launch, warps) in (0..).zip(launches) {
        writer.begin_launch(&LaunchInfo::new(launch, 0, [2, 1, 1], [32, 1, 1], 0).unwrap()).unwrap();
        let mut accounts = Vec::new();
        for (warp, accesses) in (0..).zip(warps) {
            let mut recorder = WarpRecorder::new(usize::MAX);
            for (turn, (site, address)) in (0..).zip(*accesses) {
                let lanes: Vec<(u32, u64)> =
                    (0..32).map(|lane| (lane, address + 4 * u64::from(lane))).collect();
                recorder.access(*site, turn, &lanes);
            }
            recorder.leave(9000, u32::MAX);
            let attempted = recorder.attempted;
            let stream: Vec<u8> = recorder.finish().concat().into_iter().flat_map(u32::to_le_bytes).collect();
            let chunks = u32::from(!stream.is_empty());
            if chunks > 0 {
                writer.write_data(launch, &[DataChunk { warp, sequence: 0, entries: &stream }]).unwrap();
            }
            accounts.push(WarpAccount { attempted, recorded: attempted, lost: 0, chunks, finished: 1 });
        }
        let none = WarpAccount { attempted: 0, recorded: 0, lost: 0, chunks: 0, finished: 1 };
        writer.end_launch(launch, 0, &[none; 2]).unwrap();
        writer.end_data(launch, &accounts).unwrap();
    }
    writer.finish().unwrap().0
}

fn keep(folder: &Folder, bytes: &[u8]) -> PathBuf {
    let path = folder.at("a.wtrc");
    fs::write(&path, bytes).unwrap();
    path
}

pub(crate) fn unwritten(folder: &Folder) -> PathBuf {
    let read: &Accessed = &[(4, LATER)];
    keep(
        folder,
        &record(
            &[(OLD, 0, None), (LATER, 1, Some(3)), (LATER, 3, None)],
            &[
                // Buffers from before the first launch are not reported.
                [&[(4, OLD)], &[]],
                // Another warp of the launch may have written before the read.
                [&[(5, LATER)], &[(4, LATER), (4, LATER + 96)]],
                // Bytes count once, and earlier writes are known.
                [&[(4, LATER + 96)], read],
                // Another buffer at the same addresses. An atomic is a write.
                [&[(3, LATER + 256)], &[(4, LATER + 192)]],
            ],
        ),
    )
}

fn found(path: &Path, more: &[&str]) -> Value {
    json(&[&["accesses", text(path)], more].concat())
}

fn page(path: &Path) -> String {
    printed(&["accesses", text(path)])
}

#[test]
fn reads_before_any_write() {
    let folder = Folder::new();
    let path = unwritten(&folder);
    let all = found(&path, &[]);
    let by = |warp: u32, launch: u32| json!({"site": 4, "kind": "load", "file": "k.cu", "line": 14, "launch": launch, "warp": warp});
    assert_eq!(
        all["unwritten"],
        json!([
            {"buffer": 1, "bytes": 96, "offset": 128, "first": by(1, 1)},
            {"buffer": 2, "bytes": 64, "offset": 192, "first": by(1, 3)},
        ])
    );
    let expected = "Read before any traced write:\n  \
         96 of 4,096 bytes of #1, first by load at k.cu:14 by launch 1 block 1 warp 0 at byte 128\n  \
         64 of 4,096 bytes of #2, first by load at k.cu:14 by launch 3 block 1 warp 0 at byte 192\nNot seen:";
    let output = page(&path);
    assert!(output.contains(expected), "{output}");
    // A view that does not contain all writes cannot report this.
    assert_eq!(found(&path, &["--launch", "1"])["unwritten"], Value::Null);
}

#[test]
fn of_too_many_places_reads_are_not_known_and_the_first_lines_say_so() {
    let folder = Folder::new();
    let mut bytes = encode_preamble().to_vec();
    bytes.extend(encode_section(SectionKind::Metadata, &metadata().encode().unwrap()));
    let site = SiteInfo::new(1, SiteKind::Store, SiteSpace::Global, 4).at(0, "k.cu", 3);
    bytes.extend(encode_sites(&[site]).unwrap());
    for launch in 0..2 {
        bytes.extend(LaunchInfo::new(launch, 0, [2, 1, 1], [32, 1, 1], 0).unwrap().encode_section());
        // Words of a warp are never contiguous. In the second launch there are too many of them.
        let groups = if launch == 0 { 1 } else { 33 };
        let run = |number: u32| (31 << 20, u64::from(number) << 32, 512);
        for warp in 0..2 {
            bytes.extend(steady_groups(launch, warp, (0..groups).map(run)));
        }
    }
    let path = keep(&folder, &bytes);
    let all = found(&path, &[]);
    assert_eq!(all["unwritten_incomplete_from"], 1);
    let says = "reads before any traced write are not known from launch 1 on: its warps touch more places than are kept\n";
    let output = page(&path);
    let before = output.split_once(says).unwrap().0;
    assert!(before.lines().count() < 5, "{output}");
}
