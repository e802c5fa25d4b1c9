//! Entry points of the programs `warptrace` and `warptrace-query`, which share one command line.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
#[cfg(unix)]
use std::sync::Arc;

use clap::Parser;
use warptrace_format::shown_lines;

use crate::arguments::{Arguments, Command};
use crate::{commands, demo, exit, opened, output, query_program};

/// Runs the command line of `warptrace`.
#[doc(hidden)]
pub fn warptrace() -> ExitCode {
    run(|command| match query_program::is_for(&command) {
        true => query_program::replace(),
        false => execute(command),
    })
}

/// Runs a command line of `warptrace` on this thread, without the effects of the global options. Returns the
/// exit code, standard output and standard error. For tests.
#[doc(hidden)]
pub fn in_process(words: &[&str]) -> (u8, String, String) {
    let (code, printed) =
        output::kept(|| match Arguments::try_parse_from([&["warptrace"], words].concat()) {
            Ok(arguments) => execute(arguments.command).unwrap_or_else(|error| failed(&error)),
            Err(error) => {
                output::tell!("{}", error.render());
                ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(exit::ERROR))
            }
        });
    let code = (0..u8::MAX).find(|known| ExitCode::from(*known) == code).unwrap_or(u8::MAX);
    let [out, errors] = printed.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (code, out, errors)
}

/// Runs the commands of `warptrace` that use SQL or query workers.
#[cfg(feature = "query")]
#[doc(hidden)]
pub fn warptrace_query() -> ExitCode {
    run(|command| {
        query_program::check_caller()?;
        commands::query::execute(command)
    })
}

fn run(execute: impl FnOnce(Command) -> anyhow::Result<ExitCode>) -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return said(&error),
    };
    output::keep_errors_from_traces();
    arguments.color.choose();
    if arguments.unlimited {
        opened::lift_limits();
    }
    let code = match file_limit().and_then(|()| execute(arguments.command)) {
        Ok(code) => code,
        Err(error) => return failed(&error),
    };
    // The flush at the end of the process would ignore errors.
    match output::StandardOutput.flush().map_err(anyhow::Error::new) {
        Err(error) if !output::is_broken_pipe(&error) => failed(&error),
        _ => code,
    }
}

/// Prints a help page, or an argument error.
fn said(error: &clap::Error) -> ExitCode {
    let is_plain = |word: OsString| output::shown_name(&word) == word.to_string_lossy();
    // Errors quote arguments. They are printed in color only if every argument is safe to print as it is.
    let printed = if !error.use_stderr() || std::env::args_os().all(is_plain) {
        error.print()
    } else {
        write!(io::stderr(), "{}", shown_lines(&error.render().to_string()))
    };
    match printed.and_then(|()| io::stdout().flush()) {
        Ok(()) => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(exit::ERROR)),
        Err(error) => failed(&anyhow::Error::new(error).context("cannot write to standard output")),
    }
}

/// Turns a write beyond the file size limit of the process into an error, instead of the end of the process.
fn file_limit() -> anyhow::Result<()> {
    #[cfg(unix)]
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default())?;
    Ok(())
}

fn execute(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Demo(command) => return demo::run(&command),
        #[cfg(unix)]
        Command::Run(command) => return commands::run::run(&command),
        Command::Info(command) => commands::info::run(&command),
        Command::Top(command) => commands::answers::top(&command, None),
        Command::Causes(command) => commands::answers::causes(&command, None),
        Command::Lines(command) => commands::answers::lines(&command, None),
        Command::Loops(command) => commands::answers::loops(&command, None),
        Command::Waits(command) => commands::answers::waits(&command),
        Command::Accesses(command) => commands::answers::accesses(&command),
        Command::Values(command) => commands::answers::values(&command),
        Command::Warps(command) => commands::answers::warps(&command),
        Command::Paths(command) => commands::answers::paths(&command),
        Command::Edges(command) => commands::answers::edges(&command, None),
        Command::Stats(command) => commands::answers::stats(&command, None),
        Command::Diff(command) => return commands::answers::diff(&command),
        Command::Timeline(command) => commands::timeline::run(&command),
        Command::Report(command) => commands::report::run(&command),
        #[cfg(feature = "tui")]
        Command::Tui(command) => return commands::tui::run(command),
        #[cfg(not(feature = "tui"))]
        Command::Tui(_) => Err(commands::left_out("`tui`")),
        Command::Query(_) | Command::Worker(_) => return query_program::replace(),
        Command::Decode(command) => commands::decode::run(&command),
        Command::Export(command) => commands::export::run(&command),
        Command::Verify(command) => return commands::verify::run(&command),
        #[cfg(unix)]
        Command::Where(command) => commands::whereabouts::run(&command),
        Command::Devices => commands::devices::run(),
        Command::New(command) => commands::new::run(&command),
        Command::Completions(command) => commands::manual::completions(&command),
        Command::Man(command) => commands::manual::man(&command),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn failed(error: &anyhow::Error) -> ExitCode {
    if output::is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    output::tell!("error: {}", output::message(error));
    ExitCode::from(exit::ERROR)
}
