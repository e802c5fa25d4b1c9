//! Compares files with files from earlier builds. A difference is a change of the format: read
//! `docs/reference/format/evolution.md` before you rewrite them with `cargo xtask golden`.

use crate::recordings::golden::Golden;
use crate::support::{assert_golden, overwrite, record};

fn assert_unchanged(golden: &Golden) {
    assert_golden(&golden.path(), &record(&golden.recorder, &golden.launches));
}

#[test]
fn an_uncompressed_file_is_written_byte_for_byte_as_ever() {
    assert_unchanged(&Golden::dual());
}

#[test]
fn a_file_of_chosen_warps_is_written_byte_for_byte_as_ever() {
    assert_unchanged(&Golden::chosen());
}

#[test]
fn a_file_of_launches_that_ended_early_is_written_byte_for_byte_as_ever() {
    assert_unchanged(&Golden::early_ends());
}

#[test]
fn a_compressed_file_holds_the_same() {
    // Later versions of zstd may compress differently, so only reading is checked.
    let golden = Golden::compressed();
    overwrite(&golden.path(), &record(&golden.recorder, &golden.launches));
    golden.open();
}
