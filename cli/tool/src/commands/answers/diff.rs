//! `warptrace diff`.

use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::json;
use warptrace_analysis::{
    CauseChange, Comparison, Counts, FirstChange, KernelFigures, LocationChange, analyse, compare,
};
use warptrace_decoder::TraceFile;

use super::diff_accesses::Accessed;
use super::diff_values::Valued;
use super::rows::first;
use super::words::{self, Names, changed_place, percent, signed, warp};
use super::{TextTable, names_of, print_rows};
use crate::arguments::Diff;
use crate::exit;
use crate::opened::open;
use crate::output::{count, print_json, say, shown_name};

/// Default number of rows and warps in text.
const ROWS: usize = 10;
/// Default number of warps in JSON. Each of them must be decoded again.
const JSON_WARPS: usize = 100;

struct Memory {
    accessed: Option<Accessed>,
    valued: Option<Valued>,
}

pub(crate) fn run(command: &Diff) -> anyhow::Result<ExitCode> {
    let opened = [open(&command.before)?, open(&command.after)?];
    let states = opened.each_ref().map(|opened| opened.state.sentence.clone());
    let [before, after] = opened.map(|opened| opened.trace);
    let traces = [&before, &after];
    let paths =
        || format!("cannot compare {} with {}", shown_name(&command.before), shown_name(&command.after));
    let selection = command.selected.selection();
    let comparison = compare(traces, &selection).map_err(|error| {
        let is_first = analyse(&before, &selection).is_err();
        let path = if is_first { &command.before } else { &command.after };
        anyhow::Error::new(error).context(shown_name(path)).context(paths())
    })?;
    if !comparison.is_of_one_program() {
        bail!(
            "{}: no location of the one is in the other: they are not of the same program, or one has no table of \
             locations; `warptrace info` lists the locations of a trace",
            paths()
        );
    }
    let greatest = comparison.greatest_percent();
    let is_above = command.fail_above.is_some_and(|limit| greatest > limit);
    let memory = Memory {
        accessed: Accessed::new(traces, &selection).with_context(paths)?,
        valued: Valued::new(traces, &selection).with_context(paths)?,
    };
    let printed = if command.json {
        json(command, (&comparison, &memory), traces, greatest, &states)
    } else {
        text(command, (&comparison, &memory), traces)
    };
    exit::verdict(if is_above { exit::ABOVE } else { 0 }, printed)
}

/// Returns the first changed warps with the events at which they diverge, and the number of further warps.
fn first_changes(
    comparison: &Comparison,
    traces: [&TraceFile; 2],
    limit: Option<usize>,
    default: usize,
) -> anyhow::Result<(Vec<FirstChange>, usize)> {
    let (warps, more) = first(comparison.changed.clone(), limit, default);
    let mut first_changes = Vec::new();
    for warp in warps {
        first_changes.extend(comparison.first_change(traces, warp)?);
    }
    Ok((first_changes, more))
}

fn json(
    command: &Diff,
    (comparison, memory): (&Comparison, &Memory),
    traces: [&TraceFile; 2],
    percent: f64,
    states: &[String; 2],
) -> anyhow::Result<()> {
    let (first_changes, _) = first_changes(comparison, traces, command.limit, JSON_WARPS)?;
    let (locations, _) = first(comparison.locations.clone(), command.limit, usize::MAX);
    let (causes, _) = first(comparison.causes.clone(), command.limit, usize::MAX);
    let [before, after] = &comparison.analyses;
    let mut value = json!({
        "recordings": comparison.recordings,
        "whole": [before.losses.is_whole(), after.losses.is_whole()],
        "states": states,
        "losses": [before.losses, after.losses],
        "weight": before.weight,
        "totals": [before.counts, after.counts],
        "greatest_change_percent": percent.is_finite().then_some(percent),
        "greatest_change": comparison.greatest(),
        "causes": causes,
        "locations": locations,
        "common_warps": comparison.common_warps,
        "single_warps": comparison.single_warps,
        "changed_warps": comparison.changed.len(),
        "first_changes": first_changes,
    });
    if let Some(valued) = &memory.valued {
        value["values"] = valued.json(command.limit);
    }
    if let Some(accessed) = &memory.accessed {
        value["accesses"] = accessed.json(command.limit);
    }
    print_json(&value)?;
    Ok(())
}

fn text(
    command: &Diff,
    (comparison, memory): (&Comparison, &Memory),
    traces: [&TraceFile; 2],
) -> anyhow::Result<()> {
    let names = traces.map(|trace| names_of(&trace.metadata().locations));
    let are_plain = comparison.analyses.iter().all(|analysis| analysis.losses.is_plain());
    if are_plain {
        print_recordings(comparison, command.limit)?;
    }
    for (analysis, which) in comparison.analyses.iter().zip(["first", "second"]) {
        say!("{which}: {}", words::losses(analysis))?;
    }
    if !are_plain {
        print_recordings(comparison, command.limit)?;
    }
    let (ratios, more) = first(words::ratios(comparison), command.limit, ROWS);
    for line in ratios {
        say!("{line}")?;
    }
    if more > 0 {
        say!("and {} more; `--limit 0` shows all", words::many(more as u64, "kernel"))?;
    }
    say!("{}", words::changes(comparison))?;
    if has_other_kernels(comparison) {
        say!("no kernel has the same name in both traces: are they of the same program?")?;
    }
    say!("{}", words::greatest(comparison))?;
    print_causes(comparison, &names, command.limit)?;
    let rows = comparison.changed_locations();
    if rows.is_empty() {
        say!("no location was visited more or less often, or by other numbers of lanes")?;
    } else {
        let sum = comparison.analyses.each_ref().map(|analysis| analysis.counts);
        let (rows, more) = first(rows, command.limit, ROWS);
        print_rows(&change_table(&names, &rows, sum), more)?;
    }
    if let Some(valued) = &memory.valued {
        valued.print(&names, command.limit, ROWS)?;
    }
    if let Some(accessed) = &memory.accessed {
        accessed.print(&names, command.limit, ROWS)?;
    }
    let (first_changes, more) = first_changes(comparison, traces, command.limit, ROWS)?;
    if !first_changes.is_empty() {
        let table = TextTable::<FirstChange>::new()
            .left("warp", |change| warp(traces[0], change.warp.launch, change.warp.warp))
            .right("event", |change| count(change.event))
            .left("first trace", |change| words::other_event(&names[0], change.before))
            .left("second trace", |change| words::other_event(&names[1], change.after));
        say!("\nwhere warps first go another way")?;
        print_rows(&table.text(&first_changes), more)?;
    }
    Ok(())
}

/// Returns true if both traces have kernels, but none in common.
fn has_other_kernels(comparison: &Comparison) -> bool {
    let [before, after] = comparison.analyses.each_ref().map(|analysis| &analysis.kernels);
    let is_there = |kernel: &KernelFigures| after.iter().any(|other| other.kernel == kernel.kernel);
    !before.is_empty() && !after.is_empty() && !before.iter().any(is_there)
}

fn print_recordings(comparison: &Comparison, limit: Option<usize>) -> anyhow::Result<()> {
    let (differences, more) = first(words::differences(comparison), limit, ROWS);
    if differences.is_empty() {
        say!("the recordings do not differ in how they were made")?;
    } else {
        say!("the recordings differ in")?;
    }
    for line in differences {
        say!("  {line}")?;
    }
    if more > 0 {
        say!("  and {} more; `--limit 0` shows all", count(more as u64))?;
    }
    Ok(())
}

fn print_causes(comparison: &Comparison, names: &[Names; 2], limit: Option<usize>) -> anyhow::Result<()> {
    let grew: Vec<&CauseChange> =
        comparison.causes.iter().filter(|change| change.idle[1] > change.idle[0]).collect();
    if grew.is_empty() {
        say!("no cause of idle slots grew")?;
        return Ok(());
    }
    let slots = comparison.analyses.each_ref().map(|analysis| analysis.counts.slots);
    let place = |change: &CauseChange| changed_place(names, change.before.as_ref(), change.after.as_ref());
    let table = TextTable::<&CauseChange>::new()
        .left("line", move |change| place(change)[0].clone())
        .left("lanes diverge after", move |change| place(change)[1].clone())
        .right("idle slots", |change| count(change.idle[1]))
        .right("change", |change| signed(change.idle))
        .right("of all slots", move |change| percent(change.idle[1], slots[1]))
        .right("before", move |change| percent(change.idle[0], slots[0]));
    let (grew, more) = first(grew, limit, ROWS);
    say!("\ncauses that grew")?;
    print_rows(&table.text(&grew), more)
}

fn change_table(names: &[Names; 2], changes: &[&LocationChange], sum: [Counts; 2]) -> String {
    type ChangeRow = ([String; 2], [Counts; 2]);
    let of = |counts: [Counts; 2], of: fn(Counts) -> u64| counts.map(of);
    let (visits, lanes, idle) = (|of: Counts| of.visits, |of: Counts| of.lanes, |of: Counts| of.idle);
    let rows = changes
        .iter()
        .map(|change| (changed_place(names, change.before.as_ref(), change.after.as_ref()), change.counts));
    let rows: Vec<ChangeRow> = rows.chain([(["all".to_owned(), String::new()], sum)]).collect();
    TextTable::<ChangeRow>::new()
        .left("line", |row| row.0[0].clone())
        .left("what", |row| row.0[1].clone())
        .right("visits", move |row| count(of(row.1, visits)[1]))
        .right("change", move |row| signed(of(row.1, visits)))
        .right("lanes", move |row| count(of(row.1, lanes)[1]))
        .right("change", move |row| signed(of(row.1, lanes)))
        .right("idle slots", move |row| count(of(row.1, idle)[1]))
        .right("change", move |row| signed(of(row.1, idle)))
        .text(&rows)
}
