//! The two text formats with the extension `.gr`. Both start with comments (`c ...`) and one problem line,
//! and number nodes from 1. DIMACS lists directed weighted arcs (`a from to weight`), PACE undirected
//! unweighted edges (`u v`).

use super::error::LoadProblem;
use super::lines::{Line, Lines};
use super::options::LoadOptions;
use crate::inputs::arcs::{Arc, ArcList};

/// Returns true for a comment in either format: `c` alone or followed by white space.
pub(super) fn is_comment(line: &Line<'_>) -> bool {
    line.is_led_by(b"c")
}

struct Header {
    line: u64,
    nodes: u32,
    entries: u64,
}

impl Header {
    fn parse(lines: &mut Lines<'_>, kind: &[u8], expected: &str) -> Result<Self, LoadProblem> {
        let line = loop {
            let line = lines.expect(expected)?;
            if !is_comment(&line) {
                break line;
            }
        };
        let mut fields = line.fields();
        if fields.next() != Some(b"p") || fields.next() != Some(kind) {
            return Err(line.unexpected(expected));
        }
        let nodes = fields.index("the number of nodes", 1, u32::MAX - 1)?;
        let entries = fields.number("the number of edges")?;
        fields.end()?;
        Ok(Self { line: line.number, nodes, entries })
    }

    /// Parses one line per entry, and compares their number with the header.
    fn entries(
        &self,
        lines: Lines<'_>,
        what: &'static str,
        mut entry: impl FnMut(&Line<'_>) -> Result<(), LoadProblem>,
    ) -> Result<(), LoadProblem> {
        let mut found = 0;
        for line in lines.filter(|line| !is_comment(line)) {
            found += 1;
            if found > self.entries {
                break;
            }
            entry(&line)?;
        }
        if found != self.entries {
            return Err(LoadProblem::Count { line: self.line, what, promised: self.entries, found });
        }
        Ok(())
    }
}

pub(super) fn parse_dimacs(bytes: &[u8], options: &LoadOptions) -> Result<ArcList, LoadProblem> {
    let mut lines = Lines::new(bytes);
    let header = Header::parse(&mut lines, b"sp", "\"p sp NODES ARCS\"")?;
    let mut list = ArcList::new(header.nodes, !options.ignore_weights);
    header.entries(lines, "arcs", |line| {
        let mut fields = line.fields();
        if fields.next() != Some(b"a") {
            return Err(line.unexpected("\"a FROM TO WEIGHT\""));
        }
        let from = fields.index("a node", 1, header.nodes)? - 1;
        let to = fields.index("a node", 1, header.nodes)? - 1;
        let weight = if options.ignore_weights { 0 } else { fields.weight()? };
        if !options.ignore_weights {
            fields.end()?;
        }
        options.limits.admit(&list)?;
        list.arcs.push(Arc { from, to, weight });
        Ok(())
    })?;
    Ok(list)
}

pub(super) fn parse_pace(bytes: &[u8], options: &LoadOptions) -> Result<ArcList, LoadProblem> {
    let mut lines = Lines::new(bytes);
    let header = Header::parse(&mut lines, b"tw", "\"p tw NODES EDGES\"")?;
    let mut list = ArcList::new(header.nodes, false);
    header.entries(lines, "edges", |line| {
        let mut fields = line.fields();
        let u = fields.index("a node", 1, header.nodes)? - 1;
        let v = fields.index("a node", 1, header.nodes)? - 1;
        fields.end()?;
        options.limits.admit(&list)?;
        list.push_edge(u, v, 0);
        Ok(())
    })?;
    Ok(list)
}
