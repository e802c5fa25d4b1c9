//! Malformed and extreme traces: hostile names, very many locations, missing or wrong tables.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

#[path = "../../../../decoder/analysis/tests/it/support/mod.rs"]
mod support;

use std::collections::BTreeMap;

use base64::Engine;
use support::{event, metadata, written};
use warptrace_decoder::TraceFile;
use warptrace_format::Event;
use warptrace_format::file::{LaunchInfo, LocationInfo, Metadata};
use warptrace_report::{Base, MAX_BYTES, Options, Report, ReportError, report};

fn trace(metadata: &Metadata, warps: &BTreeMap<u32, Vec<Event>>) -> TraceFile {
    let blocks = warps.keys().max().map_or(1, |last| last + 1);
    let launch = LaunchInfo::new(0, 0, [blocks, 1, 1], [32, 1, 1], 0).unwrap();
    TraceFile::from_bytes(written(metadata, &launch, warps, |_, _| {})).unwrap()
}

fn page(trace: &TraceFile, options: &Options) -> Report {
    let page = report(trace, options, None).unwrap();
    assert!(page.html.len() <= MAX_BYTES, "{} bytes", page.html.len());
    figures(&page);
    page
}

/// Decodes the warps that can be drawn.
fn packed(page: &Report) -> serde_json::Value {
    let text = page.html.split(r#"<script type="text/plain" id="packed">"#).nth(1).unwrap();
    let bytes = base64::engine::general_purpose::STANDARD.decode(text.split('<').next().unwrap()).unwrap();
    serde_json::from_reader(flate2::read::DeflateDecoder::new(&bytes[..])).unwrap()
}

fn figures(page: &Report) -> serde_json::Value {
    let json = page.html.split(r#"<script type="application/json" id="figures">"#).nth(1).unwrap();
    serde_json::from_str(json.split("</script>").next().unwrap()).unwrap()
}

fn location(id: u16, name: &str, file: &str, line: u32) -> LocationInfo {
    LocationInfo { file: file.to_owned(), line, column: 1, ..LocationInfo::new(id, name, "<b>what</b>") }
}

#[test]
fn names_cannot_write_html() {
    let evil = "</script><img src=x onerror=alert(1)>\"'&<!--\u{1b}[2J";
    let mut metadata = metadata(&[]).with_kernel(evil, evil);
    metadata.locations = vec![location(1, evil, evil, 7), location(2, "b", evil, 0)];
    let warps = BTreeMap::from([(0, vec![event(1, 3), event(2, 1), event(2, 2)])]);
    let trace = trace(&metadata, &warps);
    let base = Base { trace: &trace, name: evil };
    let page = report(&trace, &Options::named(evil), Some(base)).unwrap();
    assert!(!page.html.contains("<img") && !page.html.contains("<b>what") && !page.html.contains('\u{1b}'));
    // Scripts of the page: the figures, the warps and the code.
    assert_eq!(page.html.matches("</script>").count(), 3);
    assert_eq!(page.html.matches("<!--").count(), 0);
    assert_eq!(figures(&page)["lines"].as_array().unwrap().len(), 2);
}

#[test]
fn any_warp_can_be_chosen() {
    // Each warp takes a separate path: the digits of its number.
    let path = |warp: u32| -> Vec<Event> {
        (0..12).map(|digit| event(1 + (warp >> digit & 1) as u16, u32::MAX >> (warp % 5))).collect()
    };
    let warps: BTreeMap<u32, Vec<Event>> = (0..4_000).map(|warp| (warp, path(warp))).collect();
    let page = page(&trace(&metadata(&[(1, "one", 3), (2, "two", 4)]), &warps), &Options::named("many.wtrc"));
    assert!(page.html.contains("Any of the 4,000 warps can be chosen."));
    let packed = packed(&page);
    let strips = packed["strips"].as_array().unwrap();
    assert_eq!(strips.len(), 4_000);
    for strip in strips {
        let runs = packed["paths"][strip["path"].as_str().unwrap()]["runs"].as_array().unwrap();
        let found = runs.iter().flat_map(|run| {
            let [at, times] = [0, 1].map(|field| run[field].as_u64().unwrap() as usize);
            let state = &packed["events"][at];
            let [location, mask] = [0, 1].map(|field| state[field].as_u64().unwrap() as u32);
            vec![event(location as u16, mask); times]
        });
        let warp = strip["warp"].as_u64().unwrap() as u32;
        assert_eq!(found.collect::<Vec<_>>(), path(warp), "{warp}");
    }
}

#[test]
fn what_is_missing_is_said() {
    let warps = BTreeMap::from([(0, vec![event(1, u32::MAX), event(2, 1)])]);
    // No table of locations.
    let nameless = page(&trace(&metadata(&[]), &warps), &Options::named("a"));
    assert!(nameless.notes[0].contains("no table of locations"), "{:?}", nameless.notes);
    assert!(nameless.html.contains("location 2"));
    // No source.
    let table = [(1, "one", 1), (2, "two", 9)];
    let known = trace(&metadata(&table), &warps);
    let lost = page(&known, &Options::named("a"));
    assert!(lost.notes[0].contains("Source not found: src/k.rs"), "{:?}", lost.notes);
    assert!(lost.html.contains("--source FOLDER") && lost.html.contains("<h3><code>src/k.rs</code>"));
    // A source shorter than the table requires.
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("src/k.rs"), "fn one() {}\n// <i>\n").unwrap();
    let mut options = Options::named("a");
    options.sources = vec![folder.path().to_owned()];
    let changed = page(&known, &options);
    assert!(changed.notes[0].contains("src/k.rs has 2 lines now, and a trace point at line 9"));
    assert!(changed.html.contains("fn one() {}") && changed.html.contains("&#60;i&#62;"));
    // No events.
    let empty = page(&trace(&metadata(&table), &BTreeMap::new()), &Options::named("a"));
    assert!(empty.html.contains("No events") && !empty.html.contains("<table"));
}

#[test]
fn traces_of_different_programs_are_not_compared() {
    let warps = BTreeMap::from([(0, vec![event(1, 1)])]);
    let [one, other] = [&[(1, "a", 1)][..], &[(1, "b", 1)]].map(|table| trace(&metadata(table), &warps));
    let base = Base { trace: &other, name: "other" };
    let error = report(&one, &Options::named("one"), Some(base)).unwrap_err();
    assert!(matches!(error, ReportError::NothingInCommon { .. }), "{error}");
    assert!(error.to_string().contains("no location of one is in other"), "{error}");
}

/// Pages of large traces.
mod full {
    use super::*;

    #[test]
    fn a_page_stays_small() {
        // 20,000 locations with names of 300 characters, and warps that visit many of them.
        let mut metadata = metadata(&[]);
        let id = |id: u16| location(id, &format!("{id:0>300}"), &format!("{id:0>300}.rs"), u32::from(id));
        metadata.locations = (1..=20_000).map(id).collect();
        let mask = |id: u16| u32::MAX >> (id % 32);
        let events: Vec<Event> = (1..=20_000).flat_map(|id| [event(id, mask(id)), event(id, 1)]).collect();
        let warps = (0..4).map(|warp| (warp, events[warp as usize * 100..].to_vec())).collect();
        let trace = trace(&metadata, &warps);
        let page = page(&trace, &Options::named("large.wtrc"));
        assert!(page.notes.iter().any(|note| note.contains("of 20,000 lines are shown")), "{:?}", page.notes);
        let paths = packed(&page)["paths"].as_object().unwrap().clone();
        let is_cut = |path: &serde_json::Value| {
            path["runs"].as_array().unwrap().len() < path["all_runs"].as_u64().unwrap() as usize
        };
        assert!(paths.values().all(is_cut) && !paths.is_empty());
    }

    #[test]
    fn warps_that_find_no_room_are_named() {
        // Incompressible masks and more runs than fit.
        let mut state = 1_u32;
        let mut mask = || {
            state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
            state | 1
        };
        let mut path = || (0..2_000).map(|_| event(1, mask())).collect::<Vec<Event>>();
        let warps: BTreeMap<u32, Vec<Event>> = (0..400).map(|warp| (warp, path())).collect();
        let page = page(&trace(&metadata(&[(1, "one", 3)]), &warps), &Options::named("wide.wtrc"));
        assert!(page.html.contains(" warps can be chosen: of each kernel those with the most"));
        let words =
            page.html.split("Not on this page are ").nth(1).unwrap().split(": <code>").next().unwrap();
        assert!(words.starts_with("launch 0 block ") && words.contains(" warp 0"), "{words}");
        let carried = packed(&page)["strips"].as_array().unwrap().len();
        assert!((10..400).contains(&carried), "{carried}");
    }
}
