//! A fixed number of inputs for each target.

use std::panic::{AssertUnwindSafe, catch_unwind};

use warptrace_fuzz::{Random, TARGETS, corpus};

/// Inputs of each target, unless the variable says another number.
const INPUTS: u64 = 2_000;

fn inputs() -> u64 {
    let said = std::env::var("WARPTRACE_FUZZ_INPUTS").ok();
    said.map_or(INPUTS, |number| number.parse().expect("WARPTRACE_FUZZ_INPUTS is a number"))
}

fn run(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("there is such a target");
    let corpus = corpus(name).expect("the corpus is in the tree");
    for (_, seed) in &corpus {
        (target.run)(seed);
    }
    for number in 0..inputs() {
        let mut random = Random::new(number);
        let (path, seed) = &corpus[random.below(corpus.len())];
        let input = (target.damage)(seed, &mut random);
        if catch_unwind(AssertUnwindSafe(|| (target.run)(&input))).is_err() {
            let kept = std::env::temp_dir().join(format!("{name}-{number}"));
            std::fs::write(&kept, &input).expect("the input can be kept");
            panic!("{name}: input {number}, from {}: it is in {}", path.display(), kept.display());
        }
    }
}

#[test]
fn open_file() {
    run("open_file");
}

#[test]
fn analyse() {
    run("analyse");
}

#[test]
fn times() {
    run("times");
}

#[test]
fn codec_round_trip() {
    run("codec_round_trip");
}

#[test]
fn codec_decode() {
    run("codec_decode");
}

#[test]
fn column_round_trip() {
    run("column_round_trip");
}

#[test]
fn column_decode() {
    run("column_decode");
}

#[test]
fn ptx_parse() {
    run("ptx_parse");
}
