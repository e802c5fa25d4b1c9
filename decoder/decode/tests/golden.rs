//! Files as earlier builds wrote them. A change here is a change of the format: see "Evolution" in
//! `docs/reference/format.md` before rewriting them with `WARPTRACE_OVERWRITE_GOLDEN=1 cargo test -p
//! warptrace-decoder`.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

mod support;

use std::path::PathBuf;

use support::{Recorder, Recording, Streams, decode, ecl, event};
use warptrace_decoder::{Completeness, TraceFile};
use warptrace_format::LocationKind;
use warptrace_format::chosen::ChosenWarps;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{Compression, EarlyEnd, LaunchInfo, LocationInfo};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// The golden file, written anew first if that is asked for.
fn golden(name: &str, written_now: &[u8]) -> Vec<u8> {
    if std::env::var_os("WARPTRACE_OVERWRITE_GOLDEN").is_some_and(|value| value == "1") {
        std::fs::write(path(name), written_now).unwrap();
    }
    std::fs::read(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A dual recording of two launches: whole and partial warps, a warp without events, several chunks a warp.
fn launches() -> [(LaunchInfo, Streams); 2] {
    let first = LaunchInfo::new(1, 0, [2, 1, 1], [48, 1, 1], 0).unwrap();
    let second = LaunchInfo::new(2, 1, [1, 1, 1], [32, 1, 1], 128).unwrap();
    let events = |count: u16, mask: u32| {
        (0..count).map(|number| event(1 + number % 3 * (number % 5), mask >> (number % 7))).collect()
    };
    let streams = [(0, events(150, u32::MAX)), (1, events(20, 0xffff)), (3, events(1, 1))];
    [(first, streams.into()), (second, [(0, events(40, 0x8000_0001))].into())]
}

fn recorder(compression: Compression) -> Recorder {
    let mut recorder = Recorder::new(vec![ecl(), CodecSpec::Raw]).frame_bytes(600).compression(compression);
    recorder.metadata.created_unix_seconds = Some(1_500_000_000);
    recorder.metadata.locations = (1..=9)
        .map(|id| LocationInfo {
            file: "kernels/src/example.rs".into(),
            line: 10 * u32::from(id),
            column: 5,
            // The first is the function's entry, the second a loop in it, the others are arms in the loop.
            function: "example".into(),
            kind: match id {
                1 => LocationKind::Entry,
                2 => LocationKind::LoopBody,
                _ => LocationKind::Arm,
            },
            parent: (id - 1).min(2),
            rejoin_line: 300,
            rejoin_column: 6,
            ..LocationInfo::new(id, format!("point {id}"), "a decision")
        })
        .collect();
    recorder
}

fn assert_holds(bytes: Vec<u8>, launches: &[(LaunchInfo, Streams)]) {
    let recording: Recording =
        launches.iter().map(|(launch, streams)| (launch.number(), streams.clone())).collect();
    let trace = TraceFile::from_bytes(bytes).unwrap();
    assert_eq!(*trace.completeness(), Completeness::Complete);
    assert_eq!(*trace.metadata(), recorder(Compression::None).metadata);
    for (launch, streams) in &recording {
        for track in 0..2 {
            assert_eq!(&decode(&trace, *launch, track).unwrap(), streams);
        }
    }
    let report = trace.verify();
    assert!(report.is_ok(), "{report}");
}

#[test]
fn an_uncompressed_file_is_written_byte_for_byte_as_ever() {
    let launches = launches();
    let written = recorder(Compression::None).record(&launches);
    let golden = golden("dual-v1.wtrc", &written);
    let differs = written.iter().zip(&golden).position(|(new, old)| new != old);
    assert_eq!((differs, written.len()), (None, golden.len()), "first byte that differs; lengths");
    assert_holds(golden, &launches);
}

/// Launches of which not every warp was chosen: two warps of two blocks, one block, and none at all.
fn windows() -> [(LaunchInfo, Streams); 3] {
    let whole = |number| LaunchInfo::new(number, 0, [5, 1, 1], [80, 1, 1], 0).unwrap();
    let warps = ChosenWarps { first_block: 0, blocks: 2, block_step: 3, first_warp: 1, block_warps: 2 };
    let block = ChosenWarps { first_block: 4, blocks: 1, block_step: 1, first_warp: 0, block_warps: 3 };
    let events = |count: u16| vec![event(count % 9 + 1, 0xffff); usize::from(count)];
    let streams = [(1, events(3)), (10, events(4))];
    [
        (whole(0).with_chosen(ChosenWarps::NONE).unwrap(), Streams::new()),
        (whole(1).with_chosen(warps).unwrap(), streams.into()),
        (whole(2).with_chosen(block).unwrap(), [(13, events(5))].into()),
    ]
}

#[test]
fn a_file_of_chosen_warps_is_written_byte_for_byte_as_ever() {
    let launches = windows();
    let written = recorder(Compression::None).record(&launches);
    let golden = golden("chosen-v1.wtrc", &written);
    assert!(written == golden, "it is written otherwise");
    assert_holds(golden, &launches);
}

#[test]
fn a_file_of_launches_that_ended_early_is_written_byte_for_byte_as_ever() {
    let mut recorder = recorder(Compression::None);
    recorder.early_ends = vec![(2, EarlyEnd::Interrupted), (1, EarlyEnd::failed("a misaligned address"))];
    let written = recorder.record(&launches());
    let golden = golden("early-ends-v1.wtrc", &written);
    assert!(written == golden, "it is written otherwise");
    let trace = TraceFile::from_bytes(golden).unwrap();
    assert_eq!(*trace.completeness(), Completeness::Complete);
    let ends = [1, 2].map(|launch| trace.early_end(launch).cloned());
    assert_eq!(ends, [Some(EarlyEnd::failed("a misaligned address")), Some(EarlyEnd::Interrupted)]);
}

#[test]
fn a_compressed_file_is_read_as_ever() {
    // zstd may compress otherwise in a later version, so only reading is frozen.
    let launches = launches();
    let written = recorder(Compression::Zstd(19)).record(&launches);
    let golden = golden("dual-zstd-v1.wtrc", &written);
    assert!(golden.windows(4).any(|bytes| bytes == [0x28, 0xb5, 0x2f, 0xfd]), "holds a zstd frame");
    assert_holds(golden, &launches);
}
