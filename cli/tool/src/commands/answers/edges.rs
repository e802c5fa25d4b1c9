//! `warptrace edges`.

use serde_json::{Value, json};
use warptrace_analysis::{Edge, SetAnalysis, lanes_from, share};

use super::rows::{Listed, Order};
use super::words::percent;
use super::{Answer, TextTable, print_rows};
use crate::arguments::Rows;
use crate::output::{count, say};

impl Listed for Edge {
    const NAME: &'static str = "edges";
    const ORDERS: &'static [Order<Self>] = &[
        Order::most("lanes", "Lanes that went this way", |edge| edge.lanes),
        Order::most("visits", "Steps from one event to the next", |edge| edge.visits),
        Order::unsorted("from", "Location from which lanes came, by id"),
    ];

    fn is_at(&self, location: u16) -> bool {
        [self.from, self.to].contains(&Some(location))
    }
}

pub(crate) fn run(command: &Rows<Edge>, summed: Option<SetAnalysis>) -> anyhow::Result<()> {
    let answer = Answer::of_rows(command, summed)?;
    let (edges, more) = command.shown(&answer, &answer.analysis.edges);
    if command.page.json {
        return answer.json_rows(
            json!({}),
            Edge::NAME,
            edges.into_iter().map(|edge| json_row(&answer, edge)),
        );
    }
    answer.headline()?;
    print_rows(&edge_table(&answer, &edges), more)?;
    say!("\ntaken: part of the lanes that left `from`.")?;
    Ok(say!("split: part of the visits of `from` whose lanes went different ways.")?)
}

/// Returns the number of lanes that left the location at which an edge starts, or that began.
fn leaving(answer: &Answer, edge: &Edge) -> u64 {
    lanes_from(&answer.analysis.edges, edge.from)
}

fn json_row(answer: &Answer, edge: &Edge) -> Value {
    let name = |id: Option<u16>| id.map(|id| answer.names.name(id));
    let from = edge.from.and_then(|from| answer.analysis.location(from));
    json!({
        "from": edge.from,
        "from_name": name(edge.from),
        "to": edge.to,
        "to_name": name(edge.to),
        "visits": edge.visits,
        "lanes": edge.lanes,
        "taken": share(edge.lanes, leaving(answer, edge)),
        "from_visits": from.map(|from| from.counts.visits),
        "from_splits": from.map(|from| from.splits),
    })
}

fn edge_table(answer: &Answer, edges: &[&Edge]) -> String {
    let end = |id: Option<u16>, none: &str| id.map_or_else(|| none.to_owned(), |id| answer.names.full(id));
    TextTable::<&Edge>::new()
        .left("from", |edge| end(edge.from, "(begin)"))
        .left("to", |edge| end(edge.to, "(end)"))
        .right("visits", |edge| count(edge.visits))
        .right("lanes", |edge| count(edge.lanes))
        .right("taken", |edge| percent(edge.lanes, leaving(answer, edge)))
        .right("split", |edge| {
            let from = edge.from.and_then(|from| answer.analysis.location(from));
            from.map_or_else(String::new, |from| percent(from.splits, from.counts.visits))
        })
        .text(edges)
}
