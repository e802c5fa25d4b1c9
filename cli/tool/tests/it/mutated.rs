//! Damaged traces as input of every command that reads traces.
#![cfg(unix)]

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use warptrace_fuzz::{Random, corpus, damaged};

use crate::support::{Folder, text};

/// Inputs of each corpus when commands run in this process.
const INPUTS: u64 = 4;
/// Corpora of seeds: all kinds; times; accesses and labels; runs of equal warps.
const CORPORA: [&str; 4] = ["open_file", "times", "data", "runs"];
/// Inputs that once caused failures: two launches with one number, and frames that announce 2^64 events.
const FOUND: [u64; 3] = [1413, 2080, 4809];
/// Commands that take the trace as their last argument.
const COMMANDS: [&[&str]; 23] = [
    &["info"],
    &["info", "--json"],
    &["verify", "--json"],
    &["decode"],
    &["decode", "--format", "jsonl"],
    &["top"],
    &["lines"],
    &["loops"],
    &["warps"],
    &["paths"],
    &["waits", "--json"],
    &["accesses"],
    &["accesses", "--json"],
    &["values"],
    &["values", "--json"],
    &["decode", "--accesses"],
    &["edges"],
    &["timeline"],
    &["stats", "--json"],
    &["report", "-o", "-"],
    &["export", "--to", "perfetto", "-o", "-"],
    &["export", "--to", "firefox", "-o", "-"],
    &["export", "--to", "lcov", "-o", "-"],
];

fn write(folder: &Folder, name: &str, inputs: impl Iterator<Item = u64>) -> Vec<PathBuf> {
    let seeds = corpus(name).unwrap();
    let write = |input| {
        let mut random = Random::new(input);
        let bytes = damaged(&seeds[random.below(seeds.len())].1, &mut random);
        let path = folder.at(&format!("{name}-{input}.wtrc"));
        fs::write(&path, bytes).unwrap();
        path
    };
    inputs.map(write).collect()
}

fn finding(command: &[&str], path: &Path) -> Option<String> {
    let ran = catch_unwind(|| warptrace_cli::in_process(&[command, &[text(path)]].concat()));
    match ran {
        Ok((0 | 1 | 3, ..)) => None,
        Ok((code, _, errors)) => Some(format!("{command:?} {}: {code}: {errors}", path.display())),
        Err(_) => Some(format!("{command:?} {}: a panic", path.display())),
    }
}

fn check(name: &str, more: &[u64]) {
    let folder = Folder::new();
    let paths = write(&folder, name, more.iter().copied().chain(0..INPUTS));
    let found: Vec<String> = paths
        .iter()
        .flat_map(|path| COMMANDS.iter().filter_map(move |command| finding(command, path)))
        .collect();
    assert!(found.is_empty(), "{} findings:\n{}", found.len(), found.join("\n"));
}

#[test]
fn every_reading_command_ends_in_order() {
    check(CORPORA[0], &FOUND);
}

#[test]
fn every_reading_command_ends_in_order_with_times() {
    check(CORPORA[1], &[]);
}

#[test]
fn every_reading_command_ends_in_order_with_accesses() {
    check(CORPORA[2], &[]);
}

#[test]
fn every_reading_command_ends_in_order_with_runs() {
    check(CORPORA[3], &[]);
}

mod full {
    use std::process::{Command, Stdio};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use assert_cmd::cargo::cargo_bin;

    use super::*;
    use crate::support::compare_with_reference;

    /// Default number of inputs of each corpus. `WARPTRACE_FUZZ_INPUTS` sets another number,
    /// `WARPTRACE_FUZZ_FIRST` the number of the first input.
    const INPUTS: u64 = 32;

    fn number(variable: &str, otherwise: u64) -> u64 {
        let said = std::env::var(variable).ok();
        said.map_or(otherwise, |number| number.parse().expect("a number"))
    }

    /// Returns the failure of a command on a file, with 2 GiB of memory and 20 s of CPU time.
    fn finding(command: &[&str], path: &Path) -> Option<String> {
        let output = Command::new("bash")
            .args(["-c", "ulimit -v 2097152; ulimit -t 20; exec \"$@\"", "bash"])
            .arg(cargo_bin("warptrace"))
            .args(command)
            .arg(path)
            .stdout(Stdio::null())
            .env("RAYON_NUM_THREADS", "2")
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let ends = matches!(output.status.code(), Some(0 | 1 | 3));
        (!ends || errors.contains("panicked"))
            .then(|| format!("{command:?} {}: {}: {errors}", path.display(), output.status))
    }

    #[test]
    fn every_reading_command_ends_and_the_reference_reader_agrees() {
        let folder = Folder::new();
        let (first, inputs) = (number("WARPTRACE_FUZZ_FIRST", 0), number("WARPTRACE_FUZZ_INPUTS", INPUTS));
        let range = first..first + inputs;
        let others = FOUND.into_iter().filter(|input| !range.contains(input));
        let mut paths = write(&folder, CORPORA[0], others.chain(range.clone()));
        CORPORA[1..].iter().for_each(|name| paths.extend(write(&folder, name, range.clone())));
        let next = AtomicUsize::new(0);
        let findings = Mutex::new(Vec::new());
        let run = || {
            while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                let found: Vec<String> =
                    COMMANDS.iter().filter_map(|command| finding(command, path)).collect();
                findings.lock().unwrap().extend(found);
            }
        };
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
                scope.spawn(run);
            }
        });
        let found = findings.into_inner().unwrap();
        let kept = |line: &String| line.lines().take(4).collect::<Vec<_>>().join("\n");
        let said = found.iter().map(kept).collect::<Vec<_>>().join("\n");
        assert!(found.is_empty(), "{} findings:\n{said}", found.len());
        compare_with_reference(&paths);
    }
}
