//! `cargo xtask golden`: rewrites the golden files.

use std::process::ExitCode;

use crate::{process, workspace};

/// Variable that makes tests write golden files instead of comparing them.
const OVERWRITE: &str = "WARPTRACE_OVERWRITE_GOLDEN";

/// Tests with golden files: package, and part of the test name.
const OWNERS: [[&str; 2]; 9] = [
    ["warptrace-decoder", "frame_runs::"],
    ["warptrace-host", "golden::"],
    ["warptrace-host", "traces::"],
    ["warptrace-ptx", "stays_the_same_text"],
    ["warptrace-ptx", "full::"],
    ["warptrace-workloads", "ptx::full::"],
    ["warptrace-workloads", "the_counted_loops_are"],
    ["warptrace-bench", "fixtures::"],
    ["warptrace-cli", "golden"],
];
/// Folders and files with golden data.
const FILES: [&str; 6] = [
    "cli/tool/tests",
    "decoder",
    "fuzz/corpus",
    "tracer-device/ptx/tests/data",
    "workloads/programs/tests/it/ptx",
    "results/counted-loops.md",
];

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    for [package, owner] in OWNERS {
        let arguments = ["test", "--package", package, "--test", "it", owner];
        process::run(workspace::cargo().args(arguments).env(OVERWRITE, "1"))?;
    }
    println!(
        "\nGolden files written. A change in decoder/decode/tests/golden is a change of the format: see \
         docs/reference/format/evolution.md. A change in a file hashes.txt is a change of PTX: what was measured on a card was \
         measured with the text as it was."
    );
    let mut status = std::process::Command::new("git");
    status.current_dir(workspace::root()).args(["status", "--short", "--"]).args(FILES);
    process::run(&mut status)?;
    Ok(ExitCode::SUCCESS)
}
