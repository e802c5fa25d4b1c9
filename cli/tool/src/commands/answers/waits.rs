//! `warptrace waits`.

use std::cmp::Reverse;
use std::process::ExitCode;

use serde_json::json;
use warptrace_analysis::{OrderItems, Time, WaitFigures};
use warptrace_format::LocationKind;

use warptrace_analysis::words::{barrier, copies};

use super::words::{percent, ratio};
use super::{Answer, ROWS, TextTable, first, print_rows};
use crate::arguments::{Rows, WaitColumn};
use crate::output::{count, say};

pub(crate) fn run(command: &Rows<WaitColumn>) -> anyhow::Result<ExitCode> {
    let answer = Answer::of_one(command)?;
    let is_asked = |wait: &&WaitFigures| answer.location.is_none_or(|id| wait.point.location == id);
    let mut waits: Vec<&WaitFigures> = answer.analysis.waits.iter().filter(is_asked).collect();
    match command.sort.unwrap_or(WaitColumn::Cycles) {
        WaitColumn::Cycles => waits.order_by_key(|wait| Reverse(wait.lane_cycles)),
        WaitColumn::Waits => waits.order_by_key(|wait| Reverse(wait.waits)),
        WaitColumn::Max => waits.order_by_key(|wait| Reverse(wait.wait_cycles.max())),
        WaitColumn::Source => {
            waits.order_by(|a, b| (&a.point.file, a.point.line).cmp(&(&b.point.file, b.point.line)));
        }
    }
    if command.page.json {
        let (waits, _) = first(waits, command.limit, usize::MAX);
        answer.json_rows(json!({}), "waits", waits.into_iter().map(|row| json!(row)))?;
        return Ok(ExitCode::SUCCESS);
    }
    answer.headline()?;
    let Some(time) = answer.analysis.time else {
        say!("no waits: the trace has no times of runs; record with `--times runs`")?;
        return Ok(ExitCode::SUCCESS);
    };
    if waits.is_empty() {
        let has_points = answer
            .trace()?
            .metadata()
            .locations
            .iter()
            .any(|info| matches!(info.kind, LocationKind::Barrier | LocationKind::Wait));
        let why = match has_points {
            true => "no lane came to one",
            false => {
                "the trace has no points at waits; `warptrace run --points waits` has them, and `blocks` with times"
            }
        };
        say!("no waits: {why}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let (waits, more) = first(waits, command.limit, ROWS);
    print_rows(&wait_table(&answer, &time, &waits), more)?;
    say!(
        "\nCycles from when a group of lanes came to when it went on; of all: part of the time of all lanes."
    )?;
    if knows_barriers(&waits) {
        say!("Barrier: as the compiled code tells; `?` is known at run time only, `-` not at all.")?;
    }
    for wait in &waits {
        let said = wait.info.as_deref().and_then(|info| copies(&answer.names, info));
        if let Some(said) = said {
            say!("{}: {said}", answer.names.line_of(&wait.point))?;
        }
    }
    say!("Last: the warp of its block that came last, alone for most cycles in all; how often it did.")?;
    Ok(ExitCode::SUCCESS)
}

/// Whether the trace says of any of these waits which barrier it is.
fn knows_barriers(waits: &[&WaitFigures]) -> bool {
    waits.iter().any(|wait| wait.info.as_deref().and_then(barrier).is_some())
}

fn wait_table(answer: &Answer, all: &Time, waits: &[&WaitFigures]) -> String {
    let unknown = || "-".to_owned();
    TextTable::<&WaitFigures>::new()
        .left("line", |wait| answer.names.line_of(&wait.point))
        .left("wait", |wait| answer.names.name(wait.point.location))
        .when(knows_barriers(waits), |table| {
            table.left("barrier", move |wait| wait.info.as_deref().and_then(barrier).unwrap_or_else(unknown))
        })
        .right("waits", |wait| count(wait.waits))
        .right("of all", |wait| percent(wait.lane_cycles, all.lane_cycles))
        .right("mean", |wait| ratio(wait.wait_cycles.mean()))
        .right("median", |wait| count(wait.wait_cycles.percentile(50)))
        .right("p95", |wait| count(wait.wait_cycles.percentile(95)))
        .right("max", |wait| count(wait.wait_cycles.max()))
        .left("last", move |wait| {
            wait.arrivals.as_ref().map_or_else(unknown, |found| {
                format!("warp {}, {}", found.last_warp, percent(found.last, found.compared))
            })
        })
        .right("alone", move |wait| {
            wait.arrivals.as_ref().map_or_else(unknown, |found| count(found.alone_cycles))
        })
        .of(waits)
}
