//! Sums of analyses with common location ids.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::analyse::{add_each, add_time, joined};
use crate::figures::{
    Analysis, Cause, CausePlace, Edge, KernelFigures, LineFigures, LocationFigures, Losses, Reconvergence,
};
use crate::order::OrderItems;

impl Analysis {
    /// Maps location ids by `renamed`. Removes paths, roles, waits and run times by the hosts' clocks.
    pub(super) fn rename(&mut self, renamed: &[u16]) {
        let new = |id: u16| renamed[usize::from(id)];
        let edges = |edges: &mut Vec<Edge>| {
            for edge in &mut *edges {
                (edge.from, edge.to) = (edge.from.map(new), edge.to.map(new));
            }
            edges.sort_unstable_by_key(|edge| (edge.from, edge.to));
        };
        for kernel in &mut self.kernels {
            rename_keys(&mut kernel.causes, new, |sum, more| *sum = sum.saturating_add(more));
            rename_keys(&mut kernel.locations, new, |sum, more| sum.add(&more));
            rename_keys(&mut kernel.times, new, |sum, more| sum.add(&more));
            edges(&mut kernel.edges);
        }
        edges(&mut self.edges);
        self.locations.iter_mut().for_each(|at| at.point.location = new(at.point.location));
        self.lines.iter_mut().flat_map(|line| &mut line.locations).for_each(|id| *id = new(*id));
        for cause in &mut self.causes {
            cause.point.location = new(cause.point.location);
            for place in &mut cause.places {
                (place.location, place.decision) = (new(place.location), new(place.decision));
            }
            cause
                .reconvergences
                .iter_mut()
                .for_each(|reconvergence| reconvergence.location = new(reconvergence.location));
        }
        self.warps.each_mut().for_each(|warp| warp.last = new(warp.last));
        self.paths.clear();
        self.roles.clear();
        self.waits.clear();
        self.host = None;
    }

    /// Adds the sums of another analysis, which must have the same location ids and unit of slots.
    pub(super) fn merge(&mut self, other: Self) {
        let Self { losses, launches, counts, time, active, kernels, locations, lines, edges, causes, .. } =
            other;
        self.losses.merge(losses);
        self.launches = self.launches.saturating_add(launches);
        self.counts.add(&counts);
        add_time(&mut self.time, time);
        add_each(&mut self.active, &active);
        self.warp_events.merge(&other.warp_events);
        self.edges = joined(&self.edges, &edges);
        let key = |kernel: &KernelFigures| kernel.kernel.clone();
        merge_rows(&mut self.kernels, kernels, key, KernelFigures::merge);
        merge_rows(&mut self.locations, locations, |at| at.point.location, LocationFigures::merge);
        let key = |line: &LineFigures| (line.file.clone(), line.line, line_id(line));
        merge_rows(&mut self.lines, lines, key, LineFigures::merge);
        merge_rows(&mut self.causes, causes, |cause| cause.point.location, Cause::merge);
        self.causes.order_by_key(|cause| (Reverse(cause.idle), cause.point.location));
    }
}

pub(super) fn line_id(line: &LineFigures) -> u16 {
    if line.line == 0 { line.locations.first().copied().unwrap_or_default() } else { 0 }
}

fn rename_keys<V>(map: &mut BTreeMap<u16, V>, new: impl Fn(u16) -> u16, add: impl Fn(&mut V, V)) {
    let mut renamed = BTreeMap::new();
    for (id, value) in std::mem::take(map) {
        put(&mut renamed, new(id), value, &add);
    }
    *map = renamed;
}

fn put<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: V, add: impl Fn(&mut V, V)) {
    match map.entry(key) {
        std::collections::btree_map::Entry::Vacant(place) => {
            place.insert(value);
        }
        std::collections::btree_map::Entry::Occupied(mut sum) => add(sum.get_mut(), value),
    }
}

fn merge_rows<R, K: Ord>(rows: &mut Vec<R>, more: Vec<R>, key: impl Fn(&R) -> K, add: impl Fn(&mut R, R)) {
    let mut sums = BTreeMap::new();
    for row in std::mem::take(rows).into_iter().chain(more) {
        put(&mut sums, key(&row), row, &add);
    }
    *rows = sums.into_values().collect();
}

fn add_to(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

impl Losses {
    pub(crate) fn merge(&mut self, other: Self) {
        add_to(&mut self.lost_events, other.lost_events);
        add_to(&mut self.lossy_warps, other.lossy_warps);
        add_to(&mut self.unfinished_warps, other.unfinished_warps);
        add_to(&mut self.unaccounted_warps, other.unaccounted_warps);
        add_to(&mut self.unchosen_warps, other.unchosen_warps);
        let add = |sum: Option<u64>, more: Option<u64>| match (sum, more) {
            (Some(sum), Some(more)) => Some(sum.saturating_add(more)),
            (sum, more) => sum.or(more),
        };
        self.untimed_events = add(self.untimed_events, other.untimed_events);
        self.unplaced_warps = add(self.unplaced_warps, other.unplaced_warps);
        self.cut_off = self.cut_off.take().or(other.cut_off);
        self.assumed = self.assumed.or(other.assumed);
        self.not_traced = self.not_traced.take().or(other.not_traced);
    }
}

impl KernelFigures {
    fn merge(&mut self, other: Self) {
        add_to(&mut self.launches, other.launches);
        self.counts.add(&other.counts);
        add_time(&mut self.time, other.time);
        add_to(&mut self.warps, other.warps);
        add_each(&mut self.active, &other.active);
        for (id, idle) in other.causes {
            put(&mut self.causes, id, idle, add_to);
        }
        for (id, counts) in other.locations {
            put(&mut self.locations, id, counts, |sum, more| sum.add(&more));
        }
        for (id, time) in other.times {
            put(&mut self.times, id, time, |sum, more| sum.add(&more));
        }
        self.edges = joined(&self.edges, &other.edges);
        self.warp_events.merge(&other.warp_events);
    }
}

impl LocationFigures {
    fn merge(&mut self, other: Self) {
        self.counts.add(&other.counts);
        add_time(&mut self.time, other.time);
        match (&mut self.visit_cycles, other.visit_cycles) {
            (Some(sum), Some(more)) => sum.merge(&more),
            (sum, more) => *sum = sum.take().or(more),
        }
        if let Some(more) = other.loop_lane_cycles {
            add_to(self.loop_lane_cycles.get_or_insert_default(), more);
        }
        add_to(&mut self.caused, other.caused);
        add_to(&mut self.warps, other.warps);
        add_each(&mut self.active, &other.active);
        add_to(&mut self.splits, other.splits);
        add_to(&mut self.cut_lanes, other.cut_lanes);
        self.trips.merge(&other.trips);
        self.warp_visits.merge(&other.warp_visits);
    }
}

impl LineFigures {
    fn merge(&mut self, other: Self) {
        for (name, id) in other.names.into_iter().zip(other.locations) {
            if !self.locations.contains(&id) {
                self.names.push(name);
                self.locations.push(id);
            }
        }
        self.counts.add(&other.counts);
        add_time(&mut self.time, other.time);
        add_to(&mut self.caused, other.caused);
        add_to(&mut self.warps, other.warps);
        add_each(&mut self.active, &other.active);
        add_to(&mut self.splits, other.splits);
    }
}

impl Cause {
    /// Adds the figures of another cause. Keeps the location.
    pub(crate) fn merge(&mut self, other: Self) {
        add_to(&mut self.idle, other.idle);
        add_to(&mut self.divergences, other.divergences);
        let key = |place: &CausePlace| (place.location, place.decision);
        merge_rows(&mut self.places, other.places, key, |sum, more| add_to(&mut sum.idle, more.idle));
        self.places.order_by_key(|place| Reverse(place.idle));
        merge_rows(
            &mut self.reconvergences,
            other.reconvergences,
            |met| met.location,
            |sum: &mut Reconvergence, more| {
                add_to(&mut sum.times, more.times);
                add_to(&mut sum.events, more.events);
            },
        );
        self.reconvergences.order_by_key(|reconvergence| Reverse(reconvergence.times));
    }
}
