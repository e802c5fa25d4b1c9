//! `cargo xtask golden`: rewrites the golden files.

use std::process::ExitCode;

use crate::{process, workspace};

/// Tells the tests that own golden files to write them instead of comparing.
const OVERWRITE: &str = "WARPTRACE_OVERWRITE_GOLDEN";

/// The packages that have golden files.
const PACKAGES: [&str; 2] = ["warptrace-format", "warptrace-decoder"];

/// Runs the chore.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let mut command = workspace::cargo();
    command.arg("test").env(OVERWRITE, "1");
    for package in PACKAGES {
        command.args(["--package", package]);
    }
    process::run(command.args(["--", "golden"]))?;
    println!(
        "\nGolden files written. `git diff --stat` shows what changed; the format may change only with its version."
    );
    Ok(ExitCode::SUCCESS)
}
