//! Files that need more memory or work than their size suggests.
#![cfg(unix)]

use std::fs::File;
use std::path::Path;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;
use warptrace_format::Event;
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::{CodecSpec, EclParams, encode_stream};
use warptrace_format::file::{
    AccountRun, ChunkRef, Compression, DeviceInfo, LaunchInfo, LocationInfo, Metadata, SectionKind,
    encode_accounts, encode_preamble, encode_section,
};
use warptrace_host::writer::TraceWriter;

use crate::support::{Folder, metadata, run, text, write_launch};

fn writer(path: &Path, codec: CodecSpec, warps: u32) -> TraceWriter<File> {
    let metadata = Metadata::new("test", DeviceInfo::simulator("sim"), vec![codec])
        .with_kernel("k", "")
        .with_location(1, "LOOP", "");
    let mut writer = crate::support::writer(path, &metadata);
    writer.begin_launch(&LaunchInfo::new(0, 0, [warps, 1, 1], [32, 1, 1], 0).unwrap()).unwrap();
    writer
}

/// Each section has 65,536 warps' counts, all equal unless `lost` alternates.
pub(crate) fn lossy(path: &Path, launches: u32, sections: u32, alternates: bool) {
    let metadata =
        Metadata::new("test", DeviceInfo::simulator("sim"), vec![CodecSpec::Raw]).with_kernel("k", "");
    let each = 1 << 16;
    let mut bytes = encode_preamble().to_vec();
    bytes.extend(encode_section(SectionKind::Metadata, &metadata.encode().unwrap()));
    let account = |lost| WarpAccount { attempted: lost, recorded: 0, lost, chunks: 0, finished: 0 };
    let accounts: Vec<_> =
        (0..each).map(|warp| account(1 + u64::from(alternates && warp % 2 == 1))).collect();
    for launch in 0..launches {
        let info = LaunchInfo::new(launch, 0, [sections * each, 1, 1], [32, 1, 1], 0).unwrap();
        bytes.extend(info.encode_section());
        for section in 0..sections {
            let accounts = AccountRun::of(&accounts);
            let body = encode_accounts(launch, 0, section * each, &accounts, Compression::default()).unwrap();
            bytes.extend(encode_section(SectionKind::Accounts, &body));
        }
    }
    std::fs::write(path, bytes).unwrap();
}

/// Limits memory in MiB and CPU time in seconds; returns exit code, output and errors.
pub(crate) fn limited(mib: u32, seconds: u32, arguments: &[&str]) -> (Option<i32>, String, String) {
    let limits = format!("ulimit -v {}; ulimit -t {seconds}; exec \"$@\"", mib << 10);
    let output = Command::new("bash")
        .args(["-c", &limits, "bash"])
        .arg(cargo_bin("warptrace"))
        .args(arguments)
        .env("RAYON_NUM_THREADS", "2")
        .output()
        .unwrap();
    let [out, errors] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code(), out, errors)
}

#[test]
fn many_lossy_warps_take_no_memory() {
    let folder = Folder::new();
    let path = folder.at("lossy.wtrc");
    lossy(&path, 1, 900, false);
    assert!(path.metadata().unwrap().len() < 64 << 10);
    // The tool must not keep data for each of 59 million warps.
    let (code, said, errors) = limited(512, 60, &["verify", text(&path)]);
    assert_eq!(code, Some(3), "{errors}");
    assert!(said.contains("58,982,400 events of 58,982,400 warps lost"), "{said}");
}

/// Writes launches of 65,536 warps that lost all events. `info` must sum them by section, not by warp.
fn check_sums(path: &Path, launches: u32, sum: &str) {
    lossy(path, launches, 1, false);
    assert!(path.metadata().unwrap().len() < 512 << 10);
    let (code, said, errors) = limited(512, 5, &["info", text(path)]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(said.contains(&format!("{sum} events of {sum} warps")), "{said}");
}

#[test]
fn accounts_cost_what_their_bytes_say() {
    check_sums(&Folder::new().at("lossy.wtrc"), 200, "13,107,200");
}

fn small(path: &Path) {
    let codec = CodecSpec::Ecl(EclParams::new(8, 2, 8).unwrap());
    let (warps, events) = (6_000, 60_000);
    let chunks = encode_stream(codec, &vec![Event { location: 1, mask: u32::MAX }; events], 4_000);
    let [(count, payload)] = &chunks[..] else { panic!("one chunk: {}", chunks.len()) };
    let mut writer = writer(path, codec, warps);
    let chunk = |warp| ChunkRef { track: 0, warp, sequence: 0, events: *count, payload };
    writer.write_chunks(0, &(0..warps).map(chunk).collect::<Vec<_>>()).unwrap();
    let recorded = events as u64;
    let account = WarpAccount { attempted: recorded, recorded, lost: 0, chunks: 1, finished: 1 };
    writer.end_launch(0, 0, &vec![account; warps as usize]).unwrap();
    writer.finish().unwrap();
    assert!(path.metadata().unwrap().len() < 16_000);
}

fn refuses(command: &[&str], path: &Path) {
    let (code, output, errors) = run(&[command, &[text(path)]].concat());
    assert_eq!(code, if command == ["verify"] { 3 } else { 1 }, "{command:?}: {errors}");
    let all = format!("{output}{errors}");
    assert!(all.contains("`--unlimited` decodes it all the same"), "{command:?}: {all}");
}

#[test]
fn work_has_a_limit() {
    let folder = Folder::new();
    let path = folder.at("small.wtrc");
    small(&path);
    refuses(&["verify"], &path);
    refuses(&["top"], &path);
    // Parts cost little, and commands that do not decode cost nothing.
    assert_eq!(run(&["info", text(&path)]).0, 0);
    assert_eq!(run(&["decode", text(&path), "--block", "7", "-o", text(&folder.at("part"))]).0, 0);
}

#[test]
fn long_names_and_paths_do_not_make_tables_long() {
    let folder = Folder::new();
    let path = folder.at("long.wtrc");
    let (name, source) = ("n".repeat(1 << 18), format!("{}/end.rs", "f".repeat(1 << 18)));
    let mut metadata = metadata("k");
    // Two files whose last part is the same, so that it does not distinguish them.
    for (id, file) in [(1, source.clone()), (2, format!("other/{source}"))] {
        metadata.locations.push(LocationInfo { file, line: 7, ..LocationInfo::new(id, &*name, "") });
    }
    let mut writer = crate::support::writer(&path, &metadata);
    let events: Vec<_> =
        (0..64).map(|number| Event { location: 1 + number % 2, mask: u32::MAX >> (number % 3) }).collect();
    let chunks = encode_stream(CodecSpec::Raw, &events, 4_000);
    write_launch(&mut writer, 0, [1, 32], &[&chunks[0].1]);
    writer.finish().unwrap();
    for command in ["top", "causes", "lines", "loops", "warps", "paths", "edges", "stats"] {
        let (code, output, errors) = run(&[command, text(&path)]);
        assert_eq!(code, 0, "{command}: {errors}");
        assert!(output.len() < 32 << 10, "{command}: {} bytes", output.len());
    }
    let (_, lines, _) = run(&["lines", text(&path)]);
    assert!(lines.contains("…") && lines.contains("/end.rs:7"), "of a path its end: {lines}");
}

mod full {
    use super::*;

    #[test]
    fn accounts_cost_what_their_bytes_say() {
        let folder = Folder::new();
        let path = folder.at("lossy.wtrc");
        check_sums(&path, 2_000, "131,072,000");
        let file = text(&path);
        // Where each warp has a row, the limit applies.
        let out = text(&folder.at("out")).to_owned();
        for command in
            [&["decode", file, "-o", "/dev/null"][..], &["export", file, "--to", "lcov", "-o", &out]]
        {
            let (code, _, errors) = limited(512, 40, command);
            assert_eq!(code, Some(1), "{command:?}: {errors}");
            assert!(errors.contains("`--unlimited` decodes it all the same"), "{command:?}: {errors}");
        }
        assert!(!folder.at("out").exists());
        // Counts that differ, compressed by a factor of a thousand.
        lossy(&path, 2_000, 1, true);
        assert!(path.metadata().unwrap().len() < 512 << 10);
        let (code, said, errors) = limited(512, 10, &["info", file]);
        assert_eq!((code, said.as_str()), (Some(1), ""), "that is no loss");
        assert!(errors.contains("`--unlimited` decodes it all the same"), "{errors}");
    }

    #[test]
    fn work_has_a_limit_that_an_option_lifts() {
        let folder = Folder::new();
        let path = folder.at("small.wtrc");
        small(&path);
        for command in [&["decode"][..], &["warps"], &["report", "-o", "-"]] {
            refuses(command, &path);
        }
        let (code, output, errors) = run(&["verify", text(&path), "--unlimited"]);
        assert!(code == 0 && output.contains("no problem found"), "{output}{errors}");
    }
}
