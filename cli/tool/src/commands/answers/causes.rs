//! `warptrace causes`.

use serde_json::{Value, json};
use warptrace_analysis::{Cause, CauseLine, SetAnalysis};

use super::rows::{Listed, Order};
use super::words::{percent, ratio};
use super::{Answer, TextTable, print_rows, words};
use crate::arguments::Rows;
use crate::output::{count, say};

impl Listed for Cause {
    const NAME: &'static str = "causes";
    const ORDERS: &'static [Order<Self>] = &[
        Order::unsorted("idle", "Idle slots"),
        Order::most("divergences", "Events after which lanes diverged", |cause| cause.divergences),
        Order::compared("events", "Mean number of events until lanes reconverged", |_, a, b| {
            b.mean_events_diverged().total_cmp(&a.mean_events_diverged())
        }),
        Order::by_source(|names, a, b| names.place(a.decision()).cmp(&names.place(b.decision()))),
    ];

    /// Compares with the location that rows show.
    fn is_at(&self, location: u16) -> bool {
        self.decision() == location
    }
}

pub(crate) fn run(command: &Rows<Cause>, summed: Option<SetAnalysis>) -> anyhow::Result<()> {
    let answer = Answer::of_rows(command, summed)?;
    let analysis = &answer.analysis;
    let lines = match &answer.asked[..] {
        [_] => analysis.causes.iter().filter_map(|cause| analysis.cause_line(vec![cause])).collect(),
        _ => analysis.cause_lines(),
    };
    let (lines, more) = command.shown_by(&answer, lines, |line| &line.whole);
    if command.page.json {
        return answer.json_rows(json!({}), Cause::NAME, lines.iter().map(cause_row));
    }
    answer.headline()?;
    if lines.is_empty() {
        return Ok(match answer.asked.first() {
            Some(&id) => say!("no lane was idle because of {}", answer.names.said(id)),
            None => say!("no causes: no lane was idle"),
        }?);
    }
    print_rows(&cause_table(&answer, &lines, true), more)?;
    if let [line] = &lines[..] {
        say!("")?;
        for more in words::apart(analysis, &answer.names, line) {
            say!("{more}")?;
        }
    }
    say!(
        "\n`caused slots`: slots of lanes that were absent until they reconverged, after a divergence here."
    )?;
    say!(
        "`diverge`: share of visits after which lanes diverged. `never`: divergences without reconvergence."
    )?;
    if lines.iter().any(|line| line.parts.len() > 1) {
        say!("`branches`: of the line, such as inlined copies; each of them is in the rows below.")?;
    }
    Ok(say!("`events`: mean number of events until lanes reconverged.")?)
}

/// Returns a line as JSON: the figures of its causes together, and of each of them if there are several.
pub(super) fn cause_row(line: &CauseLine<'_>) -> Value {
    let mut row = json!(line.whole);
    if line.parts.len() > 1 {
        row["parts"] = json!(line.parts);
    }
    row
}

/// A row of the table: a line, or one of its branches.
struct Row<'a> {
    cause: &'a Cause,
    visits: u64,
    /// Number of branches; 0 for a branch below its line.
    branches: usize,
}

pub(super) fn cause_table(answer: &Answer, lines: &[CauseLine<'_>], with_parts: bool) -> String {
    let visits = |id| answer.analysis.location(id).map_or(0, |location| location.counts.visits);
    let mut rows = Vec::new();
    for CauseLine { whole, parts, visits: all, .. } in lines {
        rows.push(Row { cause: whole, visits: *all, branches: parts.len() });
        let parts = parts.iter().filter(|_| with_parts && parts.len() > 1);
        rows.extend(parts.map(|part| Row { cause: part, visits: visits(part.point.location), branches: 0 }));
    }
    let unknown = || "-".to_owned();
    TextTable::<Row<'_>>::new()
        .left("line", |row| match row.branches {
            0 => format!("  location {}", row.cause.decision()),
            _ => answer.names.line_at(row.cause.decision()),
        })
        .left("lanes diverge at", |row| answer.names.name(row.cause.decision()))
        .when(lines.iter().any(|line| line.parts.len() > 1), |table| {
            table.right("branches", |row| match row.branches {
                0 => String::new(),
                branches => count(branches as u64),
            })
        })
        .right("caused slots", |row| count(row.cause.idle))
        .right("of all", |row| percent(row.cause.idle, answer.analysis.counts.idle))
        .right("diverge", |row| match row.visits {
            0 => unknown(),
            visits => percent(row.cause.divergences, visits),
        })
        .right("events", |row| match row.cause.reconvergences.len() {
            0 => unknown(),
            _ => ratio(row.cause.mean_events_diverged()),
        })
        .right("never", |row| percent(row.cause.never_reconverged(), row.cause.divergences))
        .left("reconverge at", |row| {
            row.cause.reconvergences.first().map_or_else(unknown, |first| answer.names.name(first.location))
        })
        .left("idle at", |row| {
            row.cause.places.first().map_or_else(String::new, |first| answer.names.name(first.location))
        })
        .text(&rows)
}
