//! `warptrace-bench`: records the programs of this project, checks the tracer on a device, and measures it.
//!
//! ```text
//! subjects (programs on inputs) ─┬─ check    right result, every event, same lanes everywhere
//! codecs (one list)  ────────────┴─ bench    times, sizes, other compressors ── CSV, Markdown, SVG
//! whole                             whole programs, each run in a separate process ── Markdown, JSON
//! fidelity                          warps at trace points: untraced, traced, decoded ── CSV, Markdown
//! ```
//!
//! A program is one file in `programs`, a codec one line in `codecs`.

mod arguments;
mod bench;
mod check;
mod codecs;
mod date;
mod fidelity;
mod figures;
mod files;
mod machine;
mod memory;
mod programs;
mod progress;
mod record;
mod runs;
mod soak;
mod subject;
mod table;
mod thesis;
mod whole;

use std::ffi::OsString;
use std::io::Write;

use clap::Parser;
use warptrace_cli::{exit, output};

use crate::arguments::{Arguments, Command};

/// Runs the program with a command line that includes the program's name. Returns its exit code.
///
/// `record` writes to `out` and `errors`. Longer commands write to the process's standard streams as they
/// run.
pub fn run(arguments: impl IntoIterator<Item = OsString>, out: &mut dyn Write, errors: &mut dyn Write) -> u8 {
    let words: Vec<OsString> = arguments.into_iter().collect();
    let command = match Arguments::try_parse_from(&words) {
        Ok(arguments) => arguments.command,
        Err(error) => {
            let text = error.render().to_string();
            // Write errors on a closed output cannot be reported.
            let _ = if error.use_stderr() { write!(errors, "{text}") } else { write!(out, "{text}") };
            return u8::try_from(error.exit_code()).unwrap_or(exit::ERROR);
        }
    };
    match execute(&command, words, out, errors) {
        Ok(true) => 0,
        Ok(false) => exit::FINDINGS,
        Err(error) => {
            let _ = writeln!(errors, "error: {}", output::message(&error));
            exit::ERROR
        }
    }
}

/// Runs a command. Returns true if it found no problem.
fn execute(
    command: &Command,
    words: Vec<OsString>,
    out: &mut dyn Write,
    errors: &mut dyn Write,
) -> anyhow::Result<bool> {
    match command {
        Command::Record(command) => record::run(command, warptrace_host::command_of(words), out, errors),
        Command::Check(command) => check::run(command),
        Command::Bench(command) => bench::run(command).map(|()| true),
        Command::Whole(command) => whole::run(command),
        Command::Fidelity(command) => fidelity::run(command),
        Command::Soak(command) => soak::run(command),
    }
}
