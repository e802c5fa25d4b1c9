//! `warptrace export`.

#[cfg(feature = "parquet")]
mod parquet;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use warptrace_exports::{ExportSource, Weight, timeline};

use crate::arguments::{Export, ExportFormat, SampleWeight};
use crate::files::named_files;
use crate::opened::open;
use crate::output::{self, bytes, count, say, shown_name};
#[cfg(feature = "parquet")]
use crate::whole_file::keep_apart;
use crate::whole_file::{Target, watch_signals};

/// Number of slices above which Perfetto's page is slow or fails.
const MANY_SLICES: u64 = 4_000_000;

pub(crate) fn run(command: &Export) -> anyhow::Result<()> {
    if command.events && command.to != ExportFormat::Parquet {
        bail!("`--events` is for `--to parquet`: other formats have runs");
    }
    if command.weight.is_some() && command.to != ExportFormat::Firefox {
        bail!("`--weight` is for `--to firefox`");
    }
    let files = named_files(&command.files)?;
    let target = &command.output;
    let is_folder = target.is_dir() || target.as_os_str().as_encoded_bytes().ends_with(b"/");
    let said = if is_folder && command.to == ExportFormat::Parquet {
        folder(command, &files)?
    } else {
        let [path] = &files[..] else { bail!(only_one(command, files.len())) };
        // Checked before the export starts.
        Target::new(target, &[("the trace", path)])?;
        watch_signals()?;
        let opened = open(path)?;
        opened.warn_of("");
        let cannot = || format!("cannot export {}", shown_name(path));
        let source = ExportSource::new(&opened.trace, command.selected.selection()).with_context(cannot)?;
        warn(&source, "");
        exported(source, |source| write(command, source, path)).with_context(cannot)?
    };
    for line in said {
        say!("{line}")?;
    }
    Ok(())
}

fn only_one(command: &Export, files: usize) -> String {
    let files = count(files as u64);
    match command.to {
        ExportFormat::Parquet => format!(
            "tables of {files} traces are a folder: name one that is there, or end the name of `-o` with `/`"
        ),
        _ => format!(
            "this format is of one trace, and these are {files}: name one, or use `--to parquet`; `warptrace timeline \
             --to perfetto` draws launches of several"
        ),
    }
}

#[cfg(feature = "parquet")]
fn folder(command: &Export, files: &[PathBuf]) -> anyhow::Result<Vec<String>> {
    for path in files {
        keep_apart(&command.output, &[("the trace", path)])?;
    }
    watch_signals()?;
    parquet::folder(command, files)
}

#[cfg(not(feature = "parquet"))]
fn folder(_: &Export, _: &[PathBuf]) -> anyhow::Result<Vec<String>> {
    Err(super::left_out("Parquet"))
}

/// Calls `write` to export a part of a trace, with a progress bar.
fn exported<T>(
    source: ExportSource<'_>,
    write: impl FnOnce(&ExportSource<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let bar = output::progress_bar("exporting", "events", source.launch_events());
    let moved = bar.clone();
    let written = write(&source.with_progress(move |events| moved.inc(events)))?;
    bar.finish_and_clear();
    Ok(written)
}

/// Warns about selected data that the trace lacks. `of` is the trace's name if there are several.
fn warn(source: &ExportSource<'_>, of: &str) {
    let lacks = source.lacks();
    for line in lacks.describe_events() {
        crate::output::tell!("warning: {of}the export lacks events: {line}");
    }
    if let Some(missing) = lacks.untimed.describe() {
        crate::output::tell!("warning: {of}the export lacks times: {missing}");
    }
    if lacks.unchosen_warps > 0 {
        crate::output::tell!(
            "note: {of}{} warps were not chosen to be recorded, and are not in the export",
            count(lacks.unchosen_warps)
        );
    }
    if source.launch_events() == 0 {
        crate::output::tell!(
            "note: {of}there are no events to export; `warptrace info` says what was recorded"
        );
    }
}

/// Writes the export. Returns the lines to print.
fn write(command: &Export, source: &ExportSource<'_>, path: &Path) -> anyhow::Result<Vec<String>> {
    match command.to {
        #[cfg(feature = "parquet")]
        ExportFormat::Parquet => parquet::file(command, source, path),
        #[cfg(not(feature = "parquet"))]
        ExportFormat::Parquet => Err(super::left_out("Parquet")),
        ExportFormat::Perfetto => timeline(command, source, path),
        ExportFormat::Firefox => firefox(command, source, path),
        ExportFormat::Lcov => lcov(command, source, path),
    }
}

fn timeline(command: &Export, source: &ExportSource<'_>, path: &Path) -> anyhow::Result<Vec<String>> {
    let target = &command.output;
    let mut sliced = |slices: u64| {
        if slices == MANY_SLICES + 1 {
            crate::output::tell!(
                "warning: more than {} slices: Perfetto's page may be slow or fail; choose a part with `--kernel`, \
                 `--launch`, `--block` or `--warp`",
                count(MANY_SLICES)
            );
        }
    };
    let to = Target::new(target, &[("the trace", path)])?;
    let (written, size) = to.write(|out| timeline::perfetto(source, out, &mut sliced))?;
    if written.unplaced > 0 {
        crate::output::tell!(
            "warning: of {} warps the trace does not say when they ran, when they ended or when all of their runs began; \
             what it does not say is left out",
            count(written.unplaced)
        );
    }
    let said = |size| {
        let (slices, warps, axis) = (count(written.slices), count(written.warps), written.axis);
        format!("{}: {slices} slices of {warps} warps, {}; axis: {axis}", shown_name(target), bytes(size))
    };
    Ok(size.map(said).into_iter().collect())
}

fn firefox(command: &Export, source: &ExportSource<'_>, path: &Path) -> anyhow::Result<Vec<String>> {
    let target = &command.output;
    let timed = if source.trace().has_times() { SampleWeight::Cycles } else { SampleWeight::Lanes };
    let (weight, unit) = match command.weight.unwrap_or(timed) {
        SampleWeight::Lanes => (Weight::Lanes, "active lanes"),
        SampleWeight::Idle => (Weight::Idle, "idle lane slots"),
        SampleWeight::Visits => (Weight::Visits, "visits"),
        SampleWeight::Cycles => (Weight::Cycles, "warp-cycles"),
        SampleWeight::IdleCycles => (Weight::IdleCycles, "idle lane-cycles"),
    };
    let (total, size) = Target::new(target, &[("the trace", path)])?
        .write(|out| warptrace_exports::firefox(source, out, weight))?;
    let said = |size| format!("{}: samples of {} {unit}, {}", shown_name(target), count(total), bytes(size));
    Ok(size.map(said).into_iter().collect())
}

fn lcov(command: &Export, source: &ExportSource<'_>, path: &Path) -> anyhow::Result<Vec<String>> {
    let target = &command.output;
    let (coverage, size) =
        Target::new(target, &[("the trace", path)])?.write(|out| warptrace_exports::lcov(source, out))?;
    if coverage.without_line > 0 {
        let number = count(coverage.without_line);
        crate::output::tell!(
            "warning: {number} locations are left out, because the trace does not know their lines"
        );
    }
    let said = |_| {
        let [hit, lines] = [coverage.hit_lines, coverage.lines].map(count);
        let [taken, branches] = [coverage.taken_branches, coverage.branches].map(count);
        format!("{}: {hit} of {lines} lines, {taken} of {branches} branches", shown_name(target))
    };
    Ok(size.map(said).into_iter().collect())
}
