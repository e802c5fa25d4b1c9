//! `warptrace stats`.

use std::borrow::Cow;

use anyhow::bail;
use serde_json::json;
use warptrace_analysis::words::cut;
use warptrace_analysis::{
    Counts, KernelFigures, LabelFigures, LaunchSiteFigures, SetAnalysis, SetRow, Time, by_label,
    by_launch_site, share,
};

use super::set::with_spread;
use super::words::{lane_bars, percent, ratio};
use super::{Answer, ROWS, TextTable, print_table, words};
use crate::arguments::Stats;
use crate::commands::table::WIDEST;
use crate::output::{count, say};

const LABEL_WIDTH: usize = 60;
/// Longest kernel name in the table of launch sites.
const KERNEL_WIDTH: usize = 40;
/// Width of the longest bar of the histogram.
const BAR: f64 = 40.0;

pub(crate) fn run(command: &Stats, summed: Option<SetAnalysis>) -> anyhow::Result<()> {
    let Stats { page: command, by } = command;
    let answer = Answer::of_page(command, None, summed)?;
    let analysis = &answer.analysis;
    let trace = answer.trace().ok();
    let labels = trace.map(|trace| by_label(trace, analysis)).unwrap_or_default();
    let sites = trace.map(|trace| by_launch_site(trace, analysis, by.is_some())).unwrap_or_default();
    if by.is_some() && sites.is_empty() {
        bail!(
            "no launch has a call stack: `run` records them for programs in CPython 3.11 to 3.14, one trace at a time"
        );
    }
    if command.json {
        let kernels = analysis.kernels.iter();
        let kernels: Vec<_> = kernels
            .map(|kernel| with_spread(json!(kernel), answer.set(), || SetRow::Kernel(kernel.kernel.clone())))
            .collect();
        let mut figures = json!({
            "active": analysis.active,
            "kernels": kernels,
            "locations": analysis.locations,
            "warp_events": analysis.warp_events,
        });
        if answer.set().is_none() {
            figures["paths"] = analysis.paths.len().into();
        }
        if !labels.is_empty() {
            figures["labels"] = json!(labels);
        }
        if !sites.is_empty() {
            figures["launch_sites"] = json!(sites);
        }
        if let Some(schedule) = &analysis.schedule {
            figures["schedule"] = json!(schedule);
        }
        if let Some(host) = &analysis.host {
            figures["host"] = json!(host);
        }
        return answer.json(figures);
    }
    answer.headline()?;
    if by.is_some() {
        return print_stacks(&sites);
    }
    if analysis.counts.visits == 0 {
        // The file also lists kernels of launches that were not traced.
        if !analysis.kernels.is_empty() {
            print_table(&kernel_table(&analysis.kernels, None))?;
        }
        return print_sites(&sites);
    }
    let Counts { idle, slots, .. } = analysis.counts;
    say!(
        "{} {}: {} idle ({}); {} lanes an event",
        count(slots),
        analysis.weight.slots(),
        count(idle),
        percent(idle, slots),
        ratio(analysis.counts.mean_lanes())
    )?;
    for line in trace.map(|trace| words::schedule(trace, analysis)).unwrap_or_default() {
        say!("{line}")?;
    }
    for line in words::work(analysis, usize::MAX) {
        say!("{line}")?;
    }
    if answer.set().is_none() {
        say!("{}", words::groups(analysis))?;
    }
    print_table(&kernel_table(&analysis.kernels, analysis.time))?;
    if !labels.is_empty() {
        print_table(&label_table(&labels[..labels.len().min(ROWS)]))?;
        if labels.len() > ROWS {
            say!("and {} more labels; `--json` has all", count((labels.len() - ROWS) as u64))?;
        }
    }
    print_sites(&sites)?;
    let rows = (0..).zip(analysis.active.iter().copied()).filter(|(_, visits)| *visits > 0);
    let most = analysis.active.iter().copied().max().unwrap_or(0);
    let active = TextTable::<(u32, u64)>::new()
        .right("active lanes", |(lanes, _)| lanes.to_string())
        .right("events", |(_, visits)| count(*visits))
        .right("of all", |(_, visits)| percent(*visits, analysis.counts.visits))
        .left("", |(_, visits)| "#".repeat((BAR * share(*visits, most)).ceil() as usize));
    Ok(print_table(&active.text(&rows.collect::<Vec<_>>()))?)
}

fn print_sites(sites: &[LaunchSiteFigures]) -> anyhow::Result<()> {
    if sites.is_empty() {
        return Ok(());
    }
    let table = TextTable::<LaunchSiteFigures>::new()
        .left("launched at", |of| {
            of.site.as_deref().map_or("(no call stack)".into(), short_path).into_owned()
        })
        .right("launches", |of| count(of.launches))
        .right("traced", |of| count(of.traced))
        .right("events", |of| count(of.counts.visits))
        .right("idle slots", |of| count(of.counts.idle))
        .left("kernels", |of| kernels_of(of, KERNEL_WIDTH));
    print_table(&table.text(&sites[..sites.len().min(ROWS)]))?;
    if sites.len() > ROWS {
        say!("and {} more places; `--json` has all", count((sites.len() - ROWS) as u64))?;
    }
    Ok(())
}

fn print_stacks(stacks: &[LaunchSiteFigures]) -> anyhow::Result<()> {
    for of in stacks.iter().take(ROWS) {
        let traced =
            if of.traced == of.launches { String::new() } else { format!(" ({} traced)", count(of.traced)) };
        let launches = if of.launches == 1 { "launch" } else { "launches" };
        say!("\n{} {launches}{traced} of {}", count(of.launches), kernels_of(of, WIDEST))?;
        if of.stack.is_empty() {
            say!("  (no call stack)")?;
        }
        for frame in &of.stack {
            say!("  {} {frame}", if of.site.as_ref() == Some(frame) { '>' } else { ' ' })?;
        }
    }
    if stacks.len() > ROWS {
        say!("\nand {} more call stacks; `--json` has all", count((stacks.len() - ROWS) as u64))?;
    }
    Ok(())
}

/// Names the kernel with the most launches, and how many others there are.
fn kernels_of(of: &LaunchSiteFigures, width: usize) -> String {
    let Some((first, _)) = of.kernels.first() else { return String::new() };
    match of.kernels.len() - 1 {
        0 => cut(first, width).into_owned(),
        more => format!("{} and {more} more", cut(first, width)),
    }
}

/// Returns the last two parts of a frame's path, with line and function.
fn short_path(frame: &str) -> Cow<'_, str> {
    let path = frame.split_once(" in ").map_or(frame, |(path, _)| path);
    match path.rmatch_indices('/').nth(1) {
        Some((at, _)) => frame[at + 1..].into(),
        None => frame.into(),
    }
}

fn kernel_table(kernels: &[KernelFigures], all: Option<Time>) -> String {
    TextTable::<KernelFigures>::new()
        .left("kernel", |kernel| cut(&kernel.kernel, WIDEST).into_owned())
        .right("launches", |kernel| count(kernel.launches))
        .right("warps", |kernel| count(kernel.warps))
        .times(all, |kernel| kernel.time)
        .right("events", |kernel| count(kernel.counts.visits))
        .right("lanes", |kernel| ratio(kernel.counts.mean_lanes()))
        .left("1..32", |kernel| lane_bars(&kernel.active))
        .right("idle slots", |kernel| count(kernel.counts.idle))
        .right("idle", |kernel| percent(kernel.counts.idle, kernel.counts.slots))
        .text(kernels)
}

fn label_table(labels: &[LabelFigures]) -> String {
    TextTable::<LabelFigures>::new()
        .left("label", |of| {
            of.label.as_deref().map_or_else(|| "(none)".into(), |label| cut(label, LABEL_WIDTH)).into_owned()
        })
        .right("launches", |of| count(of.launches))
        .right("warps", |of| count(of.warps))
        .right("events", |of| count(of.counts.visits))
        .right("lanes", |of| ratio(of.counts.mean_lanes()))
        .right("idle slots", |of| count(of.counts.idle))
        .right("idle", |of| percent(of.counts.idle, of.counts.slots))
        .text(labels)
}
