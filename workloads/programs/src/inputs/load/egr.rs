//! ECL's binary graph format.
//!
//! Little-endian 32-bit signed integers, without a magic number:
//!
//! ```text
//! nodes | edges | nindex[nodes + 1] | nlist[edges] | eweight[edges], absent in an unweighted graph
//! ```

use super::error::{LoadProblem, WriteError};
use super::options::LoadOptions;
use crate::inputs::arcs::{Arc, ArcList};
use crate::inputs::graph::Graph;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

const WORD: u64 = 4;

/// Returns true if the header's counts fit the length, and the first and last index the counts. No text file
/// passes, because the first index is four zero bytes.
pub(super) fn looks_like(bytes: &[u8]) -> bool {
    let Some([nodes, edges]) = header(bytes) else { return false };
    let with_weights = [false, true].map(|weighted| length(nodes, edges, weighted));
    nodes > 0
        && with_weights.contains(&Some(bytes.len() as u64))
        && word(bytes, 2) == Some(0)
        && word(bytes, 2 + nodes as u64) == Some(edges)
}

fn word(bytes: &[u8], index: u64) -> Option<i32> {
    let start = usize::try_from(index.checked_mul(WORD)?).ok()?;
    let word = bytes.get(start..)?.first_chunk::<4>()?;
    Some(i32::from_le_bytes(*word))
}

fn header(bytes: &[u8]) -> Option<[i32; 2]> {
    Some([word(bytes, 0)?, word(bytes, 1)?])
}

/// Returns the file size in bytes for these counts; `None` if one is negative.
fn length(nodes: i32, edges: i32, weighted: bool) -> Option<u64> {
    let (nodes, edges) = (u64::try_from(nodes).ok()?, u64::try_from(edges).ok()?);
    Some((2 + nodes + 1 + edges * if weighted { 2 } else { 1 }) * WORD)
}

pub(super) fn parse(bytes: &[u8], options: &LoadOptions) -> Result<ArcList, LoadProblem> {
    let [nodes, edges] = header(bytes).ok_or_else(|| LoadProblem::Field {
        offset: 0,
        field: "header".to_owned(),
        found: format!("{} bytes", bytes.len()),
        expected: "8 bytes, the numbers of nodes and of edges".to_owned(),
    })?;
    let nodes_u32 = count(nodes, 0, "nodes", 1)?;
    let edges_u64 = u64::from(count(edges, WORD, "edges", 0)?);
    let weighted = check_length(bytes.len() as u64, nodes, edges)?;
    if edges_u64 > options.limits.arcs {
        return Err(LoadProblem::TooManyArcs { limit: options.limits.arcs });
    }

    // The length check guarantees that every index below is inside the file.
    let at = |index: u64| word(bytes, index).expect("the length was checked against the header");
    let index = |node: u64| 2 + node;
    let list = |edge: u64| 3 + u64::from(nodes_u32) + edge;
    let field = |index: u64, field: String, expected: String| LoadProblem::Field {
        offset: index * WORD,
        field,
        found: at(index).to_string(),
        expected,
    };
    if at(index(0)) != 0 {
        return Err(field(index(0), "nindex[0]".to_owned(), "0".to_owned()));
    }
    let mut arcs = Vec::with_capacity(edges_u64 as usize);
    for node in 0..nodes_u32 {
        let (start, end) = (at(index(node.into())), at(index(u64::from(node) + 1)));
        if end < start || end > edges {
            let name = format!("nindex[{}]", node + 1);
            return Err(field(index(u64::from(node) + 1), name, format!("a value from {start} to {edges}")));
        }
        for edge in start as u64..end as u64 {
            let to = at(list(edge));
            if to < 0 || to >= nodes {
                let name = format!("nlist[{edge}], a neighbour of node {node},");
                return Err(field(list(edge), name, format!("a node from 0 to {}", nodes - 1)));
            }
            let weight = if weighted { at(list(edges_u64 + edge)) } else { 0 };
            if weight < 0 && !options.ignore_weights {
                let name = format!("eweight[{edge}]");
                return Err(field(list(edges_u64 + edge), name, "a weight that is not negative".to_owned()));
            }
            arcs.push(Arc { from: node, to: to as u32, weight: weight as u32 });
        }
    }
    if at(index(nodes_u32.into())) != edges {
        let name = format!("nindex[{nodes}]");
        return Err(field(index(nodes_u32.into()), name, format!("{edges}, the number of edges")));
    }
    Ok(ArcList { nodes: nodes_u32, weighted: weighted && !options.ignore_weights, arcs })
}

fn count(value: i32, offset: u64, field: &str, least: u32) -> Result<u32, LoadProblem> {
    u32::try_from(value).ok().filter(|value| *value >= least).ok_or_else(|| LoadProblem::Field {
        offset,
        field: field.to_owned(),
        found: value.to_string(),
        expected: format!("at least {least}"),
    })
}

/// Compares the file's length with its header. Returns whether the file has weights.
fn check_length(found: u64, nodes: i32, edges: i32) -> Result<bool, LoadProblem> {
    let plain = length(nodes, edges, false).unwrap_or(u64::MAX);
    let weighted = length(nodes, edges, true).unwrap_or(u64::MAX);
    if found == plain {
        return Ok(false);
    }
    if found == weighted {
        return Ok(true);
    }
    Err(LoadProblem::Field {
        offset: found,
        field: "end of file".to_owned(),
        found: format!("here, after {found} bytes"),
        expected: format!("after {plain} bytes, or {weighted} with weights ({nodes} nodes, {edges} edges)"),
    })
}

/// Writes a graph as ECL's `.egr`, with its weights, if any. A weighted graph without arcs reads back as
/// unweighted, because the format cannot distinguish the two. Fails with [`WriteError::DoesNotFit`] if a
/// count or weight is over 2^31 - 1, [`WriteError::Io`] if writing fails.
pub fn write_egr(path: impl AsRef<Path>, graph: &Graph) -> Result<(), WriteError> {
    let path = path.as_ref();
    let fits = |what, value: u32| match i32::try_from(value) {
        Ok(_) => Ok(()),
        Err(_) => Err(WriteError::DoesNotFit { path: path.to_owned(), what, value }),
    };
    fits("number of nodes", graph.nodes())?;
    fits("number of arcs", graph.arcs())?;
    graph.weights().unwrap_or_default().iter().try_for_each(|weight| fits("weight", *weight))?;
    let write = || {
        let mut file = BufWriter::new(File::create(path)?);
        let header = [graph.nodes(), graph.arcs()];
        for words in [&header, graph.offsets(), graph.neighbours(), graph.weights().unwrap_or_default()] {
            for word in words {
                file.write_all(&word.to_le_bytes())?;
            }
        }
        file.flush()
    };
    write().map_err(|source| WriteError::Io { path: path.to_owned(), source })
}
