//! Sentences about causes of idle lanes.

use super::{Names, about, count, many, ratio};
use crate::figures::{Analysis, Cause, Edge, Point};
use crate::order::OrderItems;

/// Number of destinations that are named.
const WAYS: usize = 3;

/// Describes why lanes diverged, to complete "idle since ...".
pub fn parting(analysis: &Analysis, names: &Names, cause: &Cause) -> String {
    let id = cause.point.location;
    if id == Point::BEGIN {
        return "lanes are missing from their warp's first event on".to_owned();
    }
    if leaves_loop(analysis, cause) {
        return format!("lanes leave the loop at {}", names.full(id));
    }
    let for_good = if cause.met() == 0 { " for good" } else { "" };
    match cause.decision() {
        branch if branch != id => format!("lanes part{for_good} in {}", names.full(branch)),
        _ => format!("lanes part{for_good} after {}", names.full(id)),
    }
}

/// Returns true if lanes iterate a loop at the cause, and leave it after different numbers of trips.
fn leaves_loop(analysis: &Analysis, cause: &Cause) -> bool {
    let trips = analysis.location(cause.point.location).map(|head| &head.trips);
    cause.is_of_loop() && trips.is_some_and(|trips| trips.max() > 1 && trips.min() < trips.max())
}

/// Describes how often lanes diverge, when and where they reconverge, and where they go, in one sentence
/// each.
pub fn apart(analysis: &Analysis, names: &Names, cause: &Cause) -> Vec<String> {
    let mut said = Vec::new();
    let id = cause.point.location;
    if let Some(location) = analysis.location(id) {
        let visits = location.counts.visits;
        let mut often = format!("at {} of its {}", about(cause.partings, visits), many(visits, "visit"));
        if leaves_loop(analysis, cause) {
            let trips = &location.trips;
            let (min, max, median) = (trips.min(), trips.max(), trips.percentile(50));
            let is_about = if trips.is_exact() { "" } else { "~" };
            often += &format!(
                ", after {} to {} trips, median {is_about}{}",
                count(min),
                count(max),
                count(median)
            );
        }
        said.push(often);
    }
    let never = cause.partings.saturating_sub(cause.met());
    let ended = match analysis.ended_at(id) {
        0 => String::new(),
        1 => ": 1 lane ends there".to_owned(),
        ended => format!(": {} end there", many(ended, "lane")),
    };
    said.push(match cause.meetings.first() {
        None => format!("they never meet again{ended}"),
        Some(first) => {
            let how = if cause.meetings.len() > 1 { ", most often" } else { "" };
            let (events, at) = (ratio(cause.mean_events_apart()), names.full(first.location));
            let rest = match never {
                0 => String::new(),
                _ => format!("; {} never do{ended}", about(never, cause.partings)),
            };
            format!("{events} events in the mean until they meet{how} at {at}{rest}")
        }
    });
    said.extend(ways(analysis, names, cause));
    said
}

/// Describes the destinations of lanes after a cause, most lanes first; `None` if there are fewer than two.
fn ways(analysis: &Analysis, names: &Names, cause: &Cause) -> Option<String> {
    let from = (cause.point.location != Point::BEGIN).then_some(cause.point.location);
    let mut edges: Vec<_> = analysis.edges.iter().filter(|edge| edge.from == from).collect();
    if edges.len() < 2 {
        return None;
    }
    edges.order_by_key(|edge| std::cmp::Reverse(edge.lanes));
    let lanes = edges.iter().fold(0_u64, |sum, edge| sum.saturating_add(edge.lanes));
    let to = |to: Option<u16>| to.map_or_else(|| "their end".to_owned(), |id| names.said(id));
    let way = |edge: &&Edge| format!("{} to {}", about(edge.lanes, lanes), to(edge.to));
    let mut said: Vec<String> = edges.iter().take(WAYS).map(way).collect();
    if edges.len() > WAYS {
        said.push(format!("and {} other ways", edges.len() - WAYS));
    }
    Some(format!("of the lanes there go {}", said.join(", ")))
}
