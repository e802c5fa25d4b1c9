//! `warptrace waits`.

use serde_json::json;
use warptrace_analysis::words::{barrier, copies};
use warptrace_analysis::{Time, WaitFigures};
use warptrace_format::LocationKind;

use super::rows::{Listed, Order};
use super::words::{percent, ratio};
use super::{Answer, TextTable, print_rows};
use crate::arguments::Rows;
use crate::output::{count, say};

impl Listed for WaitFigures {
    const NAME: &'static str = "waits";
    const ORDERS: &'static [Order<Self>] = &[
        Order::most("cycles", "Cycles of all lanes", |wait| wait.lane_cycles),
        Order::most("waits", "Times that lanes came together", |wait| wait.waits),
        Order::most("max", "The longest wait", |wait| wait.wait_cycles.max()),
        Order::by_source(|_, a, b| (&a.point.file, a.point.line).cmp(&(&b.point.file, b.point.line))),
    ];

    fn is_at(&self, location: u16) -> bool {
        self.point.location == location
    }
}

pub(crate) fn run(command: &Rows<WaitFigures>) -> anyhow::Result<()> {
    let answer = Answer::of_one(command)?;
    let (waits, more) = command.shown(&answer, &answer.analysis.waits);
    if command.page.json {
        return answer.json_rows(json!({}), WaitFigures::NAME, waits.into_iter().map(|row| json!(row)));
    }
    answer.headline()?;
    let Some(time) = answer.analysis.time else {
        return Ok(say!("no waits: the trace has no times of runs; record with `--times runs`")?);
    };
    if waits.is_empty() {
        let is_wait = |kind| matches!(kind, LocationKind::Barrier | LocationKind::Wait);
        let has_points = answer.trace()?.metadata().locations.iter().any(|info| is_wait(info.kind));
        let why = match has_points {
            true => "no lane came to one",
            false => {
                "the trace has no points at waits; `warptrace run --points waits` has them, and `blocks` with times"
            }
        };
        return Ok(say!("no waits: {why}")?);
    }
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
    Ok(say!("Last: the warp of its block that came last, alone for most cycles in all; how often it did.")?)
}

/// Returns true if the trace identifies the barrier of any of these waits.
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
        .text(waits)
}
