//! `cargo xtask test`: what CI runs.

use std::process::{Command, ExitCode};

use crate::steps::{Outcome, Steps};
use crate::{book, package, process, setup, workspace};

/// Arguments of `test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Install nothing
    #[arg(long)]
    no_setup: bool,
}

/// All packages with the features that only tests need. The same in each step, or cargo would build what
/// depends on them twice.
const EVERYTHING: [&str; 5] =
    ["--workspace", "--exclude", "warptrace-query", "--features", "warptrace-ptx/interpreter"];

/// Runs the chore. Everything is built in cargo's `dev` profile, so that each crate is compiled once for the
/// tests and checked once for lints and docs.
pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let mut steps = Steps::default();
    if !options.no_setup {
        steps.step("set-up", || match setup::all(setup::For::Tests) {
            Ok(()) => Outcome::Passed(String::new()),
            Err(missing) => Outcome::Skipped(format!("without {}", missing.join(" and "))),
        });
    }
    steps.step("format", || {
        process::run(workspace::cargo().args(["fmt", "--all", "--check"]))?;
        for example in package::examples()? {
            let manifest = example.join("Cargo.toml");
            process::run(workspace::cargo().args(["fmt", "--check", "--manifest-path"]).arg(manifest))?;
        }
        anyhow::Ok(())
    });
    steps.step("lints", || {
        let mut command = workspace_wide("clippy", &["--all-targets"]);
        command.args(["--", "-D", "warnings"]);
        // Clippy runs build scripts of its own, which would compile all kernels once more.
        process::run(command.env("WARPTRACE_NO_DEVICE_CODE", "1"))
    });
    steps.step("links", book::check_links);
    let mdbook = if options.no_setup { book::find() } else { book::set_up() };
    match mdbook {
        Ok(()) => steps.step("book", || book::build().map(drop)),
        Err(error) => steps.step("book", || Outcome::Skipped(format!("{error:#}"))),
    };
    steps.step("docs", || {
        process::run(workspace_wide("doc", &["--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
    });
    steps.step("tests", || {
        process::run(&mut if workspace::has_subcommand("nextest") {
            let mut command = workspace::cargo();
            command.args(["nextest", "run", "--no-fail-fast"]).args(EVERYTHING);
            command
        } else {
            workspace_wide("test", &["--no-fail-fast", "--lib", "--bins", "--tests", "--examples"])
        })
    });
    steps.step("doc tests", || process::run(&mut workspace_wide("test", &["--doc", "--no-fail-fast"])));
    steps.step("packages", || package::check(&package::Options::default()));
    Ok(if steps.summary() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A command of cargo for all packages.
fn workspace_wide(command: &str, arguments: &[&str]) -> Command {
    let mut cargo = workspace::cargo();
    cargo.arg(command).args(EVERYTHING).args(arguments);
    cargo
}
