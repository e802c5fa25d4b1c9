//! `cargo xtask fuzz`: runs the fuzz targets with more inputs than the tests.

use std::process::ExitCode;

use crate::{process, workspace};

/// Arguments of `fuzz`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Inputs of each target
    #[arg(long, default_value_t = 100_000, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    inputs: u64,

    /// Only these targets; all if none is named
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let mut command = workspace::cargo();
    command
        .args(["test", "--package", "warptrace-fuzz", "--test", "targets", "--"])
        .args(&options.targets)
        .env("WARPTRACE_FUZZ_INPUTS", options.inputs.to_string());
    process::run(&mut command)?;
    Ok(ExitCode::SUCCESS)
}
