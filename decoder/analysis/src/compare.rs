//! Compares two traces.

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
use crate::first_difference::first_difference;
use crate::matching;
use crate::path::rename;
use crate::points::{Points, weights};
use crate::recordings::{self, Difference};
use crate::selection::Selection;

/// Visits of a location in two traces. Locations match by name and line, or by name and order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LocationChange {
    /// Location in the first trace; `None` if it has no match there.
    pub before: Option<Point>,
    /// Location in the second trace; `None` if it has no match there.
    pub after: Option<Point>,
    /// Counts in the first and the second trace.
    pub counts: [Counts; 2],
}

/// A cause of idle slots in two traces. Locations match as in [`LocationChange`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CauseChange {
    /// Location in the first trace; `None` if it is not a cause there.
    pub before: Option<Point>,
    /// Location in the second trace; `None` if it is not a cause there.
    pub after: Option<Point>,
    /// Idle slots in the first and the second trace.
    pub idle: [u64; 2],
    /// Share of all slots in the first and the second trace, 0 to 1.
    pub of_slots: [f64; 2],
}

/// Quantity and unit of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// All events, in percent of the first trace's events.
    Events,
    /// Idle share of all slots, in percentage points.
    Idle,
    /// Share of all slots that is idle for one cause, in percentage points.
    Cause,
    /// Visits of one location, in percent of the first trace's events.
    Visits,
}

/// The greatest change between two traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Greatest {
    /// Quantity that changed.
    pub measure: Measure,
    /// Location of the cause or the visits, in the second trace if it has the location.
    pub location: Option<Point>,
    /// Size of the change, not negative. Infinite, null in JSON, if the first trace has no events.
    pub percent: f64,
}

/// First difference in the path of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FirstChange {
    /// The warp in the first trace.
    #[serde(flatten)]
    pub warp: WarpName,
    /// The same warp in the second trace.
    pub second: WarpName,
    /// Number of the first differing event, from 0.
    pub event: u64,
    /// Location and mask of that event in the first trace; `None` if the warp has no such event.
    pub before: Option<(u16, u32)>,
    /// Location and mask in the second trace, with the location id of that trace.
    pub after: Option<(u16, u32)>,
}

/// Changes between two traces.
#[derive(Debug)]
#[non_exhaustive]
pub struct Comparison {
    /// Differences between the recordings.
    pub recordings: Vec<Difference>,
    /// Figures of both traces.
    pub analyses: [Analysis; 2],
    /// All causes of idle slots, by growth in idle slots, descending.
    pub causes: Vec<CauseChange>,
    /// All visited locations of either trace, by the ids of the first trace, then of the second.
    pub locations: Vec<LocationChange>,
    /// Warps with events in both traces and different paths, by launch and index in the first trace.
    pub changed: Vec<[WarpName; 2]>,
    /// Warps with events in both traces.
    pub common_warps: u64,
    /// Warps with events in one trace only.
    pub single_warps: [u64; 2],
    /// Location id in the first trace, by id in the second.
    renamed: Vec<u16>,
}

/// Compares the selected parts of two traces, with the memory and time of two calls of `analyse`.
///
/// Launches match by the name and order of their kernel, warps by their threads in the grid, locations by
/// name and, where possible, file and line. Each visit counts as one instruction unless both traces have the
/// instructions of all locations. Fails as [`analyse`](crate::analyse), for either trace.
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
    /// Returns true if the traces are comparable: they share a visited location, or one has no events.
    pub fn is_of_one_program(&self) -> bool {
        let has_events = self.analyses.iter().all(|analysis| analysis.counts.visits > 0);
        let is_common = |change: &LocationChange| change.before.is_some() && change.after.is_some();
        !has_events || self.locations.iter().any(is_common)
    }

    /// Returns the locations whose counts changed, by change of idle slots, descending.
    pub fn changed_locations(&self) -> Vec<&LocationChange> {
        let is_changed = |change: &&LocationChange| change.counts[0] != change.counts[1];
        let mut changed: Vec<&LocationChange> = self.locations.iter().filter(is_changed).collect();
        changed.order_by_key(|LocationChange { counts: [before, after], .. }| {
            let [idle, lanes] = [before.idle.abs_diff(after.idle), before.lanes.abs_diff(after.lanes)];
            Reverse((idle, lanes, before.visits.abs_diff(after.visits)))
        });
        changed
    }

    /// Returns the greatest change in any [`Measure`]; `None` if nothing changed.
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
        all.reduce(|most, next| if next.percent > most.percent { next } else { most })
    }

    /// Returns the [greatest change](Self::greatest) in percent; 0 if nothing changed.
    pub fn greatest_percent(&self) -> f64 {
        self.greatest().map_or(0.0, |greatest| greatest.percent)
    }

    /// Returns the first event in which a warp differs; `None` if all events are equal. Decodes only this
    /// warp, up to the difference, without unrolling loops. A warp that a trace does not have has no events.
    /// Fails if a trace does not have the launch or is damaged.
    pub fn first_change(
        &self,
        traces: [&TraceFile; 2],
        [warp, second]: [WarpName; 2],
    ) -> Result<Option<FirstChange>, DecodeError> {
        let found = first_difference(traces, [warp, second], |event| rename(event, &self.renamed))?;
        Ok(found.map(|(event, events)| {
            let [before, after] = events.map(|event| event.map(|event| (event.location, event.mask)));
            FirstChange { warp, second, event, before, after }
        }))
    }
}

/// Maps ids of `after` to the ids of the same locations in `before`, or to ids that `before` does not use.
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
        // Tables have at most 65,535 locations. If no id is free, the id collides with another location.
        let other = pairs.get(&id).copied().or_else(|| {
            let is_known = known[usize::from(id)];
            if is_known { free.next() } else { None }
        });
        renamed[usize::from(id)] = other.unwrap_or(id);
    }
    renamed
}

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

fn old_id(renamed: &[u16], id: u16) -> u16 {
    renamed.get(usize::from(id)).copied().unwrap_or(id)
}

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
