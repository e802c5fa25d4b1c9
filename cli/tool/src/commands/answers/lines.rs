//! `warptrace lines`.

use std::cmp::Reverse;
use std::process::ExitCode;

use serde_json::json;
use warptrace_analysis::{LineFigures, OrderItems, Row};

use super::set::{LINE_FIGURES, SPREAD_COLUMNS, explain, spread_cells, with_spread};
use super::words::{lane_bars, percent, ratio};
use super::{Answer, Column, ROWS, TIME_COLUMNS, first, print_rows, table, time_cells};
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
    use Column::{Left, Right};
    let mut columns = vec![
        Left("line"),
        Left("what"),
        Right("visits"),
        Right("warps"),
        Right("lanes"),
        Left("1..32"),
        Right("caused"),
        Right("idle slots"),
        Right("idle"),
        Right("splits"),
    ];
    if answer.analysis.time.is_some() {
        columns.splice(2..2, TIME_COLUMNS);
    }
    if answer.set().is_some() {
        columns.extend(SPREAD_COLUMNS);
    }
    let row = |line: &&LineFigures| {
        let LineFigures {
            file, time, line: number, locations, counts, caused, warps, active, splits, ..
        } = line;
        let mut row = vec![
            answer.names.line(file, *number),
            answer.names.names(locations),
            count(counts.visits),
            count(*warps),
            ratio(counts.mean_lanes()),
            lane_bars(active),
            percent(*caused, answer.analysis.counts.idle),
            count(counts.idle),
            percent(counts.idle, counts.slots),
            percent(*splits, counts.visits),
        ];
        row.splice(2..2, time_cells(*time, answer.analysis.time));
        if let Some(set) = answer.set() {
            row.extend(spread_cells(set, &Row::of_line(line), &LINE_FIGURES));
        }
        row
    };
    table(&columns, lines.iter().map(row))
}
