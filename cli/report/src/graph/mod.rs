//! The control-flow graph that lanes were seen to take.

mod draw;
mod layout;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use warptrace_analysis::words::{self, Names, about, count, percent};
use warptrace_analysis::{Analysis, Edge, share};

use crate::limits::Limits;

/// Most edges of a drawing.
const EDGES: usize = 240;
/// Most drawings; each holds the locations that lanes went between, which are those of a kernel.
const GRAPHS: usize = 8;

/// All drawings, and a table for those who do not see them.
#[derive(Debug)]
pub(crate) struct Graphs {
    pub(crate) graphs: Vec<Graph>,
    pub(crate) left_out: Option<String>,
    pub(crate) table: Vec<EdgeRow>,
    pub(crate) more_rows: usize,
}

/// A drawing.
#[derive(Debug)]
pub(crate) struct Graph {
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
    /// Part of the visits after which lanes split; empty if they never did.
    pub(crate) splits: String,
    /// Whether lanes come from several locations.
    pub(crate) is_join: bool,
    /// Whether lanes begin and end here.
    pub(crate) begins: bool,
    pub(crate) ends: bool,
    pub(crate) label: String,
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct EdgeRow {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) visits: String,
    pub(crate) lanes: String,
    pub(crate) taken: String,
}

/// Draws the locations of most visits and the edges between them, those of each kernel by themselves.
pub(crate) fn graphs(analysis: &Analysis, names: &Names, limits: Limits) -> Graphs {
    let mut ids: Vec<u16> = analysis.locations.iter().map(|location| location.point.location).collect();
    let visits = |id: &u16| analysis.location(*id).map_or(0, |location| location.counts.visits);
    ids.sort_by_key(|id| Reverse(visits(id)));
    let all = ids.len();
    ids.truncate(limits.nodes);
    // The search for loops begins where lanes do, and goes on in the order of the source.
    let begins = |id: u16| beginning(analysis).iter().any(|edge| edge.to == Some(id));
    let line = |id: u16| analysis.location(id).map(|location| (&location.point.file, location.point.line));
    ids.sort_by_cached_key(|&id| (!begins(id), line(id), id));
    let mut edges: Vec<&Edge> = analysis.edges.iter().collect();
    edges.sort_by_key(|edge| Reverse(edge.lanes));
    let drawn = |edge: &&&Edge| match (edge.from, edge.to) {
        (Some(from), Some(to)) => ids.contains(&from) && ids.contains(&to),
        _ => false,
    };
    let mut shown: Vec<&Edge> = edges.iter().filter(drawn).copied().collect();
    let all_edges = shown.len();
    shown.truncate(EDGES);
    let mut parts = components(&ids, &shown);
    parts.sort_by_key(|part| Reverse(part.iter().map(visits).fold(0_u64, u64::saturating_add)));
    let mut left_out = Vec::new();
    if all > ids.len() {
        left_out.push(format!("{} locations of fewer visits", count((all - ids.len()) as u64)));
    }
    if all_edges > shown.len() {
        left_out.push(format!("{} edges of fewer lanes", count((all_edges - shown.len()) as u64)));
    }
    if parts.len() > GRAPHS {
        left_out.push(words::many((parts.len() - GRAPHS) as u64, "drawing"));
    }
    let rows = limits.nodes;
    Graphs {
        graphs: parts.iter().take(GRAPHS).map(|part| draw::draw(analysis, names, part, &shown)).collect(),
        left_out: (!left_out.is_empty()).then(|| left_out.join(", ")),
        table: edges.iter().take(rows).map(|edge| edge_row(analysis, names, edge)).collect(),
        more_rows: edges.len().saturating_sub(rows),
    }
}

/// Groups locations between which edges lead, in the order of `ids`.
fn components(ids: &[u16], edges: &[&Edge]) -> Vec<Vec<u16>> {
    let mut group: BTreeMap<u16, u16> = ids.iter().map(|&id| (id, id)).collect();
    for edge in edges {
        let (Some(from), Some(to)) = (edge.from, edge.to) else { continue };
        let (Some(&a), Some(&b)) = (group.get(&from), group.get(&to)) else { continue };
        group.values_mut().filter(|group| **group == b).for_each(|group| *group = a);
    }
    let mut parts: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
    ids.iter().for_each(|id| parts.entry(group[id]).or_default().push(*id));
    parts.into_values().collect()
}

/// The edges with which lanes begin.
fn beginning(analysis: &Analysis) -> &[Edge] {
    &analysis.edges[..analysis.edges.partition_point(|edge| edge.from.is_none())]
}

/// Lanes that left the location from which an edge goes, or that began.
fn leaving(analysis: &Analysis, edge: &Edge) -> u64 {
    let edges = edge.from.map_or_else(|| beginning(analysis), |from| analysis.edges_from(from));
    edges.iter().fold(0, |sum, edge| sum.saturating_add(edge.lanes))
}

fn edge_row(analysis: &Analysis, names: &Names, edge: &Edge) -> EdgeRow {
    let name = |id: Option<u16>, outside: &str| id.map_or_else(|| outside.to_owned(), |id| names.full(id));
    EdgeRow {
        from: name(edge.from, "(begin)"),
        to: name(edge.to, "(end)"),
        visits: count(edge.visits),
        lanes: count(edge.lanes),
        taken: percent(edge.lanes, leaving(analysis, edge)),
    }
}

/// What an edge says when it is pointed at.
fn said(analysis: &Analysis, names: &Names, edge: &Edge) -> String {
    let EdgeRow { from, to, visits, lanes, .. } = edge_row(analysis, names, edge);
    let taken = about(edge.lanes, leaving(analysis, edge));
    format!("{from} → {to}: {lanes} lanes in {visits} visits, {taken} of the lanes that left")
}

/// Width of a line: `lanes` over the most.
fn line_width(lanes: u64, most: u64) -> f64 {
    (9.0 * share(lanes, most)).max(0.8)
}
