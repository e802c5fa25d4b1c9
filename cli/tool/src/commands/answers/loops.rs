//! `warptrace loops`.

use std::cmp::Reverse;
use std::process::ExitCode;

use serde_json::json;
use warptrace_analysis::{Figure, LocationFigures, OrderItems, Row, share};

use super::set::{explain, with_spread};
use super::words::{bars, ratio};
use super::{Answer, ROWS, TextTable, first, print_rows};
use crate::arguments::{LoopColumn, Rows};
use crate::output::{count, say};

pub(crate) fn run(command: &Rows<LoopColumn>) -> anyhow::Result<ExitCode> {
    let answer = Answer::of_rows(command)?;
    let is_asked = |head: &&LocationFigures| answer.location.is_none_or(|id| head.point.location == id);
    let mut loops: Vec<&LocationFigures> = answer.analysis.loops().filter(is_asked).collect();
    match command.sort.unwrap_or(LoopColumn::Idle) {
        LoopColumn::Idle => loops.order_by_key(|head| Reverse(head.counts.idle)),
        LoopColumn::Visits => loops.order_by_key(|head| Reverse(head.counts.visits)),
        LoopColumn::Max => loops.order_by_key(|head| Reverse(head.trips.max())),
        LoopColumn::Imbalance => {
            loops.order_by(|a, b| b.trips.imbalance().total_cmp(&a.trips.imbalance()));
        }
        LoopColumn::Source => {
            loops.order_by(|a, b| (&a.point.file, a.point.line).cmp(&(&b.point.file, b.point.line)));
        }
    }
    if command.page.json {
        let (loops, _) = first(loops, command.limit, usize::MAX);
        answer.json_rows(
            json!({}),
            "loops",
            loops.into_iter().map(|head| with_spread(json!(head), answer.set(), || row_of(head))),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    answer.headline()?;
    if loops.is_empty() {
        say!("no loops: no lane came twice to a location")?;
        return Ok(ExitCode::SUCCESS);
    }
    let (loops, more) = first(loops, command.limit, ROWS);
    print_rows(&loop_table(&answer, &loops), more)?;
    say!("\nTrips of a lane each time that it comes to the loop; imbalance: most over mean.")?;
    say!("Bars: how many made 1, 2 to 3, 4 to 7, 8 to 15 ... trips.")?;
    say!("By warp: imbalance of the visits of warps.")?;
    if let Some(set) = answer.set() {
        explain(set, &[Figure::Trips])?;
    }
    Ok(ExitCode::SUCCESS)
}

fn row_of(head: &LocationFigures) -> Row {
    Row::Location(head.point.location)
}

fn loop_table(answer: &Answer, loops: &[&LocationFigures]) -> String {
    TextTable::<&LocationFigures>::new()
        .left("line", |head| answer.names.line_of(&head.point))
        .left("head", |head| answer.names.name(head.point.location))
        .when(answer.analysis.time.is_some(), |table| {
            table.right("cycles a trip", |head| {
                let cycles = head.loop_lane_cycles.map(|cycles| ratio(share(cycles, head.trips.sum())));
                cycles.unwrap_or_else(|| "-".to_owned())
            })
        })
        .right("min", |head| count(head.trips.min()))
        .right("median", |head| count(head.trips.percentile(50)))
        .right("p95", |head| count(head.trips.percentile(95)))
        .right("max", |head| count(head.trips.max()))
        .right("mean", |head| ratio(head.trips.mean()))
        .right("imbalance", |head| ratio(head.trips.imbalance()))
        .left("trips", |head| bars(head.trips.powers_of_two().get(1..).unwrap_or(&[])))
        .right("by warp", |head| ratio(head.warp_visits.imbalance()))
        .spread(answer.set(), |head| row_of(head), &[Figure::Trips])
        .of(loops)
}
