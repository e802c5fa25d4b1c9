//! `cargo xtask query-test`: the tests of `warptrace-query`.

use std::process::ExitCode;

use crate::steps::Steps;
use crate::{process, workspace};

/// The library, and the tool with the feature that has the program. The same in each step: with other packages, other
/// features of shared crates would be on, and DataFusion would be built once more.
const QUERY: [&str; 6] =
    ["-p", "warptrace-query", "-p", "warptrace-cli", "--features", "warptrace-cli/query"];

/// Runs the chore.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let mut steps = Steps::default();
    let mut cargo = |name, command: &str, arguments: &[&str]| {
        steps.step(name, || {
            let mut cargo = workspace::cargo();
            cargo.arg(command).args(QUERY).args(arguments);
            // Queries run no kernel on a GPU.
            process::run(cargo.env("WARPTRACE_NO_DEVICE_CODE", "1"))
        });
    };
    let targets = ["--release", "--lib", "--test", "answers", "--test", "workers", "--test", "query"];
    cargo("tests", "test", &targets);
    let targets = [&targets[..], &["--bins", "--examples"]].concat();
    cargo("lints", "clippy", &[&targets[..], &["--", "-D", "warnings"]].concat());
    Ok(if steps.summary() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
