//! Output of the commands that report what warps did: first lines, rows, errors.

use serde_json::Value;
use warptrace_format::LocationKind;
use warptrace_format::file::LocationInfo;

use crate::answers_figures::decoded;
use crate::bad_traces::without_table;
use crate::support::{Folder, json, metadata, printed, recorded, refused, run, text, write_launch, writer};

/// A picture whose warps diverge: 128 warps in 16 blocks.
const PARTING: [&str; 4] = ["--width", "64", "--depth", "400"];

const VIEWS: [&str; 8] = ["top", "causes", "lines", "loops", "warps", "paths", "edges", "stats"];
const ROWS: [&str; 6] = ["causes", "lines", "loops", "warps", "paths", "edges"];

#[test]
fn every_view_fits_a_screen_and_says_that_the_trace_is_whole() {
    let folder = Folder::new();
    let path = folder.traced("fractal", "a.wtrc", &PARTING);
    for view in VIEWS {
        let output = printed(&[view, text(&path)]);
        let first = output.lines().take(2).any(|line| line.starts_with("whole trace: "));
        assert!(first, "{view}: {output}");
        let widest = output.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 120 && output.lines().count() <= 50, "{view} is {widest} wide:\n{output}");
        assert_eq!(json(&[view, text(&path)])["whole"], true);
    }
    let finding = run(&["top", text(&path)]).1;
    assert!(
        finding
            .lines()
            .next()
            .unwrap()
            .ends_with(" caused by different trip counts of the loop at ITERATE (fractal.rs:44)"),
        "{finding}"
    );
    let (_, top, _) = run(&["top", text(&path), "--json"]);
    let verdict = &json(&["top", text(&path)])["verdict"];
    assert!(top.trim_start_matches(['{', '\n', ' ']).starts_with("\"verdict\""), "{top}");
    assert!(verdict.to_string().len() <= 600, "{verdict}");
    assert_eq!(verdict["certainty"], "measured");
    assert_eq!((&verdict["function"], &verdict["line"]), (&"fractal".into(), &44.into()), "{verdict}");
    assert!(verdict["next"].as_str().unwrap().starts_with("warptrace causes "), "{verdict}");
    let none = run(&["top", text(&folder.recorded("full.wtrc", &[]))]).1;
    let none = none.lines().next().unwrap();
    assert!(
        none.starts_with("none of ") && none.ends_with(" slots idle: every visit had all lanes of its warp"),
        "{none}"
    );
}

#[test]
fn traces_with_times_say_first_where_the_time_goes() {
    let folder = Folder::new();
    let path = folder.recorded("timed.wtrc", &["--times", "runs"]);
    let (_, output, _) = run(&["top", text(&path)]);
    let first = output.lines().next().unwrap();
    assert!(
        first.contains(" of all warp time is at ") && first.contains(" lanes active on average"),
        "{first}"
    );
    let top = json(&["top", text(&path)]);
    assert_eq!(top["time_finding"], first);
    let sum = |rows: &Value, field: &str| -> u64 {
        rows.as_array().unwrap().iter().map(|row| row[field].as_u64().unwrap()).sum()
    };
    let all = top["totals"]["warp_cycles"].as_u64().unwrap();
    assert!(all > 0);
    assert_eq!(sum(&json(&["lines", text(&path)])["lines"], "warp_cycles"), all);
    assert_eq!(sum(&json(&["warps", text(&path)])["warps"], "cycles"), all);
    let stats = json(&["stats", text(&path)]);
    assert_eq!(sum(&stats["kernels"], "warp_cycles"), all);
    let visits = stats["locations"].as_array().unwrap().iter().map(|row| &row["visit_cycles"]["sum"]);
    assert_eq!(visits.map(|sum| sum.as_u64().unwrap()).sum::<u64>(), all);
    let head = &json(&["loops", text(&path)])["loops"][0];
    assert!(head["loop_lane_cycles"].as_u64().unwrap() > 0);
    for (view, column) in
        [("lines", " a visit "), ("loops", " cycles a trip "), ("warps", " cycles "), ("stats", " a visit ")]
    {
        let output = run(&[view, text(&path)]).1;
        assert!(output.lines().any(|line| line.contains(column)), "{view}: {output}");
    }
}

#[test]
fn rows_are_sorted_limited_and_filtered() {
    let folder = Folder::new();
    let path = folder.traced("fractal", "a.wtrc", &PARTING);
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
    for name in ["ITERATE", "3"] {
        let lines = json(&["lines", text(&path), "--location", name]);
        assert_eq!(lines["lines"].as_array().unwrap().len(), 1);
        assert_eq!(lines["lines"][0]["names"][0], "ITERATE");
    }
    // For warps and paths: the warps that visited the location, with their events there.
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
    let (_folder, path) = recorded(&[]);
    for view in VIEWS {
        for (more, part) in [
            (["--kernel", "frac"], "no kernel `frac`; it has fractal"),
            (["--launch", "1"], "no launch 1"),
            (["--block", "4"], "has no block 4: its blocks are 0 to 3"),
            (["--warp", "8"], "have warps 0 to 7, not 8"),
        ] {
            refused(&[&[view, text(&path)], &more[..]].concat(), part);
        }
    }
    refused(&["lines", text(&path), "--location", "ITER"], "no location `ITER`; `warptrace info` lists them");
    refused(&["loops", text(&path), "--location", "9999"], "no location `9999`; `warptrace info` lists them");
}

#[test]
fn a_trace_that_lacks_events_says_so_first() {
    let folder = Folder::new();
    let path =
        folder.traced("stress", "part.wtrc", &["--walks", "256", "--rounds", "64", "--memory", "1MiB"]);
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
    let (_folder, path) = recorded(&["--zstd", "0"]);
    let mut bytes = std::fs::read(&path).unwrap();
    // The first frame: its payload comes after its header.
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
fn traces_without_locations_or_events_are_shown_with_a_word_about_it() {
    let folder = Folder::new();
    let (bare, empty) = (folder.at("bare"), folder.at("empty"));
    without_table(&bare, &[[7, 0, 1, 0, 0, 0x80], [7, 0, 1, 0, 0, 0], [9, 0, 1, 0, 0, 0x80]]);
    without_table(&empty, &[]);
    for view in VIEWS {
        let output = printed(&[view, text(&bare)]);
        assert!(output.contains("no table of locations, so they are shown by their ids"), "{view}: {output}");
        assert!(
            ["paths", "stats"].contains(&view) || output.contains("location 7") || view == "warps",
            "{output}"
        );
        let output = printed(&[view, text(&empty)]);
        assert!(output.contains("no events: `warptrace info` says what was recorded"), "{view}: {output}");
    }
    refused(&["lines", text(&bare), "--location", "x"], "no table of locations: give an id");
    assert_eq!(json(&["lines", text(&bare), "--location", "9"])["lines"][0]["visits"], 1);
}

#[test]
fn diff_says_what_changed_and_fails_above_a_limit() {
    let (folder, before) = recorded(&[]);
    let after = folder.traced("fractal", "b.wtrc", &["--width", "32", "--depth", "19"]);
    let diff = |more: &[&str]| run(&[&["diff", text(&before)], more].concat());
    let (code, output, errors) = diff(&[text(&before), "--fail-above", "0"]);
    assert_eq!((code, errors.as_str()), (0, ""));
    let same = "the recordings do not differ in how they were made\nfirst: whole trace: ";
    assert!(output.starts_with(same), "{output}");
    for part in
        ["0 of 32 warps in both traces took another path", "nothing changed in events", "no cause of idle"]
    {
        assert!(output.contains(part), "{output}");
    }

    let (code, output, errors) = diff(&[text(&after)]);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(output.contains("where warps first go another way") && output.contains("ITERATE"), "{output}");
    assert!(output.starts_with("the recordings differ in\n  depth: 20 -> 19\n"), "{output}");
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

#[test]
fn diff_finds_the_same_threads_in_another_grid() {
    let folder = Folder::new();
    let trace = |grid: &str| folder.traced("mis", grid, &["--graph", "road:1024", "--grid", grid]);
    let [wide, narrow] = ["8x256", "16x128"].map(trace);
    let found = json(&["diff", text(&wide), text(&narrow)]);
    // Each launch has 2,048 threads, and each warp contains the same 32 threads in both.
    let warps = json(&["warps", text(&wide)])["warps"].as_array().unwrap().len();
    assert_eq!((&found["common_warps"], &found["single_warps"]), (&warps.into(), &serde_json::json!([0, 0])));
    let differs: Vec<&str> =
        found["recordings"].as_array().unwrap().iter().map(|row| row["what"].as_str().unwrap()).collect();
    for what in ["grid of mis_init", "grid of mis_find", "block of mis_init", "block of mis_find", "command"]
    {
        assert!(differs.contains(&what), "{differs:?}");
    }
    let (code, output, _) = run(&["diff", text(&wide), text(&narrow)]);
    assert!(code == 0 && output.contains("  grid of mis_find: 8 -> 16\n"), "{output}");
    assert!(output.contains("  block of mis_find: 256 -> 128\n"), "{output}");
    // Sums of idle lane slots over causes and over locations, compared with `stats`.
    let [before, after] = [&wide, &narrow].map(|path| json(&["stats", text(path)])["totals"]["idle"].clone());
    let sum = |at: usize| {
        let causes = found["causes"].as_array().unwrap().iter();
        causes.map(|cause| cause["idle"][at].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!([before, after], [sum(0), sum(1)].map(Value::from));
}

#[test]
fn loops_that_were_counted_as_if_in_lock_step_are_said_first() {
    let folder = Folder::new();
    let counted = folder.recorded("counted.wtrc", &["--counted"]);
    let plain = folder.recorded("plain.wtrc", &[]);
    let assumed = "as if lanes ran counted loops in lock step";
    for view in VIEWS {
        let first = run(&[view, text(&counted)]).1.lines().next().unwrap().to_owned();
        assert!(first.starts_with(&format!("whole trace, {assumed}: ")), "{view}: {first}");
        assert!(first.chars().count() <= 120, "{view}: {first}");
        let found = json(&[view, text(&counted)]);
        assert_eq!((&found["whole"], &found["losses"]["assumed"]), (&true.into(), &assumed.into()), "{view}");
        assert_eq!(found["state"], format!("complete by its accounts, {assumed}"), "{view}");
        let found = json(&[view, text(&plain)]);
        assert_eq!(
            (&found["state"], &found["losses"]["assumed"]),
            (&"complete by its accounts".into(), &Value::Null),
            "{view}"
        );
    }
    let (_, info, _) = run(&["info", text(&counted)]);
    assert!(
        info.lines().next().unwrap().ends_with(&format!("complete by its accounts, {assumed}")),
        "{info}"
    );
    assert!(info.contains("\ncounted      all loops that hold no other trace point, as if"), "{info}");
    assert!(
        info.contains("\ncommand      warptrace-bench record fractal ") && info.contains(" --counted "),
        "{info}"
    );
    assert_eq!(json(&["info", text(&counted)])["state"], format!("complete by its accounts, {assumed}"));
    let (_, info, _) = run(&["info", text(&plain)]);
    assert!(info.contains("\ncounted      loops that provably have the same events"), "{info}");
    for command in [&["decode"][..], &["export", "--to", "lcov", "-o", "-"]] {
        let (code, _, errors) = run(&[command, &[text(&counted)]].concat());
        assert!(
            code == 0 && errors.starts_with(&format!("warning: complete by its accounts, {assumed}\n")),
            "{errors}"
        );
    }
    let page = run(&["report", text(&counted), "-o", "-"]).1;
    assert!(page.contains(&format!("whole trace, {assumed}: ")));
    let (_, diff, _) = run(&["diff", text(&plain), text(&counted)]);
    assert!(diff.contains("  counting: proven -> all\n"), "{diff}");
    assert!(diff.lines().nth(1).unwrap().starts_with(&format!("second: whole trace, {assumed}")), "{diff}");
}

#[test]
fn diff_says_so_where_no_warp_has_the_same_threads() {
    let folder = Folder::new();
    let [half, full] = [16, 32].map(|threads| {
        let path = folder.at(&format!("{threads}.wtrc"));
        let mut writer = writer(&path, &metadata("walk").with_location(1, "STEP", ""));
        write_launch(&mut writer, 0, [1, threads], &[&[1, 0, 1, 0, 0, 0]]);
        writer.finish().unwrap();
        path
    });
    let output = printed(&["diff", text(&half), text(&full)]);
    assert!(output.starts_with("the recordings differ in\n  block of walk: 16 -> 32\n"), "{output}");
    assert!(
        output.contains("\nno warp is compared: no warp of the one trace holds the same threads"),
        "{output}"
    );
    let found = json(&["diff", text(&half), text(&full)]);
    assert_eq!((&found["common_warps"], &found["single_warps"]), (&0.into(), &serde_json::json!([1, 1])));
}

#[test]
fn causes_are_found_by_the_branch_that_they_are_shown_at() {
    let folder = Folder::new();
    let path = folder.at("a.wtrc");
    let mut metadata = metadata("k").with_location(1, "BEFORE", "");
    let side = LocationInfo {
        line: 7,
        rejoin_line: 9,
        kind: LocationKind::Then,
        ..LocationInfo::new(2, "SIDE", "")
    };
    metadata.locations.push(side);
    let mut writer = writer(&path, &metadata);
    // All lanes, then half of them on one side of a branch.
    write_launch(&mut writer, 0, [1, 32], &[&[1, 0, 0xff, 0xff, 0xff, 0xff, 2, 0, 0xff, 0xff, 0, 0]]);
    writer.finish().unwrap();
    assert!(run(&["causes", text(&path)]).1.contains("SIDE"));
    for (id, rows) in [("1", 0), ("2", 1)] {
        let found = json(&["causes", text(&path), "--location", id]);
        assert_eq!(found["causes"].as_array().unwrap().len(), rows, "location {id}");
    }
    assert!(
        run(&["causes", text(&path), "--location", "1"]).1.contains("no lane was idle because of BEFORE")
    );
}

#[test]
fn a_warp_that_dominates_the_trace_is_the_first_finding() {
    let folder = Folder::new();
    let path = folder.at("dominated.wtrc");
    let mut trace =
        writer(&path, &metadata("search").with_location(1, "entry", "").with_location(2, "WALK", ""));
    let short = [1_u8, 0, 255, 255, 255, 255];
    let long = [&short[..], &[2, 0, 1, 0, 0, 0].repeat(90)].concat();
    write_launch(&mut trace, 0, [4, 32], &[&short[..]; 4]);
    write_launch(&mut trace, 1, [4, 32], &[&short[..], &long, &short, &short]);
    trace.finish().unwrap();
    let top = printed(&["top", text(&path)]);
    let first = top.lines().next().unwrap();
    let expected = "99% of the longest path (92 events, the longest warp of each launch) is one warp: launch 1 block \
        1 warp 0, threads 0 to 31: 91 events, the median of its launch 1";
    assert!(first.starts_with(expected), "{first}");
    let json = json(&["top", text(&path)]);
    assert_eq!(
        (&json["dominant"], json["verdict"]["what"].as_str().unwrap()[..8].to_owned()),
        (&first.into(), first[..8].to_owned())
    );
    // Warps of a launch that are about as long as each other dominate nothing.
    let path = folder.recorded("even.wtrc", &[]);
    assert!(!printed(&["top", text(&path)]).contains("longest path"));
}
