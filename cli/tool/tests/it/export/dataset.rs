//! Several traces as one data set with Hive partitions, read by DuckDB, Polars and Spark, which skip data
//! that a query does not need.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use warptrace_format::file::Origin;

use crate::support::{Folder, metadata, read_with, refused, run, text, write_launch, writer};

/// The rank that is queried. Its file has several row groups; other ranks have fewer launches.
const RANK: u32 = 2;
const LAUNCHES: u32 = 64;
const FEW: u32 = 4;
const WARPS: u32 = 8;
const EVENTS: u32 = 300;
/// Rows of a launch: consecutive events always differ.
const ROWS: u64 = (WARPS * EVENTS) as u64;

fn mask(rank: u32, launch: u32, warp: u32, event: u32) -> u32 {
    (((rank + 1) << 8) | ((launch + warp * 3 + event) << 12) | (event % 2)) | 2
}

fn lanes(rank: u32, launch: u32) -> u64 {
    let of_warp =
        |warp| (0..EVENTS).map(move |event| u64::from(mask(rank, launch, warp, event).count_ones()));
    (0..WARPS).flat_map(of_warp).sum()
}

/// Writes a trace of a rank of a job, with `launches` launches.
fn written(path: &Path, job: Option<&str>, rank: Option<u32>, launches: u32) -> PathBuf {
    let mut metadata = metadata("step").with_location(1, "EVEN", "").with_location(2, "ODD", "");
    metadata.origin = Some(Box::new(Origin { job: job.map(Into::into), rank, ..Origin::default() }));
    let mut writer = writer(path, &metadata);
    for launch in 0..launches {
        let payload = |warp| -> Vec<u8> {
            let event = |event: u32| {
                let mask = mask(rank.unwrap_or(0), launch, warp, event);
                [&(1 + event as u16 % 2).to_le_bytes()[..], &mask.to_le_bytes()].concat()
            };
            (0..EVENTS).flat_map(event).collect()
        };
        let payloads: Vec<Vec<u8>> = (0..WARPS).map(payload).collect();
        let warps: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
        write_launch(&mut writer, launch, [WARPS, 32], &warps);
    }
    writer.finish().unwrap();
    path.to_owned()
}

fn launches(rank: u32) -> u32 {
    if rank == RANK { LAUNCHES } else { FEW }
}

fn write_ranks(folder: &Folder) {
    for rank in 0..4 {
        written(&folder.at(&format!("r.{rank}.wtrc")), Some("a/b=c d"), Some(rank), launches(rank));
    }
    written(&folder.at("z.wtrc"), None, None, FEW);
}

fn exported(folder: &Folder, files: &[&str], more: &[&str]) -> (i32, String, String, PathBuf) {
    let out = folder.at("set/");
    let (code, output, errors) =
        run(&[&["export"], files, &["--to", "parquet", "-o", text(&out)], more].concat());
    (code, output, errors, out)
}

fn tree(folder: &Path) -> Vec<String> {
    let mut found: Vec<String> = glob::glob(&format!("{}/**/*", text(folder)))
        .unwrap()
        .map(Result::unwrap)
        .filter(|path| path.is_file())
        .map(|path| text(path.strip_prefix(folder).unwrap()).to_owned())
        .collect();
    found.sort();
    found
}

/// Compares the output of a reader in `tests/readers/dataset.py` with the written data and with the tool.
fn check(found: &Value, folder: &Folder) {
    let top = super::json(&["top", text(&folder.at(""))]);
    let each = (0..4).chain([0]).flat_map(|rank| (0..launches(rank)).map(move |launch| lanes(rank, launch)));
    let rows = ROWS * u64::from(LAUNCHES + 4 * FEW);
    assert_eq!(found["all"], json!([rows, rows, each.sum::<u64>()]));
    assert_eq!(found["all"], json!([rows, top["totals"]["visits"], top["totals"]["lanes"]]));
    assert_eq!(found["launch"], json!([ROWS, lanes(RANK, 37)]));
    let mut ranks: Vec<Value> = (0..4)
        .map(|rank| json!(["a/b=c d", rank, format!("r.{rank}.wtrc"), ROWS * u64::from(launches(rank))]))
        .collect();
    ranks.push(json!([null, null, "z.wtrc", ROWS * u64::from(FEW)]));
    assert_eq!(found["ranks"], json!(ranks));
    // A rank is one file of five. A launch is in one row group of it.
    assert_eq!(found["files"], 1, "{found}");
    let [read, all] = [0, 1].map(|part| found["parts"][part].as_u64().unwrap());
    assert!(0 < read && read * 2 < all, "{found}");
}

#[test]
fn names_of_jobs_stay_within_the_folder_and_traces_are_apart() {
    let folder = Folder::new();
    // Two devices of a rank, and malicious names.
    let jobs = ["../../x", "a\u{7}%\\\"", "..", &"y".repeat(1000)];
    for (number, job) in jobs.iter().enumerate() {
        written(&folder.at(&format!("{number}.wtrc")), Some(job), Some(0), 1);
    }
    written(&folder.at("second device.wtrc"), Some(".."), Some(0), 1);
    let (code, _, errors, out) = exported(&folder, &[text(&folder.at("*.wtrc"))], &[]);
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("in names of folders; facts of the files have all of it"), "{errors}");
    let runs = tree(&out.join("runs"));
    let expected = [
        "job=../rank=0/trace=2.wtrc/runs.parquet",
        "job=../rank=0/trace=second%20device.wtrc/runs.parquet",
        "job=..%2F..%2Fx/rank=0/trace=0.wtrc/runs.parquet",
        &format!("job={}/rank=0/trace=3.wtrc/runs.parquet", "y".repeat(200)),
        "job=a%5Cu%7B7%7D%25%5C%22/rank=0/trace=1.wtrc/runs.parquet",
    ];
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(runs, expected);
    assert_eq!(tree(&out).len(), 8 * 5, "nothing but tables");
    let mut names = folder.files();
    names.sort();
    assert_eq!(names, ["0.wtrc", "1.wtrc", "2.wtrc", "3.wtrc", "second device.wtrc", "set"]);
}

#[test]
fn a_set_comes_into_being_whole_or_not_at_all_and_says_what_is_missing() {
    let folder = Folder::new();
    let files: Vec<PathBuf> =
        (0..3).map(|rank| written(&folder.at(&format!("{rank}.wtrc")), Some("j"), Some(rank), 3)).collect();
    let files: Vec<&str> = files.iter().map(|path| text(path)).collect();
    let fails = |files: &[&str], more: &[&str], words: &str| {
        let (code, output, errors, out) = exported(&folder, files, more);
        assert!(code == 1 && output.is_empty() && errors.contains(words), "{words}: {errors}");
        assert!(!out.exists(), "{words}");
    };
    fails(&[files[0], files[0]], &[], "is named twice");
    fails(&files, &["--kernel", "no"], "no trace has what was selected: ");
    let whole = fs::read(files[2]).unwrap();
    let mut damaged = whole.clone();
    let at = damaged.windows(4).position(|tag| tag == b"FRAM").unwrap() + 60;
    damaged[at] ^= 0xff;
    fs::write(files[2], damaged).unwrap();
    fails(&files, &[], "cannot export");
    // Messages about the truncated file and about the file without the launch name the file.
    fs::write(files[2], &whole[..whole.len() / 2]).unwrap();
    written(Path::new(files[1]), Some("j"), Some(1), 1);
    let (code, _, errors, out) = exported(&folder, &files, &["--launch", "1"]);
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("warning: 1.wtrc: left out: ") && errors.contains("2.wtrc: "), "{errors}");
    let found = tree(&out.join("launches"));
    assert_eq!(found[0], "job=j/rank=0/trace=0.wtrc/launches.parquet");
    assert!(found.iter().all(|path| !path.contains("rank=1")), "{found:?}");
    // Files of an earlier export stay, with a warning.
    let (code, _, errors, _) = exported(&folder, &files[1..2], &[]);
    assert_eq!(code, 0);
    assert_eq!(errors.matches(" files of other exports").count(), 1, "once for all tables: {errors}");
    for format in ["perfetto", "lcov"] {
        refused(
            &["export", files[0], files[1], "--to", format, "-o", text(&folder.at("out"))],
            "this format is of one trace, and these are 2",
        );
    }
    let out = folder.at("out.parquet");
    refused(
        &["export", files[0], files[1], "--to", "parquet", "-o", text(&out)],
        "tables of 2 traces are a folder",
    );
    assert!(!out.exists());
}

mod full {
    use std::process::Command;

    use super::*;

    #[test]
    fn duckdb_and_polars_read_a_set_and_only_what_is_asked_for() {
        let folder = Folder::new();
        write_ranks(&folder);
        let (code, output, errors, out) = exported(&folder, &[text(&folder.at(""))], &[]);
        assert_eq!((code, errors.as_str()), (0, ""));
        let first = format!("{}runs: 192,000 rows in 5 files, ", text(&out));
        assert!(output.starts_with(&first) && output.lines().count() == 8, "{output}");
        for reader in ["duckdb", "polars"] {
            if let Some(found) = read_with("dataset.py", reader, &[reader, text(&out)]) {
                check(&found, &folder);
            }
        }
    }

    /// Spark needs a gigabyte on disk, so it is not installed with the other readers.
    #[test]
    fn spark_reads_a_set_and_only_what_is_asked_for() {
        const INSTALL: &str = "python3 -m pip install --target .toolchain/spark pyspark";
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = || {
            let mut python = Command::new("python3");
            python.env("PYTHONPATH", root.join("../../.toolchain/spark")).env("PYTHONDONTWRITEBYTECODE", "1");
            python
        };
        for (mut command, missing) in [(python(), "pyspark"), (Command::new("java"), "java")] {
            let arguments =
                if missing == "java" { ["-version", "-version"] } else { ["-c", "import pyspark"] };
            if !command.args(arguments).output().is_ok_and(|output| output.status.success()) {
                eprintln!(
                    "skipped: there is no {missing}; Spark needs Java 17 or later and, at the root, `{INSTALL}`"
                );
                return;
            }
        }
        let folder = Folder::new();
        write_ranks(&folder);
        let (code, _, errors, out) = exported(&folder, &[text(&folder.at(""))], &[]);
        assert_eq!(code, 0, "{errors}");
        let script = root.join("tests/readers/dataset.py");
        let output = python().arg(script).args(["spark", text(&out)]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        check(&serde_json::from_slice(&output.stdout).unwrap(), &folder);
    }
}
