//! Compares figures of the commands that report what warps did with the events that `decode` prints.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::support::{Folder, json, printed, text};

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event {
    pub(crate) location: u64,
    pub(crate) mask: u32,
}

/// Events by launch, block and warp in block.
pub(crate) type Warps = BTreeMap<(u64, u64, u64), Vec<Event>>;

pub(crate) fn decoded(path: &Path) -> Warps {
    let output = printed(&["decode", text(path), "--format", "csv"]);
    let mut warps = Warps::new();
    for record in csv::Reader::from_reader(output.as_bytes()).records() {
        let record = record.unwrap();
        let number = |column: usize| record[column].parse::<u64>().unwrap();
        let mask = u32::from_str_radix(record[9].trim_start_matches("0x"), 16).unwrap();
        let warp = warps.entry((number(0), number(2), number(5))).or_default();
        warp.push(Event { location: number(7), mask });
    }
    warps
}

/// Returns the events of each lane of a warp, as indices into the warp's events.
fn lanes(events: &[Event]) -> Vec<Vec<usize>> {
    let of_lane = |lane: u32| (0..events.len()).filter(|&at| events[at].mask >> lane & 1 == 1).collect();
    (0..32).map(of_lane).collect()
}

/// Counts the trips of a lane's loops: how often the lane returned to a location before it returned to a
/// location that it had passed earlier.
fn trips(locations: &[u64], found: &mut BTreeMap<u64, Vec<u64>>) {
    let mut open: Vec<(u64, u64)> = Vec::new();
    for &location in locations {
        while open.iter().any(|entry| entry.0 == location) && open.last().unwrap().0 != location {
            let (inner, count) = open.pop().unwrap();
            found.entry(inner).or_default().push(count);
        }
        match open.last_mut() {
            Some((last, count)) if *last == location => *count += 1,
            _ => open.push((location, 1)),
        }
    }
    for (location, count) in open {
        found.entry(location).or_default().push(count);
    }
}

pub(crate) fn weights(trace: &Path) -> BTreeMap<u64, u64> {
    let info = json(&["info", text(trace)]);
    let rows = info["metadata"]["locations"].as_array().unwrap();
    let weight = |row: &Value| row["code"]["instructions"].as_u64();
    let is_known = rows.iter().all(|row| weight(row).is_some());
    let of = |row: &Value| (row["id"].as_u64().unwrap(), weight(row).filter(|_| is_known).unwrap_or(1));
    rows.iter().map(of).collect()
}

fn check_lines_and_stats(path: &Path, warps: &Warps) {
    let (mut visits, mut active): (BTreeMap<u64, u64>, BTreeMap<u64, [u64; 33]>) = Default::default();
    let mut came: BTreeMap<u64, BTreeSet<_>> = BTreeMap::new();
    for (warp, events) in warps {
        for event in events {
            *visits.entry(event.location).or_default() += 1;
            active.entry(event.location).or_insert([0; 33])[event.mask.count_ones() as usize] += 1;
            came.entry(event.location).or_default().insert(*warp);
        }
    }
    let stats = json(&["stats", text(path)]);
    let (locations, weights) = (stats["locations"].as_array().unwrap(), weights(path));
    assert_eq!(locations.len(), visits.len());
    for row in locations {
        let id = row["location"].as_u64().unwrap();
        let lanes: u64 = (0..).zip(active[&id]).map(|(lanes, visits)| lanes * visits).sum();
        let found = ["visits", "lanes", "idle", "warps"].map(|field| row[field].as_u64().unwrap());
        let idle = (32 * visits[&id] - lanes) * weights[&id];
        assert_eq!(found, [visits[&id], lanes, idle, came[&id].len() as u64], "{id}");
        assert_eq!(row["active"], serde_json::json!(active[&id].to_vec()));
    }
    let total: u64 = visits.values().sum();
    assert_eq!(stats["totals"]["visits"], total);
    assert_eq!(stats["whole"], true);

    let lines = json(&["lines", text(path)]);
    let lines = lines["lines"].as_array().unwrap();
    assert_eq!(lines.iter().map(|line| line["visits"].as_u64().unwrap()).sum::<u64>(), total);
    for line in lines {
        let ids: Vec<u64> =
            line["locations"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
        let all: BTreeSet<_> = ids.iter().flat_map(|id| came[id].iter().copied()).collect();
        assert_eq!(line["warps"], all.len(), "{line}");
        assert_eq!(line["visits"], ids.iter().map(|id| visits[id]).sum::<u64>());
    }
    let number = |line: &Value, field: &str| line[field].as_u64().unwrap();
    let order: Vec<_> = lines.iter().map(|line| (number(line, "caused"), number(line, "idle"))).collect();
    assert!(order.is_sorted_by(|a, b| a >= b), "{order:?}");
}

fn check_edges(path: &Path, warps: &Warps) {
    let (mut edges, mut splits) = (BTreeMap::new(), BTreeMap::new());
    for events in warps.values() {
        let mut pairs: BTreeMap<_, u64> = BTreeMap::new();
        for lane in lanes(events) {
            let ends = [None].into_iter().chain(lane.iter().copied().map(Some)).chain([None]);
            let ends: Vec<Option<usize>> = ends.collect();
            if !lane.is_empty() {
                ends.windows(2).for_each(|pair| *pairs.entry((pair[0], pair[1])).or_default() += 1);
            }
        }
        let location = |event: Option<usize>| event.map(|at| events[at].location);
        let mut next: BTreeMap<usize, BTreeSet<_>> = BTreeMap::new();
        for ((from, to), lanes) in pairs {
            let edge: &mut (u64, u64) = edges.entry((location(from), location(to))).or_default();
            *edge = (edge.0 + 1, edge.1 + lanes);
            if let Some(from) = from {
                next.entry(from).or_default().insert(location(to));
            }
        }
        for (from, to) in next {
            *splits.entry(events[from].location).or_insert(0) += u64::from(to.len() > 1);
        }
    }
    let found = json(&["edges", text(path)]);
    let found = found["edges"].as_array().unwrap();
    assert_eq!(found.len(), edges.len());
    for edge in found {
        let key = (edge["from"].as_u64(), edge["to"].as_u64());
        let counts = (edge["visits"].as_u64().unwrap(), edge["lanes"].as_u64().unwrap());
        assert_eq!(counts, edges[&key], "{edge}");
        let leaving: u64 = edges.iter().filter(|(ends, _)| ends.0 == key.0).map(|(_, edge)| edge.1).sum();
        assert!((edge["taken"].as_f64().unwrap() - counts.1 as f64 / leaving as f64).abs() < 1e-12);
        assert_eq!(edge["from_splits"].as_u64(), key.0.map(|from| splits[&from]), "{edge}");
    }
}

fn check_loops(path: &Path, warps: &Warps) {
    let (mut found, mut by_warp) = (BTreeMap::new(), BTreeMap::new());
    for events in warps.values() {
        for lane in lanes(events) {
            let locations: Vec<u64> = lane.iter().map(|&at| events[at].location).collect();
            trips(&locations, &mut found);
        }
        let mut visits: BTreeMap<u64, u64> = BTreeMap::new();
        events.iter().for_each(|event| *visits.entry(event.location).or_default() += 1);
        visits.into_iter().for_each(|(at, visits)| by_warp.entry(at).or_insert_with(Vec::new).push(visits));
    }
    found.retain(|_, trips| trips.iter().any(|trips| *trips > 1));
    let loops = json(&["loops", text(path)]);
    let loops = loops["loops"].as_array().unwrap();
    assert_eq!(loops.len(), found.len());
    for row in loops {
        let id = row["location"].as_u64().unwrap();
        for (field, numbers) in [("trips", &found[&id]), ("warp_visits", &by_warp[&id])] {
            let mut numbers = numbers.clone();
            numbers.sort_unstable();
            let shown = |name: &str| row[field][name].as_u64().unwrap();
            let rank = |percent: usize| numbers[(numbers.len() * percent).div_ceil(100) - 1];
            assert_eq!(shown("count"), numbers.len() as u64, "{id}");
            assert_eq!(shown("sum"), numbers.iter().sum::<u64>());
            assert_eq!((shown("min"), shown("max")), (numbers[0], numbers[numbers.len() - 1]));
            for (name, exact) in [("median", rank(50)), ("p95", rank(95))] {
                assert!(shown(name) <= exact && exact - shown(name) <= exact / 128, "{id} {field} {name}");
            }
            let mean = numbers.iter().sum::<u64>() as f64 / numbers.len() as f64;
            let imbalance = row[field]["imbalance"].as_f64().unwrap();
            assert!((imbalance - numbers[numbers.len() - 1] as f64 / mean).abs() < 1e-9);
            let mut powers = vec![0; row[field]["powers_of_two"].as_array().unwrap().len()];
            numbers.iter().for_each(|number| powers[(64 - number.leading_zeros()) as usize] += 1);
            assert_eq!(row[field]["powers_of_two"], serde_json::json!(powers));
        }
    }
}

fn check_warps_and_paths(path: &Path, warps: &Warps) {
    let weights = weights(path);
    let found = json(&["warps", text(path), "--sort", "number"]);
    let found = found["warps"].as_array().unwrap();
    assert_eq!(found.len(), warps.len());
    for row in found {
        let number = |field: &str| row[field].as_u64().unwrap();
        let events = &warps[&(number("launch"), row["block"][0].as_u64().unwrap(), number("warp_in_block"))];
        let lanes: u64 = events.iter().map(|event| u64::from(event.mask.count_ones())).sum();
        let visits = events.len() as u64;
        let found = ["visits", "lanes", "idle", "last"].map(number);
        let idle = |event: &Event| u64::from(32 - event.mask.count_ones()) * weights[&event.location];
        let idle = events.iter().map(idle).sum::<u64>();
        assert_eq!(found, [visits, lanes, idle, events[events.len() - 1].location]);
        assert_eq!(row["end"], "whole");
    }
    let mut groups: BTreeMap<&[Event], u64> = BTreeMap::new();
    warps.values().for_each(|events| *groups.entry(events).or_default() += 1);
    let mut groups: Vec<u64> = groups.into_values().collect();
    groups.sort_unstable_by(|a, b| b.cmp(a));
    let paths = json(&["paths", text(path)]);
    let paths = paths["paths"].as_array().unwrap().iter().map(|path| path["warps"].as_u64().unwrap());
    assert_eq!(paths.collect::<Vec<_>>(), groups);
}

#[test]
fn every_figure_is_that_of_the_decoded_events() {
    let folder = Folder::new();
    for (program, more) in [
        ("fractal", &["--width", "64", "--depth", "400"][..]),
        ("nbody", &["--bodies", "256", "--steps", "2"]),
        ("mis", &["--graph", "road:1024"]),
        ("stress", &["--walks", "200", "--rounds", "4"]),
    ] {
        let path = folder.traced(program, program, more);
        let warps = decoded(&path);
        check_lines_and_stats(&path, &warps);
        check_edges(&path, &warps);
        check_loops(&path, &warps);
        check_warps_and_paths(&path, &warps);
    }
}
