//! Builds and tests for aarch64: `scripts/aarch64.sh` runs a command in which QEMU runs the result.

use std::ffi::OsStr;
use std::process::Command;
use std::time::Duration;

use crate::setup::{Missing, SetUpResult};
use crate::steps::Outcome;
use crate::{process, workspace};

/// The target's name in cargo.
pub(crate) const TARGET: &str = "aarch64-unknown-linux-gnu";
const LIMIT: Duration = Duration::from_secs(600);
const HELP: &str = "on Debian 12 with Linux 6.7 or later, run `scripts/aarch64-setup.sh` as root";
const WITHOUT: &str = "Without them nothing is built or tested for aarch64.";

/// Returns the command `program` under `scripts/aarch64.sh`.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(workspace::root().join("scripts/aarch64.sh"));
    command.arg(program).current_dir(workspace::root());
    command
}

/// Runs Python for aarch64. Returns its version, or the reason why it does not run.
fn find() -> Result<String, String> {
    let mut python = command("python3");
    let program = "import platform; print(platform.machine(), 'Python', platform.python_version())";
    match process::quietly(python.args(["-c", program]), LIMIT) {
        Ok(ended) if ended.success && ended.said.starts_with("aarch64") => Ok(ended.last_line().to_owned()),
        Ok(ended) => Err(ended.last_line().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Finds or installs the tools.
pub(crate) fn set_up() -> SetUpResult {
    let first = match find() {
        Ok(found) => return Ok(found),
        Err(reason) => reason,
    };
    let script = workspace::root().join("scripts/aarch64-setup.sh");
    let second = match process::quietly(&mut Command::new(script), LIMIT) {
        Ok(ended) if !ended.success => ended.last_line().to_owned(),
        Err(error) => error.to_string(),
        Ok(_) => match find() {
            Ok(found) => return Ok(found),
            Err(reason) => reason,
        },
    };
    Err(Missing { tried: vec![first, second], help: HELP.to_owned(), without: WITHOUT })
}

/// Runs the tests of the shim, which has code for one architecture. Skips them without the tools.
pub(crate) fn test() -> anyhow::Result<Outcome> {
    if let Err(reason) = find() {
        return Ok(Outcome::Skipped(format!("{reason}; {HELP}")));
    }
    process::run(command("cargo").args(["nextest", "run", "--no-fail-fast", "--package", "warptrace-shim"]))?;
    Ok(Outcome::Passed(String::new()))
}
