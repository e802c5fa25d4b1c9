//! Files that ask for more memory or work than their size lets expect.
#![cfg(unix)]

use std::fs::File;
use std::path::Path;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;
use warptrace_format::Event;
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::{CodecSpec, EclParams, encode_stream};
use warptrace_format::file::{
    ChunkRef, Compression, DeviceInfo, LaunchInfo, Metadata, SectionKind, encode_accounts, encode_preamble,
    encode_section,
};
use warptrace_host::writer::{TraceWriter, WriterOptions};

use crate::support::{Folder, run, text};

fn writer(path: &Path, codec: CodecSpec, warps: u32) -> TraceWriter<File> {
    let metadata = Metadata::new("test", DeviceInfo::simulator("sim"), vec![codec])
        .with_kernel("k", "")
        .with_location(1, "LOOP", "");
    let file = File::create(path).unwrap();
    let mut writer = TraceWriter::create(file, &metadata, WriterOptions::default()).unwrap();
    writer.begin_launch(&LaunchInfo::new(0, 0, [warps, 1, 1], [32, 1, 1], 0).unwrap()).unwrap();
    writer
}

#[test]
fn many_lossy_warps_take_no_memory() {
    let folder = Folder::new();
    let path = folder.at("lossy.wtrc");
    let metadata =
        Metadata::new("test", DeviceInfo::simulator("sim"), vec![CodecSpec::Raw]).with_kernel("k", "");
    let (sections, each) = (900, 1 << 16);
    let launch = LaunchInfo::new(0, 0, [sections * each, 1, 1], [32, 1, 1], 0).unwrap();
    let mut bytes = encode_preamble().to_vec();
    bytes.extend(encode_section(SectionKind::Metadata, &metadata.encode().unwrap()));
    bytes.extend(launch.encode_section());
    let accounts =
        vec![WarpAccount { attempted: 1, recorded: 0, lost: 1, chunks: 0, finished: 0 }; each as usize];
    for section in 0..sections {
        let body = encode_accounts(0, 0, section * each, &accounts, Compression::None).unwrap();
        bytes.extend(encode_section(SectionKind::Accounts, &body));
    }
    assert!(bytes.len() < 64 << 10);
    std::fs::write(&path, bytes).unwrap();
    // Of 59 million warps nothing may be kept for each.
    let output = Command::new("bash")
        .args(["-c", "ulimit -v 524288; exec \"$@\"", "bash"])
        .arg(cargo_bin("warptrace"))
        .args(["verify", text(&path)])
        .env("RAYON_NUM_THREADS", "2")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("58,982,400 events of 58,982,400 warps lost"), "{said}");
}

#[test]
fn work_has_a_limit_that_an_option_lifts() {
    let folder = Folder::new();
    let path = folder.at("small.wtrc");
    let codec = CodecSpec::Ecl(EclParams::new(8, 2, 8).unwrap());
    let (warps, events) = (6_000, 60_000);
    let chunks = encode_stream(codec, &vec![Event { location: 1, mask: u32::MAX }; events], 4_000);
    let [(count, payload)] = &chunks[..] else { panic!("one chunk: {}", chunks.len()) };
    let mut writer = writer(&path, codec, warps);
    let chunk = |warp| ChunkRef { track: 0, warp, sequence: 0, events: *count, payload };
    writer.write_chunks(0, &(0..warps).map(chunk).collect::<Vec<_>>()).unwrap();
    let recorded = events as u64;
    let account = WarpAccount { attempted: recorded, recorded, lost: 0, chunks: 1, finished: 1 };
    writer.end_launch(0, 0, &vec![account; warps as usize]).unwrap();
    writer.finish().unwrap();
    assert!(path.metadata().unwrap().len() < 16_000);

    let file = text(&path);
    for command in [&["verify"][..], &["decode"], &["top"], &["warps"], &["report", "-o", "-"]] {
        let (code, output, errors) = run(&[command, &[file]].concat());
        assert_eq!(code, if command == ["verify"] { 3 } else { 1 }, "{command:?}: {errors}");
        let all = format!("{output}{errors}");
        assert!(all.contains("`--unlimited` decodes it all the same"), "{command:?}: {all}");
    }
    // Parts cost little, and what decodes nothing nothing.
    assert_eq!(run(&["info", file]).0, 0);
    assert_eq!(run(&["decode", file, "--block", "7", "-o", text(&folder.at("part"))]).0, 0);
    let (code, output, errors) = run(&["verify", file, "--unlimited"]);
    assert!(code == 0 && output.contains("no problem found"), "{output}{errors}");
}
