//! Matrix Market coordinate matrices as graphs: rows and columns are nodes, entries are arcs, values are
//! weights.
//!
//! Supports the fields `pattern`, `real` and `integer`, and the symmetries `general` and `symmetric` (entries
//! are undirected edges). Source: Boisvert, Pozo, Remington, "The Matrix Market Exchange Formats: Initial
//! Design", 1996.

use super::error::LoadProblem;
use super::lines::{Line, Lines, show};
use super::options::LoadOptions;
use crate::inputs::arcs::{Arc, ArcList};

const BANNER: &str = "\"%%MatrixMarket matrix coordinate FIELD SYMMETRY\"";

pub(super) fn parse(bytes: &[u8], options: &LoadOptions) -> Result<ArcList, LoadProblem> {
    let mut lines = Lines::new(bytes);
    let Banner { valued, symmetric } = Banner::parse(&lines.expect(BANNER)?)?;
    let size_line = loop {
        let line = lines.expect("\"ROWS COLUMNS ENTRIES\"")?;
        if !line.starts_with(b'%') {
            break line;
        }
    };
    let mut fields = size_line.fields();
    let nodes = fields.index("the number of rows", 1, u32::MAX - 1)?;
    let columns = fields.index("the number of columns", 1, u32::MAX - 1)?;
    let promised: u64 = fields.number("the number of entries")?;
    fields.end()?;
    if nodes != columns {
        return Err(LoadProblem::Unsupported {
            line: size_line.number,
            what: format!("a matrix of {nodes} rows and {columns} columns"),
            instead: "a graph needs a square one",
        });
    }
    let weighted = valued && !options.ignore_weights;
    let mut list = ArcList::new(nodes, weighted);
    let mut found = 0;
    for line in lines.filter(|line| !line.starts_with(b'%')) {
        found += 1;
        if found > promised {
            break;
        }
        let mut fields = line.fields();
        let from = fields.index("a row", 1, nodes)? - 1;
        let to = fields.index("a column", 1, nodes)? - 1;
        let weight = if weighted { fields.weight()? } else { 0 };
        if weighted || !valued {
            fields.end()?;
        }
        options.limits.admit(&list)?;
        if symmetric {
            list.push_edge(from, to, weight);
        } else {
            list.arcs.push(Arc { from, to, weight });
        }
    }
    if found != promised {
        return Err(LoadProblem::Count { line: size_line.number, what: "entries", promised, found });
    }
    Ok(list)
}

struct Banner {
    valued: bool,
    /// Whether the file lists only one triangle of the matrix.
    symmetric: bool,
}

impl Banner {
    fn parse(line: &Line<'_>) -> Result<Self, LoadProblem> {
        let mut fields = line.fields().map(<[u8]>::to_ascii_lowercase);
        let mut next = || fields.next().unwrap_or_default();
        if next() != b"%%matrixmarket" || next() != b"matrix" {
            return Err(line.unexpected(BANNER));
        }
        let unsupported = |what: &[u8], instead| {
            Err(LoadProblem::Unsupported {
                line: line.number,
                what: format!("Matrix Market {}", show(what)),
                instead,
            })
        };
        let layout = next();
        if layout != b"coordinate" {
            return unsupported(&layout, "give a \"coordinate\" matrix");
        }
        let field = next();
        let valued = match field.as_slice() {
            b"pattern" => false,
            b"real" | b"integer" => true,
            _ => return unsupported(&field, "give \"pattern\", \"real\" or \"integer\" entries"),
        };
        let symmetry = next();
        let symmetric = match symmetry.as_slice() {
            b"general" => false,
            b"symmetric" => true,
            _ => return unsupported(&symmetry, "give a \"general\" or \"symmetric\" matrix"),
        };
        Ok(Self { valued, symmetric })
    }
}
