//! Sentences about causes of idle lanes.

use super::{Names, about, count, many, ratio};
use crate::cause_lines::CauseLine;
use crate::figures::{Analysis, Edge, Point};
use crate::order::OrderItems;

const WAYS: usize = 3;

/// Names the cause of idle lanes, to complete "idle slots caused by ...".
pub fn cause_of(names: &Names, line: &CauseLine<'_>) -> String {
    let cause = &line.whole;
    let branches = match line.parts.len() {
        1 => String::new(),
        branches => format!(", in {branches} branches of this line"),
    };
    let id = cause.point.location;
    if id == Point::BEGIN {
        return "lanes that are missing from their warp's first event on".to_owned();
    }
    if leaves_loop(line) {
        return format!("different trip counts of the loop at {}{branches}", names.full(id));
    }
    let (met, never) = (cause.reconverged(), cause.never_reconverged());
    let kind = if met == 0 { "divergence without reconvergence" } else { "divergence" };
    let rest = match never > met && met > 0 {
        true => format!(" ({} never reconverges)", about(never, cause.divergences)),
        false => String::new(),
    };
    let decision = cause.decision();
    let at = if decision == id { "at" } else { "in" };
    format!("{kind} {at} {}{branches}{rest}", names.full(decision))
}

/// Returns true if lanes iterate a loop at the cause, and leave it after different numbers of trips.
fn leaves_loop(line: &CauseLine<'_>) -> bool {
    let trips = &line.trips;
    line.parts.iter().all(|part| part.is_of_loop()) && trips.max() > 1 && trips.min() < trips.max()
}

/// Describes how often lanes diverge, when and where they reconverge, and where they go, in one sentence
/// each.
pub fn apart(analysis: &Analysis, names: &Names, line: &CauseLine<'_>) -> Vec<String> {
    let mut said = Vec::new();
    let (cause, visits) = (&line.whole, line.visits);
    if visits > 0 {
        let mut often =
            format!("lanes diverge at {} of {}", about(cause.divergences, visits), many(visits, "visit"));
        if leaves_loop(line) {
            let trips = &line.trips;
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
    let ended = line.parts.iter().map(|part| analysis.ended_at(part.point.location)).sum();
    let ended = match ended {
        0 => String::new(),
        1 => ": 1 lane ends here".to_owned(),
        ended => format!(": {} end here", many(ended, "lane")),
    };
    said.push(match cause.reconvergences.first() {
        None => format!("they do not reconverge{ended}"),
        Some(first) => {
            let how = if cause.reconvergences.len() > 1 { ", most often" } else { "" };
            let (events, at) = (ratio(cause.mean_events_diverged()), names.full(first.location));
            let reconverge = format!("{events} events on average{how} at {at}");
            match cause.never_reconverged() {
                0 => format!("they reconverge after {reconverge}"),
                // Most divergences without reconvergence are the finding, so they come first.
                never if never > cause.reconverged() => format!(
                    "{} of divergences do not reconverge{ended}; the others do after {reconverge}",
                    about(never, cause.divergences)
                ),
                never => format!(
                    "they reconverge after {reconverge}; {} of divergences do not{ended}",
                    about(never, cause.divergences)
                ),
            }
        }
    });
    said.extend(ways(analysis, names, line));
    said
}

/// Describes the destinations of lanes after a cause, most lanes first; `None` if there are fewer than two.
fn ways(analysis: &Analysis, names: &Names, line: &CauseLine<'_>) -> Option<String> {
    // Copies of a branch have copies of its sides.
    let [cause] = line.parts[..] else { return None };
    let from = (cause.point.location != Point::BEGIN).then_some(cause.point.location);
    let mut edges: Vec<_> = analysis.edges.iter().filter(|edge| edge.from == from).collect();
    if edges.len() < 2 {
        return None;
    }
    edges.order_by_key(|edge| std::cmp::Reverse(edge.lanes));
    let lanes = edges.iter().fold(0_u64, |sum, edge| sum.saturating_add(edge.lanes));
    let way = |(number, edge): (usize, &&Edge)| {
        let share = about(edge.lanes, lanes);
        let share = if number == 0 { format!("{share} of lanes") } else { share };
        match (edge.to, number) {
            (None, _) => format!("{share} end"),
            (Some(to), 0) => format!("{share} continue at {}", names.said(to)),
            (Some(to), _) => format!("{share} at {}", names.said(to)),
        }
    };
    let mut said: Vec<String> = edges.iter().enumerate().take(WAYS).map(way).collect();
    if edges.len() > WAYS {
        said.push(format!("and {} other ways", edges.len() - WAYS));
    }
    Some(said.join(", "))
}
