//! The control-flow graph that lanes were seen to take.

mod draw;
mod labels;
mod layout;

use std::cmp::Reverse;

use warptrace_analysis::words::{count, percent};
use warptrace_analysis::{Edge, KernelFigures, OrderItems, edges_from, lanes_from, share};

use crate::guide::Guide;
use crate::table::{Columns, PageTable};

/// Most edges of a drawing.
const EDGES: usize = 240;
/// Most kernels that are drawn.
const GRAPHS: usize = 8;

/// All drawings, and a table for those who do not see them.
#[derive(Debug)]
pub(crate) struct Graphs {
    pub(crate) graphs: Vec<Graph>,
    /// Kernels that are not drawn.
    pub(crate) more: usize,
    pub(crate) table: PageTable,
}

/// A drawing.
#[derive(Debug)]
pub(crate) struct Graph {
    /// The kernel's place in the analysis.
    pub(crate) number: usize,
    pub(crate) kernel: String,
    /// What of the kernel is not drawn; empty if nothing is missing.
    pub(crate) left_out: String,
    pub(crate) width: String,
    pub(crate) height: String,
    pub(crate) label: String,
    pub(crate) edges: Vec<Drawn>,
    pub(crate) nodes: Vec<Node>,
}

/// An edge.
#[derive(Debug)]
pub(crate) struct Drawn {
    pub(crate) path: String,
    /// Width of its line.
    pub(crate) width: String,
    pub(crate) label: String,
    /// The part of the lanes that left its location; empty if all did.
    pub(crate) taken: String,
    /// Where that stands.
    pub(crate) at: [String; 2],
}

/// A location.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) x: String,
    pub(crate) y: String,
    pub(crate) width: String,
    pub(crate) heat: String,
    pub(crate) name: String,
    pub(crate) line: String,
    /// Rank of its line.
    pub(crate) rank: Option<usize>,
    /// Part of the visits after which lanes split; empty if they never did.
    pub(crate) splits: String,
    /// Whether lanes come from several locations.
    pub(crate) is_join: bool,
    /// Whether lanes begin and end here.
    pub(crate) begins: bool,
    pub(crate) ends: bool,
    pub(crate) label: String,
}

/// Draws the kernels of most visits.
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

/// Draws the locations of a kernel with the most visits, and the edges between them.
fn graph(guide: &Guide<'_>, number: usize, kernel: &KernelFigures) -> Graph {
    let mut ids: Vec<u16> = kernel.locations.keys().copied().collect();
    ids.order_by_key(|id| Reverse(kernel.locations[id].visits));
    let all = ids.len();
    ids.truncate(guide.limits.nodes);
    // The search for loops begins where lanes do, and goes on in the order of the source.
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

/// Width of a line: `lanes` over the most.
fn line_width(lanes: u64, most: u64) -> f64 {
    (9.0 * share(lanes, most)).max(0.8)
}
