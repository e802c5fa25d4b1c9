//! `warptrace report`: the page has the figures of the other commands.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::DeflateDecoder;
use serde_json::{Value, json};

use crate::answers_figures::weights;
use crate::support::{Folder, event_lines, json, recorded, run, text};

pub(crate) const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Programs whose warps take different paths.
pub(crate) const PROGRAMS: [(&str, &[&str]); 7] = [
    ("fractal", &["--width", "64", "--depth", "400"]),
    ("mis", &["--graph", "road:1024"]),
    ("stress", &["--walks", "200", "--rounds", "4"]),
    ("mis", &["--graph", "road:1024", "--times", "runs"]),
    ("stress", &["--walks", "200", "--rounds", "24", "--times", "runs"]),
    ("mis", &["--graph", "road:1024", "--grid", "11x64", "--times", "all"]),
    ("fractal", &["--width", "96", "--depth", "400", "--times", "blocks"]),
];

/// `carried` has the warps that can be drawn, which the page contains in compressed form.
fn figures(html: &str) -> Value {
    let part = |begin| html.split(begin).nth(1).unwrap().split("</script>").next().unwrap();
    let json = part(r#"<script type="application/json" id="figures">"#);
    let mut figures: Value = serde_json::from_str(json).unwrap();
    let packed = STANDARD.decode(part(r#"<script type="text/plain" id="packed">"#)).unwrap();
    figures["carried"] = serde_json::from_reader(DeflateDecoder::new(&packed[..])).unwrap();
    figures
}

fn page(trace: &Path, more: &[&str]) -> String {
    let (code, _, errors) = run(&[&["report", text(trace), "--source", SOURCES], more].concat());
    let is_other = |line: &str| !line.starts_with("warning: INCOMPLETE trace: ");
    assert!(code == 0 && !errors.lines().any(is_other), "{errors}");
    std::fs::read_to_string(trace.with_extension("html")).unwrap()
}

fn check_rows(trace: &Path, view: &str, shown: &Value, sort: &[&str]) {
    let shown = shown.as_array().unwrap();
    let rows = json(&[&[view, text(trace)], sort].concat());
    let rows = rows[view].as_array().unwrap();
    assert!(!shown.is_empty() && shown.len() <= rows.len(), "{view}");
    for (shown, row) in shown.iter().zip(rows) {
        for (field, value) in shown.as_object().unwrap() {
            assert_eq!(value, &row[field], "{field} of {row} in {view}");
        }
    }
}

fn check_strip(trace: &Path, figures: &Value, strip: &Value) {
    let path = &figures["carried"]["paths"][strip["path"].as_str().unwrap()];
    let lanes = strip["lane_mask"].as_u64().unwrap().count_ones();
    let name = strip["name"].as_str().unwrap();
    let words: Vec<&str> = name.split(' ').collect();
    let [_, launch, _, block, _, warp] = words[..] else { panic!("{name} names a warp") };
    let decoded = event_lines(trace, &["--launch", launch, "--block", block, "--warp", warp]);
    let weights = weights(trace);
    let mut events = decoded.into_iter().filter(|event| event["location"].is_u64());
    let (mut visits, mut idle) = (0, 0);
    for run in path["runs"].as_array().unwrap() {
        let shown = &figures["carried"]["events"][run[0].as_u64().unwrap() as usize];
        for _ in 0..run[1].as_u64().unwrap() {
            let event = events.next().expect("as many events as the strip has");
            assert_eq!((&event["location"], &event["mask"]), (&shown[0], &shown[1]), "{name}");
            visits += 1;
            let each = weights[&event["location"].as_u64().unwrap()];
            idle += each * u64::from(lanes - event["mask"].as_u64().unwrap().count_ones());
        }
    }
    let shown = path["runs"].as_array().unwrap().len() as u64;
    assert_eq!(events.next().is_none(), path["all_runs"] == shown);
    if path["all_runs"] == shown {
        assert_eq!((&strip["visits"], &strip["idle"]), (&visits.into(), &idle.into()), "{name}");
    }
}

/// Checks that each column of a timeline has the location with the most cycles in `decode`.
fn check_timelines(trace: &Path, figures: &Value, warps: &[Value]) {
    let timelines = figures["carried"]["timelines"].as_array().unwrap();
    let kernels = figures["kernels"].as_array().unwrap();
    let is_timed = figures["totals"]["warp_cycles"].is_u64();
    assert_eq!(timelines.len(), if is_timed { kernels.len() } else { 0 });
    let mut longest = 0;
    for timeline in timelines {
        let (launch, width) = (&timeline["launch"], timeline["width"].as_u64().unwrap() as usize);
        let rows = timeline["rows"].as_array().unwrap();
        let of_launch = warps.iter().filter(|warp| warp["launch"] == *launch);
        assert_eq!(
            (timeline["warps"].as_u64(), rows.len()),
            (Some(of_launch.count() as u64), rows.len().min(128))
        );
        for row in rows {
            let own =
                warps.iter().find(|warp| (&warp["launch"], &warp["warp"]) == (launch, &row["warp"])).unwrap();
            assert_eq!(row["cycles"], own["cycles"], "{own}");
            let [block, warp] = [&own["block"][0], &own["warp_in_block"]].map(Value::to_string);
            let chosen = ["--launch", &launch.to_string(), "--block", &block, "--warp", &warp];
            let begins: Vec<(usize, u64)> = event_lines(trace, &chosen)
                .iter()
                .filter_map(|event| Some((event["begin"].as_u64()? as usize, event["location"].as_u64()?)))
                .collect();
            let cycles: Vec<u64> =
                begins.windows(2).flat_map(|pair| vec![pair[0].1; pair[1].0 - pair[0].0]).collect();
            assert_eq!(row["cycles"], cycles.len());
            longest = longest.max(cycles.len().div_ceil(width));
            let most = |column: &[u64]| {
                let count = |id: &u64| column.iter().filter(|other| *other == id).count();
                column.iter().copied().max_by_key(|id| (count(id), std::cmp::Reverse(*id)))
            };
            let expected: Vec<u64> = cycles.chunks(width).filter_map(most).collect();
            let columns = row["columns"].as_array().unwrap().iter();
            let found = columns
                .flat_map(|column| vec![column[0].as_u64().unwrap(); column[1].as_u64().unwrap() as usize]);
            assert_eq!(found.collect::<Vec<_>>(), expected, "{own}");
        }
    }
    assert!(!is_timed || (20..=512).contains(&longest), "{longest} columns");
}

fn check_blocks(trace: &Path, figures: &Value, warps: &[Value]) {
    let (stats, top) = (json(&["stats", text(trace)]), json(&["top", text(trace)]));
    assert_eq!(figures["schedule_findings"], top["schedule_findings"]);
    // The page begins with the same lines as `top`.
    let (_, printed, _) = run(&["top", text(trace)]);
    let findings = figures["findings"].as_array().unwrap();
    assert!(printed.lines().zip(findings).all(|(line, finding)| line == finding), "{findings:?}: {printed}");
    let drawn = &figures["carried"]["blocks"];
    let Some(launches) = stats["schedule"]["launches"].as_array() else {
        assert!(drawn.is_null() && figures["schedule"].is_null());
        return;
    };
    for field in ["nanoseconds", "gap_nanoseconds", "overlap_nanoseconds", "timer_step_nanoseconds"] {
        assert_eq!(figures["schedule"][field], stats["schedule"][field], "{field}");
    }
    let shown = figures["schedule"]["launches"].as_array().unwrap();
    assert!(shown.len() == launches.len() && shown.iter().all(|launch| launches.contains(launch)));
    let drawn = drawn.as_array().unwrap();
    assert_eq!(drawn.len(), launches.len());
    let number = |value: &Value, field: &str| value[field].as_u64().unwrap();
    for placed in drawn {
        let of_launch: Vec<&Value> = warps.iter().filter(|warp| warp["launch"] == placed["launch"]).collect();
        let per_block = number(placed, "warps_per_block");
        // By block: its multiprocessor, begin and end.
        let mut blocks: BTreeMap<u64, (u64, u64, u64)> = BTreeMap::new();
        for warp in of_launch {
            let (begin, end) = (
                number(warp, "begin_nanoseconds"),
                number(warp, "begin_nanoseconds") + number(warp, "nanoseconds"),
            );
            let block =
                blocks.entry(number(warp, "warp") / per_block).or_insert((number(warp, "sm"), begin, end));
            *block = (block.0, block.1.min(begin), block.2.max(end));
        }
        assert_eq!(number(placed, "blocks"), blocks.len() as u64);
        for sm in placed["sms"].as_array().unwrap() {
            let mut rows = BTreeMap::new();
            for block in sm["blocks"].as_array().unwrap() {
                let (own, begin, end) = blocks.remove(&number(block, "block")).expect("a block once");
                assert_eq!((&block["sm"], &sm["sm"]), (&json!(own), &json!(own)));
                assert_eq!(
                    (number(block, "begin_nanoseconds"), number(block, "nanoseconds")),
                    (begin, end - begin)
                );
                // Blocks in a row do not overlap.
                assert!(
                    rows.insert(number(block, "row"), end).is_none_or(|before| before <= begin),
                    "{block}"
                );
            }
            assert_eq!(sm["rows"], rows.len());
            let hottest = sm["blocks"].as_array().unwrap().last().unwrap();
            let (launch, block) = (placed["launch"].to_string(), number(hottest, "block"));
            assert_eq!(
                number(hottest, "location"),
                location_of_most(trace, &launch, &block.to_string(), placed),
                "{hottest}"
            );
        }
        assert!(blocks.is_empty(), "all are drawn");
    }
}

/// Returns the location with the most cycles of a block's warps; without times, the one with the most events.
fn location_of_most(trace: &Path, launch: &str, block: &str, placed: &Value) -> u64 {
    assert_eq!((&placed["grid"][1], &placed["grid"][2]), (&json!(1), &json!(1)));
    let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
    let mut last: Option<(Value, u64, u64)> = None;
    for event in event_lines(trace, &["--launch", launch, "--block", block]) {
        let location = event["location"].as_u64().unwrap();
        let Some(begin) = event["begin"].as_u64() else {
            // Events of a run after the first one, or a trace without times of runs.
            if last.is_none() {
                *sums.entry(location).or_default() += 1;
            }
            continue;
        };
        if let Some((warp, before, since)) = last.replace((event["warp"].clone(), location, begin))
            && warp == event["warp"]
        {
            *sums.entry(before).or_default() += begin - since;
        }
    }
    sums.into_iter().max_by_key(|(location, sum)| (*sum, std::cmp::Reverse(*location))).unwrap().0
}

/// Checks that sums of parts equal their contents, and that each location is in a kernel once.
fn check_parts(trace: &Path, figures: &Value) {
    let parts = figures["parts"].as_array().unwrap();
    let number = |part: &Value, field: &str| part[field].as_u64().unwrap();
    for (at, part) in parts.iter().enumerate() {
        let depth = number(part, "depth");
        let inside = || parts[at + 1..].iter().take_while(|other| number(other, "depth") > depth);
        let direct = || inside().filter(|other| number(other, "depth") == depth + 1);
        if part["kind"] == "location" {
            assert_eq!((inside().count(), &part["own"]["idle"]), (0, &part["idle"]));
            continue;
        }
        let is_timed = figures["totals"]["warp_cycles"].is_u64();
        let times = if is_timed { &["warp_cycles", "idle_lane_cycles"][..] } else { &[] };
        assert_eq!(is_timed, part["warp_cycles"].is_u64());
        for &field in times {
            assert_eq!(direct().map(|part| number(part, field)).sum::<u64>(), number(part, field), "{part}");
        }
        for field in ["visits", "lanes", "idle", "slots"] {
            let sum: u64 = direct().map(|part| number(part, field)).sum();
            assert_eq!(sum, number(part, field), "{field} of {part}");
            let leaves = direct().filter(|part| part["kind"] == "location");
            assert_eq!(leaves.map(|part| number(part, field)).sum::<u64>(), number(&part["own"], field));
        }
        if part["kind"] == "kernel" {
            let name = part["name"].as_str().unwrap();
            let alone = json(&["stats", text(trace), "--kernel", name]);
            for field in ["visits", "lanes", "idle", "warp_cycles", "idle_lane_cycles"] {
                assert_eq!(part[field], alone["totals"][field], "{field} of {name}");
            }
            let mut found: Vec<_> = inside().filter(|part| part["kind"] == "location").collect();
            found.sort_by_key(|part| number(part, "location"));
            let rows = alone["locations"].as_array().unwrap();
            assert_eq!(found.len(), rows.len());
            for (part, row) in found.iter().zip(rows) {
                let fields = ["location", "name", "visits", "lanes", "idle", "caused"];
                assert!(fields.iter().all(|field| part[field] == row[field]), "{part} is {row}");
            }
        }
    }
}

fn check_loops(figures: &Value) {
    let loops = figures["loops"].as_array().unwrap();
    let heads = figures["parts"].as_array().unwrap().iter().filter(|part| part["kind"] == "loop");
    for head in heads {
        assert!(loops.iter().any(|row| row["location"] == head["location"]), "{head}");
    }
}

fn check_figures(programs: &[(&str, &[&str])]) {
    let folder = Folder::new();
    for (program, arguments) in programs {
        let path = folder.traced(program, &format!("{program}.wtrc"), arguments);
        let figures = figures(&page(&path, &[]));
        let top = json(&["top", text(&path)]);
        for field in ["whole", "losses", "launches", "totals", "finding", "time_finding", "warp_events"] {
            assert_eq!(figures[field], top[field], "{field} of {program}");
        }
        assert_eq!(figures["paths"]["number"], top["paths"]["number"]);
        let stats = json(&["stats", text(&path)]);
        assert_eq!((&figures["kernels"], &figures["active"]), (&stats["kernels"], &stats["active"]));
        check_rows(&path, "lines", &figures["lines"], &[]);
        check_rows(&path, "causes", &figures["causes"], &[]);
        check_parts(&path, &figures);
        check_loops(&figures);
        check_rows(&path, "loops", &figures["loops"], &[]);
        check_rows(&path, "paths", &figures["paths"]["most_common"], &[]);
        check_rows(&path, "edges", &figures["edges"], &[]);
        let warps = json(&["warps", text(&path)]);
        let (warps, shown) = (warps["warps"].as_array().unwrap(), figures["warps"].as_array().unwrap());
        assert_eq!(shown.len(), warps.len().min(300), "{program}");
        for warp in shown {
            let own =
                warps.iter().find(|row| (&row["launch"], &row["warp"]) == (&warp["launch"], &warp["warp"]));
            let fields = warp.as_object().unwrap();
            assert!(fields.iter().all(|(field, value)| own.unwrap()[field] == *value), "{warp}");
        }
        check_timelines(&path, &figures, warps);
        check_blocks(&path, &figures, warps);
        let strips = figures["carried"]["strips"].as_array().unwrap();
        // Every warp can be selected. Three of each kernel are drawn at the start.
        assert_eq!(strips.len(), warps.len());
        let titled: Vec<_> = strips.iter().filter(|strip| !strip["title"].is_null()).collect();
        assert_eq!(titled.len(), 3 * figures["kernels"].as_array().unwrap().len());
        titled.into_iter().chain(strips.last()).for_each(|strip| check_strip(&path, &figures, strip));
    }
}

#[test]
fn figures_are_those_of_the_commands() {
    check_figures(&PROGRAMS[..3]);
}

#[test]
fn figures_of_traces_with_times_are_those_of_the_commands() {
    check_figures(&PROGRAMS[3..5]);
}

#[test]
fn figures_of_traces_with_blocks_are_those_of_the_commands() {
    check_figures(&PROGRAMS[5..]);
}

#[test]
fn the_page_loads_nothing_and_shows_the_source() {
    let folder = Folder::new();
    let path = folder.traced("fractal", "a.wtrc", PROGRAMS[0].1);
    let html = page(&path, &[]);
    for loads in ["http:", "https:", "src=", "@import", "url(//", "fetch(", "XMLHttp"] {
        assert!(!html.contains(loads), "the page has `{loads}`");
    }
    assert!(html.contains("default-src &#39;none&#39;") || html.contains("default-src 'none'"));
    assert!(html.contains("trace_loop!(") && html.contains("iterations.tick();"));
    assert!(html.contains("OUTSIDE: no warp came"));
    // Elsewhere the source is not found, and the page names the remedy.
    let (code, output, errors) = run(&["report", text(&path), "-o", text(&folder.at("b.html"))]);
    assert_eq!(code, 0);
    assert!(output.starts_with("page       ") && output.ends_with("open it in a browser\n"), "{output}");
    assert!(errors.contains("Source not found: workloads/kernels/src/fractal.rs"), "{errors}");
    let html = std::fs::read_to_string(folder.at("b.html")).unwrap();
    assert!(
        html.contains("ITERATE") && !html.contains("iterations.tick();") && html.contains("--source FOLDER")
    );
    let (code, output, _) = run(&["report", text(&path), "-o", "-", "--kernel", "fractal"]);
    assert_eq!((code, output.ends_with("</html>\n") || output.ends_with("</html>")), (0, true));
    assert!(output.contains("shown is only kernel fractal"));
}

#[test]
fn a_comparison_is_that_of_diff() {
    let folder = Folder::new();
    let graph = PROGRAMS[1].1;
    let before = folder.traced("mis", "before.wtrc", graph);
    let after = folder.traced("mis", "after.wtrc", &[graph, &["--sim-seed", "2"]].concat());
    let html = page(&after, &["--against", text(&before)]);
    let changes = &figures(&html)["changes"];
    let diff = json(&["diff", text(&before), text(&after)]);
    for field in ["totals", "greatest_change_percent", "common_warps", "single_warps", "changed_warps"] {
        assert_eq!(changes[field], diff[field], "{field}");
    }
    let shown = changes["first_changes"].as_array().unwrap();
    assert!(!shown.is_empty());
    assert_eq!(shown[..], diff["first_changes"].as_array().unwrap()[..shown.len()]);
    let rows = diff["locations"].as_array().unwrap();
    assert!(changes["locations"].as_array().unwrap().iter().all(|change| rows.contains(change)));
    assert!(html.contains("Compared with before.wtrc") && html.contains("Where warps first go another way"));
    let html = page(&after, &["--against", text(&after)]);
    assert!(html.contains("0 of ") && html.contains("No location was visited more or less often"));
}

#[test]
fn what_is_wrong_is_said_before_anything_is_written() {
    let (folder, path) = recorded(&[]);
    let other = folder.traced("mis", "mis.wtrc", PROGRAMS[1].1);
    let bytes = std::fs::read(&path).unwrap();
    for (more, wrong) in [
        (&["-o", text(&path)][..], "and the trace "),
        (&["--source", text(&path)], "is no folder that can be read"),
        (&["--against", text(&other)], "no location of a.wtrc is in mis.wtrc"),
        (&["--against", text(&other), "-o", text(&other)], "and the trace of `--against` "),
        (&["--kernel", "nothing"], "the trace has no kernel `nothing`"),
        (&["--launch", "7"], "the trace has no launch 7"),
    ] {
        let (code, output, errors) = run(&[&["report", text(&path)], more].concat());
        assert_eq!((code, output.as_str()), (1, ""), "{more:?}");
        assert!(errors.starts_with("error: ") && errors.contains(wrong), "{more:?}: {errors}");
    }
    assert!(!folder.at("a.html").exists());
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[test]
fn an_incomplete_trace_is_called_so_first() {
    let folder = Folder::new();
    let lossy = ["--walks", "256", "--rounds", "64", "--memory", "1MiB"];
    let path = folder.traced("stress", "lossy.wtrc", &lossy);
    let html = page(&path, &[]);
    let (alert, finding) = (html.find("INCOMPLETE trace: ").unwrap(), html.find("<h1>").unwrap());
    assert!(alert < finding && html.contains(" lost</p>"));
    assert_eq!(figures(&html)["losses"], json(&["top", text(&path)])["losses"]);
    // A truncated file has warps without counts.
    let bytes = std::fs::read(folder.recorded("whole.wtrc", &[])).unwrap();
    let path = folder.at("cut.wtrc");
    std::fs::write(&path, &bytes[..bytes.len() - 40]).unwrap();
    let html = page(&path, &[]);
    assert!(
        html.contains("INCOMPLETE trace: ") && html.find("INCOMPLETE").unwrap() < html.find("<h1>").unwrap()
    );
}

#[test]
fn a_source_that_has_changed_since_is_told() {
    let folder = Folder::new();
    let path = folder.traced("fractal", "f.wtrc", &["--width", "32", "--depth", "16"]);
    let kernels = Path::new(SOURCES).join("workloads/kernels/src/fractal.rs");
    let text_now = std::fs::read_to_string(kernels).unwrap();
    let copy = folder.at("sources/workloads/kernels/src/fractal.rs");
    std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
    let (sources, page) = (folder.at("sources"), folder.at("page.html"));
    let says_so = |source: &str| {
        std::fs::write(&copy, source).unwrap();
        let (code, _, errors) = run(&["report", text(&path), "--source", text(&sources), "-o", text(&page)]);
        assert_eq!(code, 0);
        let told = "has changed since the trace was recorded";
        let is_on_page = std::fs::read_to_string(&page).unwrap().contains(told);
        assert_eq!(errors.contains(told), is_on_page);
        is_on_page
    };
    assert!(!says_so(&text_now));
    assert!(!says_so(&text_now.replace('\n', "\r\n")), "line ends are no change");
    assert!(says_so(&format!("// A line more.\n{text_now}")));
}
