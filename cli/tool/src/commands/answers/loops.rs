//! `warptrace loops`.

use serde_json::json;
use warptrace_analysis::{Figure, LocationFigures, SetAnalysis, SetRow, share};

use super::rows::{Listed, Order};
use super::set::{explain, with_spread};
use super::words::{bars, ratio};
use super::{Answer, TextTable, print_rows};
use crate::arguments::Rows;
use crate::output::{count, say};

impl Listed for LocationFigures {
    const NAME: &'static str = "loops";
    const ORDERS: &'static [Order<Self>] = &[
        Order::most("idle", "Idle slots at the head", |head| head.counts.idle),
        Order::most("visits", "Times that a warp came to the head", |head| head.counts.visits),
        Order::most("max", "Most trips of a lane", |head| head.trips.max()),
        Order::compared("imbalance", "Most trips of a lane over the mean", |_, a, b| {
            b.trips.imbalance().total_cmp(&a.trips.imbalance())
        }),
        Order::by_source(|_, a, b| (&a.point.file, a.point.line).cmp(&(&b.point.file, b.point.line))),
    ];

    fn is_at(&self, location: u16) -> bool {
        self.point.location == location
    }
}

pub(crate) fn run(command: &Rows<LocationFigures>, summed: Option<SetAnalysis>) -> anyhow::Result<()> {
    let answer = Answer::of_rows(command, summed)?;
    let (loops, more) = command.shown(&answer, answer.analysis.loops());
    if command.page.json {
        let row = |head| with_spread(json!(head), answer.set(), || row_of(head));
        return answer.json_rows(json!({}), LocationFigures::NAME, loops.into_iter().map(row));
    }
    answer.headline()?;
    if loops.is_empty() {
        return Ok(say!("no loops: no lane came twice to a location")?);
    }
    print_rows(&loop_table(&answer, &loops), more)?;
    say!("\nTrips of a lane each time that it comes to the loop; imbalance: most over mean.")?;
    say!("Bars: how many made 1, 2 to 3, 4 to 7, 8 to 15 ... trips.")?;
    say!("By warp: imbalance of the visits of warps.")?;
    answer.set().map_or(Ok(()), |set| explain(set, &[Figure::Trips]))
}

fn row_of(head: &LocationFigures) -> SetRow {
    SetRow::Location(head.point.location)
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
        .text(loops)
}
