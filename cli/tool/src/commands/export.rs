//! `warptrace export`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use warptrace_exports::{Source, Weight, timeline};

use crate::arguments::{Export, ExportFormat, SampleWeight};
use crate::opened::open;
use crate::output::{self, bytes, count, say, shown_name};
use crate::whole_file::{Target, keep_apart, watch_signals};

/// Slices from which on tools that draw timelines take long, or fail.
const MANY_PERFETTO_SLICES: u64 = 4_000_000;
const MANY_CHROME_SLICES: u64 = 1_000_000;

pub(crate) fn run(command: &Export) -> anyhow::Result<ExitCode> {
    let path = &command.file;
    if command.events && command.to != ExportFormat::Parquet {
        bail!("`--events` is for `--to parquet`: other formats have runs");
    }
    if command.weight.is_some() && command.to != ExportFormat::Firefox {
        bail!("`--weight` is for `--to firefox`");
    }
    let target = &command.output;
    let is_folder = target.is_dir() || target.as_os_str().as_encoded_bytes().ends_with(b"/");
    // Before the work, of which nothing would be left.
    if is_folder && command.to == ExportFormat::Parquet {
        keep_apart(target, &[("the trace", path)])?;
    } else {
        Target::new(target, &[("the trace", path)])?;
    }
    watch_signals()?;
    let opened = open(path)?;
    opened.warn();
    let trace = opened.trace;
    let cannot = || format!("cannot export {}", shown_name(path));
    let source = Source::new(&trace, command.selected.selection()).with_context(cannot)?;
    warn(&source);
    let bar = output::progress_bar("exporting", "events", source.launch_events());
    let moved = bar.clone();
    let source = source.with_progress(move |events| moved.inc(events));
    let said = write(command, &source, is_folder).with_context(cannot)?;
    bar.finish_and_clear();
    for line in said {
        say!("{line}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Says what of the selected part is not in the export, because it is not in the trace.
fn warn(source: &Source<'_>) {
    let lacks = source.lacks();
    for line in lacks.describe_events() {
        crate::output::tell!("warning: the export lacks events: {line}");
    }
    if let Some(missing) = lacks.untimed.describe() {
        crate::output::tell!("warning: the export lacks times: {missing}");
    }
    if lacks.unchosen_warps > 0 {
        crate::output::tell!(
            "note: {} warps were not chosen to be recorded, and are not in the export",
            count(lacks.unchosen_warps)
        );
    }
    if source.launch_events() == 0 {
        crate::output::tell!("note: there are no events to export; `warptrace info` says what was recorded");
    }
}

/// Writes the export; returns what is to be said of it.
fn write(command: &Export, source: &Source<'_>, is_folder: bool) -> anyhow::Result<Vec<String>> {
    match command.to {
        ExportFormat::Parquet => parquet(command, source, is_folder),
        ExportFormat::Perfetto | ExportFormat::Chrome => timeline(command, source),
        ExportFormat::Firefox => firefox(command, source),
        ExportFormat::Lcov => lcov(command, source),
    }
}

#[cfg(feature = "parquet")]
fn parquet(command: &Export, source: &Source<'_>, is_folder: bool) -> anyhow::Result<Vec<String>> {
    use crate::whole_file::{Files, Other, Output};
    use warptrace_exports::parquet;
    let target = &command.output;
    let said = |path: &Path, rows, size: Option<u64>| {
        size.map(|size| format!("{}: {} rows, {}", shown_name(path), count(rows), bytes(size)))
    };
    let runs = |out: &mut Output| parquet::runs(source, out, command.events);
    let trace: &[Other<'_>] = &[("the trace", &command.file)];
    if !is_folder {
        let (rows, size) = Target::new(target, trace)?.write(runs)?;
        return Ok(said(target, rows, size).into_iter().collect());
    }
    let mut files = Files::new(target)?;
    use parquet::AccessTable::{Accesses, LaneAccesses, LaneValues, Values};
    let name = if command.events { "events.parquet" } else { "runs.parquet" };
    let [addresses, values] = if command.events { [LaneAccesses, LaneValues] } else { [Accesses, Values] };
    let mut accessed = |table: parquet::AccessTable| {
        let name = format!("{}.parquet", table.name());
        files.add(&name, trace, |out| parquet::accesses(source, out, table))
    };
    let accessed = [accessed(addresses)?, accessed(values)?];
    let made = [
        files.add(name, trace, runs)?,
        files.add("locations.parquet", trace, |out| parquet::locations(source, out))?,
        files.add("launches.parquet", trace, |out| parquet::launches(source, out))?,
        files.add("losses.parquet", trace, |out| parquet::losses(source, out))?,
        files.add("sites.parquet", trace, |out| parquet::sites(source, out))?,
        files.add("access_losses.parquet", trace, |out| parquet::access_losses(source, out))?,
    ];
    files.publish()?;
    Ok(made.iter().chain(&accessed).filter_map(|(rows, path, size)| said(path, *rows, *size)).collect())
}

#[cfg(not(feature = "parquet"))]
fn parquet(_: &Export, _: &Source<'_>, _: bool) -> anyhow::Result<Vec<String>> {
    bail!("this build of the tool has no Parquet: build it with the feature `parquet`")
}

fn timeline(command: &Export, source: &Source<'_>) -> anyhow::Result<Vec<String>> {
    let target = &command.output;
    let (many, reader) = match command.to {
        ExportFormat::Chrome => (MANY_CHROME_SLICES, "readers of JSON traces"),
        _ => (MANY_PERFETTO_SLICES, "Perfetto's page"),
    };
    let mut sliced = |slices: u64| {
        if slices == many + 1 {
            crate::output::tell!(
                "warning: more than {} slices: {reader} may be slow or fail; choose a part with `--kernel`, \
                 `--launch`, `--block` or `--warp`",
                count(many)
            );
        }
    };
    let to = Target::new(target, &[("the trace", &command.file)])?;
    let (written, size) = to.write(|out| match command.to {
        ExportFormat::Chrome => timeline::chrome(source, out, &mut sliced),
        _ => timeline::perfetto(source, out, &mut sliced),
    })?;
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

fn firefox(command: &Export, source: &Source<'_>) -> anyhow::Result<Vec<String>> {
    let target = &command.output;
    let timed = if source.trace().has_times() { SampleWeight::Cycles } else { SampleWeight::Lanes };
    let (weight, unit) = match command.weight.unwrap_or(timed) {
        SampleWeight::Lanes => (Weight::Lanes, "active lanes"),
        SampleWeight::Idle => (Weight::Idle, "idle lane slots"),
        SampleWeight::Visits => (Weight::Visits, "visits"),
        SampleWeight::Cycles => (Weight::Cycles, "warp-cycles"),
        SampleWeight::IdleCycles => (Weight::IdleCycles, "idle lane-cycles"),
    };
    let (total, size) = Target::new(target, &[("the trace", &command.file)])?
        .write(|out| warptrace_exports::firefox(source, out, weight))?;
    let said = |size| format!("{}: samples of {} {unit}, {}", shown_name(target), count(total), bytes(size));
    Ok(size.map(said).into_iter().collect())
}

fn lcov(command: &Export, source: &Source<'_>) -> anyhow::Result<Vec<String>> {
    let target = &command.output;
    let (coverage, size) = Target::new(target, &[("the trace", &command.file)])?
        .write(|out| warptrace_exports::lcov(source, out))?;
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
