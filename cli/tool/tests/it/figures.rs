//! Figures of traces add up in every way, and causes equal those computed event by event.

use std::path::Path;

use warptrace_analysis::fuzzing::check_trace;
use warptrace_decoder::TraceFile;

use crate::support::{Folder, fixtures};

fn check(path: &Path) {
    // Shown if the check panics.
    println!("figures of {}", path.display());
    check_trace(&TraceFile::open(path).unwrap());
}

fn check_fixtures(fits: impl Fn(&str) -> bool) {
    let found: Vec<_> = fixtures().into_iter().filter(|(words, _)| fits(words)).collect();
    assert!(found.len() > 2, "{} traces", found.len());
    found.iter().filter_map(|(_, path)| path.as_deref()).for_each(check);
}

fn is_small(words: &str) -> bool {
    ![" 512 ", " 1000 ", " 2000", " 3000"].iter().any(|number| words.contains(number))
}

#[test]
fn of_fractals() {
    check_fixtures(|words| words.starts_with("fractal ") && is_small(words));
}

#[test]
fn of_independent_sets() {
    check_fixtures(|words| words.starts_with("mis "));
}

#[test]
fn of_walks() {
    check_fixtures(|words| words.starts_with("stress "));
}

#[test]
fn of_other_programs() {
    let others = ["fractal ", "mis ", "stress "];
    check_fixtures(|words| !others.iter().any(|program| words.starts_with(program)) && is_small(words));
}

#[test]
fn of_traces_of_other_kinds() {
    let folder = Folder::new();
    crate::schemas::traces(&folder).iter().for_each(|path| check(path));
}

mod full {
    use super::*;

    #[test]
    fn of_large_recordings() {
        check_fixtures(|words| !is_small(words));
    }
}
