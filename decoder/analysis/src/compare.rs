//! What changed from one trace to another.

use std::collections::BTreeMap;

use serde::Serialize;
use warptrace_decoder::{DecodeError, TraceFile};
use warptrace_format::file::LocationInfo;

use crate::analyse::{analyse, analyse_renamed};
use crate::error::AnalysisError;
use crate::figures::{Analysis, Counts, Point, StandingWarp, WarpFigures};
use crate::parting::first_difference;
use crate::path::rename;
use crate::points::Points;
use crate::selection::Selection;

/// A location in two traces: the same name, and the same line, or the same turn among the locations of that
/// name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LocationChange {
    /// The location in the first trace; `None` if that has none like it.
    pub before: Option<Point>,
    /// The location in the second trace; `None` if that has none like it.
    pub after: Option<Point>,
    /// Visits in the first and in the second trace.
    pub counts: [Counts; 2],
}

/// A warp that took another path, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Parting {
    /// The warp.
    #[serde(flatten)]
    pub warp: StandingWarp,
    /// Number of the first event that differs, from 0.
    pub event: u64,
    /// Location and mask of that event in the first trace; `None`: the warp has no more events there.
    pub before: Option<(u16, u32)>,
    /// The same in the second trace, with its id there.
    pub after: Option<(u16, u32)>,
}

/// What changed from one trace to another.
#[derive(Debug)]
#[non_exhaustive]
pub struct Comparison {
    /// The figures of both traces.
    pub analyses: [Analysis; 2],
    /// All locations that warps of one of them came to, in the order of the first trace's ids, and then of
    /// the second one's.
    pub locations: Vec<LocationChange>,
    /// Warps with events in both traces that took another path, by launch and number.
    pub changed: Vec<StandingWarp>,
    /// Warps with events in both traces.
    pub common_warps: u64,
    /// Warps with events in one trace only.
    pub single_warps: [u64; 2],
    /// For each id of the second trace the first one's.
    renamed: Vec<u16>,
}

/// Compares two traces, or what `selection` names of them. Warps are the same if launch and number are;
/// locations, if their names are, and file and line as far as there are such. Memory and time are those of
/// [`analyse`], twice.
///
/// # Errors
/// As [`analyse`], for either trace.
pub fn compare([before, after]: [&TraceFile; 2], selection: &Selection) -> Result<Comparison, AnalysisError> {
    let renamed = renamed(&before.metadata().locations, &after.metadata().locations);
    let analyses = [analyse(before, selection)?, analyse_renamed(after, selection, Some(&renamed))?];
    let locations = locations([before, after], &analyses, &renamed);
    let (mut changed, mut common_warps) = (Vec::new(), 0);
    let [mut old, mut new] = [&analyses[0].warps[..], &analyses[1].warps[..]];
    let mut single_warps = [0, 0];
    let name = |warp: &WarpFigures| StandingWarp { launch: warp.launch, warp: warp.warp };
    while let ([first, old_rest @ ..], [second, new_rest @ ..]) = (old, new) {
        match name(first).cmp(&name(second)) {
            std::cmp::Ordering::Less => (old, single_warps[0]) = (old_rest, single_warps[0] + 1),
            std::cmp::Ordering::Greater => (new, single_warps[1]) = (new_rest, single_warps[1] + 1),
            std::cmp::Ordering::Equal => {
                common_warps += 1;
                if (first.path, first.counts.visits) != (second.path, second.counts.visits) {
                    changed.push(name(first));
                }
                (old, new) = (old_rest, new_rest);
            }
        }
    }
    single_warps[0] += old.len() as u64;
    single_warps[1] += new.len() as u64;
    Ok(Comparison { analyses, locations, changed, common_warps, single_warps, renamed })
}

impl Comparison {
    /// Whether the traces can be compared: warps of both came to a common location, or one has no events.
    pub fn is_of_one_program(&self) -> bool {
        let has_events = self.analyses.iter().all(|analysis| analysis.counts.visits > 0);
        let is_common = |change: &LocationChange| change.before.is_some() && change.after.is_some();
        !has_events || self.locations.iter().any(is_common)
    }

    /// The greatest change of a location's visits, lanes or idle lane slots, in percent of the first trace's
    /// sum of that figure; infinite where that is 0.
    pub fn greatest_percent(&self) -> f64 {
        let sums = self.analyses[0].counts;
        let mut greatest = 0.0_f64;
        for LocationChange { counts: [before, after], .. } in &self.locations {
            for (before, after, sum) in [
                (before.visits, after.visits, sums.visits),
                (before.lanes, after.lanes, sums.lanes),
                (before.idle, after.idle, sums.idle),
            ] {
                if before != after {
                    greatest = greatest.max(100.0 * before.abs_diff(after) as f64 / sum as f64);
                }
            }
        }
        greatest
    }

    /// The first event in which a warp of both traces differs; `None` if it has the same events. Decodes this
    /// warp only, up to there, and unrolls no loop. A warp that a trace does not have has no events.
    ///
    /// # Errors
    /// A trace lacks the launch or is damaged.
    pub fn parting(
        &self,
        traces: [&TraceFile; 2],
        warp: StandingWarp,
    ) -> Result<Option<Parting>, DecodeError> {
        let found = first_difference(traces, warp, |event| rename(event, &self.renamed))?;
        Ok(found.map(|(event, events)| {
            let [before, after] = events.map(|event| event.map(|event| (event.location, event.mask)));
            Parting { warp, event, before, after }
        }))
    }
}

/// For each id of `after` the id of the same location in `before`, or one that `before` does not have.
fn renamed(before: &[LocationInfo], after: &[LocationInfo]) -> Vec<u16> {
    let mut pairs: BTreeMap<u16, u16> = BTreeMap::new();
    let [mut old, mut new] = [before, after].map(|table| {
        let mut table: Vec<&LocationInfo> = table.iter().collect();
        table.sort_by_key(|info| (info.line, info.column, info.id));
        table
    });
    type Key<'a> = (&'a str, &'a str, u32, u32);
    let keys: [fn(&LocationInfo) -> Key<'_>; 3] = [
        |info| (&info.name, &info.file, info.line, info.column),
        |info| (&info.name, &info.file, 0, 0),
        |info| (&info.name, "", 0, 0),
    ];
    for key in keys {
        let mut waiting: BTreeMap<Key<'_>, Vec<u16>> = BTreeMap::new();
        for info in old.iter().rev() {
            waiting.entry(key(info)).or_default().push(info.id);
        }
        let mut found = Vec::new();
        new.retain(|info| match waiting.get_mut(&key(info)).and_then(Vec::pop) {
            Some(id) => {
                found.push(id);
                pairs.insert(info.id, id);
                false
            }
            None => true,
        });
        found.sort_unstable();
        old.retain(|info| found.binary_search(&info.id).is_err());
    }
    let ids = |table: &[LocationInfo]| table.iter().map(|info| info.id).max().unwrap_or(0);
    let mut renamed: Vec<u16> = (0..=ids(after)).collect();
    let mut taken = vec![false; usize::from(u16::MAX) + 1];
    taken[0] = true;
    before.iter().for_each(|info| taken[usize::from(info.id)] = true);
    let mut known = vec![false; usize::from(u16::MAX) + 1];
    after.iter().for_each(|info| known[usize::from(info.id)] = true);
    let mut free = (1..=u16::MAX).rev().filter(|&id| !taken[usize::from(id)]);
    for id in 1..=ids(after) {
        // Tables hold at most 65,535 locations; if no id is free, an equal one means another location.
        let other = pairs.get(&id).copied().or_else(|| {
            let is_known = known[usize::from(id)];
            if is_known { free.next() } else { None }
        });
        renamed[usize::from(id)] = other.unwrap_or(id);
    }
    renamed
}

fn locations(traces: [&TraceFile; 2], analyses: &[Analysis; 2], renamed: &[u16]) -> Vec<LocationChange> {
    let [before, after] = traces.map(Points::new);
    let mut changes: BTreeMap<u16, LocationChange> = BTreeMap::new();
    for figures in &analyses[0].locations {
        let counts = [figures.counts, Counts::default()];
        let change = LocationChange { before: Some(figures.point.clone()), after: None, counts };
        changes.insert(figures.point.location, change);
    }
    for figures in &analyses[1].locations {
        let id = figures.point.location;
        let id = renamed.get(usize::from(id)).copied().unwrap_or(id);
        let change = changes.entry(id).or_insert_with(|| LocationChange {
            before: before.known(id),
            after: None,
            counts: [Counts::default(); 2],
        });
        change.after = Some(figures.point.clone());
        change.counts[1] = figures.counts;
    }
    // The other trace may know a location to which no warp came.
    for (id, &old) in (0..=u16::MAX).zip(renamed) {
        if let Some(change) = changes.get_mut(&old)
            && change.after.is_none()
        {
            change.after = after.known(id);
        }
    }
    changes.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(id: u16, name: &str, line: u32) -> LocationInfo {
        LocationInfo { file: "k.rs".into(), line, column: 1, ..LocationInfo::new(id, name, "") }
    }

    #[test]
    fn locations_are_found_by_line_then_by_turn() {
        let before = [info(1, "if", 10), info(2, "if", 20), info(3, "loop", 30), info(4, "gone", 40)];
        let after = [info(1, "new", 5), info(2, "if", 11), info(3, "if", 20), info(4, "loop", 31)];
        let renamed = renamed(&before, &after);
        assert_eq!(renamed, [0, u16::MAX, 1, 2, 3]);
    }

    #[test]
    fn equal_tables_keep_their_ids() {
        let table = [info(7, "a", 1), info(9, "a", 1), info(3, "b", 0)];
        let renamed = renamed(&table, &table);
        assert_eq!([renamed[3], renamed[7], renamed[9]], [3, 7, 9]);
    }
}
