//! `warptrace stats`.

use std::process::ExitCode;

use serde_json::json;
use warptrace_analysis::{Counts, KernelFigures, LabelFigures, Row, Time, by_label, share};

use super::set::with_spread;
use super::words::{lane_bars, percent, ratio};
use super::{Column, ROWS, TIME_COLUMNS, analysed, print_table, table, time_cells, words};
use crate::arguments::Page;
use crate::output::{count, say};

/// Longest label in the table.
const LABEL_WIDTH: usize = 60;
/// Width of the longest bar of the histogram.
const BAR: f64 = 40.0;

pub(crate) fn run(command: &Page) -> anyhow::Result<ExitCode> {
    let answer = analysed(command, None, false)?;
    let analysis = &answer.analysis;
    let trace = answer.trace().ok();
    let labels = trace.map(|trace| by_label(trace, analysis)).unwrap_or_default();
    if command.json {
        let kernels = analysis.kernels.iter();
        let kernels: Vec<_> = kernels
            .map(|kernel| with_spread(json!(kernel), answer.set(), || Row::Kernel(kernel.kernel.clone())))
            .collect();
        let mut figures = json!({
            "active": analysis.active,
            "kernels": kernels,
            "locations": analysis.locations,
            "warp_events": analysis.warp_events,
        });
        if answer.set().is_none() {
            figures["paths"] = analysis.paths.len().into();
            figures["standing"] = json!(analysis.standing);
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
        answer.json(figures)?;
        return Ok(ExitCode::SUCCESS);
    }
    answer.headline()?;
    if analysis.counts.visits == 0 {
        return Ok(ExitCode::SUCCESS);
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
    let rows = (0..).zip(&analysis.active).filter(|(_, visits)| **visits > 0);
    let most = analysis.active.iter().copied().max().unwrap_or(0);
    let rows = rows.map(|(lanes, &visits): (u32, _)| {
        let bar = "#".repeat((BAR * share(visits, most)).ceil() as usize);
        vec![lanes.to_string(), count(visits), percent(visits, analysis.counts.visits), bar]
    });
    let columns =
        [Column::Right("active lanes"), Column::Right("events"), Column::Right("of all"), Column::Left("")];
    print_table(&table(&columns, rows))?;
    Ok(ExitCode::SUCCESS)
}

fn kernel_table(kernels: &[KernelFigures], all: Option<Time>) -> String {
    use Column::{Left, Right};
    let mut columns = vec![
        Left("kernel"),
        Right("launches"),
        Right("warps"),
        Right("events"),
        Right("lanes"),
        Left("1..32"),
        Right("idle slots"),
        Right("idle"),
    ];
    if all.is_some() {
        columns.splice(3..3, TIME_COLUMNS);
    }
    let row = |kernel: &KernelFigures| {
        let mut row = vec![
            kernel.kernel.clone(),
            count(kernel.launches),
            count(kernel.warps),
            count(kernel.counts.visits),
            ratio(kernel.counts.mean_lanes()),
            lane_bars(&kernel.active),
            count(kernel.counts.idle),
            percent(kernel.counts.idle, kernel.counts.slots),
        ];
        row.splice(3..3, time_cells(kernel.time, all));
        row
    };
    table(&columns, kernels.iter().map(row))
}

fn label_table(labels: &[LabelFigures]) -> String {
    use Column::{Left, Right};
    let columns = [
        Left("label"),
        Right("launches"),
        Right("warps"),
        Right("events"),
        Right("lanes"),
        Right("idle slots"),
        Right("idle"),
    ];
    let row = |figures: &LabelFigures| {
        let LabelFigures { label, launches, warps, counts, .. } = figures;
        vec![
            label
                .as_deref()
                .map_or_else(|| "(none)".into(), |label| words::cut(label, LABEL_WIDTH))
                .into_owned(),
            count(*launches),
            count(*warps),
            count(counts.visits),
            ratio(counts.mean_lanes()),
            count(counts.idle),
            percent(counts.idle, counts.slots),
        ]
    };
    table(&columns, labels.iter().map(row))
}
