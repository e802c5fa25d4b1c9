//! Arranges nodes in layers, as in Sugiyama, Tagawa and Toda, "Methods for Visual Understanding of
//! Hierarchical System Structures" (1981). Back edges do not affect the layers and are routed outside them.

/// Distance between items of a layer.
const GAP: f64 = 22.0;
/// Width of an edge that passes through a layer.
const PASSING: f64 = 10.0;
/// Number of sweeps that order layers; twice as many align items with their neighbours.
const SWEEPS: usize = 12;

/// Layers count from the top.
#[derive(Debug)]
pub(super) struct Layout {
    /// Middle and layer of each node.
    pub(super) nodes: Vec<(f64, usize)>,
    /// For each edge, its middles in the layers that it passes; `None` for a back edge.
    pub(super) routes: Vec<Option<Vec<f64>>>,
    pub(super) layers: usize,
    pub(super) width: f64,
}

/// An item of a layer: a node, or an edge that passes through it.
#[derive(Clone, Debug)]
struct Item {
    layer: usize,
    width: f64,
    middle: f64,
    /// Connected items in the layers above and below.
    near: [Vec<usize>; 2],
}

/// Arranges nodes with the given widths. `edges` are pairs of different nodes, searched in node order.
pub(super) fn layout(widths: &[f64], edges: &[(usize, usize)]) -> Layout {
    let is_back = back_edges(widths.len(), edges);
    let layer = layers(widths.len(), edges, &is_back);
    let mut items: Vec<Item> = widths
        .iter()
        .zip(&layer)
        .map(|(&width, &layer)| Item { layer, width, middle: 0.0, near: [Vec::new(), Vec::new()] })
        .collect();
    let mut passing: Vec<Option<Vec<usize>>> = Vec::new();
    for (&(from, to), &is_back) in edges.iter().zip(&is_back) {
        if is_back {
            passing.push(None);
            continue;
        }
        let (mut last, mut through) = (from, Vec::new());
        for layer in layer[from] + 1..layer[to] {
            let at = items.len();
            items.push(Item { layer, width: PASSING, middle: 0.0, near: [vec![last], Vec::new()] });
            items[last].near[1].push(at);
            through.push(at);
            last = at;
        }
        items[last].near[1].push(to);
        items[to].near[0].push(last);
        passing.push(Some(through));
    }
    let count = layer.iter().max().map_or(0, |last| last + 1);
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); count];
    (0..items.len()).for_each(|at| rows[items[at].layer].push(at));
    order(&mut rows, &items);
    align(&rows, &mut items);
    let left = items.iter().map(|item| item.middle - item.width / 2.0).fold(f64::INFINITY, f64::min);
    let right = items.iter().map(|item| item.middle + item.width / 2.0).fold(f64::NEG_INFINITY, f64::max);
    let left = if left.is_finite() { left } else { 0.0 };
    let middles = |through: Vec<usize>| through.into_iter().map(|at| items[at].middle - left).collect();
    Layout {
        nodes: (0..widths.len()).map(|at| (items[at].middle - left, layer[at])).collect(),
        routes: passing.into_iter().map(|through| through.map(middles)).collect(),
        layers: count,
        width: (right - left).max(0.0),
    }
}

/// Finds back edges by depth-first search: edges to a node that is still open.
fn back_edges(nodes: usize, edges: &[(usize, usize)]) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut from: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    edges.iter().enumerate().for_each(|(at, edge)| from[edge.0].push(at));
    let mut state = vec![State::New; nodes];
    let mut is_back = vec![false; edges.len()];
    for start in 0..nodes {
        if state[start] != State::New {
            continue;
        }
        state[start] = State::Open;
        let mut open = vec![(start, 0)];
        while let Some((node, next)) = open.last_mut() {
            let Some(&edge) = from[*node].get(*next) else {
                state[*node] = State::Done;
                open.pop();
                continue;
            };
            *next += 1;
            let to = edges[edge].1;
            match state[to] {
                State::New => {
                    state[to] = State::Open;
                    open.push((to, 0));
                }
                State::Open => is_back[edge] = true,
                State::Done => {}
            }
        }
    }
    is_back
}

/// Returns the layer of each node: below the sources of all its incoming edges, back edges excluded.
fn layers(nodes: usize, edges: &[(usize, usize)], is_back: &[bool]) -> Vec<usize> {
    let mut layer = vec![0; nodes];
    // The graph without back edges is acyclic, so this takes at most one round per layer.
    for _ in 0..nodes {
        let mut is_done = true;
        for (&(from, to), _) in edges.iter().zip(is_back).filter(|(_, is_back)| !**is_back) {
            if layer[to] <= layer[from] {
                layer[to] = layer[from] + 1;
                is_done = false;
            }
        }
        if is_done {
            break;
        }
    }
    layer
}

/// Orders each layer by the mean position of its neighbours, downwards and upwards alternately.
fn order(rows: &mut [Vec<usize>], items: &[Item]) {
    let mut position = vec![0.0; items.len()];
    let note = |row: &[usize], position: &mut Vec<f64>| {
        row.iter().enumerate().for_each(|(at, &item)| position[item] = at as f64);
    };
    rows.iter().for_each(|row| note(row, &mut position));
    for sweep in 0..SWEEPS {
        let side = sweep % 2;
        let last = rows.len().saturating_sub(1);
        for step in 0..rows.len() {
            let row = &mut rows[if side == 0 { step } else { last - step }];
            row.sort_by(|&a, &b| {
                let key = |at: usize| mean(&items[at].near[side], &position).unwrap_or(position[at]);
                key(a).total_cmp(&key(b))
            });
            note(row, &mut position);
        }
    }
}

fn mean(near: &[usize], values: &[f64]) -> Option<f64> {
    let sum: f64 = near.iter().map(|&at| values[at]).sum();
    (!near.is_empty()).then(|| sum / near.len() as f64)
}

/// Moves items towards their neighbours. Items keep their order and do not overlap.
fn align(rows: &[Vec<usize>], items: &mut [Item]) {
    for row in rows {
        let mut left = 0.0;
        for &at in row {
            items[at].middle = left + items[at].width / 2.0;
            left += items[at].width + GAP;
        }
    }
    for sweep in 0..2 * SWEEPS {
        let middles: Vec<f64> = items.iter().map(|item| item.middle).collect();
        let wanted = |item: &Item| {
            let sides = item.near.iter().filter_map(|near| mean(near, &middles));
            let (sum, count) = sides.fold((0.0, 0.0), |(sum, count), side| (sum + side, count + 1.0));
            if count > 0.0 { sum / count } else { item.middle }
        };
        for row in rows {
            let wishes: Vec<f64> = row.iter().map(|&at| wanted(&items[at])).collect();
            let distance = |a: usize, b: usize, items: &[Item]| (items[a].width + items[b].width) / 2.0 + GAP;
            // Alternates passes from the left and from the right, so that neither is preferred, and restores
            // the mean.
            let mut middles = wishes.clone();
            if sweep % 2 == 0 {
                for at in 1..row.len() {
                    let least = middles[at - 1] + distance(row[at - 1], row[at], items);
                    middles[at] = middles[at].max(least);
                }
            } else {
                for at in (1..row.len()).rev() {
                    let most = middles[at] - distance(row[at - 1], row[at], items);
                    middles[at - 1] = middles[at - 1].min(most);
                }
            }
            let shift = wishes.iter().zip(&middles).map(|(wish, middle)| wish - middle).sum::<f64>()
                / row.len().max(1) as f64;
            row.iter().zip(middles).for_each(|(&at, middle)| items[at].middle = middle + shift);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlaps(widths: &[f64], layout: &Layout) -> bool {
        (0..widths.len()).any(|a| {
            (0..a).any(|b| {
                let ((x, layer), (other, same)) = (layout.nodes[a], layout.nodes[b]);
                layer == same && (x - other).abs() < (widths[a] + widths[b]) / 2.0
            })
        })
    }

    #[test]
    fn a_loop_with_branches_has_layers_and_an_edge_back() {
        // 0 -> 1 -> {2, 3} -> 4 -> 1, 4 -> 5, and 0 -> 5 through all layers between.
        let edges = [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 1), (4, 5), (0, 5)];
        let widths = [80.0, 120.0, 60.0, 200.0, 90.0, 90.0];
        let layout = layout(&widths, &edges);
        let layers: Vec<usize> = layout.nodes.iter().map(|node| node.1).collect();
        assert_eq!(layers, [0, 1, 2, 2, 3, 4]);
        assert_eq!(layout.routes.iter().filter(|route| route.is_none()).count(), 1);
        assert!(layout.routes[5].is_none());
        assert_eq!(layout.routes[7].as_ref().map(Vec::len), Some(3));
        assert!(!overlaps(&widths, &layout), "{layout:?}");
        assert!(layout.nodes.iter().all(|node| node.0 >= 0.0 && node.0 <= layout.width));
    }

    #[test]
    fn any_graph_is_laid_out() {
        assert_eq!(layout(&[], &[]).layers, 0);
        assert_eq!(layout(&[10.0], &[]).layers, 1);
        let widths = [30.0; 12];
        let edges: Vec<(usize, usize)> =
            (0..12).flat_map(|a| (0..12).filter(move |b| *b != a).map(move |b| (a, b))).collect();
        let layout = layout(&widths, &edges);
        assert_eq!(layout.layers, 12);
        assert_eq!(layout.routes.iter().filter(|route| route.is_none()).count(), 66);
        assert!(!overlaps(&widths, &layout));
    }
}
