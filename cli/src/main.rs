//! The `warptrace` tool: record, look at, decode and verify traces of GPU kernels.

mod arguments;
mod commands;
mod device;
mod output;
mod progress;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command};

/// Exit codes, as `--help` names them.
mod exit {
    /// The command could not do its work.
    pub(crate) const ERROR: u8 = 1;
    /// `verify` read the trace and found it wanting: events lost, a stream cut short, a mismatch.
    pub(crate) const FINDINGS: u8 = 3;
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::Record(command) => commands::record::run(&command),
        Command::Info(command) => commands::info::run(&command),
        Command::Decode(command) => commands::decode::run(&command),
        Command::Verify(command) => commands::verify::run(&command),
        Command::Devices => commands::devices::run(),
    };
    match result {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(exit::ERROR)
        }
    }
}

/// The reader of our output has seen enough (`warptrace decode … | head`): no error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
}
