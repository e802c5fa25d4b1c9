//! `warptrace stats`.

use serde_json::json;
use warptrace_analysis::words::cut;
use warptrace_analysis::{Counts, KernelFigures, LabelFigures, SetAnalysis, SetRow, Time, by_label, share};

use super::set::with_spread;
use super::words::{lane_bars, percent, ratio};
use super::{Answer, ROWS, TextTable, print_table, words};
use crate::arguments::Page;
use crate::commands::table::WIDEST;
use crate::output::{count, say};

/// Longest label in the table.
const LABEL_WIDTH: usize = 60;
/// Width of the longest bar of the histogram.
const BAR: f64 = 40.0;

pub(crate) fn run(command: &Page, summed: Option<SetAnalysis>) -> anyhow::Result<()> {
    let answer = Answer::of_page(command, None, summed)?;
    let analysis = &answer.analysis;
    let trace = answer.trace().ok();
    let labels = trace.map(|trace| by_label(trace, analysis)).unwrap_or_default();
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
        if let Some(schedule) = &analysis.schedule {
            figures["schedule"] = json!(schedule);
        }
        if let Some(host) = &analysis.host {
            figures["host"] = json!(host);
        }
        return answer.json(figures);
    }
    answer.headline()?;
    if analysis.counts.visits == 0 {
        // Launches that were not traced have their kernels all the same.
        return if analysis.kernels.is_empty() {
            Ok(())
        } else {
            print_table(&kernel_table(&analysis.kernels, None)).map_err(Into::into)
        };
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
    let rows = (0..).zip(analysis.active.iter().copied()).filter(|(_, visits)| *visits > 0);
    let most = analysis.active.iter().copied().max().unwrap_or(0);
    let active = TextTable::<(u32, u64)>::new()
        .right("active lanes", |(lanes, _)| lanes.to_string())
        .right("events", |(_, visits)| count(*visits))
        .right("of all", |(_, visits)| percent(*visits, analysis.counts.visits))
        .left("", |(_, visits)| "#".repeat((BAR * share(*visits, most)).ceil() as usize));
    Ok(print_table(&active.text(&rows.collect::<Vec<_>>()))?)
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
