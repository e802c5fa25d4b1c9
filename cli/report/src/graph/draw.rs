//! Converts a layout into a drawing.

use std::fmt::Write;

use warptrace_analysis::words::{about, count, percent};
use warptrace_analysis::{Counts, Edge, KernelFigures, edges_from, lanes_from, share};

use super::labels::{Label, spread};
use super::layout::{Layout, layout};
use super::{Drawn, Graph, Node, line_width};
use crate::guide::Guide;
use crate::page::cut;

const NODE_HEIGHT: f64 = 40.0;
/// Height of the space between layers, in which edges turn.
const STRIPE: f64 = 56.0;
/// Margin around the layers. Back edges run in it.
const MARGIN: f64 = 34.0;
/// Distance between back edges.
const TRACK: f64 = 12.0;
const CHARACTER: f64 = 7.4;

pub(super) fn draw(
    guide: &Guide<'_>,
    (number, kernel): (usize, &KernelFigures),
    ids: &[u16],
    edges: &[&Edge],
    left_out: String,
) -> Graph {
    let at = |id: Option<u16>| ids.iter().position(|&own| Some(own) == id);
    let own: Vec<(usize, usize, &Edge)> =
        edges.iter().filter_map(|edge| Some((at(edge.from)?, at(edge.to)?, *edge))).collect();
    let most = own.iter().map(|edge| edge.2.lanes).max().unwrap_or(0);
    let texts: Vec<[String; 2]> = ids.iter().map(|&id| texts(guide, id)).collect();
    let width = |texts: &[String; 2]| {
        let longest = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
        longest as f64 * CHARACTER + 18.0
    };
    let widths: Vec<f64> = texts.iter().map(width).collect();
    let pairs: Vec<(usize, usize)> =
        own.iter().filter(|edge| edge.0 != edge.1).map(|edge| (edge.0, edge.1)).collect();
    let layout = layout(&widths, &pairs);
    let back = layout.routes.iter().filter(|route| route.is_none()).count() as f64;
    let pen = Pen { layout: &layout, widths: &widths, left: MARGIN + back * TRACK };
    let (mut drawn, mut labels) = (Vec::new(), Vec::new());
    let (mut route, mut track) = (0, 0.0);
    for (from, to, edge) in &own {
        let (path, at) = if from == to {
            pen.again(*from)
        } else {
            route += 1;
            match &layout.routes[route - 1] {
                Some(through) => pen.down(*from, *to, through),
                None => {
                    track += 1.0;
                    pen.back(*from, *to, track)
                }
            }
        };
        let width = format!("{:.1}", line_width(edge.lanes, most));
        let leaving = lanes_from(&kernel.edges, edge.from);
        let text = if edge.lanes < leaving { about(edge.lanes, leaving) } else { String::new() };
        labels.push(Label { text, at, weight: edge.lanes });
        drawn.push((path, width, said(guide, edge, leaving)));
    }
    spread(&mut labels);
    let drawn = drawn.into_iter().zip(labels).map(|((path, width, label), Label { text, at, .. })| Drawn {
        path,
        width,
        label,
        taken: text,
        at: at.map(|at| format!("{at:.1}")),
    });
    let joins = |node: usize| {
        let down = pairs.iter().zip(&layout.routes).filter(|(pair, route)| pair.1 == node && route.is_some());
        down.count() > 1
    };
    let nodes =
        (0..ids.len()).map(|node| pen.node(guide, kernel, ids[node], node, joins(node), texts[node].clone()));
    let total = own.iter().fold(0_u64, |sum, edge| sum.saturating_add(edge.2.lanes));
    let name = cut(&kernel.kernel, guide.limits.text);
    Graph {
        number,
        left_out,
        width: format!("{:.0}", pen.left + layout.width + 2.0 * MARGIN),
        height: format!("{:.0}", layout.layers as f64 * (NODE_HEIGHT + STRIPE) + STRIPE),
        label: format!(
            "Control flow of {name}, {} locations: {} steps of lanes along {} edges; the table below has them",
            count(ids.len() as u64),
            count(total),
            count(own.len() as u64)
        ),
        kernel: name,
        edges: drawn.collect(),
        nodes: nodes.collect(),
    }
}

fn texts(guide: &Guide<'_>, id: u16) -> [String; 2] {
    let place = guide.place(Some(id), "");
    [place.name, place.line]
}

fn said(guide: &Guide<'_>, edge: &Edge, leaving: u64) -> String {
    let name = |id: Option<u16>| id.map_or_else(String::new, |id| guide.names.full(id));
    format!(
        "{} → {}: {} lanes in {} visits, {} of the lanes that left",
        name(edge.from),
        name(edge.to),
        count(edge.lanes),
        count(edge.visits),
        about(edge.lanes, leaving)
    )
}

struct Pen<'a> {
    layout: &'a Layout,
    widths: &'a [f64],
    /// Left border of the layers.
    left: f64,
}

impl Pen<'_> {
    fn x(&self, node: usize) -> f64 {
        self.left + self.layout.nodes[node].0
    }

    fn top(&self, node: usize) -> f64 {
        top(self.layout.nodes[node].1)
    }

    /// Returns an edge to a lower layer, through the layers between, and the position of its label.
    fn down(&self, from: usize, to: usize, through: &[f64]) -> (String, [f64; 2]) {
        let mut path = format!("M{:.1} {:.1}", self.x(from), self.top(from) + NODE_HEIGHT);
        let (mut x, mut layer) = (self.x(from), self.layout.nodes[from].1);
        let mut turn = |next: f64, path: &mut String, is_last: bool| {
            let (above, below) = (top(layer) + NODE_HEIGHT, top(layer + 1));
            // The arrowhead ends at the node.
            let end = if is_last { below - 6.0 } else { below };
            let middle = (above + below) / 2.0;
            // Writing to a string cannot fail.
            let _ = write!(path, "C{x:.1} {middle:.1} {next:.1} {middle:.1} {next:.1} {end:.1}");
            if !is_last {
                let _ = write!(path, "V{:.1}", below + NODE_HEIGHT);
            }
            (x, layer) = (next, layer + 1);
        };
        through.iter().for_each(|&next| turn(self.left + next, &mut path, false));
        turn(self.x(to), &mut path, true);
        let first = through.first().map_or(self.x(to), |next| self.left + next);
        let label = [(self.x(from) + first) / 2.0, self.top(from) + NODE_HEIGHT + STRIPE / 2.0 + 3.0];
        (path, label)
    }

    /// Returns an edge to a higher layer, on a separate track at the left, and the position of its label.
    fn back(&self, from: usize, to: usize, track: f64) -> (String, [f64; 2]) {
        let outside = self.left - 14.0 - track * TRACK;
        let (start, end) = (self.top(from) + NODE_HEIGHT, self.top(to));
        let below = start + 8.0 + (track * 5.0) % (STRIPE / 2.0 - 10.0);
        let above = end - 14.0 - (track * 5.0) % (STRIPE / 2.0 - 10.0);
        let (x, to_x) = (self.x(from) - self.widths[from] / 4.0, self.x(to) - self.widths[to] / 4.0);
        let path =
            format!("M{x:.1} {start:.1}V{below:.1}H{outside:.1}V{above:.1}H{to_x:.1}V{:.1}", end - 6.0);
        (path, [x - 16.0, below - 3.0])
    }

    fn again(&self, node: usize) -> (String, [f64; 2]) {
        let (right, top) = (self.x(node) + self.widths[node] / 2.0, self.top(node));
        let path = format!("M{right:.1} {:.1}c22 0 22 -20 6 -20", top + NODE_HEIGHT * 0.75);
        (path, [right + 34.0, top + NODE_HEIGHT / 2.0])
    }

    fn node(
        &self,
        guide: &Guide<'_>,
        kernel: &KernelFigures,
        id: u16,
        node: usize,
        is_join: bool,
        [name, line]: [String; 2],
    ) -> Node {
        // Splits are counted over all kernels that visit this location.
        let found = guide.analysis.location(id);
        let (all_visits, splits) = found.map_or((0, 0), |found| (found.counts.visits, found.splits));
        let Counts { visits, idle, .. } = kernel.locations.get(&id).copied().unwrap_or_default();
        let hottest = kernel.locations.values().map(|counts| counts.idle).max().unwrap_or(0);
        let splits_text = if splits > 0 { percent(splits, all_visits) } else { String::new() };
        Node {
            x: format!("{:.1}", self.x(node) - self.widths[node] / 2.0),
            y: format!("{:.1}", self.top(node)),
            width: format!("{:.1}", self.widths[node]),
            heat: format!("{:.3}", share(idle, hottest)),
            label: format!(
                "{name} {line}: {} visits, {} idle slots, lanes split after {} of the visits",
                count(visits),
                count(idle),
                percent(splits, all_visits)
            ),
            name,
            line,
            rank: guide.rank(id),
            splits: splits_text,
            is_join,
            begins: edges_from(&kernel.edges, None).iter().any(|edge| edge.to == Some(id)),
            ends: edges_from(&kernel.edges, Some(id)).iter().any(|edge| edge.to.is_none()),
        }
    }
}

fn top(layer: usize) -> f64 {
    STRIPE + layer as f64 * (NODE_HEIGHT + STRIPE)
}
