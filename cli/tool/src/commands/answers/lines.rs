//! `warptrace lines`.

use std::cmp::Reverse;
use std::process::ExitCode;

use serde_json::json;
use warptrace_analysis::{LineFigures, OrderItems, Row};

use super::set::{LINE_FIGURES, explain, with_spread};
use super::words::{lane_bars, percent, ratio};
use super::{Answer, ROWS, TextTable, first, print_rows};
use crate::arguments::{LineColumn, Rows};
use crate::output::count;

pub(crate) fn run(command: &Rows<LineColumn>) -> anyhow::Result<ExitCode> {
    let answer = Answer::of_rows(command)?;
    let is_asked =
        |line: &&LineFigures| answer.location.is_none_or(|location| line.locations.contains(&location));
    let mut lines: Vec<&LineFigures> = answer.analysis.lines.iter().filter(is_asked).collect();
    let key = |line: &&LineFigures| match command.sort {
        None => line.time.map_or(line.caused, |time| time.warp_cycles),
        Some(LineColumn::Cycles) => line.time.map_or(0, |time| time.warp_cycles),
        Some(LineColumn::Caused) => line.caused,
        Some(LineColumn::Idle) => line.counts.idle,
        Some(LineColumn::Visits) => line.counts.visits,
        Some(LineColumn::Lanes) => line.counts.lanes,
        Some(LineColumn::Warps) => line.warps,
        Some(LineColumn::Splits) => line.splits,
        Some(LineColumn::Source) => 0,
    };
    if command.sort != Some(LineColumn::Source) {
        lines.order_by_key(|line| Reverse((key(line), line.counts.idle)));
    }
    if command.page.json {
        let (lines, _) = first(lines, command.limit, usize::MAX);
        answer.json_rows(
            json!({}),
            "lines",
            lines.into_iter().map(|row| with_spread(json!(row), answer.set(), || Row::of_line(row))),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    answer.headline()?;
    let (lines, more) = first(lines, command.limit, ROWS);
    print_rows(&line_table(&answer, &lines), more)?;
    if let Some(set) = answer.set() {
        explain(set, &LINE_FIGURES)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A row for each line.
pub(super) fn line_table(answer: &Answer, lines: &[&LineFigures]) -> String {
    TextTable::<&LineFigures>::new()
        .left("line", |line| answer.names.line(&line.file, line.line))
        .left("what", |line| answer.names.names(&line.locations))
        .times(answer.analysis.time, |line| line.time)
        .right("visits", |line| count(line.counts.visits))
        .right("warps", |line| count(line.warps))
        .right("lanes", |line| ratio(line.counts.mean_lanes()))
        .left("1..32", |line| lane_bars(&line.active))
        .right("caused", |line| percent(line.caused, answer.analysis.counts.idle))
        .right("idle slots", |line| count(line.counts.idle))
        .right("idle", |line| percent(line.counts.idle, line.counts.slots))
        .right("splits", |line| percent(line.splits, line.counts.visits))
        .spread(answer.set(), |line| Row::of_line(line), &LINE_FIGURES)
        .of(lines)
}
