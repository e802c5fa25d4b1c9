//! `warptrace tui`.

use std::process::ExitCode;

use anyhow::{Context, bail};
use warptrace_tui::{Options, TuiError, check_terminal, run as show};

use crate::arguments::Tui;
use crate::opened::open;
use crate::output::{last_name, shown_name};

/// A signal gives the exit code 128 plus its number, as in shells.
const ENDED_BY: i32 = 128;

pub(crate) fn run(command: Tui) -> anyhow::Result<ExitCode> {
    check_terminal()?;
    let Tui { file, sources, selected } = command;
    for folder in &sources {
        if !folder.is_dir() {
            bail!("`--source {}` is no folder that can be read", shown_name(folder));
        }
    }
    // No work limit: the user can leave at any time, and each view reads the trace again.
    let trace = open(&file)?.trace.unlimited();
    let mut options = Options::named(last_name(&file));
    options.selection = selected.selection();
    options.sources = sources;
    match show(trace, options) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(TuiError::Signal { signal }) => Ok(ExitCode::from(u8::try_from(ENDED_BY + signal)?)),
        Err(error) => Err(error).with_context(|| format!("cannot show {}", shown_name(&file))),
    }
}
