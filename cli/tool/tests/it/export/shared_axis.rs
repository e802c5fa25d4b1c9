//! Timelines of traces with the place and time of warps: one axis for all warps, tracks of multiprocessors.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use warptrace_decoder::{TraceFile, WarpFilter};
use warptrace_format::span::WarpSpan;

use super::{Warp, block, export, lines, perfetto_file};
use crate::support::{Folder, json, printed, run, text};

/// Drawn parts of a warp: its multiprocessor, its begin and end, and name, begin and end of each run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Drawn {
    pub(super) sm: u64,
    pub(super) ran: (u64, u64),
    pub(super) runs: Vec<(String, u64, u64)>,
}

pub(super) type Timeline = BTreeMap<Warp, Drawn>;

pub(super) fn record(folder: &Folder, times: &str, more: &[&str]) -> PathBuf {
    let arguments = [&["--graph", "road:1024", "--grid", "11x64", "--times", times], more].concat();
    folder.traced("mis", "a.wtrc", &arguments)
}

/// Returns the times by the decoder, in nanoseconds since the first warp began.
pub(super) fn expected(path: &Path, has_runs: bool) -> Timeline {
    let trace = TraceFile::open(path).unwrap();
    let spans: BTreeMap<(u32, u32), WarpSpan> = trace
        .launches()
        .flat_map(|info| trace.warp_spans(info.number()).map(move |found| (info.number(), found.unwrap())))
        .map(|(launch, (warp, span))| ((launch, warp), span))
        .collect();
    let zero = spans.values().map(|span| span.begin_timer).min().unwrap();
    let mut timeline = Timeline::new();
    for info in trace.launches() {
        // Runs of equal events, with the time of the first item of each run.
        let mut runs: BTreeMap<u32, Vec<(u16, u32, u64)>> = BTreeMap::new();
        let _ = trace
            .items_in_order(info.number(), 0, &WarpFilter::all(), &mut |item| {
                if !has_runs {
                    return std::ops::ControlFlow::Break(());
                }
                let [event] = *item.item.body() else { panic!("with times each item has one event") };
                let runs = runs.entry(item.warp).or_default();
                let run = (event.location, event.mask, item.begin.unwrap());
                if runs.last() != Some(&run) {
                    runs.push(run);
                }
                std::ops::ControlFlow::Continue(())
            })
            .unwrap();
        for (&(_, warp), span) in spans.range((info.number(), 0)..=(info.number(), u32::MAX)) {
            let id = info.stream_id(warp).unwrap();
            let runs = runs.remove(&warp).unwrap_or_default();
            let axis = runs.first().map(|(.., begin)| trace.axis(span, *begin).unwrap());
            let ran = (span.begin_timer - zero, span.end_timer - zero);
            let begins: Vec<u64> =
                runs.iter().map(|(.., begin)| axis.unwrap().nanoseconds(*begin) - zero).collect();
            let ends = begins.iter().skip(1).copied().chain([ran.1]);
            let runs = runs.iter().zip(&begins).zip(ends).map(|((run, begin), end)| {
                let named = trace.metadata().locations.iter().find(|location| location.id == run.0);
                (named.unwrap().name.clone(), *begin, end)
            });
            let block = id.block.map(u64::from);
            let drawn = Drawn { sm: span.sm().unwrap().into(), ran, runs: runs.collect() };
            timeline.insert((info.number().into(), block, id.warp_in_block.into()), drawn);
        }
    }
    timeline
}

pub(super) fn sm_of(name: &str) -> u64 {
    name.strip_prefix("SM ").unwrap().parse().unwrap()
}

/// Returns the warp of names such as `launch 1 mis block 2,0,0` and `warp 3`.
pub(super) fn warp_of(block: &str, warp: &str) -> Warp {
    let words: Vec<&str> = block.split(' ').collect();
    let ["launch", launch, .., "block", block] = words[..] else { panic!("{block}") };
    let block: Vec<u64> = block.split(',').map(|axis| axis.parse().unwrap()).collect();
    (launch.parse().unwrap(), block.try_into().unwrap(), warp.strip_prefix("warp ").unwrap().parse().unwrap())
}

fn device(path: &Path) -> String {
    TraceFile::open(path).unwrap().metadata().device.name.clone()
}

fn perfetto(path: &Path, device: &str) -> (Timeline, Value) {
    let tracks = perfetto_file::tracks(path);
    let mut timeline = Timeline::new();
    let mut blocks = BTreeMap::new();
    for track in &tracks[1..] {
        let path: Vec<&str> =
            track["path"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        assert_eq!((path[0], &track["marks"]), (device, &json!([])));
        let slices = track["slices"].as_array().unwrap();
        let lasts = |slice: &Value| (slice[1].as_u64().unwrap(), slice[2].as_u64().unwrap());
        match path[..] {
            [_] => assert!(slices.is_empty()),
            [_, sm] => assert!(slices.is_empty() && sm_of(sm) < 4),
            [_, _, "warps" | "active lanes"] => assert!(slices.is_empty() && track["counts"].is_array()),
            [_, _, block] => {
                let (launch, block, _) = warp_of(block, "warp 0");
                assert_eq!((slices.len(), slices[0][3]["launch"].as_u64()), (1, Some(launch)));
                assert_eq!(blocks.insert((launch, block), [lasts(&slices[0]), (u64::MAX, 0)]), None);
            }
            [_, sm, block, warp] => {
                let warp = warp_of(block, warp);
                let drawn = timeline.entry(warp).or_default();
                drawn.sm = sm_of(sm);
                for slice in slices {
                    let (name, lasts) = (slice[0].as_str().unwrap(), lasts(slice));
                    if !slice[3]["count"].is_null() {
                        drawn.runs.push((name.to_owned(), lasts.0, lasts.1));
                    } else if !slice[3]["cycles"].is_null() {
                        drawn.ran = lasts;
                    }
                }
                let [_, warps] = blocks.get_mut(&(warp.0, warp.1)).unwrap();
                *warps = (warps.0.min(drawn.ran.0), warps.1.max(drawn.ran.1));
            }
            _ => panic!("{path:?}"),
        }
    }
    for (block, [slice, warps]) in blocks {
        assert_eq!(slice, warps, "{block:?}");
    }
    (timeline, perfetto_file::about(&tracks).clone())
}

#[test]
fn warps_and_runs_stand_on_one_axis_in_tracks_of_their_multiprocessors() {
    let folder = Folder::new();
    for times in ["blocks", "all"] {
        let trace = record(&folder, times, &[]);
        let expected = expected(&trace, times == "all");
        assert!(expected.len() == 44 && expected.values().any(|drawn| drawn.ran.0 > 0));
        let runs: usize = expected.values().map(|drawn| drawn.runs.len()).sum();
        assert_eq!(runs > 0, times == "all");
        let out = folder.at("out.pftrace");
        let said = export(&trace, "perfetto", &out, &[]);
        let slices = if times == "all" { runs } else { expected.len() };
        assert!(said.contains("; axis: nanoseconds, one axis for all warps"), "{said}");
        assert!(said.replace(',', "").contains(&format!(": {slices} slices of 44 warps")), "{said}");
        let (found, about) = perfetto(&out, &device(&trace));
        assert_eq!(found, expected, "{times}");
        let axis = about["axis"].as_str().unwrap();
        assert!(axis.starts_with("Time in nanoseconds of the device's global timer"), "{axis}");
        assert!(about["axis_zero"].as_str().unwrap().parse::<u64>().is_ok());
        assert_eq!(axis.contains("not when their events came"), times == "blocks");
    }
}

#[test]
fn decode_prints_the_nanoseconds_of_runs() {
    let folder = Folder::new();
    let trace = record(&folder, "all", &[]);
    let expected = expected(&trace, true);
    for chosen in [&[][..], &["--launch", "1", "--block", "9"]] {
        let mut found: BTreeMap<Warp, Vec<u64>> = BTreeMap::new();
        let mut in_json = Vec::new();
        for line in lines(&trace, chosen) {
            assert_eq!(line.get("ns").is_some(), line.get("begin").is_some(), "{line}");
            let [launch, warp] = ["launch", "warp"].map(|field| line[field].as_u64().unwrap());
            let begins = found.entry((launch, block(&line["block"]), warp)).or_default();
            begins.extend(line.get("ns").map(|ns| ns.as_u64().unwrap()));
            in_json.push(line.get("ns").map_or_else(String::new, Value::to_string));
        }
        assert_eq!(found.len(), if chosen.is_empty() { expected.len() } else { 2 });
        for (warp, begins) in found {
            let expected: Vec<u64> = expected[&warp].runs.iter().map(|(_, begin, _)| *begin).collect();
            assert_eq!(begins, expected, "{warp:?}");
        }
        let printed = |format| printed(&[&["decode", text(&trace), "--format", format], chosen].concat());
        let csv = printed("csv");
        assert!(csv.lines().next().unwrap().ends_with(",why,begin,ns"), "{csv}");
        let in_csv: Vec<&str> = csv.lines().skip(1).map(|line| line.rsplit(',').next().unwrap()).collect();
        assert_eq!(in_csv, in_json);
        let plain = printed("text");
        let head = plain.lines().next().unwrap();
        let end = head.find("ns").unwrap() + 2;
        let in_text: Vec<&str> = plain
            .lines()
            .skip(1)
            .filter(|line| !line.starts_with("launch"))
            .map(|line| line[end - 14..end].trim())
            .collect();
        assert_eq!(in_text, in_json);
    }
    // The column `ns` exists only if the trace has both spans and times of runs.
    for times in ["runs", "blocks"] {
        let trace = record(&folder, times, &[]);
        assert!(lines(&trace, &[]).iter().all(|line| line.get("ns").is_none()));
    }
}

#[test]
fn a_selected_part_begins_at_its_own_first_warp() {
    let folder = Folder::new();
    let trace = record(&folder, "all", &[]);
    let all = expected(&trace, true);
    let out = folder.at("out");
    export(&trace, "perfetto", &out, &["--launch", "1", "--block", "9"]);
    let (found, _) = perfetto(&out, &device(&trace));
    assert!(found.len() == 2 && found.keys().all(|warp| (warp.0, warp.1) == (1, [9, 0, 0])));
    let zero = found.keys().map(|warp| all[warp].ran.0).min().unwrap();
    assert!(zero > 0);
    for (warp, drawn) in found {
        let at = |time: u64| time - zero;
        let all = &all[&warp];
        assert_eq!(drawn.ran, (at(all.ran.0), at(all.ran.1)));
        let runs: Vec<_> =
            all.runs.iter().map(|(name, from, to)| (name.clone(), at(*from), at(*to))).collect();
        assert_eq!(drawn.runs, runs);
    }
}

#[test]
fn warps_of_which_nothing_is_known_are_left_out_and_told() {
    let folder = Folder::new();
    let trace = record(&folder, "blocks", &[]);
    let mut bytes = std::fs::read(&trace).unwrap();
    let at = bytes.windows(4).rposition(|tag| tag == b"SPAN").unwrap();
    bytes[at + warptrace_format::file::SECTION_HEADER_BYTES + 8] ^= 0x40;
    std::fs::write(&trace, bytes).unwrap();
    let out = folder.at("out");
    let (code, output, errors) = run(&["export", text(&trace), "--to", "perfetto", "-o", text(&out)]);
    assert!(code == 0 && output.contains(": 22 slices of 22 warps"), "{output}");
    assert!(errors.contains("warning: of 22 warps the trace does not say when they ran"), "{errors}");
    assert_eq!(perfetto(&out, &device(&trace)).0.len(), 22);
    let step = 1;
    let (_, output, _) = run(&["info", text(&trace)]);
    let said = format!("\nspans        of 22 warps, 22 not known; times in steps of {step} ns\n");
    assert!(output.contains(&said), "{output}");
    let summary = json(&["info", text(&trace)]);
    let spans =
        json!({ "warps": 22, "unended_warps": 0, "unknown_warps": 22, "timer_step_nanoseconds": step });
    assert_eq!(summary["spans"], spans);
}
