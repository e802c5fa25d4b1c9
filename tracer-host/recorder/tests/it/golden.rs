//! Files as earlier builds wrote them. A change here is a change of the format: see
//! `docs/reference/format/evolution.md` before rewriting them with `cargo xtask golden`.

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
    // zstd may compress otherwise in a later version, so only reading is frozen.
    let golden = Golden::compressed();
    overwrite(&golden.path(), &record(&golden.recorder, &golden.launches));
    golden.open();
}
