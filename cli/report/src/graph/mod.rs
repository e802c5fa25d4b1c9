//! Observed control-flow graphs.

mod draw;
mod labels;
mod layout;

use std::cmp::Reverse;

use warptrace_analysis::words::{count, percent};
use warptrace_analysis::{Edge, KernelFigures, OrderItems, edges_from, lanes_from, share};

use crate::guide::Guide;
use crate::table::{Columns, PageTable};

/// Maximum number of edges of a drawing.
const EDGES: usize = 240;
const GRAPHS: usize = 8;

#[derive(Debug)]
pub(crate) struct Graphs {
    pub(crate) graphs: Vec<Graph>,
    pub(crate) more: usize,
    pub(crate) table: PageTable,
}

#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) number: usize,
    pub(crate) kernel: String,
    /// Omitted locations and edges in words; empty if all are drawn.
    pub(crate) left_out: String,
    pub(crate) width: String,
    pub(crate) height: String,
    pub(crate) label: String,
    pub(crate) edges: Vec<Drawn>,
    pub(crate) nodes: Vec<Node>,
}

#[derive(Debug)]
pub(crate) struct Drawn {
    pub(crate) path: String,
    pub(crate) width: String,
    pub(crate) label: String,
    /// Share of the lanes leaving its source that take this edge; empty if all of them do.
    pub(crate) taken: String,
    pub(crate) at: [String; 2],
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) x: String,
    pub(crate) y: String,
    pub(crate) width: String,
    pub(crate) heat: String,
    pub(crate) name: String,
    pub(crate) line: String,
    pub(crate) rank: Option<usize>,
    /// Share of the visits after which lanes split; empty if lanes never split.
    pub(crate) splits: String,
    /// Whether several forward edges lead here.
    pub(crate) is_join: bool,
    /// Whether lanes begin here, and whether they end here.
    pub(crate) begins: bool,
    pub(crate) ends: bool,
    pub(crate) label: String,
}

/// Draws the kernels with the most visits.
pub(crate) fn graphs(guide: &Guide<'_>) -> Graphs {
    let analysis = guide.analysis;
    let mut kernels: Vec<(usize, &KernelFigures)> = analysis.kernels.iter().enumerate().collect();
    kernels.retain(|(_, kernel)| kernel.counts.visits > 0);
    kernels.order_by_key(|(_, kernel)| Reverse(kernel.counts.visits));
    let most = GRAPHS.min(guide.limits.kernels);
    let mut edges: Vec<&Edge> = analysis.edges.iter().collect();
    edges.order_by_key(|edge| Reverse(edge.lanes));
    let columns = Columns::new()
        .html("from", |edge: &&Edge| guide.place(edge.from, "(begin)"))
        .html("to", |edge| guide.place(edge.to, "(end)"))
        .number("visits", |edge| count(edge.visits))
        .number("lanes", |edge| count(edge.lanes))
        .number("taken", |edge| percent(edge.lanes, lanes_from(&analysis.edges, edge.from)))
        .title("part of the lanes that left the first location");
    let from = |edge: &&Edge| Some(guide.kernels(edge.from.or(edge.to).as_slice()));
    Graphs {
        graphs: kernels.iter().take(most).map(|(number, kernel)| graph(guide, *number, kernel)).collect(),
        more: kernels.len().saturating_sub(most),
        table: columns.table(edges.into_iter(), guide.limits.nodes, from),
    }
}

/// Draws the locations of a kernel with the most visits and the edges between them.
fn graph(guide: &Guide<'_>, number: usize, kernel: &KernelFigures) -> Graph {
    let mut ids: Vec<u16> = kernel.locations.keys().copied().collect();
    ids.order_by_key(|id| Reverse(kernel.locations[id].visits));
    let all = ids.len();
    ids.truncate(guide.limits.nodes);
    // The search for back edges starts where lanes begin and continues in source order.
    let begins = |id: u16| edges_from(&kernel.edges, None).iter().any(|edge| edge.to == Some(id));
    let line = |id: u16| {
        let point = guide.analysis.location(id).map(|location| &location.point);
        point.map(|point| (&point.file, point.line))
    };
    ids.sort_by_cached_key(|&id| (!begins(id), line(id), id));
    let is_drawn = |id: Option<u16>| id.is_some_and(|id| ids.contains(&id));
    let mut edges: Vec<&Edge> =
        kernel.edges.iter().filter(|edge| is_drawn(edge.from) && is_drawn(edge.to)).collect();
    edges.order_by_key(|edge| Reverse(edge.lanes));
    let all_edges = edges.len();
    edges.truncate(EDGES.min(guide.limits.edges));
    let mut left_out = Vec::new();
    if all > ids.len() {
        left_out.push(format!("{} locations of fewer visits", count((all - ids.len()) as u64)));
    }
    if all_edges > edges.len() {
        left_out.push(format!("{} edges of fewer lanes", count((all_edges - edges.len()) as u64)));
    }
    draw::draw(guide, (number, kernel), &ids, &edges, left_out.join(", "))
}

fn line_width(lanes: u64, most: u64) -> f64 {
    (9.0 * share(lanes, most)).max(0.8)
}
