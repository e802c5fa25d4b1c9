//! `warptrace query`.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, bail};
use warptrace_analysis::SetAnalysis;
use warptrace_query::{Answer, Database, Format, FoundTrace, QueryError, RecordBatch, Stop, Workers, Writer};

use super::{answers, worker};
use crate::arguments::{Apart, Command, Page, Query, QueryFormat};
use crate::files::{in_order, named_files};
use crate::opened::open;
use crate::output::{self, count, say, shown_name};
use crate::query_program;
use crate::recording::{self, Asked};
use crate::whole_file::Target;

/// Signals that end the work of this process.
static ASKED: OnceLock<Asked> = OnceLock::new();

pub(crate) fn execute(command: Command) -> anyhow::Result<ExitCode> {
    let asked = recording::watch()?;
    let asked = ASKED.get_or_init(|| asked);
    match carried_out(command) {
        Err(error) if matches!(error.downcast_ref(), Some(QueryError::Stopped)) => {
            output::tell!("error: {error}");
            Ok(ExitCode::from(asked.code()))
        }
        result => result.map(|()| ExitCode::SUCCESS),
    }
}

fn carried_out(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Query(command) => run(&command),
        Command::Worker(command) => worker::run(command),
        command if !query_program::is_for(&command) => bail!(
            "`warptrace-query` is for `query`, `worker`, and figures with `--workers`: call `warptrace`"
        ),
        Command::Top(page) => answers::top(&page, Some(summed(&page)?)),
        Command::Stats(command) => answers::stats(&command, Some(summed(&command.page)?)),
        Command::Causes(rows) => answers::causes(&rows, Some(summed(&rows.page)?)),
        Command::Lines(rows) => answers::lines(&rows, Some(summed(&rows.page)?)),
        Command::Loops(rows) => answers::loops(&rows, Some(summed(&rows.page)?)),
        Command::Edges(rows) => answers::edges(&rows, Some(summed(&rows.page)?)),
        _ => Ok(()),
    }
}

fn run(command: &Query) -> anyhow::Result<()> {
    let is_apart = !command.apart.workers.is_empty();
    // Names of files on workers mean nothing on this machine.
    let named = if is_apart { Vec::new() } else { named_files(&command.files)? };
    let files: Vec<_> = named.iter().map(|path| ("the trace", path.as_path())).collect();
    let target = Target::or_standard(command.output.as_deref(), &files)?;
    let is_standard = matches!(target, Target::Standard);
    if command.format == QueryFormat::Parquet && is_standard && std::io::stdout().is_terminal() {
        bail!("Parquet is no text: name a file with `--output`");
    }
    let (database, found) = match is_apart {
        true => found(&command.apart, &command.files, memory(command))?,
        false => of_files(command, &named)?,
    };
    answer(command, &target, &database, &found)
}

fn of_files(command: &Query, named: &[PathBuf]) -> anyhow::Result<(Database, Vec<FoundTrace>)> {
    let (mut traces, mut found) = (Vec::new(), Vec::new());
    for path in named {
        let (name, trace) = (shown_name(path), open(path)?.trace);
        found.push(FoundTrace::new(name.clone(), &trace));
        traces.push((name, trace));
    }
    let database = Database::new(traces, memory(command))?;
    stop_by_signal(database.stop());
    Ok((database, found))
}

/// Asks workers to analyse their traces, and sums the figures.
fn summed(page: &Page) -> anyhow::Result<SetAnalysis> {
    // Nothing is sorted or grouped here, so little memory is enough.
    let (database, found) = found(&page.apart, &page.files, 16 << 20)?;
    let bar = output::progress_bar("analysing", "traces", found.len() as u64);
    let set = database.summed(&found, &page.selected.selection(), || bar.inc(1))?;
    bar.finish_and_clear();
    Ok(set)
}

/// Finds the traces of workers that match `files`.
fn found(apart: &Apart, files: &[PathBuf], memory: usize) -> anyhow::Result<(Database, Vec<FoundTrace>)> {
    let token = apart.token_file.as_deref().map(token_of).transpose()?;
    let workers = Workers::new(&apart.workers, token.as_deref())?;
    let text = |path: &PathBuf| match path.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => bail!("{} is no text: workers take names in UTF-8", shown_name(path)),
    };
    let patterns = files.iter().map(text).collect::<anyhow::Result<Vec<String>>>()?;
    let stop = Stop::new();
    stop_by_signal(stop.clone());
    let (database, mut found) = Database::of_workers(workers, &patterns, memory, stop)?;
    // The same order as of local files.
    found.sort_by_cached_key(|file| (file.pattern, in_order(&file.name)));
    Ok((database, found))
}

const fn memory(command: &Query) -> usize {
    command.memory as usize * (1 << 20)
}

/// Returns the token on the first line of a file.
pub(super) fn token_of(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read the token in {}", shown_name(path)))?;
    match text.lines().next().map(str::trim).filter(|token| !token.is_empty()) {
        Some(token) => Ok(token.to_owned()),
        None => bail!("{} has no token on its first line", shown_name(path)),
    }
}

/// Stops a query after the first signal, so that no temporary files remain. The second ends the process at
/// once.
pub(super) fn stop_by_signal(stop: Stop) {
    std::thread::spawn(move || {
        while !ASKED.get().is_some_and(|asked| asked.flag.load(Ordering::Relaxed)) {
            std::thread::sleep(Duration::from_millis(50));
        }
        stop.stop();
    });
}

fn answer(command: &Query, target: &Target, database: &Database, found: &[FoundTrace]) -> anyhow::Result<()> {
    let mut answer = database.ask(&command.sql)?;
    // The first rows are read before anything is printed, so that an error is not preceded by headlines.
    let first = answer.next_batch()?;
    for file in found {
        let line = format!("{}: {}; {} events", file.name, file.state, count(file.events));
        if command.format == QueryFormat::Table && matches!(target, Target::Standard) {
            say!("{line}")?;
        } else if !file.is_whole {
            output::tell!("warning: {line}");
        }
    }
    target.write(|out| write(command, first, answer, out)).map(|_| ())
}

/// Writes the answer. `first` has its first rows.
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
