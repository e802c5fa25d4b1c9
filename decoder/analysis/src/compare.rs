//! What changed from one trace to another.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::order::OrderItems;
use serde::Serialize;
use warptrace_decoder::{DecodeError, TraceFile};
use warptrace_format::file::LocationInfo;

use crate::analyse::analyse_renamed;
use crate::counts::{Counts, share};
use crate::error::AnalysisError;
use crate::figures::{Analysis, Cause, LocationFigures, Point, WarpFigures, WarpName};
use crate::matching;
use crate::parting::first_difference;
use crate::path::rename;
use crate::points::{Points, weights};
use crate::recordings::{self, Difference};
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

/// A cause of idle slots in two traces, whose locations are the same as in [`LocationChange`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CauseChange {
    /// Its location in the first trace; `None` if it parted no lanes there.
    pub before: Option<Point>,
    /// Its location in the second trace; `None` if it parted no lanes there.
    pub after: Option<Point>,
    /// Idle slots in the first and in the second trace.
    pub idle: [u64; 2],
    /// Of all slots of the first and of the second trace, 0 to 1.
    pub of_slots: [f64; 2],
}

/// What changes are measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// All events, in percent of the first trace's.
    Events,
    /// The idle part of all slots, in percentage points.
    Idle,
    /// The part of all slots that is idle for one cause, in percentage points.
    Cause,
    /// Visits of one location, in percent of the first trace's events.
    Visits,
}

/// The greatest change from one trace to another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Greatest {
    /// What has changed.
    pub measure: Measure,
    /// Of a cause or visits: the location, in the second trace if that has it.
    pub location: Option<Point>,
    /// By how much, never negative; infinite, in JSON null, where there was nothing before.
    pub percent: f64,
}

/// A warp that took another path, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Parting {
    /// The warp in the first trace.
    #[serde(flatten)]
    pub warp: WarpName,
    /// The same warp in the second trace.
    pub second: WarpName,
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
    /// In what the recordings differ.
    pub recordings: Vec<Difference>,
    /// The figures of both traces.
    pub analyses: [Analysis; 2],
    /// All causes of idle slots, those that grew most first, in idle slots.
    pub causes: Vec<CauseChange>,
    /// All locations that warps of one of them came to, in the order of the first trace's ids, and then of
    /// the second one's.
    pub locations: Vec<LocationChange>,
    /// Warps with events in both traces that took another path, in the first and in the second, by launch and
    /// number in the first.
    pub changed: Vec<[WarpName; 2]>,
    /// Warps with events in both traces.
    pub common_warps: u64,
    /// Warps with events in one trace only.
    pub single_warps: [u64; 2],
    /// For each id of the second trace the first one's.
    renamed: Vec<u16>,
}

/// Compares two traces, or what `selection` names of them. Launches are the same if they have the same turn
/// among those of a kernel of the same name; warps, if their lanes are the same threads of the grid;
/// locations, if their names are, and file and line as far as there are such. Where one of the traces does
/// not say how many instructions a visit stands for, each counts as one in both. Memory and time are those of
/// [`analyse`](crate::analyse), twice.
///
/// # Errors
/// As [`analyse`](crate::analyse), for either trace.
pub fn compare(traces: [&TraceFile; 2], selection: &Selection) -> Result<Comparison, AnalysisError> {
    let [before, after] = traces;
    let renamed = renamed(&before.metadata().locations, &after.metadata().locations);
    let has_weights = traces.into_iter().all(|trace| weights(trace).is_some());
    let points = |trace| {
        let points = Points::new(trace);
        if has_weights { points } else { points.without_weights() }
    };
    let analyses = [
        analyse_renamed(points(before), before, selection, None)?,
        analyse_renamed(points(after), after, selection, Some(&renamed))?,
    ];
    let locations = locations(traces, &analyses, &renamed);
    let causes = causes(&analyses, &renamed);
    let launches = matching::launches(traces);
    let name = |warp: &WarpFigures| WarpName { launch: warp.launch, warp: warp.warp };
    let (mut changed, mut common_warps) = (Vec::new(), 0);
    matching::warps(&launches, [&analyses[0].warps, &analyses[1].warps], |pair| {
        let [first, second] = pair.each_ref().map(|warp| (warp.path, warp.counts.visits));
        common_warps += 1;
        changed.extend((first != second).then(|| pair.each_ref().map(name)));
    });
    changed.sort_unstable();
    let single_warps = analyses.each_ref().map(|analysis| analysis.warps.len() as u64 - common_warps);
    let recordings = recordings::differences(traces, &launches);
    Ok(Comparison { recordings, analyses, causes, locations, changed, common_warps, single_warps, renamed })
}

impl Comparison {
    /// Whether the traces can be compared: warps of both came to a common location, or one has no events.
    pub fn is_of_one_program(&self) -> bool {
        let has_events = self.analyses.iter().all(|analysis| analysis.counts.visits > 0);
        let is_common = |change: &LocationChange| change.before.is_some() && change.after.is_some();
        !has_events || self.locations.iter().any(is_common)
    }

    /// The locations whose counts changed, those with the greatest change of idle slots first.
    pub fn changed_locations(&self) -> Vec<&LocationChange> {
        let is_changed = |change: &&LocationChange| change.counts[0] != change.counts[1];
        let mut changed: Vec<&LocationChange> = self.locations.iter().filter(is_changed).collect();
        changed.order_by_key(|LocationChange { counts: [before, after], .. }| {
            let [idle, lanes] = [before.idle.abs_diff(after.idle), before.lanes.abs_diff(after.lanes)];
            Reverse((idle, lanes, before.visits.abs_diff(after.visits)))
        });
        changed
    }

    /// The greatest change in any [`Measure`]; `None` if none of them changed.
    pub fn greatest(&self) -> Option<Greatest> {
        let [before, after] = self.analyses.each_ref().map(|analysis| analysis.counts);
        let of_events = |before_after: [u64; 2]| {
            let [old, new] = before_after;
            if old == new { 0.0 } else { 100.0 * old.abs_diff(new) as f64 / before.visits as f64 }
        };
        let points = |[old, new]: [f64; 2]| 100.0 * (old - new).abs();
        let whole = [
            (Measure::Events, of_events([before.visits, after.visits])),
            (Measure::Idle, points([before.idle_share(), after.idle_share()])),
        ];
        let whole = whole.map(|(measure, percent)| Greatest { measure, location: None, percent });
        let place = |before: &Option<Point>, after: &Option<Point>| after.clone().or_else(|| before.clone());
        let causes = self.causes.iter().map(|change| Greatest {
            measure: Measure::Cause,
            location: place(&change.before, &change.after),
            percent: points(change.of_slots),
        });
        let visits = self.locations.iter().map(|change| Greatest {
            measure: Measure::Visits,
            location: place(&change.before, &change.after),
            percent: of_events(change.counts.map(|counts| counts.visits)),
        });
        let all = whole.into_iter().chain(causes).chain(visits).filter(|found| found.percent > 0.0);
        // Of equal ones the first.
        all.reduce(|most, next| if next.percent > most.percent { next } else { most })
    }

    /// The [greatest change](Self::greatest) in percent; 0 if nothing changed.
    pub fn greatest_percent(&self) -> f64 {
        self.greatest().map_or(0.0, |greatest| greatest.percent)
    }

    /// The first event in which a warp of both traces differs; `None` if it has the same events. Decodes this
    /// warp only, up to there, and unrolls no loop. A warp that a trace does not have has no events.
    ///
    /// # Errors
    /// A trace lacks the launch or is damaged.
    pub fn parting(
        &self,
        traces: [&TraceFile; 2],
        [warp, second]: [WarpName; 2],
    ) -> Result<Option<Parting>, DecodeError> {
        let found = first_difference(traces, [warp, second], |event| rename(event, &self.renamed))?;
        Ok(found.map(|(event, events)| {
            let [before, after] = events.map(|event| event.map(|event| (event.location, event.mask)));
            Parting { warp, second, event, before, after }
        }))
    }
}

/// For each id of `after` the id of the same location in `before`, or one that `before` does not have.
fn renamed(before: &[LocationInfo], after: &[LocationInfo]) -> Vec<u16> {
    let mut pairs: BTreeMap<u16, u16> = BTreeMap::new();
    let [mut old, mut new] = [before, after].map(|table| {
        let mut table: Vec<&LocationInfo> = table.iter().collect();
        table.order_by_key(|info| (info.line, info.column, info.id));
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

/// Pairs the rows of two traces that have the same key.
pub(crate) fn paired<K: Ord, R>(
    before: impl IntoIterator<Item = (K, R)>,
    after: impl IntoIterator<Item = (K, R)>,
) -> BTreeMap<K, [Option<R>; 2]> {
    let old = before.into_iter().map(|(key, row)| (key, [Some(row), None]));
    let mut pairs: BTreeMap<K, [Option<R>; 2]> = old.collect();
    for (key, row) in after {
        pairs.entry(key).or_insert([None, None])[1] = Some(row);
    }
    pairs
}

/// The id in the first trace of the location with an id in the second one.
fn old_id(renamed: &[u16], id: u16) -> u16 {
    renamed.get(usize::from(id)).copied().unwrap_or(id)
}

/// Pairs the causes of both traces.
fn causes(analyses: &[Analysis; 2], renamed: &[u16]) -> Vec<CauseChange> {
    let [before, after] = analyses.each_ref().map(|analysis| &analysis.causes);
    let new_key = |id: u16| if id == Point::BEGIN { id } else { old_id(renamed, id) };
    let pairs = paired(
        before.iter().map(|cause| (cause.point.location, cause)),
        after.iter().map(|cause| (new_key(cause.point.location), cause)),
    );
    let change = |pair: [Option<&Cause>; 2]| {
        let idle = pair.map(|cause| cause.map_or(0, |cause| cause.idle));
        let of_slots = [0, 1].map(|which| share(idle[which], analyses[which].counts.slots));
        let [before, after] = pair.map(|cause| cause.map(|cause| cause.point.clone()));
        CauseChange { before, after, idle, of_slots }
    };
    let mut found: Vec<CauseChange> = pairs.into_values().map(change).collect();
    found.order_by_key(|change| Reverse(i128::from(change.idle[1]) - i128::from(change.idle[0])));
    found
}

fn locations(traces: [&TraceFile; 2], analyses: &[Analysis; 2], renamed: &[u16]) -> Vec<LocationChange> {
    let [before, after] = traces.map(Points::new);
    let [old, new] = analyses.each_ref().map(|analysis| &analysis.locations);
    let pairs = paired(
        old.iter().map(|at| (at.point.location, at)),
        new.iter().map(|at| (old_id(renamed, at.point.location), at)),
    );
    // The other trace may know a location to which no warp came.
    let mut news: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
    for (id, &old) in (0..=u16::MAX).zip(renamed) {
        news.entry(old).or_default().push(id);
    }
    let change = |(id, pair): (u16, [Option<&LocationFigures>; 2])| {
        let counts = pair.map(|figures| figures.map_or_else(Counts::default, |figures| figures.counts));
        let [first, second] = pair.map(|figures| figures.map(|figures| figures.point.clone()));
        let known = || news.get(&id)?.iter().find_map(|&id| after.known(id));
        LocationChange { before: first.or_else(|| before.known(id)), after: second.or_else(known), counts }
    };
    pairs.into_iter().map(change).collect()
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
