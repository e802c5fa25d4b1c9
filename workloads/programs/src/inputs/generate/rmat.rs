//! R-MAT graphs.

use super::error::{GenerateError, check_range};
use super::random::{Purpose, Random};
use crate::inputs::arcs::{ArcList, Cleaning};
use crate::inputs::graph::Graph;

/// Parameters of an R-MAT graph (Chakrabarti, Zhan, Faloutsos, "R-MAT: A Recursive Model for Graph Mining",
/// 2004).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rmat {
    /// The graph has 2^`scale` nodes; 1 to 30.
    pub scale: u32,
    /// Number of different undirected edges, without self-loops.
    pub edges: u64,
    /// Probability of the quadrant of the adjacency matrix with low sources and low targets.
    pub a: f64,
    /// Probability of low sources and high targets.
    pub b: f64,
    /// Probability of high sources and low targets.
    pub c: f64,
    /// Probability of high sources and high targets. The four add up to 1.
    pub d: f64,
}

/// Maximum number of rounds; each draws as many edges as are still missing.
const ROUNDS: u32 = 200;

/// Generates an undirected, unweighted R-MAT graph with exactly the requested number of edges.
///
/// Each edge descends `scale` times into a quadrant of the adjacency matrix. Self-loops and repeats are drawn
/// again. Node ids are not shuffled, so low ids have high degrees.
///
/// # Errors
/// [`GenerateError::Parameter`] if a parameter is out of range, [`GenerateError::TooDense`] if it does not
/// find enough different edges.
pub fn rmat(parameters: &Rmat, seed: u64) -> Result<Graph, GenerateError> {
    let Rmat { scale, edges: wanted, a, b, c, d } = *parameters;
    check_range("scale", scale, 1, 30)?;
    let nodes = 1u64 << scale;
    let most = (nodes * (nodes - 1) / 2).min(Graph::MAX_ARCS / 2);
    check_range("edges", wanted, 0, most)?;
    for (name, value) in [("a", a), ("b", b), ("c", c), ("d", d)] {
        check_range(name, value, 0.0, 1.0)?;
    }
    if (a + b + c + d - 1.0).abs() > 1e-9 {
        return Err(GenerateError::parameter("a + b + c + d", a + b + c + d, "1"));
    }

    let mut random = Random::new(seed, Purpose::Rmat);
    let mut edges: Vec<(u32, u32)> = Vec::new();
    let mut draws = 0;
    for _ in 0..ROUNDS {
        let missing = wanted - edges.len() as u64;
        if missing == 0 {
            break;
        }
        for _ in 0..missing {
            let (u, v) = draw(&mut random, scale, [a, a + b, a + b + c]);
            if u != v {
                edges.push((u.min(v), u.max(v)));
            }
        }
        draws += missing;
        edges.sort_unstable();
        edges.dedup();
    }
    if (edges.len() as u64) < wanted {
        return Err(GenerateError::TooDense { wanted, found: edges.len() as u64, draws });
    }
    let mut list = ArcList::new(nodes as u32, false);
    edges.iter().for_each(|&(u, v)| list.push_edge(u, v, 0));
    Ok(list.into_graph(&Cleaning::NONE)?.0)
}

fn draw(random: &mut Random, scale: u32, bounds: [f64; 3]) -> (u32, u32) {
    let (mut u, mut v) = (0, 0);
    for _ in 0..scale {
        let x = random.unit();
        let quadrant = bounds.iter().filter(|bound| x >= **bound).count() as u32;
        u = u << 1 | quadrant >> 1;
        v = v << 1 | quadrant & 1;
    }
    (u, v)
}
