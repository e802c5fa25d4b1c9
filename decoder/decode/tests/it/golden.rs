//! Reads files of earlier builds. `tracer-host/recorder/tests/it/golden.rs` writes them.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use crate::support::golden::Golden;
use warptrace_format::file::EarlyEnd;

fn assert_sound(golden: &Golden) {
    let report = golden.open().verify();
    assert!(report.is_ok(), "{report}");
}

#[test]
fn an_uncompressed_file_is_read_as_ever() {
    assert_sound(&Golden::dual());
}

#[test]
fn a_file_of_chosen_warps_is_read_as_ever() {
    assert_sound(&Golden::chosen());
}

#[test]
fn a_file_of_launches_that_ended_early_is_read_as_ever() {
    let trace = Golden::early_ends().open();
    let ends = [1, 2].map(|launch| trace.early_end(launch).cloned());
    assert_eq!(ends, [Some(EarlyEnd::failed("a misaligned address")), Some(EarlyEnd::Interrupted)]);
}

#[test]
fn a_compressed_file_is_read_as_ever() {
    let golden = Golden::compressed();
    let bytes = std::fs::read(golden.path()).unwrap();
    assert!(bytes.windows(4).any(|bytes| bytes == [0x28, 0xb5, 0x2f, 0xfd]), "holds a zstd frame");
    assert_sound(&golden);
}
