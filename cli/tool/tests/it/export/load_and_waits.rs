//! Counters of multiprocessors, arrows between launches, and waits in Perfetto's format.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};
use warptrace_decoder::TraceFile;
use warptrace_format::LocationKind;
use warptrace_format::file::{PREAMBLE_BYTES, SECTION_HEADER_BYTES, SectionKind, encode_section};

use super::shared_axis::{Timeline, expected, record, sm_of, warp_of};
use super::{Warp, block, export, lines, perfetto_file};
use crate::support::{Folder, printed, run, text};

fn tracks(folder: &Folder, trace: &Path, more: &[&str]) -> Vec<Value> {
    let out = folder.at("out.pftrace");
    export(trace, "perfetto", &out, more);
    perfetto_file::tracks(&out)
}

#[test]
fn counters_of_multiprocessors_add_up_to_what_ran_there() {
    let folder = Folder::new();
    for times in ["blocks", "all"] {
        let trace = record(&folder, times, &[]);
        let file = TraceFile::open(&trace).unwrap();
        // Nanoseconds of warps, and of the active lanes of their runs.
        let expected = ran(&file, &expected(&trace, times == "all"));
        let tracks = tracks(&folder, &trace, &[]);
        let mut found = BTreeMap::new();
        for track in tracks.iter().filter(|track| track["counts"].is_array()) {
            let name = track["unit"].as_str().unwrap();
            assert_eq!(track["path"][2], name);
            assert!(track["description"].as_str().unwrap().contains(" in the mean over each "), "{track}");
            let name = if name == "warps" { "warps" } else { "active lanes" };
            let counts = track["counts"].as_array().unwrap();
            let at = |count: &Value| (count[0].as_f64().unwrap(), count[1].as_f64().unwrap());
            let sum =
                counts.windows(2).map(|two| at(&two[0]).1 * (at(&two[1]).0 - at(&two[0]).0)).sum::<f64>();
            assert_eq!(at(counts.last().unwrap()).1, 0.0);
            found.insert((sm_of(track["path"][1].as_str().unwrap()), name), sum);
        }
        assert_eq!(found.len(), if times == "all" { 8 } else { 4 });
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (key, sum) in found {
            let expected = expected[&key] as f64;
            assert!((sum - expected).abs() < 1e-6 * expected, "{key:?}: {sum} for {expected}");
        }
    }
}

fn ran(file: &TraceFile, timeline: &Timeline) -> BTreeMap<(u64, &'static str), u64> {
    let mut sums = BTreeMap::new();
    for ((launch, [block, ..], warp), drawn) in timeline {
        *sums.entry((drawn.sm, "warps")).or_default() += drawn.ran.1 - drawn.ran.0;
        let info = file.launch(u32::try_from(*launch).unwrap()).unwrap();
        let index = u32::try_from(*block).unwrap() * info.warps_per_block() + u32::try_from(*warp).unwrap();
        let mut lanes = Vec::new();
        let mut last = None;
        let items = file.decode_warp(info.number(), index, 0).unwrap();
        items
            .each_item(|item| {
                let [event] = *item.item.body() else { return };
                if last.replace((event, item.begin)) != Some((event, item.begin)) {
                    lanes.push(u64::from(event.mask.count_ones()));
                }
            })
            .unwrap();
        for ((_, begin, end), lanes) in drawn.runs.iter().zip(lanes) {
            *sums.entry((drawn.sm, "active lanes")).or_default() += (end - begin) * lanes;
        }
    }
    sums
}

#[test]
fn a_launch_that_begins_when_another_has_ended_follows_it() {
    let folder = Folder::new();
    let trace = record(&folder, "blocks", &[]);
    let tracks = tracks(&folder, &trace, &[]);
    let stats = printed(&["stats", text(&trace), "--json"]);
    let stats: Value = serde_json::from_str(&stats).unwrap();
    let launches = stats["schedule"]["launches"].as_array().unwrap();
    assert_eq!(launches.len(), 2);
    // Slices of blocks, by their outgoing and incoming arrows.
    let slices = || {
        tracks.iter().flat_map(|track| track["slices"].as_array().unwrap().iter().map(move |it| (track, it)))
    };
    let with = |column: usize| slices().filter(|(_, it)| it[column] != json!([])).collect::<Vec<_>>();
    let [out, into] = [5, 6].map(with);
    assert_eq!((out.len(), into.len()), (1, 1));
    assert_eq!(out[0].1[5], into[0].1[6]);
    let block = |(track, _): &(&Value, &Value)| warp_of(track["path"][2].as_str().unwrap(), "warp 0");
    let last = &launches[0]["last"];
    assert_eq!((block(&out[0]).0, json!(block(&out[0]).1[0])), (0, last["block"].clone()));
    assert_eq!(block(&into[0]), (1, [0, 0, 0], 0));
    assert_eq!(into[0].1[3]["gap before the launch (ns)"], launches[1]["gap_nanoseconds"]);
    let begin = into[0].1[1].as_u64().unwrap();
    assert_eq!(begin, out[0].1[2].as_u64().unwrap() + launches[1]["gap_nanoseconds"].as_u64().unwrap());
}

/// `location` is one at which lanes wait, followed by one at which they have waited.
fn with_wait(trace: &Path, location: u16) -> Vec<u8> {
    let bytes = std::fs::read(trace).unwrap();
    let mut metadata = TraceFile::open(trace).unwrap().metadata().clone();
    for info in &mut metadata.locations {
        match info.id.checked_sub(location) {
            Some(0) => info.kind = LocationKind::Barrier,
            Some(1) => info.kind = LocationKind::Waited,
            _ => {}
        }
    }
    let (preamble, mut rest) = bytes.split_at(PREAMBLE_BYTES);
    let mut file = preamble.to_vec();
    while rest.get(..4).is_some_and(|tag| tag != b"INDX") {
        let length = u64::from_le_bytes(rest[8..16].try_into().unwrap());
        let (section, after) = rest.split_at(SECTION_HEADER_BYTES + usize::try_from(length).unwrap());
        if file.len() == PREAMBLE_BYTES {
            file.extend(encode_section(SectionKind::Metadata, &metadata.encode().unwrap()));
        } else {
            file.extend(section);
        }
        rest = after;
    }
    // The index would have wrong offsets. Readers work without it.
    file
}

/// Warp, lane, begin and end of each wait from a location to the next one.
type Waits = BTreeSet<(Warp, u64, u64, u64)>;

fn waits(events: &[Value], location: u64) -> Waits {
    let (mut waits, mut since) = (Waits::new(), BTreeMap::new());
    for event in events {
        let [launch, warp, mask, at] =
            ["launch", "warp", "mask", "location"].map(|field| event[field].as_u64().unwrap());
        let warp = (launch, block(&event["block"]), warp);
        // Repeats of a run have no time; the first event counts.
        let Some(ns) = event.get("ns").and_then(Value::as_u64) else { continue };
        for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
            if at == location {
                since.insert((warp, lane), ns);
            } else if at == location + 1
                && let Some(begin) = since.remove(&(warp, lane))
            {
                waits.insert((warp, lane, begin, ns));
            }
        }
    }
    waits
}

#[test]
fn waits_are_slices_of_their_own_category() {
    let folder = Folder::new();
    let trace = record(&folder, "all", &[]);
    let events = lines(&trace, &[]);
    let ids = TraceFile::open(&trace).unwrap().metadata().locations.len() as u64;
    let (location, expected) =
        (1..ids).map(|id| (id, waits(&events, id))).max_by_key(|(_, waits)| waits.len()).unwrap();
    assert!(expected.len() > 20, "{}", expected.len());
    let changed = folder.at("waits.wtrc");
    std::fs::write(&changed, with_wait(&trace, u16::try_from(location).unwrap())).unwrap();
    let out = folder.at("waits.pftrace");
    let (code, _, errors) = run(&["export", text(&changed), "--to", "perfetto", "-o", text(&out)]);
    assert_eq!(code, 0, "{errors}");
    let mut found = Waits::new();
    for track in &perfetto_file::tracks(&out) {
        let path: Vec<&str> =
            track["path"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
        let is_wait = path.len() == 5;
        assert!(!is_wait || path[4] == "waits");
        let mut until = 0;
        for slice in track["slices"].as_array().unwrap() {
            assert_eq!(slice[4] == json!(["wait"]), is_wait, "{slice}");
            if !is_wait {
                continue;
            }
            let [begin, end] = [1, 2].map(|at| slice[at].as_u64().unwrap());
            let (mask, warp) = (slice[3]["mask"].as_u64().unwrap(), warp_of(path[2], path[3]));
            assert_eq!((&slice[3]["location"], begin >= until), (&json!(location), true), "{slice}");
            until = end;
            found.extend((0..32).filter(|lane| mask >> lane & 1 == 1).map(|lane| (warp, lane, begin, end)));
        }
    }
    assert_eq!(found, expected);
}
