//! Exit codes, as `--help` names them.

use std::process::ExitCode;

use crate::output::is_broken_pipe;

/// The command could not do its work.
pub const ERROR: u8 = 1;
/// The trace is incomplete or damaged: `verify` read it and found it so, or a recording lost events.
pub const FINDINGS: u8 = 3;
/// `diff` found more change than `--fail-above` allows.
pub const ABOVE: u8 = 4;

/// Returns a verdict, or 0, as the exit code of what has been printed. A verdict stays if the reader has seen
/// enough.
///
/// # Errors
/// What could not be printed, for another reason or without a verdict.
pub fn verdict(code: u8, printed: anyhow::Result<()>) -> anyhow::Result<ExitCode> {
    match printed {
        Err(error) if code == 0 || !is_broken_pipe(&error) => Err(error),
        _ => Ok(ExitCode::from(code)),
    }
}
