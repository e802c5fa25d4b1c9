//! `warptrace verify`.

use std::process::ExitCode;

use anyhow::Context;
use warptrace_decoder::TraceFile;

use crate::output::say;
use crate::{arguments, exit};

pub(crate) fn run(command: &arguments::Verify) -> anyhow::Result<ExitCode> {
    let path = &command.file;
    let trace = TraceFile::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let report = trace.verify();
    let printed = say!("{report}");
    if report.is_ok() {
        printed?;
        return Ok(ExitCode::SUCCESS);
    }
    // The exit code counts more than whether anybody reads on.
    Ok(ExitCode::from(exit::FINDINGS))
}
