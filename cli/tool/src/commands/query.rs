//! `warptrace query`.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::bail;
use warptrace_analysis::Selection;
use warptrace_exports::Source;
use warptrace_query::{Answer, Database, Format, QueryError, RecordBatch, Stop, Writer};

use crate::arguments::{Query, QueryFormat};
use crate::files::named_files;
use crate::opened::{Opened, open};
use crate::output::{count, say, shown_name};
use crate::whole_file::Target;

/// What a shell expects of a program that Ctrl-C has ended.
const STOPPED: u8 = 130;

pub(crate) fn run(command: &Query) -> anyhow::Result<ExitCode> {
    let named = named_files(&command.files)?;
    let files: Vec<_> = named.iter().map(|path| ("the trace", path.as_path())).collect();
    let target = Target::or_standard(command.output.as_deref(), &files)?;
    let is_standard = matches!(target, Target::Standard);
    if command.format == QueryFormat::Parquet && is_standard && std::io::stdout().is_terminal() {
        bail!("Parquet is no text: name a file with `--output`");
    }
    let (mut traces, mut heads) = (Vec::new(), Vec::new());
    for path in &named {
        let opened = open(path)?;
        heads.push(head(path, &opened)?);
        traces.push((shown_name(path), opened.trace));
    }
    let database = Database::new(traces, command.memory as usize * (1 << 20))?;
    stop_by_signal(database.stop())?;
    match answer(command, &target, &database, &heads) {
        Err(error) if matches!(error.downcast_ref(), Some(QueryError::Stopped)) => {
            crate::output::tell!("error: {error}");
            Ok(ExitCode::from(STOPPED))
        }
        result => result.map(|()| ExitCode::SUCCESS),
    }
}

/// Has Ctrl-C end the answer, so that no temporary files stay; a second one ends the process at once.
fn stop_by_signal(stop: Stop) -> std::io::Result<()> {
    let asked = warptrace_cli::recording::watch()?.flag;
    std::thread::spawn(move || {
        while !asked.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
        }
        stop.stop();
    });
    Ok(())
}

fn answer(
    command: &Query,
    target: &Target,
    database: &Database,
    heads: &[(String, bool)],
) -> anyhow::Result<()> {
    let mut answer = database.ask(&command.sql)?;
    // First lines stand above rows, not above an error.
    let first = answer.next_batch()?;
    for (line, is_whole) in heads {
        if command.format == QueryFormat::Table && matches!(target, Target::Standard) {
            say!("{line}")?;
        } else if !is_whole {
            crate::output::tell!("warning: {line}");
        }
    }
    target.write(|out| write(command, first, answer, out)).map(|_| ())
}

/// Says of a trace whether it is whole, and what is missing; returns whether it is.
fn head(path: &Path, Opened { trace, state }: &Opened) -> anyhow::Result<(String, bool)> {
    let source = Source::new(trace, Selection::default())?;
    let events = count(source.launch_events());
    let path = shown_name(path);
    let is_plain = state.is_whole && state.assumed.is_none() && state.window.is_none();
    let words = if is_plain { "whole trace" } else { &state.sentence };
    Ok((format!("{path}: {words}; {events} events"), state.is_whole))
}

/// Writes the answer, whose first rows have been taken.
fn write(
    command: &Query,
    first: Option<RecordBatch>,
    mut answer: Answer<'_>,
    out: impl Write + Send,
) -> anyhow::Result<()> {
    let format = match command.format {
        QueryFormat::Table => Format::Table,
        QueryFormat::Csv => Format::Csv,
        QueryFormat::Json => Format::Json,
        QueryFormat::Parquet => Format::Parquet,
    };
    let is_cut = format == Format::Table && command.limit > 0;
    let mut writer = Writer::new(out, format, &answer.schema())?;
    let (mut rows, mut has_more, mut next) = (0, false, first);
    while let Some(batch) = next {
        let room = if is_cut { command.limit - rows } else { usize::MAX };
        has_more = batch.num_rows() > room;
        writer.write(&batch.slice(0, batch.num_rows().min(room)))?;
        rows += batch.num_rows();
        if has_more {
            break;
        }
        next = answer.next_batch()?;
    }
    let mut out = writer.finish()?;
    if has_more {
        writeln!(out, "and more; `--limit 0` shows all")?;
    }
    Ok(out.flush()?)
}
