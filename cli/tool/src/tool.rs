//! The programs `warptrace` and `warptrace-query`: one command line, and who carries out what.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
#[cfg(unix)]
use std::sync::Arc;

use clap::Parser;
use warptrace_format::shown_lines;

use crate::arguments::{Arguments, Command};
use crate::{commands, demo, exit, opened, output, query_program};

/// Carries out the command line of `warptrace`: record, look at, decode and verify traces of GPU kernels.
#[doc(hidden)]
pub fn warptrace() -> ExitCode {
    run(|command| match query_program::is_for(&command) {
        true => query_program::replace(),
        false => execute(command),
    })
}

/// Carries out a command line of `warptrace` on this thread, without its options for all commands; returns
/// the exit code, what it prints, and what it says on standard error. For tests.
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

/// Carries out the commands of that command line that ask in SQL, or ask workers.
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
    // What is left unwritten at the end of the process is lost without a word.
    match output::StandardOutput.flush().map_err(anyhow::Error::new) {
        Err(error) if !output::is_broken_pipe(&error) => failed(&error),
        _ => code,
    }
}

/// Prints a page of help, or what is wrong with the arguments.
fn said(error: &clap::Error) -> ExitCode {
    let is_plain = |word: OsString| output::shown_name(&word) == word.to_string_lossy();
    // Errors quote arguments, and are coloured only if nothing in these acts on a terminal.
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

/// Has a file that would grow beyond the process's limit be an error where it is written, not the end.
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
