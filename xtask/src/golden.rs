//! `cargo xtask golden`: rewrites the golden files.

use std::process::ExitCode;

use crate::{process, workspace};

/// Tells the tests that own golden files to write them instead of comparing.
const OVERWRITE: &str = "WARPTRACE_OVERWRITE_GOLDEN";

/// The tests that own golden files: package, test program, part of the test's name.
const OWNERS: [[&str; 3]; 4] = [
    ["warptrace-decoder", "golden", ""],
    ["warptrace-ptx", "foreign", "stays_the_same_text"],
    ["warptrace-workloads", "ptx", "stay_the_same_text"],
    ["warptrace-workloads", "ptx", "the_counted_loops_are"],
];
/// The files.
const FILES: [&str; 4] = [
    "decoder/decode/tests/golden",
    "tracer-device/ptx/tests/data/foreign/hashes.txt",
    "workloads/programs/tests/ptx/hashes.txt",
    "results/counted-loops.md",
];

/// Runs the chore.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    for [package, test, owner] in OWNERS {
        let arguments = ["test", "--package", package, "--test", test, owner];
        process::run(workspace::cargo().args(arguments).env(OVERWRITE, "1"))?;
    }
    println!(
        "\nGolden files written. A change in decoder/decode/tests/golden is a change of the format: see \"Evolution\" in \
         docs/reference/format.md. A change in a file hashes.txt is a change of PTX: what was measured on a card was \
         measured with the text as it was."
    );
    let mut status = std::process::Command::new("git");
    status
        .current_dir(workspace::root())
        .args(["status", "--short", "--", FILES[0], FILES[1], FILES[2], FILES[3]]);
    process::run(&mut status)?;
    Ok(ExitCode::SUCCESS)
}
