//! The commands that say what warps did: their figures against the events that `decode` prints, and how they
//! read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::support::{Folder, run, text};

/// An event as `decode` prints it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    location: u64,
    mask: u32,
}

/// Events by launch, block and warp in block.
type Warps = BTreeMap<(u64, u64, u64), Vec<Event>>;

fn decoded(path: &Path) -> Warps {
    let (code, output, _) = run(&["decode", text(path), "--format", "csv"]);
    assert_eq!(code, 0);
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

fn json(arguments: &[&str]) -> Value {
    let (code, output, errors) = run(&[arguments, &["--json"]].concat());
    assert_eq!((code, errors.as_str()), (0, ""), "{arguments:?}");
    serde_json::from_str(&output).unwrap()
}

/// The sequence of events of each lane of a warp, by their numbers in the warp.
fn lanes(events: &[Event]) -> Vec<Vec<usize>> {
    let of_lane = |lane: u32| (0..events.len()).filter(|&at| events[at].mask >> lane & 1 == 1).collect();
    (0..32).map(of_lane).collect()
}

/// Trips of the loops that a lane goes through: how often it came back to a location before it went back to
/// one that it had passed earlier.
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
    let locations = stats["locations"].as_array().unwrap();
    assert_eq!(locations.len(), visits.len());
    for row in locations {
        let id = row["location"].as_u64().unwrap();
        let lanes: u64 = (0..).zip(active[&id]).map(|(lanes, visits)| lanes * visits).sum();
        let found = ["visits", "lanes", "idle", "warps"].map(|field| row[field].as_u64().unwrap());
        assert_eq!(found, [visits[&id], lanes, 32 * visits[&id] - lanes, came[&id].len() as u64], "{id}");
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
    let idle: Vec<u64> = lines.iter().map(|line| line["idle"].as_u64().unwrap()).collect();
    assert!(idle.is_sorted_by(|a, b| a >= b), "{idle:?}");
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
    let found = json(&["warps", text(path), "--sort", "number"]);
    let found = found["warps"].as_array().unwrap();
    assert_eq!(found.len(), warps.len());
    for row in found {
        let number = |field: &str| row[field].as_u64().unwrap();
        let events = &warps[&(number("launch"), row["block"][0].as_u64().unwrap(), number("warp_in_block"))];
        let lanes: u64 = events.iter().map(|event| u64::from(event.mask.count_ones())).sum();
        let visits = events.len() as u64;
        let found = ["visits", "lanes", "idle", "last"].map(number);
        assert_eq!(found, [visits, lanes, 32 * visits - lanes, events[events.len() - 1].location]);
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
        let (path, (code, _, errors)) = folder.record_program(program, program, more);
        assert_eq!((code, errors.as_str()), (0, ""), "{program}");
        let warps = decoded(&path);
        check_lines_and_stats(&path, &warps);
        check_edges(&path, &warps);
        check_loops(&path, &warps);
        check_warps_and_paths(&path, &warps);
    }
}

/// A picture whose warps part: 128 warps in 16 blocks.
const PARTING: [&str; 4] = ["--width", "64", "--depth", "400"];

/// The commands that show figures of one trace.
const VIEWS: [&str; 7] = ["top", "lines", "loops", "warps", "paths", "edges", "stats"];
/// Those that print rows.
const ROWS: [&str; 5] = ["lines", "loops", "warps", "paths", "edges"];

#[test]
fn every_view_fits_a_screen_and_says_that_the_trace_is_whole() {
    let folder = Folder::new();
    let path = folder.record_program("fractal", "a.wtrc", &PARTING).0;
    for view in VIEWS {
        let (code, output, errors) = run(&[view, text(&path)]);
        assert_eq!((code, errors.as_str()), (0, ""), "{view}");
        let first = output.lines().take(2).any(|line| line.starts_with("whole trace: "));
        assert!(first, "{view}: {output}");
        let widest = output.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 90 && output.lines().count() <= 50, "{view} is {widest} wide:\n{output}");
        assert_eq!(json(&[view, text(&path)])["whole"], true);
    }
    let finding = run(&["top", text(&path)]).1;
    assert!(finding.lines().next().unwrap().contains(" lane slots idle; "), "{finding}");
    let none = run(&["top", text(&folder.recorded("full.wtrc", &[]))]).1;
    let none = none.lines().next().unwrap();
    assert_eq!(none, "no idle lane slot of 22,528: every visit had all lanes of its warp");
}

#[test]
fn rows_are_sorted_limited_and_filtered() {
    let folder = Folder::new();
    let path = folder.record_program("fractal", "a.wtrc", &PARTING).0;
    for view in ROWS {
        let all = json(&[view, text(&path)]);
        let few = json(&[view, text(&path), "--limit", "1"]);
        assert_eq!(few[view].as_array().unwrap()[..], all[view].as_array().unwrap()[..1], "{view}");
        let (code, output, _) = run(&[view, text(&path), "--limit", "1"]);
        let more = all[view].as_array().unwrap().len() - 1;
        assert_eq!(
            (code, output.contains(&format!("and {more} more; `--limit 0` shows all"))),
            (0, more > 0)
        );
    }
    let by = |view: &str, column: &str, field: &str| -> Vec<u64> {
        let rows = json(&[view, text(&path), "--sort", column]);
        rows[view].as_array().unwrap().iter().map(|row| row[field].as_u64().unwrap()).collect()
    };
    for (view, column, field) in [
        ("lines", "visits", "visits"),
        ("lines", "lanes", "lanes"),
        ("lines", "splits", "splits"),
        ("warps", "idle", "idle"),
        ("warps", "events", "visits"),
        ("paths", "warps", "warps"),
        ("edges", "lanes", "lanes"),
        ("edges", "visits", "visits"),
    ] {
        assert!(by(view, column, field).is_sorted_by(|a, b| a >= b), "{view} by {column}");
    }
    assert!(by("paths", "rare", "warps").is_sorted());
    // One location by name and by id; one block and warp.
    for name in ["ITERATE", "3"] {
        let lines = json(&["lines", text(&path), "--location", name]);
        assert_eq!(lines["lines"].as_array().unwrap().len(), 1);
        assert_eq!(lines["lines"][0]["names"][0], "ITERATE");
    }
    // Of warps and paths: the warps that came there, with what they did there.
    let escaped = json(&["lines", text(&path), "--location", "ESCAPED"])["lines"][0].clone();
    let warps = json(&["warps", text(&path), "--location", "ESCAPED"]);
    let warps = warps["warps"].as_array().unwrap();
    assert!(warps.len() > 1 && escaped["warps"] == warps.len() && warps.len() < 128);
    let idle: u64 = warps.iter().map(|warp| warp["idle"].as_u64().unwrap()).sum();
    assert_eq!(escaped["idle"], idle);
    let paths = json(&["paths", text(&path), "--location", "ESCAPED"]);
    let paths = paths["paths"].as_array().unwrap().iter();
    assert_eq!(paths.map(|path| path["warps"].as_u64().unwrap()).sum::<u64>(), warps.len() as u64);
    let block =
        json(&["warps", text(&path), "--block", "2", "--warp", "3", "--kernel", "fractal", "--launch", "0"]);
    let rows = block["warps"].as_array().unwrap();
    assert_eq!(
        (rows.len(), &rows[0]["warp"], &rows[0]["warp_in_block"]),
        (1, &Value::from(19), &Value::from(3))
    );
}

#[test]
fn what_there_is_not_is_an_error() {
    let folder = Folder::new();
    let path = folder.recorded("a.wtrc", &[]);
    for view in VIEWS {
        for (more, part) in [
            (["--kernel", "frac"], "no kernel `frac`; it has fractal"),
            (["--launch", "1"], "no launch 1"),
            (["--block", "4"], "there is no block [4, 0, 0]"),
            (["--warp", "8"], "have warps 0 to 7, not 8"),
        ] {
            let (code, output, errors) = run(&[&[view, text(&path)], &more[..]].concat());
            assert_eq!((code, output.as_str()), (1, ""), "{view} {more:?}");
            assert!(errors.contains(part), "{view} {more:?}: {errors}");
        }
    }
    let (code, _, errors) = run(&["lines", text(&path), "--location", "ITER"]);
    assert!(code == 1 && errors.contains("no location `ITER`; `warptrace info` lists them"), "{errors}");
}

#[test]
fn a_trace_that_lacks_events_says_so_first() {
    let folder = Folder::new();
    let (path, (code, ..)) =
        folder.record_program("stress", "part.wtrc", &["--walks", "256", "--memory", "1MiB"]);
    assert_eq!(code, 3);
    let bytes = std::fs::read(folder.recorded("whole.wtrc", &[])).unwrap();
    let cut = folder.at("cut.wtrc");
    std::fs::write(&cut, &bytes[..bytes.len() - 300]).unwrap();
    for (path, part) in [(&path, " events of 8 warps lost"), (&cut, "bytes can be read")] {
        for view in VIEWS {
            let (code, output, _) = run(&[view, text(path)]);
            let first = output.lines().next().unwrap();
            assert!(
                code == 0 && first.starts_with("INCOMPLETE trace: ") && first.contains(part),
                "{view}: {output}"
            );
            assert_eq!(json(&[view, text(path)])["whole"], false);
        }
        let (code, output, _) = run(&["diff", text(path), text(path)]);
        assert!(code == 0 && output.starts_with("first: INCOMPLETE trace: "), "{output}");
    }
}

#[test]
fn a_damaged_trace_is_an_error_that_names_the_remedy() {
    let folder = Folder::new();
    let path = folder.recorded("a.wtrc", &["--zstd", "0"]);
    let mut bytes = std::fs::read(&path).unwrap();
    // The first frame: its payload is behind its header.
    let frame = bytes.windows(4).position(|tag| tag == b"FRAM").unwrap();
    bytes[frame + 100] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    for view in VIEWS {
        let (code, output, errors) = run(&[view, text(&path)]);
        assert_eq!((code, output.as_str()), (1, ""), "{view}");
        assert!(
            errors.starts_with("error: cannot analyse ") && errors.contains("`warptrace verify`"),
            "{errors}"
        );
    }
}

#[test]
fn diff_says_what_changed_and_fails_above_a_limit() {
    let folder = Folder::new();
    let before = folder.recorded("a.wtrc", &[]);
    let after = folder.record_program("fractal", "b.wtrc", &["--width", "32", "--depth", "19"]).0;
    let diff = |more: &[&str]| run(&[&["diff", text(&before)], more].concat());
    let (code, output, errors) = diff(&[text(&before), "--fail-above", "0"]);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(output.starts_with("0 of 32 warps in both traces took another path\n"), "{output}");

    let (code, output, errors) = diff(&[text(&after)]);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(output.contains("where warps first go another way") && output.contains("ITERATE"), "{output}");
    let found = json(&["diff", text(&before), text(&after)]);
    let [old, new] = [&before, &after].map(|path| decoded(path));
    let changed = old.iter().filter(|(warp, events)| new[warp] != **events).count();
    assert_eq!(found["changed_warps"], changed);
    let first = &found["first_changes"][0];
    let (warp, at) = (first["warp"].as_u64().unwrap(), first["event"].as_u64().unwrap() as usize);
    let [old, new] = [old, new].map(|warps| warps[&(0, warp / 8, warp % 8)].clone());
    assert!(old[..at] == new[..at] && old[at] != new[at]);
    assert_eq!(first["before"], serde_json::json!([old[at].location, old[at].mask]));

    let percent = found["greatest_change_percent"].as_f64().unwrap();
    for (limit, expected) in [(percent + 0.01, 0), (percent - 0.01, 4)] {
        let limit = limit.to_string();
        assert_eq!(diff(&[text(&after), "--fail-above", &limit]).0, expected);
        assert_eq!(diff(&[text(&after), "--json", "--fail-above", &limit]).0, expected);
    }
    let (code, _, errors) = diff(&[text(&after), "--fail-above", "-1"]);
    assert_eq!(code, 2, "{errors}");
}
