//! The whole way on the simulator: check, bench, figures, baseline.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use std::path::Path;

use assert_cmd::Command;
use warptrace_decoder::TraceFile;

/// Lines of the list of codecs.
const CODECS: usize = 9;

fn tool() -> Command {
    Command::cargo_bin("warptrace-bench").expect("the tool is built")
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
    for words in [
        "| ecl: little memory",
        "| predict: little memory",
        "| ecl beside raw",
        "as the formula says",
        "lanes as on the CPU",
        "lanes in two orders",
    ] {
        assert!(table.contains(words), "{words} is not in\n{table}");
    }
    assert!(!table.contains("FAIL"), "{table}");
    assert!(!table.contains("nbody"), "{table}");
}

#[test]
fn stress_is_checked_lane_by_lane() {
    let folder = tempfile::tempdir().unwrap();
    let check = ["check", "--device=sim", "--quick", "--programs=stress,matmul", "--out"];
    tool().args(check).arg(folder.path()).assert().success();
    let table = text(folder.path(), "check.md");
    let rows = |program: &str, words: &str| {
        table.lines().filter(|line| line.starts_with(&format!("| {program}")) && line.contains(words)).count()
    };
    assert_eq!(rows("stress", "lanes in all masks, as on the CPU"), CODECS, "{table}");
    assert_eq!(rows("matmul", "events, as the formula says"), CODECS, "{table}");
    for program in ["stress", "matmul"] {
        assert_eq!(rows(program, "decoded = raw"), 5, "{table}");
        assert!(rows(program, "lanes as on the CPU") > 0, "{table}");
        assert!(rows(program, "lanes in two orders") > 0, "{table}");
    }
    assert!(!table.contains("FAIL"), "{table}");
}

#[test]
fn a_bench_on_the_simulator_becomes_tables_and_pictures_that_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let bench =
        ["bench", "--device=sim", "--quick", "--programs=fractal,mis", "--runs=2", "--commit=abc", "--out"];
    tool().args(bench).arg(folder.path()).assert().success();

    let csv = text(folder.path(), "bench.csv");
    let lines = csv.lines().filter(|line| line.contains(",fractal,"));
    // Three depths: untraced and each codec, twice each; four compressors.
    assert_eq!(lines.count(), 3 * (2 * (1 + CODECS) + 4), "{csv}");
    assert!(csv.lines().skip(1).all(|line| line.contains(",abc,") && line.contains(",simulator,")), "{csv}");
    let tables = text(folder.path(), "bench.md");
    for program in ["fractal", "mis", "all 2"] {
        let rows =
            tables.lines().filter(|line| line.split('|').nth(1).is_some_and(|cell| cell.trim() == program));
        let overview = rows.filter(|line| line.split('|').count() == 13).collect::<Vec<_>>();
        assert_eq!(overview.len(), CODECS, "{program}: {overview:?}");
        assert!(overview.iter().all(|line| !line.contains(" - ")), "{overview:?}");
    }
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
    for name in ["kernel-time", "whole-time", "device-ratio", "ratio-at-rest"] {
        let picture = text(folder.path(), &format!("overview-{name}.svg"));
        assert!(picture.contains("not performance") && picture.contains("geometric means"), "{name}");
        assert!(read(folder.path(), &format!("overview-{name}.png")).starts_with(b"\x89PNG"), "{name}");
    }
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
fn whole_programs_run_in_processes_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let whole =
        ["whole", "--device=sim", "--quick", "--programs=fractal,mst", "--rounds=2", "--commit=abc", "--out"];
    tool().args(whole).arg(folder.path()).assert().success();
    let document: serde_json::Value = serde_json::from_str(&text(folder.path(), "whole.json")).unwrap();
    let rows = document["rows"].as_array().unwrap();
    let ways: Vec<&str> = rows.iter().map(|row| row["way"].as_str().unwrap()).collect();
    assert_eq!(ways, ["untraced", "predict", "raw"].repeat(2));
    for row in rows {
        let (traced, runs) = (row["way"] != "untraced", row["runs"].as_array().unwrap());
        assert_eq!((runs.len(), &document["commit"]), (2, &"abc".into()), "{row}");
        for run in runs {
            let number = |name: &str| run[name].as_f64().unwrap();
            assert_eq!((number("recorded") > 0.0, number("lost")), (traced, 0.0), "{run}");
            assert!(
                number("kernel_s") <= number("whole_s") && number("whole_s") < number("process_s"),
                "{run}"
            );
            assert_eq!((number("setup_s") > 1e-4, number("file_bytes") > 100.0), (traced, traced), "{run}");
            assert_eq!(run["result"], runs[0]["result"], "{run}");
        }
    }
    let table = text(folder.path(), "whole.md");
    assert!(table.contains("not performance") && table.contains("| predict  |"), "{table}");
    assert!(!table.contains("Results differ"), "{table}");
    // No trace stays behind.
    let mut names: Vec<_> =
        folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["whole.json", "whole.md"]);
}

#[test]
fn a_way_that_does_not_fit_into_memory_is_left_out_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let whole = ["whole", "--device=sim", "--quick", "--programs=fractal", "--rounds=1", "--max-memory=1MiB"];
    tool().args(whole).args(["--codec=predict", "--out"]).arg(folder.path()).assert().success();
    let table = text(folder.path(), "whole.md");
    let row = |way: &str| table.lines().find(|line| line.contains(way)).unwrap_or_else(|| panic!("{table}"));
    assert!(row("| untraced |").contains(" ms |"), "{table}");
    assert!(
        row("| predict  |").contains("left out: it needs ") && row("| predict").contains(" KiB"),
        "{table}"
    );
}

#[test]
fn policies_are_compared_in_one_amount_of_memory() {
    let folder = tempfile::tempdir().unwrap();
    let policies =
        ["policies", "--device=sim", "--quick", "--programs=stress,triad", "--memory=1MiB", "--rounds=1"];
    tool().args(policies).arg("--out").arg(folder.path()).assert().success();
    let document: serde_json::Value = serde_json::from_str(&text(folder.path(), "policies.json")).unwrap();
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * (1 + 2 * 3));
    let mut lossy = 0;
    for row in rows.iter().filter(|row| row["way"] != "untraced") {
        // In so little memory some ways are refused, which says how much they need.
        let Some(run) = row["runs"].as_array().unwrap().first() else {
            assert!(row["left_out"].as_str().unwrap().starts_with("refused: it needs "), "{row}");
            continue;
        };
        let number = |name: &str| run[name].as_u64().unwrap();
        assert_eq!(number("attempted"), number("recorded") + number("lost"), "{row}");
        let streams = row["way"].as_str().unwrap().ends_with("/ stream");
        assert!(!streams || number("lost") == 0, "{row}");
        lossy += u32::from(number("lost") > 0);
    }
    let table = text(folder.path(), "policies.md");
    assert!(lossy > 0 && !table.contains("Results differ"), "{table}");
    for words in ["| predict / stream |", "1 MiB of device memory", "not performance"] {
        assert!(table.contains(words), "{words} is not in\n{table}");
    }
}

#[test]
fn a_time_limit_leaves_out_what_does_not_fit_and_keeps_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let bench = ["bench", "--device=sim", "--quick", "--codec=ecl", "--runs=1000", "--time-limit=1", "--out"];
    let output = tool().args(bench).arg(folder.path()).assert().success();
    let said = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    assert!(said.contains("left out, the time limit is reached"), "{said}");
    let csv = text(folder.path(), "bench.csv");
    // At least one turn: untraced, raw, and the codec that was chosen.
    assert!(csv.lines().count() >= 4 && csv.contains(",ecl,") && !csv.contains(",predict,"), "{csv}");
    assert!(text(folder.path(), "bench.md").contains("fractal"));
}

#[test]
fn one_run_of_fidelity_leaves_its_trace_and_what_it_launched() {
    let folder = tempfile::tempdir().unwrap();
    let run = ["fidelity-run", "dmr r1M-like, 500 points, grid 4x64"];
    let on_simulator = ["--device=sim", "--memory=512MiB", "--out"];
    let launches = |mode: &str| {
        tool().args(run).arg(mode).args(on_simulator).arg(folder.path()).assert().success();
        let told = text(folder.path(), "run.json");
        assert!(told.contains("\"lost\":0"), "{told}");
        (told.matches("\"dmr_").count(), told)
    };
    let (untraced, told) = launches("untraced");
    assert!(untraced > 10 && told.contains("\"dmr_mark\""), "{told}");
    assert!(!folder.path().join("trace.wtrc").exists());

    let (traced, told) = launches("predict beside raw");
    assert_eq!(traced, untraced, "{told}");
    let trace = TraceFile::open(folder.path().join("trace.wtrc")).unwrap();
    assert_eq!((trace.launches().len(), trace.metadata().tracks.len()), (traced, 2));
}

#[test]
fn what_cannot_be_done_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&[&str], &str); 11] = [
        (&["whole", "--device=sim", "--codec=zip"], "there is no codec `zip`; there are `untraced` and"),
        (
            &["whole-run", "walk", "--way=raw", "--kind=short", "--device=sim", "--out=."],
            "there is no `walk`; there are `fractal 2048",
        ),
        (&["bench", "--device=sim", "--codec=zip"], "there is no codec `zip`"),
        (
            &["check", "--device=sim", "--quick", "--programs=fractle"],
            "the programs are fractal, nbody, mis, mst, dmr, matmul, stress\n",
        ),
        (&["fidelity", "--device=sim"], "the simulator has none: run it with --device cuda"),
        (
            &["fidelity", "--programs=walk"],
            "the programs are fractal, nbody, matmul, stress, dmr, mis, mst\n",
        ),
        (
            &["fidelity-run", "walk", "untraced", "--out=."],
            "there is no `walk`; there are `fractal 1024 x 1024",
        ),
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

/// A folder of programs that answer as the CUDA baselines do, or not.
#[cfg(unix)]
fn baselines(fractal: &str) -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    // The number of sources comes after the number of runs, and only where not all bodies attract.
    let nbody = "test $1,$5 = 1024,200 -o $1 -lt 1024 -a -z \"$5\" && echo nbody,$1,$2,$3,$4,0.25,0.125";
    for (name, script) in [("fractal", fractal), ("nbody", nbody), ("matmul", "echo matmul,$1,$2,0.75,0.5")] {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

#[cfg(unix)]
#[test]
fn a_baseline_sets_both_languages_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let run = |cuda: Option<&Path>| {
        let mut command = tool();
        command.args(["baseline", "--device=sim", "--quick", "--runs=2", "--commit=abc", "--out"]);
        command.arg(folder.path());
        if let Some(cuda) = cuda {
            command.arg("--cuda").arg(cuda);
        }
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(run(None), (Some(0), String::new()));
    let csv = text(folder.path(), "baseline.csv");
    // Three pictures, three sets of bodies and a matrix, in Rust only; the steps of a picture are its work.
    assert_eq!((csv.lines().count(), csv.matches(",rust,2,").count()), (8, 7), "{csv}");
    let steps: Vec<&str> = csv.lines().skip(1).map(|line| line.rsplit(',').next().unwrap()).collect();
    assert!(steps[..3].iter().all(|steps| steps.parse::<u64>().unwrap() > 128 * 128), "{csv}");

    let sums = format!("case $2 in 64) s={};; 128) s={};; *) s={};; esac", steps[0], steps[1], steps[2]);
    let same = baselines(&format!("{sums}; echo fractal,$1,$2,$3,$4,0.5,0.25,$s"));
    assert_eq!(run(Some(same.path())), (Some(0), String::new()));
    let table = text(folder.path(), "baseline.md");
    assert_eq!((table.matches(" 500 us |").count(), table.matches("yes").count()), (3, 3), "{table}");
    let csv = text(folder.path(), "baseline.csv");
    let times = |median: &str| csv.matches(&format!(",cuda,2,{median},")).count();
    assert_eq!((times("0.0005"), times("0.00025"), times("0.00075")), (3, 3, 1), "{csv}");

    let other = baselines("echo fractal,$1,$2,$3,$4,0.5,0.25,1");
    let (code, errors) = run(Some(other.path()));
    assert_eq!((code, errors.lines().count()), (Some(3), 3), "{errors}");
    assert!(errors.contains("did not do the same work"), "{errors}");

    for (script, words) in [("exit 1", "fractal failed"), ("echo hello", "printed `hello`")] {
        let (code, errors) = run(Some(baselines(script).path()));
        assert_eq!(code, Some(1));
        assert!(errors.contains(words), "{errors}");
    }
    let (code, errors) = run(Some(Path::new("no such folder")));
    assert_eq!(code, Some(1));
    assert!(errors.contains("compile it from workloads/baseline/fractal.cu"), "{errors}");
}
