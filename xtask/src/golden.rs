//! `cargo xtask golden`: rewrites the golden files.

use std::process::ExitCode;

use crate::{process, workspace};

/// Tells the tests that own golden files to write them instead of comparing.
const OVERWRITE: &str = "WARPTRACE_OVERWRITE_GOLDEN";

/// Runs the chore.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let arguments = ["test", "--package", "warptrace-decoder", "--test", "golden"];
    process::run(workspace::cargo().args(arguments).env(OVERWRITE, "1"))?;
    println!(
        "\nGolden files written. A change in them is a change of the format: see \"Evolution\" in \
         docs/contributors/format.md."
    );
    process::run(std::process::Command::new("git").current_dir(workspace::root()).args([
        "status",
        "--short",
        "--",
        "decoder/tests/golden",
    ]))?;
    Ok(ExitCode::SUCCESS)
}
