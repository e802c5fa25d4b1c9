//! SNAP edge lists: one arc per line (`from to` or `from to weight`), node ids from 0, comments after `#` (or
//! `%`, as in KONECT's files).
//!
//! Without a header, a file truncated at the end of a line looks complete. Only SNAP's comment `# Nodes: N
//! Edges: M` reveals it: fewer lines than `M` are an error.

use super::error::LoadProblem;
use super::lines::{Line, Lines};
use super::options::LoadOptions;
use crate::inputs::arcs::{Arc, ArcList};
use crate::inputs::graph::{Graph, GraphError};

pub(super) fn parse(bytes: &[u8], options: &LoadOptions) -> Result<ArcList, LoadProblem> {
    let mut raw: Vec<([u64; 2], u32)> = Vec::new();
    let mut weighted = None;
    let mut stated = None;
    for line in Lines::new(bytes) {
        if line.starts_with(b'#') || line.starts_with(b'%') {
            stated = stated.or_else(|| stated_edges(&line));
            continue;
        }
        let mut fields = line.fields();
        let ends = [node_id(&mut fields)?, node_id(&mut fields)?];
        let mut weight = 0;
        if !options.ignore_weights {
            let has_weight = fields.clone().next().is_some();
            if *weighted.get_or_insert(has_weight) != has_weight {
                return Err(line.unexpected(if has_weight {
                    "two numbers, as in the lines before"
                } else {
                    "three numbers, as in the lines before"
                }));
            }
            if has_weight {
                weight = fields.weight()?;
            }
            fields.end()?;
        }
        if raw.len() as u64 >= options.limits.arcs {
            return Err(LoadProblem::TooManyArcs { limit: options.limits.arcs });
        }
        raw.push((ends, weight));
    }
    let found = raw.len() as u64;
    if let Some((line, promised)) = stated
        && found < promised
    {
        return Err(LoadProblem::Count { line, what: "edges", promised, found });
    }
    into_list(raw, weighted.unwrap_or(false), options.compact_ids)
}

fn node_id(fields: &mut super::lines::Fields<'_>) -> Result<u64, LoadProblem> {
    fields.number("a node id, an integer from 0 (as in \"FROM TO\")")
}

/// Returns the line number of a comment and the number after `Edges:` in it.
fn stated_edges(line: &Line<'_>) -> Option<(u64, u64)> {
    let mut fields = line.fields();
    fields.find(|field| *field == b"Edges:")?;
    Some((line.number, fields.number("").ok()?))
}

fn into_list(raw: Vec<([u64; 2], u32)>, weighted: bool, compact_ids: bool) -> Result<ArcList, LoadProblem> {
    let mut ids: Vec<u64> = Vec::new();
    let nodes = if compact_ids {
        ids = raw.iter().flat_map(|(ends, _)| *ends).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.len() as u64
    } else {
        let highest = raw.iter().flat_map(|(ends, _)| *ends).max();
        highest.map_or(0, |highest| highest.saturating_add(1))
    };
    if nodes > Graph::MAX_NODES {
        return Err(LoadProblem::TooManyNodes { nodes, arcs: raw.len() as u64, limit: Graph::MAX_NODES });
    }
    if nodes == 0 {
        return Err(GraphError::Empty.into());
    }
    let number =
        |id: u64| if compact_ids { ids.partition_point(|other| *other < id) as u32 } else { id as u32 };
    let arcs =
        raw.iter().map(|&([from, to], weight)| Arc { from: number(from), to: number(to), weight }).collect();
    Ok(ArcList { nodes: nodes as u32, weighted, arcs })
}
