//! `cargo xtask bench` and `cargo xtask gpu-test`: run commands of the package `warptrace-bench`.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::{process, workspace};

pub(crate) fn run(command: &str, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let mut cargo = workspace::cargo();
    cargo.args(["run", "--release", "--package", "warptrace-bench", "--", command]).args(arguments);
    let code = process::status(&mut cargo)?.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}
