//! Compares the tool with the Python reader, which was written from the specification of the format.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Folder, SMALL, compare_with_reference};

const STRESS: [&str; 4] = ["--walks", "64", "--rounds", "16"];

#[test]
fn programs_codecs_policies_and_windows() {
    let folder = Folder::new();
    let mut paths = Vec::new();
    let mut record = |program: &str, arguments: &[&str]| {
        let name = format!("{}.wtrc", paths.len());
        paths.push(folder.traced(program, &name, arguments));
    };
    for codec in ["raw", "ecl", "predict"] {
        record("fractal", &[&SMALL[..], &["--codec", codec]].concat());
        record("fractal", &[&SMALL[..], &["--codec", codec, "--times", "runs"]].concat());
        record("mis", &["--graph", "road:300", "--codec", codec, "--times", "blocks"]);
        for policy in ["stop", "ring", "stream"] {
            let less = if policy == "stream" { "64MiB" } else { "340KiB" };
            let options = ["--codec", codec, "--policy", policy, "--memory", less, "--dual"];
            record("stress", &[&STRESS[..], &options].concat());
            record("stress", &[&STRESS[..], &options[..6], &["--times", "all"]].concat());
        }
        record(
            "stress",
            &[&STRESS[..], &["--codec", codec, "--blocks", "1/2", "--warps", "1..", "--times", "blocks"]]
                .concat(),
        );
    }
    for more in [&["--zstd", "0"][..], &["--zstd", "19"], &["--launch", "1..3"]] {
        record("mis", &[&["--graph", "road:300"], more].concat());
    }
    compare_with_reference(&paths);
}

fn file_of_runs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../decoder/decode/tests/golden/runs-v2.wtrc")
}

#[test]
fn frames_of_runs() {
    compare_with_reference(&[file_of_runs()]);
}

/// Truncates a file and changes one of its bytes, each at this number of places.
fn check_damaged(places: usize) {
    let folder = Folder::new();
    let path = folder.traced("stress", "a.wtrc", &[&STRESS[..], &["--dual", "--times", "all"]].concat());
    let whole = fs::read(path).unwrap();
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut keep = |bytes: &[u8]| {
        let path = folder.at(&format!("{}.wtrc", paths.len()));
        fs::write(&path, bytes).unwrap();
        paths.push(path);
    };
    for place in 0..places {
        let at = whole.len() * place / places;
        keep(&whole[..at]);
        let mut changed = whole.clone();
        changed[at] ^= 0x11;
        keep(&changed);
    }
    keep(&[&whole[..], b"more"].concat());
    compare_with_reference(&paths);
}

#[test]
fn few_damaged_files() {
    check_damaged(4);
}

mod full {
    use super::*;

    #[test]
    fn damaged_files() {
        check_damaged(24);
    }
}
