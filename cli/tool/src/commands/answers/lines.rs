//! `warptrace lines`.

use std::cmp::Reverse;
use std::process::ExitCode;

use serde_json::json;
use warptrace_analysis::LineFigures;

use super::words::{lane_bars, percent, ratio};
use super::{Answer, Column, ROWS, first, print_rows, table};
use crate::arguments::{LineColumn, Rows};
use crate::output::count;

pub(crate) fn run(command: &Rows<LineColumn>) -> anyhow::Result<ExitCode> {
    let answer = Answer::of_rows(command)?;
    let is_asked =
        |line: &&LineFigures| answer.location.is_none_or(|location| line.locations.contains(&location));
    let mut lines: Vec<&LineFigures> = answer.analysis.lines.iter().filter(is_asked).collect();
    let key = |line: &&LineFigures| match command.sort.unwrap_or(LineColumn::Caused) {
        LineColumn::Caused => line.caused,
        LineColumn::Idle => line.counts.idle,
        LineColumn::Visits => line.counts.visits,
        LineColumn::Lanes => line.counts.lanes,
        LineColumn::Warps => line.warps,
        LineColumn::Splits => line.splits,
        LineColumn::Source => 0,
    };
    if command.sort != Some(LineColumn::Source) {
        lines.sort_by_key(|line| Reverse((key(line), line.counts.idle)));
    }
    if command.page.json {
        let (lines, _) = first(lines, command.limit, usize::MAX);
        answer.json(json!({ "lines": lines }))?;
        return Ok(ExitCode::SUCCESS);
    }
    answer.headline()?;
    let (lines, more) = first(lines, command.limit, ROWS);
    print_rows(&line_table(&answer, &lines), more)?;
    Ok(ExitCode::SUCCESS)
}

/// A row for each line.
pub(super) fn line_table(answer: &Answer, lines: &[&LineFigures]) -> String {
    use Column::{Left, Right};
    let columns = [
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
    let row = |line: &&LineFigures| {
        let LineFigures { file, line: number, locations, counts, caused, warps, active, splits, .. } = line;
        vec![
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
        ]
    };
    table(&columns, lines.iter().map(row))
}
