//! `warptrace edges`.

use std::cmp::Reverse;
use std::process::ExitCode;

use serde_json::{Value, json};
use warptrace_analysis::{Edge, OrderItems, share};

use super::words::percent;
use super::{Answer, ROWS, TextTable, first, print_rows};
use crate::arguments::{EdgeColumn, Rows};
use crate::output::{count, say};

pub(crate) fn run(command: &Rows<EdgeColumn>) -> anyhow::Result<ExitCode> {
    let answer = Answer::of_rows(command)?;
    let is_asked = |edge: &&Edge| answer.location.is_none_or(|id| [edge.from, edge.to].contains(&Some(id)));
    let mut edges: Vec<&Edge> = answer.analysis.edges.iter().filter(is_asked).collect();
    match command.sort.unwrap_or(EdgeColumn::Lanes) {
        EdgeColumn::Lanes => edges.order_by_key(|edge| Reverse(edge.lanes)),
        EdgeColumn::Visits => edges.order_by_key(|edge| Reverse(edge.visits)),
        EdgeColumn::From => {}
    }
    if command.page.json {
        let (edges, _) = first(edges, command.limit, usize::MAX);
        answer.json_rows(json!({}), "edges", edges.into_iter().map(|edge| json_row(&answer, edge)))?;
        return Ok(ExitCode::SUCCESS);
    }
    answer.headline()?;
    let (edges, more) = first(edges, command.limit, ROWS);
    print_rows(&edge_table(&answer, &edges), more)?;
    say!("\ntaken: part of the lanes that left `from`.")?;
    say!("split: part of the visits of `from` whose lanes went different ways.")?;
    Ok(ExitCode::SUCCESS)
}

/// Lanes that left the location from which an edge goes, or that began.
fn leaving(answer: &Answer, edge: &Edge) -> u64 {
    let edges = match edge.from {
        Some(from) => answer.analysis.edges_from(from),
        None => {
            let begin = answer.analysis.edges.partition_point(|edge| edge.from.is_none());
            &answer.analysis.edges[..begin]
        }
    };
    edges.iter().fold(0_u64, |sum, edge| sum.saturating_add(edge.lanes))
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
        .of(edges)
}
