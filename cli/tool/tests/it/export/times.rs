//! Times of runs: `decode`, timelines and tables agree, and damaged times do not remove events.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use warptrace_format::file::{SECTION_HEADER_BYTES, SectionHeader};

use super::{Warp, block, export, lines, perfetto_file};
#[cfg(feature = "parquet")]
use crate::support::read_with;
use crate::support::{Folder, run, text};

fn timed(folder: &Folder, name: &str, more: &[&str]) -> PathBuf {
    let arguments = [&["--graph", "road:1024", "--grid", "16x64"], more].concat();
    folder.traced("mis", name, &arguments)
}

/// Returns when the runs of each warp began, and with which event, as `decode` prints it.
fn begins(path: &Path) -> BTreeMap<Warp, Vec<(u64, u64)>> {
    let mut warps: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in lines(path, &[]) {
        if let Some(begin) = line.get("begin") {
            let [launch, warp, event] =
                ["launch", "warp", "event"].map(|field| line[field].as_u64().unwrap());
            let runs = warps.entry((launch, block(&line["block"]), warp)).or_default();
            runs.push((begin.as_u64().unwrap(), event));
        }
    }
    warps
}

#[test]
fn a_run_lasts_from_its_time_to_the_next_ones() {
    let folder = Folder::new();
    let path = timed(&folder, "a.wtrc", &["--times", "runs"]);
    let out = folder.at("a.pftrace");
    export(&path, "perfetto", &out, &[]);
    let tracks = perfetto_file::tracks(&out);
    let axis = perfetto_file::about(&tracks)["axis"].as_str().unwrap();
    assert!(axis.starts_with("Time of each warp"), "{axis}");
    let runs = |track: &Value| -> Vec<(u64, u64)> {
        let runs = track["slices"].as_array().unwrap().iter().filter(|slice| !slice[3]["count"].is_null());
        // A microsecond is a cycle.
        runs.map(|run| (run[1].as_u64().unwrap() / 1_000, run[2].as_u64().unwrap() / 1_000)).collect()
    };
    let slices: Vec<_> = tracks.iter().map(runs).filter(|runs| !runs.is_empty()).collect();
    let begins = begins(&path);
    assert_eq!(slices.len(), begins.len());
    // Both are sorted by launch and warp.
    for (slices, begins) in slices.iter().zip(begins.values()) {
        let start = begins[0].0;
        let from: Vec<u64> = begins.iter().map(|(begin, _)| begin - start).collect();
        let mut to: Vec<u64> = from[1..].to_vec();
        to.push(from[from.len() - 1] + 1);
        let expected: Vec<(u64, u64)> = from.into_iter().zip(to).collect();
        assert_eq!(*slices, expected);
        // The simulator's clock is the number of the warp's event.
        assert!(begins.iter().all(|(begin, event)| begin > event));
    }
}

#[cfg(feature = "parquet")]
#[test]
fn tables_say_when_a_run_begins_and_when_the_next_does() {
    let folder = Folder::new();
    let path = timed(&folder, "a.wtrc", &["--times", "runs"]);
    let begins = begins(&path);
    for (table, more) in [("runs", &[][..]), ("events", &["--events"])] {
        let out = folder.at(&format!("{table}/"));
        std::fs::create_dir(&out).unwrap();
        export(&path, "parquet", &out, more);
        let Some(found) = read_with("read_parquet.py", "duckdb", &[text(&out), table]) else { return };
        let mut times: BTreeMap<Warp, [Vec<u64>; 2]> = BTreeMap::new();
        for row in found[table]["rows"].as_array().unwrap() {
            let number = |column: usize| row[column].as_u64().unwrap();
            let warp = (number(0), [number(2), number(3), number(4)], number(5));
            let [from, to] = times.entry(warp).or_default();
            from.extend(row[14].as_u64());
            to.extend(row[15].as_u64());
        }
        assert_eq!(times.len(), begins.len());
        for (warp, [from, to]) in times {
            let expected: Vec<u64> = begins[&warp].iter().map(|(begin, _)| *begin).collect();
            assert_eq!(from, expected, "{table} {warp:?}");
            assert_eq!(to, expected[1..], "{table} {warp:?}");
        }
    }
}

#[test]
fn events_are_the_same_with_times_and_without() {
    let folder = Folder::new();
    let record = |name, more: &[&str]| {
        let arguments = [&["--width", "64", "--depth", "64"], more].concat();
        folder.traced("fractal", name, &arguments)
    };
    for codec in ["raw", "ecl", "predict"] {
        let with = record("with.wtrc", &["--codec", codec, "--times", "runs"]);
        let without = record("without.wtrc", &["--codec", codec]);
        let events = |path: &Path| -> Vec<Value> {
            let mut all = lines(path, &[]);
            all.iter_mut().for_each(|line| drop(line.as_object_mut().unwrap().remove("begin")));
            all
        };
        assert_eq!(events(&with), events(&without), "{codec}");
        assert!(begins(&without).is_empty());
        let (code, output, _) = run(&["verify", text(&with)]);
        assert!(code == 0 && output.contains("times     runs: "), "{output}");
    }
}

#[test]
fn damaged_times_leave_events_without_and_are_told() {
    let folder = Folder::new();
    let path = timed(&folder, "a.wtrc", &["--times", "runs"]);
    let bytes = std::fs::read(&path).unwrap();
    let mut at = 24;
    let header = loop {
        let header = SectionHeader::parse(&bytes[at..], at as u64).unwrap();
        if header.tag.0 == *b"TIME" {
            break header;
        }
        at += header.total_bytes() as usize;
    };
    let (body, end) = (at + SECTION_HEADER_BYTES, at + header.total_bytes() as usize);
    let whole = lines(&path, &[]).len();
    for place in [body, body + 4, body + 16, end - 1] {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x20;
        let path = folder.at("damaged.wtrc");
        std::fs::write(&path, damaged).unwrap();
        let (code, output, _) = run(&["verify", text(&path)]);
        assert_eq!(code, 3, "{output}");
        assert!(output.contains("TIME: checksum of the body at offset"), "{output}");
        assert_eq!(lines(&path, &[]).len(), whole, "no event is lost");
    }
}
