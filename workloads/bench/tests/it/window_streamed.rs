//! With `--policy stream`, recordings of a part of a program contain the same events as otherwise.

use std::path::Path;

use crate::support::{Folder, run, text};
use crate::window::{events, info, place, verified};

const STREAM: [&str; 4] = ["--policy", "stream", "--memory", "1MiB"];

/// Sorts events, without numbers: events of a warp without common lanes may come in any order.
pub(crate) fn unordered(path: &Path) -> Vec<String> {
    sorted(events(path))
}

fn sorted(lines: Vec<String>) -> Vec<String> {
    let without_number = |line: String| {
        let fields: Vec<&str> = line.split(',').collect();
        [&fields[..6], &fields[7..]].concat().join(",")
    };
    let mut lines: Vec<String> = lines.into_iter().map(without_number).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn chosen_blocks_and_warps_are_what_they_are_in_the_whole_trace() {
    let folder = Folder::new();
    let whole = events(&folder.recorded("whole.wtrc", &[]));
    for (name, more, holds) in [
        ("a", &["--blocks", "1/4"][..], &(|block: u32, _: u32| block == 0) as &dyn Fn(u32, u32) -> bool),
        ("b", &["--blocks", "1..3", "--dual"], &|block, _| block == 1 || block == 2),
        ("c", &["--warps", "7"], &|_, warp| warp == 7),
        ("d", &["--blocks", "1/3", "--warps", "2..=4", "--codec", "predict", "--counted"], &|block, warp| {
            block % 3 == 0 && (2..=4).contains(&warp)
        }),
    ] {
        let path = folder.recorded(name, &[&STREAM[..], more].concat());
        let is_chosen = |line: &&String| {
            let (block, warp) = place(line);
            holds(block, warp)
        };
        let expected: Vec<_> = whole.iter().filter(is_chosen).cloned().collect();
        assert!(!expected.is_empty() && expected.len() < whole.len());
        assert_eq!(unordered(&path), sorted(expected), "{more:?}");
        let page = verified(&path);
        assert!(page.contains("\nrecorded  launches: 1 of 1, warps: "), "{page}");
        assert!(page.contains("events lost: 0, warps not finished: 0"), "{page}");
    }
}

#[test]
fn what_is_not_chosen_needs_no_memory() {
    // A memory of 1 MiB has too few segments for 16,384 lanes, but enough for one block in 64.
    let folder = Folder::new();
    let program = ["--width", "128", "--depth", "20"];
    let record =
        |name: &str, more: &[&str]| folder.record("fractal", name, &[&program[..], &STREAM, more].concat());
    let (_, (code, _, errors)) = record("all.wtrc", &[]);
    assert!(code == 1 && errors.contains("512 warps"), "{errors}");
    let (path, (code, _, errors)) = record("some.wtrc", &["--blocks", "1/64"]);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(verified(&path).contains("warps: 8 of 512"));
}

#[test]
fn launches_that_are_not_chosen_keep_their_numbers() {
    let folder = Folder::new();
    let program = ["--bodies", "64", "--steps", "4"];
    let record = |name: &str, more: &[&str]| {
        let (path, (code, output, errors)) = folder.record("nbody", name, &[&program[..], more].concat());
        assert_eq!((code, errors.as_str()), (0, ""), "{output}");
        (path, output)
    };
    let all = events(&record("whole.wtrc", &[]).0);
    let of_launches = |numbers: &[&str]| -> Vec<String> {
        let is_one = |line: &&String| numbers.iter().any(|number| line.starts_with(number));
        sorted(all.iter().filter(is_one).cloned().collect())
    };
    let (path, output) = record("some.wtrc", &[&STREAM[..], &["--launch", "1..3"]].concat());
    assert!(output.contains("launches 1..=2; 2 of 8 launches recorded"), "{output}");
    assert_eq!(unordered(&path), of_launches(&["1,", "2,"]));
    let launches = info(&path)["launches"].as_array().unwrap().clone();
    let recorded: Vec<_> = launches.iter().map(|launch| launch["recorded_warps"] != 0).collect();
    assert_eq!(recorded, [false, true, true, false, false, false, false, false]);
    verified(&path);

    let first = all.iter().filter(|line| line.starts_with("0,")).count();
    let (path, output) =
        record("few.wtrc", &[&STREAM[..], &["--max-events", &(first + 1).to_string()]].concat());
    assert!(output.contains("; 2 of 8 launches recorded"), "{output}");
    assert_eq!(unordered(&path), of_launches(&["0,", "1,"]));
}

#[test]
fn a_kernel_is_chosen_by_its_name() {
    let folder = Folder::new();
    let more = [&STREAM[..], &["--kernel", "mis_init"]].concat();
    let (path, (code, _, errors)) = folder.record("mis", "a.wtrc", &more);
    assert_eq!((code, errors.as_str()), (0, ""));
    let lines = events(&path);
    assert!(!lines.is_empty() && lines.iter().all(|line| line.starts_with("0,mis_init,")));
    verified(&path);
}

#[test]
fn a_window_without_anything_in_it_makes_a_sound_file() {
    let folder = Folder::new();
    for (name, more) in
        [("a.wtrc", ["--blocks", "100.."]), ("b.wtrc", ["--launch", "7"]), ("c.wtrc", ["--max-events", "0"])]
    {
        let path = folder.recorded(name, &[&STREAM[..], &more].concat());
        assert_eq!(events(&path), Vec::<String>::new());
        assert!(verified(&path).contains("recorded  launches: 0 of 1, warps: 0 of 32"));
        assert!(run(&["info", text(&path)]).1.contains("not chosen"), "{more:?}");
    }
}
