//! The location table of a trace.

use std::collections::{BTreeMap, HashMap};

use warptrace_decoder::TraceFile;
use warptrace_format::LocationKind;
use warptrace_format::file::{LocationInfo, WaitInfo};

use crate::counts::Weight;
use crate::decisions::Decisions;
use crate::figures::Point;

fn unknown(id: u16) -> &'static str {
    if id == Point::BEGIN { "(begin)" } else { "?" }
}

/// Returns the instructions per visit of each location, by id; `None` unless the trace has all of them.
pub fn weights(trace: &TraceFile) -> Option<Vec<u32>> {
    let table = &trace.metadata().locations;
    let ids = table.iter().map(|info| usize::from(info.id) + 1).max()?;
    // An id that is not in the table counts as one.
    let mut weights = vec![1; ids];
    for info in table {
        weights[usize::from(info.id)] = info.code?.instructions;
    }
    Some(weights)
}

/// Returns the branches of the source, each as the location ids of its sides.
pub fn branches<'a>(locations: impl IntoIterator<Item = &'a LocationInfo>) -> Vec<Vec<u16>> {
    let mut branches: BTreeMap<Branch<'_>, Vec<u16>> = BTreeMap::new();
    for info in locations {
        if let Some(branch) = branch(info) {
            branches.entry(branch).or_default().push(info.id);
        }
    }
    let mut branches: Vec<Vec<u16>> = branches.into_values().collect();
    branches.iter_mut().for_each(|points| points.sort_unstable());
    branches.sort_unstable();
    branches
}

pub(crate) struct Points<'a> {
    by_id: Vec<Option<&'a LocationInfo>>,
    /// Instructions per visit, by id; empty if each visit counts as one.
    weights: Vec<u32>,
    shared_lines: Vec<Option<u32>>,
}

/// Key of a branch: file, parent, and line and column where its sides end, or its line if unknown.
type Branch<'a> = (&'a str, u16, u32, u32);

fn branch(info: &LocationInfo) -> Option<Branch<'_>> {
    let is_side = matches!(info.kind, LocationKind::Then | LocationKind::Else | LocationKind::Arm);
    let end = if info.rejoin_line == 0 { info.line } else { info.rejoin_line };
    // Sides without a line could belong to any branch.
    (is_side && end > 0).then_some((&info.file, info.parent, end, info.rejoin_column))
}

impl<'a> Points<'a> {
    /// Creates the look-up. Visits have weights if the trace has the instructions of all of its locations.
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
        Self { by_id, weights: weights(trace).unwrap_or_default(), shared_lines }
    }

    pub(crate) fn decisions(&self, is_visited: impl Fn(u16) -> bool) -> Decisions {
        Decisions::new(self.by_id.iter().flatten().copied(), is_visited)
    }

    pub(crate) fn without_weights(self) -> Self {
        Self { weights: Vec::new(), ..self }
    }

    pub(crate) fn waits(&self) -> Vec<Option<LocationKind>> {
        use LocationKind::{Barrier, Wait, Waited};
        let of_wait = |info: &Option<&LocationInfo>| {
            info.map(|info| info.kind).filter(|kind| matches!(kind, Barrier | Wait | Waited))
        };
        let kinds: Vec<_> = self.by_id.iter().map(of_wait).collect();
        if kinds.iter().any(Option::is_some) { kinds } else { Vec::new() }
    }

    pub(crate) fn wait(&self, location: u16) -> Option<Box<WaitInfo>> {
        self.by_id.get(usize::from(location)).copied().flatten()?.wait.clone()
    }

    pub(crate) fn weight(&self) -> Weight {
        if self.weights.is_empty() { Weight::Events } else { Weight::Instructions }
    }

    pub(crate) fn weight_of(&self, id: u16) -> u64 {
        self.weights.get(usize::from(id)).copied().map_or(1, u64::from)
    }

    /// Returns the number of the location's line if other locations share the line.
    pub(crate) fn shared_line(&self, id: u16) -> Option<u32> {
        self.shared_lines.get(usize::from(id)).copied().flatten()
    }

    pub(crate) fn known(&self, id: u16) -> Option<Point> {
        let is_known = self.by_id.get(usize::from(id)).is_some_and(Option::is_some);
        is_known.then(|| self.point(id))
    }

    /// Returns the location with this id. If it is not in the table, only the id is known.
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
