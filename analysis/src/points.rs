//! The trace's table of locations.

use std::collections::HashMap;

use warptrace_decoder::TraceFile;
use warptrace_format::file::LocationInfo;

use crate::figures::Point;

/// What a location is called that is not in the table.
fn unknown(id: u16) -> &'static str {
    if id == Point::BEGIN { "(begin)" } else { "?" }
}

/// Looks locations up.
pub(crate) struct Points<'a> {
    by_id: Vec<Option<&'a LocationInfo>>,
    shared_lines: Vec<Option<u32>>,
}

impl<'a> Points<'a> {
    pub(crate) fn new(trace: &'a TraceFile) -> Self {
        let table = &trace.metadata().locations;
        let ids = table.iter().map(|info| usize::from(info.id) + 1).max().unwrap_or(0);
        let (mut by_id, mut shared_lines) = (vec![None; ids], vec![None; ids]);
        let mut lines: HashMap<(&str, u32), Vec<u16>> = HashMap::new();
        for info in table {
            by_id[usize::from(info.id)] = Some(info);
            if info.line > 0 {
                lines.entry((&info.file, info.line)).or_default().push(info.id);
            }
        }
        let shared = lines.values().filter(|ids| ids.len() > 1);
        for (line, ids) in (0..).zip(shared) {
            ids.iter().for_each(|&id| shared_lines[usize::from(id)] = Some(line));
        }
        Self { by_id, shared_lines }
    }

    /// By id the number of the location's line, if other locations share it.
    pub(crate) fn shared_lines(&self) -> &[Option<u32>] {
        &self.shared_lines
    }

    /// The number of the location's line, if other locations share it.
    pub(crate) fn shared_line(&self, id: u16) -> Option<u32> {
        self.shared_lines.get(usize::from(id)).copied().flatten()
    }

    /// The location with this id, if the table has it.
    pub(crate) fn known(&self, id: u16) -> Option<Point> {
        let is_known = self.by_id.get(usize::from(id)).is_some_and(Option::is_some);
        is_known.then(|| self.point(id))
    }

    /// The location with this id, whether the table has it or not.
    pub(crate) fn point(&self, id: u16) -> Point {
        let info = self.by_id.get(usize::from(id)).copied().flatten();
        let text =
            |field: fn(&LocationInfo) -> &String| info.map_or_else(String::new, |info| field(info).clone());
        Point {
            location: id,
            name: info.map_or_else(|| unknown(id).to_owned(), |info| info.name.clone()),
            file: text(|info| &info.file),
            line: info.map_or(0, |info| info.line),
            column: info.map_or(0, |info| info.column),
        }
    }
}
