//! The commands on the simulator: check, bench, whole, fidelity.

use std::path::Path;

use assert_cmd::Command;
use warptrace_decoder::TraceFile;

/// One codec of each kind, together with `raw`, which is always included.
const SOME_CODECS: [&str; 2] = ["--codec=ecl", "--codec=predict"];

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

/// `all` is the number of codecs, `compared` the number of codecs with dual recordings.
fn check_lanes(codecs: &[&str], [all, compared]: [usize; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let check = ["check", "--device=sim", "--quick", "--programs=stress,matmul"];
    tool().args(check).args(codecs).arg("--out").arg(folder.path()).assert().success();
    let table = text(folder.path(), "check.md");
    let rows = |program: &str, words: &str| {
        table.lines().filter(|line| line.starts_with(&format!("| {program}")) && line.contains(words)).count()
    };
    assert_eq!(rows("stress", "lanes in all masks, as on the CPU"), all, "{table}");
    assert_eq!(rows("matmul", "events, as the formula says"), all, "{table}");
    for program in ["stress", "matmul"] {
        assert_eq!(rows(program, "decoded = raw"), compared, "{table}");
        assert!(rows(program, "lanes as on the CPU") > 0, "{table}");
        assert!(rows(program, "lanes in two orders") > 0, "{table}");
    }
    assert!(!table.contains("FAIL"), "{table}");
}

#[test]
fn stress_is_checked_lane_by_lane() {
    check_lanes(&SOME_CODECS, [3, 2]);
}

mod full {
    use super::*;

    /// Number of codecs, and number of codecs with dual recordings.
    const CODECS: [usize; 2] = [9, 5];

    #[test]
    fn a_check_with_all_codecs_passes_and_says_what_it_checked() {
        let folder = tempfile::tempdir().unwrap();
        let check = ["check", "--device=sim", "--quick", "--programs=fractal,mst", "--out"];
        tool().args(check).arg(folder.path()).assert().success();
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
    fn stress_is_checked_lane_by_lane_with_all_codecs() {
        check_lanes(&[], CODECS);
    }

    #[test]
    fn a_bench_with_all_codecs_becomes_tables_and_pictures_that_say_so() {
        let folder = tempfile::tempdir().unwrap();
        let bench = [
            "bench",
            "--device=sim",
            "--quick",
            "--programs=fractal,mis",
            "--commit=abc",
            "--runs=2",
            "--out",
        ];
        tool().args(bench).arg(folder.path()).assert().success();

        let csv = text(folder.path(), "bench.csv");
        let lines = csv.lines().filter(|line| line.contains(",fractal,"));
        // Three depths, each with two samples of the untraced run and of each codec, and four compressors.
        assert_eq!(lines.count(), 3 * (2 * (1 + CODECS[0]) + 4), "{csv}");
        assert!(
            csv.lines().skip(1).all(|line| line.contains(",abc,") && line.contains(",simulator,")),
            "{csv}"
        );
        let tables = text(folder.path(), "bench.md");
        for program in ["fractal", "mis", "all 2"] {
            let rows = tables
                .lines()
                .filter(|line| line.split('|').nth(1).is_some_and(|cell| cell.trim() == program));
            let overview = rows.filter(|line| line.split('|').count() == 13).collect::<Vec<_>>();
            assert_eq!(overview.len(), CODECS[0], "{program}: {overview:?}");
            assert!(overview.iter().all(|line| !line.contains(" - ")), "{overview:?}");
        }
        assert!(tables.contains("times are not performance"), "{tables}");

        let pictures: Vec<String> = (folder.path().read_dir().unwrap())
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with("figure-"))
            .collect();
        assert_eq!(pictures.len(), 6, "{pictures:?}");
        for name in ["kernel-time", "whole-time", "device-ratio", "ratio-at-rest"] {
            let picture = text(folder.path(), &format!("overview-{name}.svg"));
            assert!(picture.contains("not performance") && picture.contains("geometric means"), "{name}");
        }
        for name in &pictures {
            let picture = text(folder.path(), name);
            assert!(picture.contains("not performance") && picture.contains("128 x 128,"), "{name}");
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
    let variants: Vec<&str> = rows.iter().map(|row| row["variant"].as_str().unwrap()).collect();
    assert_eq!(variants, ["untraced", "predict", "raw"].repeat(2));
    for row in rows {
        let (traced, runs) = (row["variant"] != "untraced", row["runs"].as_array().unwrap());
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
    let mut names: Vec<_> =
        folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["whole.json", "whole.md"]);
}

#[test]
fn a_way_that_does_not_fit_into_memory_is_left_out_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let whole =
        ["whole", "--device=sim", "--quick", "--programs=fractal", "--rounds=1", "--max-memory=256KiB"];
    tool().args(whole).args(["--codec=predict", "--out"]).arg(folder.path()).assert().success();
    let table = text(folder.path(), "whole.md");
    let row = |variant: &str| {
        table.lines().find(|line| line.contains(variant)).unwrap_or_else(|| panic!("{table}"))
    };
    assert!(row("| untraced |").contains(" ms |"), "{table}");
    assert!(
        row("| predict  |").contains("left out: it needs ") && row("| predict").contains(" KiB"),
        "{table}"
    );
}

#[test]
fn policies_are_compared_in_one_amount_of_memory() {
    let folder = tempfile::tempdir().unwrap();
    let whole = ["whole", "--kind=policies", "--device=sim", "--quick", "--programs=stress,triad"];
    let whole = tool().args(whole).args(["--memory=1MiB", "--rounds=1", "--out"]).arg(folder.path()).assert();
    whole.success();
    let document: serde_json::Value = serde_json::from_str(&text(folder.path(), "whole.json")).unwrap();
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * (1 + 2 * 3));
    let mut lossy = 0;
    for row in rows.iter().filter(|row| row["variant"] != "untraced") {
        // With so little memory, some variants are refused; the error states how much they need.
        let Some(run) = row["runs"].as_array().unwrap().first() else {
            assert!(row["left_out"].as_str().unwrap().starts_with("it needs "), "{row}");
            continue;
        };
        let number = |name: &str| run[name].as_u64().unwrap();
        assert_eq!(number("attempted"), number("recorded") + number("lost"), "{row}");
        assert_eq!(number("memory"), 1 << 20, "{row}");
        let streams = row["variant"].as_str().unwrap().ends_with("/ stream");
        assert!(!streams || number("lost") == 0, "{row}");
        lossy += u32::from(number("lost") > 0);
    }
    let table = text(folder.path(), "whole.md");
    assert!(lossy > 0 && !table.contains("Results differ"), "{table}");
    for words in ["| predict / stream |", "|  1 MiB |", "not performance"] {
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
    // At least one turn: untraced, raw, and the selected codec.
    assert!(csv.lines().count() >= 4 && csv.contains(",ecl,") && !csv.contains(",predict,"), "{csv}");
    assert!(text(folder.path(), "bench.md").contains("fractal"));
}

#[test]
fn one_run_of_fidelity_leaves_its_trace_and_what_it_launched() {
    let folder = tempfile::tempdir().unwrap();
    let run = ["fidelity", "--subject=dmr r1M-like, 500 points, grid 4x64", "--mode"];
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
            &["whole", "--subject=walk", "--variant=raw", "--device=sim"],
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
            &["fidelity", "--subject=walk", "--mode=untraced"],
            "there is no `walk`; there are `fractal 1024 x 1024",
        ),
        (&["check", "--device=simulator"], "a device is"),
        (&["check", "--device=sim", "--quick", "--grid=0x32"], "a grid has at least one block"),
        (&["fidelity", "--against=no-such-file.csv"], "cannot read no-such-file.csv"),
        (&["bench", "--runs=0"], "0 is not in 1..=1000"),
    ];
    for (arguments, words) in cases {
        let output = tool().args(arguments).assert().failure();
        let said = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    let path = folder.path().join("bad.csv");
    std::fs::write(&path, "a,b\n1,2\n").unwrap();
    let output = tool().args(["fidelity", "--against"]).arg(&path).assert().failure();
    let said = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(said.contains("is no table of locations that `fidelity` wrote"), "{said}");
}

#[test]
fn the_simulator_is_compared_with_what_a_card_counted() {
    let folder = tempfile::tempdir().unwrap();
    let against = concat!(env!("CARGO_MANIFEST_DIR"), "/../../results/nvidia-h200/fidelity-locations.csv");
    let compare = ["fidelity", "--programs=matmul", "--against", against, "--out"];
    tool().args(compare).arg(folder.path()).assert().success();
    let page = text(folder.path(), "simulator-masks.md");
    assert!(page.contains("## Locations that differ by more than 5%") && page.contains("None."), "{page}");
}
