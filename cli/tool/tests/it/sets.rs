//! Several traces as one: sums, and the file that differs from the others.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Folder, json, printed, recorded, refused, run, text};

pub(crate) const VIEWS: [&str; 7] = ["top", "causes", "lines", "loops", "warps", "edges", "stats"];

/// The third run is slower than the others.
fn ranks(folder: &Folder) -> Vec<PathBuf> {
    let record = |number: u32| {
        let depth = if number == 2 { "400" } else { "200" };
        let name = format!("rank.{number}.wtrc");
        folder.traced("fractal", &name, &["--width", "64", "--depth", depth, "--times", "runs"])
    };
    (0..4).map(record).collect()
}

fn sums(answers: &[Value], rows: &str, key: &[&str], field: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for row in answers.iter().flat_map(|answer| answer[rows].as_array().unwrap()) {
        let key = key.iter().map(|key| row[*key].to_string()).collect::<Vec<_>>().join(" ");
        let number = &row[field];
        *sums.entry(key).or_default() += number.as_u64().or(number["sum"].as_u64()).unwrap();
    }
    sums
}

#[test]
fn figures_of_several_traces_are_the_sums() {
    let folder = Folder::new();
    let files = ranks(&folder);
    let files: Vec<&str> = files.iter().map(|path| text(path)).collect();
    let of = |view: &str| {
        let each: Vec<Value> = files.iter().map(|file| json(&[view, file])).collect();
        let all = json(&[&[view], &files[..]].concat());
        for field in ["visits", "lanes", "idle", "slots", "warp_cycles"] {
            let sum: u64 = each.iter().map(|one| one["totals"][field].as_u64().unwrap()).sum();
            assert_eq!(all["totals"][field], sum, "{view} {field}");
        }
        (each, vec![all])
    };
    let checked: [(&str, &str, &[&str], &[&str]); 5] = [
        (
            "lines",
            "lines",
            &["file", "line"],
            &["visits", "idle", "caused", "warps", "splits", "warp_cycles"],
        ),
        ("loops", "loops", &["name"], &["visits", "trips", "loop_lane_cycles", "warp_visits"]),
        ("causes", "causes", &["name"], &["idle", "divergences"]),
        ("edges", "edges", &["from", "to"], &["visits", "lanes"]),
        ("stats", "kernels", &["kernel"], &["launches", "visits", "warps", "warp_events"]),
    ];
    for (view, rows, key, fields) in checked {
        let (each, all) = of(view);
        for field in fields {
            let sums_of = |answers: &[Value]| sums(answers, rows, key, field);
            assert!(!sums_of(&all).is_empty(), "{view} {field}");
            assert_eq!(sums_of(&all), sums_of(&each), "{view} {field}");
        }
    }
    let (each, all) = of("lines");
    for line in all[0]["lines"].as_array().unwrap() {
        let of_line = |answer: &Value| {
            let rows = answer["lines"].as_array().unwrap();
            rows.iter()
                .find(|row| row["line"] == line["line"])
                .map_or(0, |row| row["visits"].as_u64().unwrap())
        };
        let mut visits: Vec<u64> = each.iter().map(of_line).collect();
        let spread = &line["spread"]["visits"];
        assert_eq!(line["traces"], visits.iter().filter(|visits| **visits > 0).count(), "{line}");
        visits.sort_unstable();
        assert_eq!([&spread["least"], &spread["median"], &spread["most"]], [visits[0], visits[1], visits[3]]);
    }
}

#[test]
fn the_file_that_is_unlike_the_others_is_named() {
    let folder = Folder::new();
    let files = ranks(&folder);
    let all = text(&files[0]).replace("rank.0", "rank.*");
    let output = printed(&["top", &all]);
    let first = output.lines().next().unwrap();
    assert!(first.starts_with("rank.2.wtrc is farthest from the median: "), "{output}");
    assert!(first.contains(" times the median; most at fractal.rs:44 (2.0 times"), "{output}");
    assert!(output.contains("4 traces, all whole: "), "{output}");
    let widest = output.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 160, "{widest}\n{output}");
    let top = json(&["top", &all]);
    assert_eq!((&top["outlier_file"]["file"], &top["outlier_file_finding"]), (&2.into(), &first.into()));
    let lines = run(&["lines", &all]).1;
    assert!(lines.contains("4 of 4") && lines.contains("rank.2.wtrc x"), "{lines}");
    // Its warps take longest, and have the names of their file.
    let warps = run(&["warps", &all, "--sort", "cycles", "--limit", "3"]).1;
    let alone = run(&["warps", text(&files[2]), "--sort", "cycles", "--limit", "3"]).1;
    let rows = |output: &str| -> Vec<String> {
        let rows = output.lines().skip_while(|line| !line.contains("x median")).skip(1).take(3);
        rows.map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    assert_eq!(rows(&alone).len(), 3, "{alone}");
    assert_eq!(rows(&warps), rows(&alone).iter().map(|row| format!("rank.2.wtrc {row}")).collect::<Vec<_>>());
    let at = ["--location", "ITERATE"];
    let of = |files: &[&str]| json(&[&["warps"], files, &at].concat());
    let (all, each) = (of(&[&all]), files.iter().map(|file| of(&[text(file)])));
    let each: Vec<Value> = each.flat_map(|one| one["warps"].as_array().unwrap().clone()).collect();
    let events = |rows: &[Value]| rows.iter().map(|row| row["visits"].as_u64().unwrap()).sum::<u64>();
    let all = all["warps"].as_array().unwrap();
    assert_eq!((all.len(), events(all)), (each.len(), events(&each)));
    assert!(events(all) > 0 && all.iter().any(|row| row["file"] == 3));
    // With two traces, neither is the odd one. The finding names the larger one.
    let (_, output, _) = run(&["top", text(&files[0]), text(&files[2])]);
    let first = output.lines().next().unwrap();
    assert!(
        first.starts_with("rank.2.wtrc has ")
            && first.ends_with(" warp-cycles in fractal, 2.0 times the other's"),
        "{first}"
    );
    let same = [text(&files[0]), text(&files[1])];
    let (_, output, _) = run(&["top", same[0], same[1]]);
    assert!(output.starts_with("no kernel differs between 2 traces\n"), "{output}");
}

#[test]
fn folders_and_patterns_name_traces_in_the_order_of_their_numbers() {
    let folder = Folder::new();
    let path = folder.recorded("run.9.wtrc", &[]);
    fs::create_dir(folder.at("all")).unwrap();
    for name in ["run.10.wtrc", "run.9.wtrc", "run.100.wtrc"] {
        fs::copy(&path, folder.at("all").join(name)).unwrap();
    }
    fs::write(folder.at("all").join("notes.txt"), "no trace").unwrap();
    let names = |argument: &str| -> Vec<String> {
        let files = json(&["lines", argument])["files"].as_array().unwrap().clone();
        files.iter().map(|file| file["file"].as_str().unwrap().to_owned()).collect()
    };
    let inside = folder.at("all");
    assert_eq!(names(text(&inside)), ["run.9.wtrc", "run.10.wtrc", "run.100.wtrc"]);
    assert_eq!(names(&format!("{}/run.1*", text(&inside))), ["run.10.wtrc", "run.100.wtrc"]);
    // One file in a folder gives the same output as the file itself.
    fs::create_dir(folder.at("one")).unwrap();
    fs::rename(folder.at("all").join("run.9.wtrc"), folder.at("one").join("run.9.wtrc")).unwrap();
    assert_eq!(run(&["top", text(&folder.at("one"))]), run(&["top", text(&path)]));
}

#[test]
fn what_does_not_fit_together_is_said() {
    let folder = Folder::new();
    let fractal = folder.recorded("fractal.wtrc", &[]);
    let stress = folder.traced("stress", "stress.wtrc", &["--walks", "64"]);
    let both = [text(&fractal), text(&stress)];
    let (code, output, _) = run(&["lines", both[0], both[1]]);
    assert!(code == 0 && output.contains(" locations are not in all traces: "), "{output}");
    let one = json(&["lines", both[0]])["totals"]["visits"].as_u64().unwrap();
    // Only one of the traces has the selected kernel.
    let (code, output, _) = run(&["lines", both[0], both[1], "--kernel", "fractal"]);
    assert!(
        code == 0 && output.contains("1 trace left out: stress.wtrc: the trace has no kernel `fractal`"),
        "{output}"
    );
    assert_eq!(json(&["lines", both[0], both[1], "--kernel", "fractal"])["totals"]["visits"], one);
    refused(&["lines", both[0], both[1], "--kernel", "other"], "the trace has no kernel `other`");
    let bytes = fs::read(&fractal).unwrap();
    let cut = folder.at("cut.wtrc");
    fs::write(&cut, &bytes[..bytes.len() - 300]).unwrap();
    for view in VIEWS {
        let (code, output, _) = run(&[view, both[0], text(&cut)]);
        assert!(code == 0 && output.starts_with("INCOMPLETE: 1 of 2 traces: cut.wtrc: "), "{view}: {output}");
        let answer = json(&[view, both[0], text(&cut)]);
        assert_eq!((&answer["whole"], &answer["files"][1]["whole"]), (&false.into(), &false.into()));
    }
}

#[test]
fn verify_takes_several_and_says_which_are_not_in_order() {
    let folder = Folder::new();
    let good = folder.recorded("good.wtrc", &[]);
    let cut = folder.at("cut.wtrc");
    let bytes = fs::read(&good).unwrap();
    fs::write(&cut, &bytes[..bytes.len() - 300]).unwrap();
    let (code, output, errors) = run(&["verify", text(&good), text(&cut)]);
    assert_eq!((code, errors.as_str()), (3, ""));
    let events = json(&["lines", text(&good)])["totals"]["visits"].as_u64().unwrap();
    assert!(
        output.starts_with(&format!("good.wtrc: in order, {events} events of 32 warps\ncut.wtrc:\n")),
        "{output}"
    );
    assert!(output.contains(&run(&["verify", text(&cut)]).1), "{output}");
    assert!(output.ends_with("1 of 2 traces are in order\n"), "{output}");
    let (code, output, _) = run(&["verify", text(&good), text(&cut), "--json"]);
    let found: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((code, &found["ok"], &found["files"][1]["file"]), (3, &false.into(), &"cut.wtrc".into()));
    assert_eq!((&found["files"][0]["ok"], &found["files"][0]["events"]), (&true.into(), &events.into()));
}

#[test]
fn files_that_cannot_be_counted_are_errors() {
    let (folder, path) = recorded(&[]);
    let path = text(&path);
    let other = folder.at("b.wtrc");
    fs::write(&other, "no trace").unwrap();
    fs::create_dir(folder.at("empty")).unwrap();
    let empty = folder.at("empty");
    let pattern = format!("{}/x*.wtrc", text(&empty));
    let cases: [(&[&str], &str); 6] = [
        (&["top", path, path], "is named twice"),
        (&["top", path, text(&other)], "b.wtrc"),
        (&["lines", text(&empty)], "has no file *.wtrc"),
        (&["lines", &pattern], "no file fits"),
        (&["paths", path, text(&other)], "looks at one trace, and these are 2"),
        (&["lines", path, "/nowhere.wtrc"], "cannot open"),
    ];
    for (arguments, expected) in cases {
        let (code, output, errors) = run(arguments);
        assert!(code == 1 && output.is_empty() && errors.contains(expected), "{arguments:?}: {errors}");
    }
}
