//! The whole way on the simulator: check, bench, figures.

use std::path::Path;

use assert_cmd::Command;

fn tool() -> Command {
    Command::cargo_bin("warptrace-evaluation").expect("the tool is built")
}

fn read(folder: &Path, name: &str) -> Vec<u8> {
    let path = folder.join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn text(folder: &Path, name: &str) -> String {
    String::from_utf8(read(folder, name)).expect("text")
}

#[test]
fn a_check_on_the_simulator_passes_and_says_what_it_checked() {
    let folder = tempfile::tempdir().unwrap();
    let programs = "--programs=fractal,mst";
    tool()
        .args(["check", "--device=sim", "--quick", programs, "--out"])
        .arg(folder.path())
        .assert()
        .success();
    let table = text(folder.path(), "check.md");
    for words in ["| pool too small", "| ecl beside raw", "as the formula says", "lanes as on the CPU"] {
        assert!(table.contains(words), "{words} is not in\n{table}");
    }
    assert!(!table.contains("FAIL"), "{table}");
    assert!(!table.contains("nbody"), "{table}");
}

#[test]
fn a_bench_on_the_simulator_becomes_tables_and_pictures_that_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let bench =
        ["bench", "--device=sim", "--quick", "--programs=fractal,mis", "--runs=2", "--commit=abc", "--out"];
    tool().args(bench).arg(folder.path()).assert().success();

    let csv = text(folder.path(), "bench.csv");
    let lines = csv.lines().filter(|line| line.contains(",fractal,"));
    // Three depths: untraced and three codecs, twice each; four compressors.
    assert_eq!(lines.count(), 3 * (2 * 4 + 4), "{csv}");
    assert!(csv.lines().skip(1).all(|line| line.contains(",abc,") && line.contains(",simulator,")), "{csv}");
    let tables = text(folder.path(), "bench.md");
    assert!(tables.contains("times are not performance"), "{tables}");

    tool()
        .arg("figures")
        .arg("--csv")
        .arg(folder.path().join("bench.csv"))
        .arg("--out")
        .arg(folder.path())
        .assert()
        .success();
    let pictures: Vec<String> = (folder.path().read_dir().unwrap())
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("figure-"))
        .collect();
    assert_eq!(pictures.len(), 12, "{pictures:?}");
    for name in &pictures {
        if name.ends_with(".svg") {
            let picture = text(folder.path(), name);
            assert!(picture.contains("not performance") && picture.contains("128 x 128,"), "{name}");
        } else {
            assert!(read(folder.path(), name).starts_with(b"\x89PNG\r\n\x1a\n"), "{name}");
        }
    }
}

#[test]
fn a_time_limit_leaves_out_what_does_not_fit_and_keeps_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let bench = ["bench", "--device=sim", "--quick", "--runs=1000", "--time-limit=1", "--out"];
    let output = tool().args(bench).arg(folder.path()).assert().success();
    let said = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    assert!(said.contains("left out, the time limit is reached"), "{said}");
    assert!(text(folder.path(), "bench.csv").lines().count() > 4);
    assert!(text(folder.path(), "bench.md").contains("fractal"));
}

#[test]
fn what_cannot_be_done_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&[&str], &str); 5] = [
        (&["check", "--device=sim", "--quick", "--programs=fractle"], "the programs are fractal, nbody"),
        (&["check", "--device=simulator"], "a device is"),
        (&["check", "--device=sim", "--quick", "--grid=0x32"], "a grid has at least one block"),
        (&["figures", "--csv=no-such-file.csv"], "cannot open no-such-file.csv"),
        (&["bench", "--runs=0"], "0 is not in 1..=1000"),
    ];
    for (arguments, words) in cases {
        let output = tool().args(arguments).assert().failure();
        let said = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    for (contents, words) in [("", "has no lines"), ("a,b\n1,2\n", "is not a table that `bench` wrote")] {
        let path = folder.path().join("bad.csv");
        std::fs::write(&path, contents).unwrap();
        let output = tool().arg("figures").arg("--csv").arg(&path).assert().failure();
        let said = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(said.contains(words), "{contents:?}: {said}");
    }
}
