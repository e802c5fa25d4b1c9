//! Coverage of lines and branches in the format of lcov (`man geninfo`, section FILES).

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use warptrace_analysis::{Analysis, analyse, branches as source_branches};
use warptrace_format::file::LocationInfo;

use crate::error::ExportError;
use crate::source::ExportSource;

/// Counts of the written coverage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Coverage {
    /// Lines with trace points.
    pub lines: u64,
    /// Lines that a warp executed.
    pub hit_lines: u64,
    /// Sides of source branches that have a trace point on each side.
    pub branches: u64,
    /// Sides that a warp executed.
    pub taken_branches: u64,
    /// Locations left out because the trace has no line for them.
    pub without_line: u64,
}

/// Writes the visits of each line, and of each side of the branches that have a trace point on each side.
/// Fails if the trace is damaged, the output exceeds [its limit](warptrace_decoder::TraceFile::limited), or
/// `out` cannot be written.
pub fn lcov(source: &ExportSource<'_>, out: impl Write) -> Result<Coverage, ExportError> {
    let mut out = source.trace().limited(out);
    let analysis = analyse(source.trace(), source.selection())?;
    let mut coverage = Coverage::default();
    let mut files: BTreeMap<String, BTreeMap<u32, BTreeSet<u16>>> = BTreeMap::new();
    for info in &source.trace().metadata().locations {
        match known_line(info) {
            Some((file, line)) => {
                files.entry(file).or_default().entry(line).or_default().insert(info.id);
            }
            None => coverage.without_line += 1,
        }
    }
    let unknown =
        analysis.locations.iter().filter(|location| source.location(location.point.location).is_none());
    coverage.without_line += unknown.count() as u64;
    for (key, value) in source.facts() {
        writeln!(out, "# {key}: {}", one_line(&value))?;
    }
    // Branches by their first point. A point belongs to one branch only.
    let known = source_branches(&source.trace().metadata().locations).into_iter();
    let known = known.filter(|points| points.len() > 1).map(|points| (points[0], points)).collect();
    // All readers show this name.
    let name = if source.lacks().is_whole() { "warptrace" } else { "warptrace_INCOMPLETE" };
    for (file, lines) in &files {
        writeln!(out, "TN:{name}\nSF:{file}")?;
        let [sides, taken] = branches(&analysis, &known, lines, &mut out)?;
        coverage.branches += sides;
        coverage.taken_branches += taken;
        let mut hit = 0;
        for (line, ids) in lines {
            let visits = ids.iter().filter_map(|id| analysis.location(*id)).map(|found| found.counts.visits);
            let visits = visits.fold(0, u64::saturating_add);
            hit += u64::from(visits > 0);
            writeln!(out, "DA:{line},{visits}")?;
        }
        writeln!(out, "LF:{}\nLH:{hit}\nend_of_record", lines.len())?;
        coverage.lines += lines.len() as u64;
        coverage.hit_lines += hit;
    }
    out.flush()?;
    Ok(coverage)
}

fn branches(
    analysis: &Analysis,
    known: &BTreeMap<u16, Vec<u16>>,
    lines: &BTreeMap<u32, BTreeSet<u16>>,
    out: &mut impl Write,
) -> Result<[u64; 2], ExportError> {
    let (mut sides, mut taken) = (0, 0);
    let visits = |id: &u16| analysis.location(*id).map_or(0, |found| found.counts.visits);
    for (line, ids) in lines {
        for points in ids.iter().filter_map(|id| known.get(id)) {
            let is_reached = points.iter().any(|id| visits(id) > 0);
            for (number, id) in points.iter().enumerate() {
                let count = if is_reached { visits(id).to_string() } else { "-".to_owned() };
                writeln!(out, "BRDA:{line},{},{number},{count}", points[0])?;
                taken += u64::from(visits(id) > 0);
            }
            sides += points.len() as u64;
        }
    }
    if sides > 0 {
        writeln!(out, "BRF:{sides}\nBRH:{taken}")?;
    }
    Ok([sides, taken])
}

fn known_line(info: &LocationInfo) -> Option<(String, u32)> {
    let is_known = info.line > 0 && !info.file.is_empty();
    is_known.then(|| (one_line(&info.file), info.line))
}

fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}
