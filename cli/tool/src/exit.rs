//! Exit codes, as listed in `--help`.

use std::process::ExitCode;

use crate::output::is_broken_pipe;

/// The command failed.
pub const ERROR: u8 = 1;
/// The trace is incomplete or damaged: `verify` found this, or a recording lost events.
pub const FINDINGS: u8 = 3;
/// `diff` found more change than `--fail-above` allows.
pub const ABOVE: u8 = 4;

/// Returns `code` as the exit code after output was printed. Returns the error of `printed`, unless it is a
/// broken pipe and `code` is not 0.
pub fn verdict(code: u8, printed: anyhow::Result<()>) -> anyhow::Result<ExitCode> {
    match printed {
        Err(error) if code == 0 || !is_broken_pipe(&error) => Err(error),
        _ => Ok(ExitCode::from(code)),
    }
}
