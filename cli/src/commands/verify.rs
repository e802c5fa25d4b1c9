//! `warptrace verify`.

use std::process::ExitCode;

use anyhow::Context;
use warptrace_decoder::TraceFile;

use crate::{arguments, exit};

pub(crate) fn run(command: &arguments::Verify) -> anyhow::Result<ExitCode> {
    let path = &command.file;
    let trace = TraceFile::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let report = trace.verify();
    println!("{report}");
    Ok(if report.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(exit::FINDINGS) })
}
