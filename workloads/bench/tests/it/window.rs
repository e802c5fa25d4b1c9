//! Parts of a program: `--kernel`, `--launch`, `--blocks`, `--warps`, `--after`, `--max-events`.

use serde_json::Value;

use crate::support::{Folder, SMALL, run, text};

pub(crate) fn events(path: &std::path::Path) -> Vec<String> {
    let (code, output, errors) = run(&["decode", text(path), "--format", "csv"]);
    assert_eq!(code, 0, "{errors}");
    output.lines().skip(1).map(str::to_owned).collect()
}

/// The line's names must contain neither quotes nor commas.
pub(crate) fn place(line: &str) -> (u32, u32) {
    let fields: Vec<&str> = line.split(',').collect();
    (fields[2].parse().unwrap(), fields[5].parse().unwrap())
}

pub(crate) fn info(path: &std::path::Path) -> Value {
    serde_json::from_str(&run(&["info", text(path), "--json"]).1).unwrap()
}

pub(crate) fn verified(path: &std::path::Path) -> String {
    let (code, output, _) = run(&["verify", text(path)]);
    assert_eq!(code, 0, "{output}");
    output
}

#[test]
fn chosen_blocks_and_warps_are_what_they_are_in_the_whole_trace() {
    let folder = Folder::new();
    let whole = events(&folder.recorded("whole.wtrc", &[]));
    for (name, more, holds) in [
        (
            "a",
            &["--blocks", "1/4"][..],
            &(|(block, _): (u32, u32)| block == 0) as &dyn Fn((u32, u32)) -> bool,
        ),
        ("b", &["--blocks", "1..3", "--dual"], &|(block, _)| block == 1 || block == 2),
        ("c", &["--warps", "7"], &|(_, warp)| warp == 7),
        ("d", &["--blocks", "1/3", "--warps", "2..=4", "--codec", "predict", "--counted"], &|(
            block,
            warp,
        )| {
            block % 3 == 0 && (2..=4).contains(&warp)
        }),
    ] {
        let path = folder.recorded(name, more);
        let expected: Vec<_> = whole.iter().filter(|line| holds(place(line))).cloned().collect();
        assert!(!expected.is_empty() && expected.len() < whole.len());
        assert_eq!(events(&path), expected, "{more:?}");
        let page = verified(&path);
        assert!(page.contains("\nrecorded  launches: 1 of 1, warps: "), "{page}");
    }
}

#[test]
fn info_says_what_was_not_chosen() {
    let folder = Folder::new();
    let path = folder.recorded("a.wtrc", &["--blocks", "1/4", "--warps", "..2"]);
    let output = run(&["info", text(&path)]).1;
    assert!(output.contains("\nwindow       blocks 1/4, warps 0..=1\n"), "{output}");
    assert!(output.contains(" recorded  "), "{output}");
    assert!(output.contains("not chosen to be recorded: 0 of 1 launches, 30 of 32 warps"), "{output}");
    let first = output.lines().next().unwrap();
    assert!(first.ends_with("complete by its accounts, recorded of 2 of 32 warps"), "{first}");
    for view in ["top", "lines", "warps", "causes"] {
        let page = run(&[view, text(&path)]).1;
        let said = "trace of a window, 30 warps not chosen to be recorded: ";
        assert!(page.lines().take(2).any(|line| line.starts_with(said)), "{view}: {page}");
    }
    let info = info(&path);
    let launch = &info["launches"][0];
    assert_eq!((launch["warps"].as_u64(), launch["recorded_warps"].as_u64()), (Some(32), Some(2)));
    let chosen = &launch["chosen"];
    for (field, value) in
        [("first_block", 0), ("blocks", 1), ("block_step", 1), ("first_warp", 0), ("block_warps", 2)]
    {
        assert_eq!(chosen[field], value, "{field}");
    }
    let whole = run(&["info", text(&folder.recorded("whole.wtrc", &[])), "--json"]).1;
    let whole: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(whole["launches"][0]["recorded_warps"], 32);
    assert!(whole["launches"][0].get("chosen").is_none());
}

#[test]
fn launches_that_are_not_chosen_keep_their_numbers() {
    let folder = Folder::new();
    let record = |name: &str, more: &[&str]| {
        let (path, (code, output, errors)) =
            folder.record("nbody", name, &[&["--bodies", "64", "--steps", "4"], more].concat());
        assert_eq!((code, errors.as_str()), (0, ""), "{output}");
        (path, output)
    };
    let (whole, _) = record("whole.wtrc", &[]);
    let launches = info(&whole)["launches"].as_array().unwrap().len();
    assert!(launches >= 4, "{launches} launches");
    let all = events(&whole);
    let (path, output) = record("some.wtrc", &["--launch", "1..3"]);
    assert!(output.contains(&format!("launches 1..=2; 2 of {launches} launches recorded")), "{output}");
    let expected: Vec<_> =
        all.iter().filter(|line| line.starts_with("1,") || line.starts_with("2,")).cloned().collect();
    assert_eq!(events(&path), expected);
    let state = info(&path)["state"].as_str().unwrap().to_owned();
    assert!(state.ends_with(&format!(", in 2 of {launches} launches")), "{state}");
    let numbers: Vec<_> = info(&path)["launches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|launch| (launch["launch"].as_u64().unwrap(), launch["recorded_warps"] == 0))
        .collect();
    let expected: Vec<_> = (0..launches as u64).map(|number| (number, ![1, 2].contains(&number))).collect();
    assert_eq!(numbers, expected);
    verified(&path);
    let (code, output, note) = run(&["decode", text(&path), "--launch", "0"]);
    assert_eq!((code, output.lines().count()), (0, 1));
    assert_eq!(note, "note: nothing of this was recorded: `warptrace info` says what was\n");

    let first = all.iter().filter(|line| line.starts_with("0,")).count();
    let (path, output) = record("few.wtrc", &["--max-events", &(first + 1).to_string()]);
    assert!(output.contains(&format!("; 2 of {launches} launches recorded")), "{output}");
    let expected: Vec<_> =
        all.iter().filter(|line| line.starts_with("0,") || line.starts_with("1,")).cloned().collect();
    assert_eq!(events(&path), expected);
}

#[test]
fn a_kernel_is_chosen_by_its_name() {
    let folder = Folder::new();
    let record = |name: &str, kernel: &str| folder.record("mis", name, &["--kernel", kernel]);
    for (name, kernel) in [("a.wtrc", "mis_init"), ("b.wtrc", "*init")] {
        let (path, (code, _, errors)) = record(name, kernel);
        assert_eq!((code, errors.as_str()), (0, ""));
        let lines = events(&path);
        assert!(!lines.is_empty() && lines.iter().all(|line| line.starts_with("0,mis_init,")));
    }
    let (path, (code, output, errors)) = record("c.wtrc", "mis");
    assert_eq!((code, output.as_str()), (1, ""));
    assert_eq!(errors, "error: no kernel of this program is named `mis`: it has mis_init, mis_find\n");
    assert!(!path.exists());
}

#[test]
fn a_window_begins_at_a_visit_of_a_location() {
    let folder = Folder::new();
    let record = |name: &str, more: &[&str]| {
        let more = [&["--walks", "64", "--rounds", "4"], more].concat();
        let (path, (code, output, errors)) = folder.record("stress", name, &more);
        assert_eq!((code, errors.as_str()), (0, ""), "{more:?}");
        verified(&path);
        (events(&path), path, output)
    };
    let (all, path, _) = record("all.wtrc", &[]);
    let info: Value = serde_json::from_str(&run(&["info", text(&path), "--json"]).1).unwrap();
    let locations = info["metadata"]["locations"].as_array().unwrap();
    let round = locations.iter().find(|location| location["name"] == "ROUND").unwrap();
    let line = format!("kernels/src/stress.rs:{}:2", round["line"]);
    let (by_name, path, output) = record("name.wtrc", &["--after", "ROUND:2"]);
    assert!(output.contains("lanes from visit 2 of location"), "{output}");
    assert!(run(&["info", text(&path)]).1.contains("lanes from visit 2 of location"));
    assert!(!by_name.is_empty() && by_name.len() < all.len());
    for (number, location) in [format!("{}:2", round["id"]), line].iter().enumerate() {
        assert_eq!(record(&format!("{number}.wtrc"), &["--after", location]).0, by_name, "{location}");
    }
    // Each lane's first event is at ENTER, so all events are recorded. After too many visits, none are.
    assert_eq!(record("first.wtrc", &["--after", "ENTER:1"]).0, all);
    assert_eq!(record("none.wtrc", &["--after", "ROUND:5000"]).0, Vec::<String>::new());
}

#[test]
fn a_visit_that_cannot_be_is_refused() {
    for (more, exit, words) in [
        (&["--after", "STEP"][..], 2, "write a location and a count from 1 on, as in STEP:1000"),
        (&["--after", "ENTER:0"], 2, "write a location and a count"),
        (&["--after", ":3"], 2, "write a location and a count"),
        (&["--after", "NOWHERE:3"], 1, "the program has no location `NOWHERE`; it has "),
        (&["--after", "99:3"], 1, "the program has no location `99`"),
        (&["--after", "1:3", "--counted"], 1, "leave `counted` out"),
    ] {
        let (path, (code, _, errors)) =
            Folder::new().record("fractal", "a.wtrc", &[&SMALL[..], more].concat());
        assert_eq!(code, exit, "{more:?}: {errors}");
        assert!(errors.contains(words), "{errors}");
        assert!(!path.exists(), "{more:?}");
    }
}

#[test]
fn a_window_without_anything_in_it_makes_a_sound_file() {
    let folder = Folder::new();
    for (name, more) in [
        ("a.wtrc", ["--blocks", "100.."]),
        ("b.wtrc", ["--warps", "8.."]),
        ("c.wtrc", ["--launch", "7"]),
        ("d.wtrc", ["--max-events", "0"]),
    ] {
        let path = folder.recorded(name, &more);
        assert_eq!(events(&path), Vec::<String>::new());
        assert!(verified(&path).contains("recorded  launches: 0 of 1, warps: 0 of 32"));
        assert!(run(&["info", text(&path)]).1.contains("not chosen"), "{more:?}");
    }
}

#[test]
fn what_is_no_range_is_refused() {
    for (more, words) in [
        (["--launch", "7..3"], "`7..3` holds no number"),
        (["--launch", "x"], "`x` is no range of numbers"),
        (["--blocks", "1/0"], "`1/0` is no part of all blocks"),
        (["--blocks", "3-4"], "`3-4` is no range of numbers"),
        (["--warps", "1/2"], "`1/2` is no range of numbers"),
        (["--max-events", "many"], "invalid digit"),
    ] {
        let (path, (code, _, errors)) =
            Folder::new().record("fractal", "a.wtrc", &[&SMALL[..], &more].concat());
        assert_eq!(code, 2, "{errors}");
        assert!(errors.contains(words), "{errors}");
        assert!(!path.exists());
    }
}
