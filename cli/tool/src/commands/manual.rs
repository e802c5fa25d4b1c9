//! `warptrace completions` and `warptrace man`: what shells and `man` know of the tool.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::CommandFactory;

use crate::arguments::{Arguments, Completions, Man};
use crate::output::say;

/// Prints a shell's script.
pub(crate) fn completions(command: &Completions) -> anyhow::Result<ExitCode> {
    // Made in memory first: clap panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut Arguments::command(), "warptrace", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a page for each command.
pub(crate) fn man(command: &Man) -> anyhow::Result<ExitCode> {
    let folder = &command.output;
    if folder == Path::new("-") {
        bail!("manual pages are several files: name a folder for them");
    }
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), folder))
        .with_context(|| format!("cannot write manual pages to {}", folder.display()))?;
    say!("wrote manual pages to {}", folder.display())?;
    Ok(ExitCode::SUCCESS)
}
