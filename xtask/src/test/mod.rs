//! `cargo xtask test`: what CI runs.

mod ptx;
mod report;

use std::process::ExitCode;

use crate::steps::{Outcome, Steps};
use crate::{process, setup, workspace};

/// Arguments of `test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Install nothing
    #[arg(long)]
    no_setup: bool,
}

/// Runs the chore. Everything is built in cargo's `dev` profile, so that each crate is compiled once for the tests
/// and checked once for lints and docs.
pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let mut steps = Steps::default();
    if !options.no_setup {
        steps.step("set-up", || match setup::all() {
            Ok(()) => Outcome::Passed(String::new()),
            Err(missing) => Outcome::Skipped(format!("without {}", missing.join(" and "))),
        });
    }
    steps.step("format", || {
        process::run(workspace::cargo().args(["fmt", "--all", "--check"]))?;
        // A workspace of its own, because it needs nightly; formatting does not.
        process::run(workspace::cargo().args(["fmt", "--check", "--manifest-path", "fuzz/Cargo.toml"]))
    });
    steps.step("lints", || {
        let arguments = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        // Clippy builds its own copy of the build script, which would compile all kernels once more.
        process::run(workspace::cargo().args(arguments).env("WARPTRACE_NO_DEVICE_CODE", "1"))
    });
    steps.step("docs", || {
        let arguments = ["doc", "--workspace", "--no-deps"];
        process::run(workspace::cargo().args(arguments).env("RUSTDOCFLAGS", "-D warnings"))
    });
    let mut modules = Ok(Vec::new());
    steps.step("build", || {
        modules = ptx::build();
        modules.as_ref().map(|_| Outcome::Passed(String::new())).map_err(|error| anyhow::anyhow!("{error:#}"))
    });
    steps.step("ptx", || match modules {
        Ok(modules) => Outcome::from(ptx::assemble(&modules)),
        Err(_) => Outcome::Skipped("the build failed".to_owned()),
    });
    let nextest = workspace::has_subcommand("nextest");
    steps.step("tests", || {
        let mut command = workspace::cargo();
        if nextest {
            command.args(["nextest", "run", "--workspace", "--no-fail-fast"]);
        } else {
            command.args([
                "test",
                "--workspace",
                "--no-fail-fast",
                "--lib",
                "--bins",
                "--tests",
                "--examples",
            ]);
        }
        process::run(&mut command)
    });
    // The recording sequences, interpreted. A step of its own: with the feature in the steps above, cargo would compile the
    // build scripts that read PTX, and so the kernels, once more.
    steps.step("interpreter", || {
        let package = ["-p", "warptrace-ptx", "--features", "interpreter"];
        process::run(workspace::cargo().arg("clippy").args(package).args([
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ]))?;
        process::run(workspace::cargo().arg("test").args(package).arg("--no-fail-fast"))
    });
    steps.step("doc tests", || {
        process::run(workspace::cargo().args(["test", "--workspace", "--doc", "--no-fail-fast"]))
    });
    Ok(if steps.summary() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
