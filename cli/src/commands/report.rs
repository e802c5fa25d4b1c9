//! `warptrace report`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use warptrace_decoder::TraceFile;
use warptrace_report::{Base, Options, report};

use crate::arguments::Report;
use crate::output::{bytes, say};

pub(crate) fn run(command: &Report) -> anyhow::Result<ExitCode> {
    let output = match &command.output {
        Some(path) => path.clone(),
        None => command.file.with_extension("html"),
    };
    for input in [Some(&command.file), command.against.as_ref()].into_iter().flatten() {
        if is_same(input, &output) {
            bail!("{} is a trace to read: name another file for the page with `--output`", output.display());
        }
    }
    for folder in &command.sources {
        if !folder.is_dir() {
            bail!("`--source {}` is no folder that can be read", folder.display());
        }
    }
    let trace = open(&command.file)?;
    let base = command.against.as_deref().map(open).transpose()?;
    let [name, base_name] = [Some(&command.file), command.against.as_ref()].map(|path| {
        path.and_then(|path| path.file_name()).map_or_else(String::new, |name| name.display().to_string())
    });
    let mut options = Options::named(name);
    options.selection = command.selected.selection();
    options.sources.clone_from(&command.sources);
    let base = base.as_ref().map(|trace| Base { trace, name: &base_name });
    let page = report(&trace, &options, base)
        .with_context(|| format!("cannot report on {}", command.file.display()))?;
    if let Some(lacks) = &page.lacks {
        eprintln!("warning: {lacks}");
    }
    if !page.has_events {
        eprintln!("note: there are no events to show; `warptrace info` says what was recorded");
    }
    if output == Path::new("-") {
        std::io::stdout().write_all(page.html.as_bytes())?;
    } else {
        std::fs::write(&output, &page.html).with_context(|| format!("cannot write {}", output.display()))?;
        let size = bytes(page.html.len() as u64);
        say!("page       {} ({size}): open it in a browser", output.display())?;
    }
    for note in &page.notes {
        eprintln!("note: {note}");
    }
    Ok(ExitCode::SUCCESS)
}

fn open(path: &Path) -> anyhow::Result<TraceFile> {
    TraceFile::open(path).with_context(|| format!("cannot open {}", path.display()))
}

/// Whether both paths lead to one file.
fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
