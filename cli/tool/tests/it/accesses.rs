//! Output about addresses and values.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::data::native::WarpRecorder;
use warptrace_format::file::{
    Derived, DeviceInfo, LaunchInfo, Metadata, SiteInfo, SiteKind, SiteNumber, SiteSpace,
};
use warptrace_host::HostMessage;
use warptrace_host::writer::{ChunkRef, DataChunk, TraceWriter, WriterOptions};

use crate::support::{Folder, account, json, printed, run, text};

/// Events of the kernel's only location, in each warp.
const TURNS: u64 = 64;
const WARPS: u32 = 4;

/// Records a transpose without a tile, one with an unpadded tile, and a named value: 64 turns of each warp.
pub(crate) fn record(folder: &Folder, name: &str, room: usize) -> PathBuf {
    record_with(folder, name, room, None)
}

pub(crate) fn record_with(folder: &Folder, name: &str, room: usize, derived: Option<Derived>) -> PathBuf {
    let metadata = Metadata::new("test", DeviceInfo::simulator("sim"), vec![CodecSpec::Raw])
        .with_kernel("transpose", "transpose.cu")
        .with_location(1, "row", "an iteration begins");
    let mut writer = TraceWriter::create(Vec::new(), &metadata, WriterOptions::default()).unwrap();
    let site = |number, kind, space, line| SiteInfo::new(number, kind, space, 4).at(1, "transpose.cu", line);
    let value = site(4, SiteKind::Value, SiteSpace::None, 15);
    writer
        .write_message(&HostMessage::Sites(vec![
            site(1, SiteKind::Load, SiteSpace::Global, 12),
            site(2, SiteKind::Store, SiteSpace::Global, 13),
            site(3, SiteKind::Load, SiteSpace::Shared, 14),
            SiteInfo { name: "weight".to_owned(), number_is: SiteNumber::Float, ..value },
        ]))
        .unwrap();
    if derived.is_some() {
        let root = site(1, SiteKind::Load, SiteSpace::Global, 12);
        writer
            .write_message(&HostMessage::Sites(vec![
                root,
                SiteInfo { derived, ..site(5, SiteKind::Load, SiteSpace::Global, 16) },
            ]))
            .unwrap();
    }
    writer.begin_launch(&LaunchInfo::new(0, 0, [WARPS, 1, 1], [32, 1, 1], 0).unwrap()).unwrap();
    let mut accounts = Vec::new();
    let event = [1, 0, 255, 255, 255, 255].repeat(TURNS as usize);
    for warp in 0..WARPS {
        let mut recorder = WarpRecorder::new(room);
        for turn in 0..TURNS {
            let mut access = |site, address: &dyn Fn(u64) -> u64| {
                let lanes: Vec<(u32, u64)> = (0..32).map(|lane| (lane, address(u64::from(lane)))).collect();
                recorder.access(site, (turn * 40) as u32 + u32::from(site), &lanes);
            };
            let row = 0x7000_0000 + u64::from(warp) * 0x4_0000 + 2048 * turn;
            access(1, &|lane| row + 4 * lane);
            access(2, &|lane| 0x8000_0000 + 4 * (u64::from(warp) * TURNS + turn) + 2048 * lane);
            access(3, &|lane| 128 * lane + 4 * (turn % 32));
            // Pseudorandom floats from 1 to 2.
            let mixed = |lane: u64| (turn * 32 + lane + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = |lane| (mixed(lane) ^ mixed(lane) >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            access(4, &|lane| 0x3f80_0000 | mixed(lane) >> 41);
        }
        recorder.leave(9000, u32::MAX);
        let (attempted, lost) = (recorder.attempted, recorder.lost);
        let stream: Vec<u8> = recorder.finish().concat().into_iter().flat_map(u32::to_le_bytes).collect();
        writer.write_data(0, &[DataChunk { warp, sequence: 0, entries: &stream }]).unwrap();
        accounts.push(WarpAccount { attempted, recorded: attempted - lost, lost, chunks: 1, finished: 1 });
        let events = TURNS as u32;
        let chunk = ChunkRef { track: 0, warp, sequence: 0, events, payload: &event };
        writer.write_chunks(0, &[chunk]).unwrap();
    }
    writer.end_launch(0, 0, &[account(TURNS); WARPS as usize]).unwrap();
    writer.end_data(0, &accounts).unwrap();
    let path = folder.at(name);
    fs::write(&path, writer.finish().unwrap().0).unwrap();
    path
}

pub(crate) fn page(command: &str, path: &Path) -> String {
    printed(&[command, text(path)])
}

#[test]
fn the_line_that_moves_the_most_in_vain_comes_first() {
    let folder = Folder::new();
    let path = record(&folder, "whole.wtrc", usize::MAX);
    let output = page("accesses", &path);
    let mut lines = output.lines();
    let finding = "transpose.cu:13 moves 8.0 times the bytes that it uses: 32.0 sectors of 32 bytes a request, 4.0 would do";
    assert_eq!(lines.next(), Some(finding), "{output}");
    assert!(!output.contains("Assumed"), "{output}");
    let found = json(&["accesses", text(&path)]);
    assert_eq!((&found["finding"], &found["exact"]), (&Value::from(finding), &Value::from(true)));
    let requests = TURNS * u64::from(WARPS);
    let of = |site: u64| {
        let sites = found["sites"].as_array().unwrap();
        sites.iter().find(|found| found["site"] == site).unwrap()
    };
    for (site, field, expected) in [
        (1, "sectors", 4 * requests),
        (1, "least_sectors", 4 * requests),
        (2, "sectors", 32 * requests),
        (2, "used_bytes", 128 * requests),
        (3, "passes", 32 * requests),
        (3, "least_passes", requests),
        (1, "affine", requests),
        (4, "generic", requests),
    ] {
        assert_eq!(of(site)["counts"][field], expected, "site {site}, {field}");
    }
    assert_eq!(of(2)["stride"][0], 2048);
    assert!([1, 2, 3, 4].iter().all(|site| of(*site)["fits_events"] == true));
    let top = page("top", &path);
    assert!(top.contains("memory  transpose.cu:13 moves 8.0 times"), "{top}");
    let info = page("info", &path);
    let accesses = 4 * 32 * requests;
    assert!(
        info.contains(&format!("accesses     {},{:03} of 4 sites", accesses / 1000, accesses % 1000)),
        "{info}"
    );
    assert_eq!(json(&["info", text(&path)])["accesses"]["recorded"], accesses);
    assert!(page("verify", &path).ends_with("result    no problem found\n"));
}

#[test]
fn what_is_lost_comes_before_everything() {
    let folder = Folder::new();
    let path = record(&folder, "lossy.wtrc", 200);
    let output = page("accesses", &path);
    let first = output.lines().next().unwrap();
    assert!(output.lines().take(2).any(|line| line.contains("accesses of 4 warps lost")), "{output}");
    assert!(!first.contains("moves"), "{output}");
    assert!(output.contains("left out, since others of their time were lost"), "{output}");
    let found = json(&["accesses", text(&path)]);
    assert_eq!(found["whole"], false);
    assert!(found["lost_accesses"].as_u64().unwrap() > 0 && found["left_out_accesses"].as_u64().unwrap() > 0);
    assert!(page("info", &path).contains(" lost, "));
    // A view of some warps counts the losses of these warps.
    let valued = crate::values::valued(&folder, "lossy_values.wtrc", 40);
    for (command, path, blocks) in [("accesses", &path, WARPS), ("values", &valued, 2)] {
        let lost = |block: &[&str]| {
            let found = json(&[&[command, text(path)], block].concat());
            found["lost_accesses"].as_u64().unwrap()
        };
        let of_blocks: Vec<u64> = (0..blocks).map(|block| lost(&["--block", &block.to_string()])).collect();
        assert!(of_blocks.iter().all(|lost| *lost > 0), "{command}: {of_blocks:?}");
        assert_eq!(of_blocks.iter().sum::<u64>(), lost(&[]), "{command}");
    }
    let (code, output, _) = run(&["verify", text(&path)]);
    assert_eq!(code, 3);
    assert!(output.contains("addresses and values: lost"), "{output}");
}

#[test]
fn decode_prints_each_run_of_vectors() {
    let folder = Folder::new();
    let path = record(&folder, "whole.wtrc", usize::MAX);
    let output = printed(&["decode", "--accesses", "--warp", "0", "--block", "1", text(&path)]);
    let expected = "load global 4 at transpose.cu:12 x 64: 0x70040000, +4 a lane, +2048 each time";
    assert!(output.starts_with("launch 0 block 1,0,0 warp 0\n") && output.contains(expected), "{output}");
    assert!(output.contains("value weight at transpose.cu:15"), "{output}");
    let (_, csv, _) = run(&["decode", "--accesses", "--format", "csv", text(&path)]);
    let sum: u64 =
        csv.lines().skip(1).map(|line| line.split(',').nth(14).unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(sum, 4 * 32 * TURNS * u64::from(WARPS));
    let (_, rows, _) = run(&["decode", "--accesses", "--format", "jsonl", text(&path)]);
    let row: Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    assert!(row["lanes"].as_array().is_some_and(|lanes| !lanes.is_empty()), "{row}");
    let (code, _, errors) = run(&["decode", "--accesses", "--track", "0", text(&path)]);
    assert_eq!(code, 2, "{errors}");
}

#[test]
fn what_follows_from_others_is_counted_and_said() {
    let folder = Folder::new();
    let derived = Some(Derived { root: 1, offset: 4, is_narrow: false });
    let path = record_with(&folder, "derived.wtrc", usize::MAX, derived);
    let found = json(&["accesses", text(&path)]);
    let requests = TURNS * u64::from(WARPS);
    let sites = found["sites"].as_array().unwrap();
    let of = |site: u64| sites.iter().find(|found| found["site"] == site).unwrap();
    assert_eq!((&of(5)["root"], &of(1)["root"]), (&Value::from(1), &Value::Null));
    // With an offset of one word, rows touch one more sector.
    assert_eq!(of(5)["counts"]["sectors"], 5 * requests);
    assert_eq!((&of(5)["counts"]["requests"], &found["exact"]), (&Value::from(requests), &Value::from(true)));
    assert_eq!(found["accesses"], 5 * 32 * requests);
    let info = page("info", &path);
    assert!(info.contains("of 4 sites, from which those of 1 more follow"), "{info}");
    let verified = page("verify", &path);
    let says =
        format!("accesses  {} and {} that follow from them, lost: 0", 4 * 32 * requests, 32 * requests);
    assert!(verified.contains(&says), "{verified}");
    let (_, decoded, _) = run(&["decode", "--accesses", "--warp", "0", "--block", "1", text(&path)]);
    assert!(decoded.contains("load global 4 at transpose.cu:16 x 64: 0x70040004, +4 a lane"), "{decoded}");
    // Losses of a site are also losses of its derived sites.
    let path = record_with(&folder, "partly.wtrc", 300, derived);
    let output = page("accesses", &path);
    assert!(
        output.lines().next().unwrap().contains("with them those at 1 site that follow from others"),
        "{output}"
    );
    assert!(output.contains(" lost with what follows from them, "), "{output}");
    assert_eq!(json(&["accesses", text(&path)])["lost_is_least"], true);
    let (code, verified, _) = run(&["verify", text(&path)]);
    assert_eq!(code, 3);
    assert!(verified.contains("accesses, and with them what follows from them, in 4 warps"), "{verified}");
}

#[test]
fn traces_without_accesses_say_so() {
    let folder = Folder::new();
    let path = folder.recorded("demo.wtrc", &[]);
    assert!(page("accesses", &path).contains("no accesses: none were recorded"));
    let (code, _, errors) = run(&["decode", "--accesses", text(&path)]);
    assert_eq!((code, errors.contains("no addresses or values")), (1, true), "{errors}");
}
