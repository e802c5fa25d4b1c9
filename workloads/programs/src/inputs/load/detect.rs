//! Detection of a graph file's format.

use super::error::LoadProblem;
use super::lines::{Line, Lines, show};
use super::{dimacs, egr};
use std::fmt;

/// Format of a graph file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphFormat {
    /// ECL's binary compressed sparse rows.
    Egr,
    /// The shortest-path format of the ninth DIMACS challenge: `p sp`, then `a` lines.
    Dimacs,
    /// The treewidth format of the PACE challenge: `p tw`, then one edge per line.
    Pace,
    /// SNAP edge list: one edge per line, comments after `#`.
    Snap,
    /// Matrix Market coordinate matrix.
    MatrixMarket,
}

impl fmt::Display for GraphFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Egr => "ECL .egr",
            Self::Dimacs => "DIMACS .gr",
            Self::Pace => "PACE .gr",
            Self::Snap => "SNAP edge list",
            Self::MatrixMarket => "Matrix Market",
        })
    }
}

/// Detects the format by content; by extension if that is inconclusive, so that the parser reports the error.
pub(super) fn detect(bytes: &[u8], extension: &str) -> Result<GraphFormat, LoadProblem> {
    if bytes.starts_with(b"%%") {
        return Ok(GraphFormat::MatrixMarket);
    }
    if egr::looks_like(bytes) {
        return Ok(GraphFormat::Egr);
    }
    if let Some(format) = detect_text(bytes, extension)? {
        return Ok(format);
    }
    match extension {
        "egr" => Ok(GraphFormat::Egr),
        "gr" => Ok(GraphFormat::Dimacs),
        "mtx" => Ok(GraphFormat::MatrixMarket),
        _ => Err(LoadProblem::UnknownFormat { found: show(bytes) }),
    }
}

fn detect_text(bytes: &[u8], extension: &str) -> Result<Option<GraphFormat>, LoadProblem> {
    for line in Lines::new(bytes) {
        if dimacs::is_comment(&line) {
            continue;
        }
        if line.is_led_by(b"p") {
            return detect_problem_line(&line).map(Some);
        }
        if line.is_led_by(b"a") {
            // The problem line is missing; the parser reports that.
            return Ok(Some(GraphFormat::Dimacs));
        }
        // `%` starts a comment in KONECT's edge lists, and in a Matrix Market file without its first line.
        let is_comment = line.starts_with(b'#') || (line.starts_with(b'%') && extension != "mtx");
        let is_integer = |field: Option<&[u8]>| {
            let field = field.unwrap_or_default();
            let digits = field.strip_prefix(b"-").unwrap_or(field);
            !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
        };
        let mut fields = line.fields();
        let is_edge = is_integer(fields.next()) && is_integer(fields.next());
        return Ok((is_comment || is_edge).then_some(GraphFormat::Snap));
    }
    Ok(None)
}

fn detect_problem_line(line: &Line<'_>) -> Result<GraphFormat, LoadProblem> {
    match line.fields().nth(1) {
        Some(b"sp") => Ok(GraphFormat::Dimacs),
        Some(b"tw") => Ok(GraphFormat::Pace),
        other => Err(LoadProblem::Unsupported {
            line: line.number,
            what: format!("problem {}", show(other.unwrap_or_default())),
            instead: "give \"p sp\" (shortest paths, a lines) or \"p tw\" (treewidth, edges)",
        }),
    }
}
