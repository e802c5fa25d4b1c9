//! Runs a fixed number of inputs for each target.

use std::panic::{AssertUnwindSafe, catch_unwind};

use warptrace_fuzz::{Random, TARGETS, corpus};

/// Runs a target on its corpus and on `inputs` derived inputs.
fn run(name: &str, inputs: u64) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("there is such a target");
    let corpus = corpus(name).expect("the corpus is in the tree");
    for (_, seed) in &corpus {
        (target.run)(seed);
    }
    for number in 0..inputs {
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

/// Returns the number of inputs in the fast tier. Inputs with times take longer.
fn few(name: &str) -> u64 {
    if name == "times" { 16 } else { 400 }
}

/// Declares a test for each target: few inputs, and in `full` 2,000 inputs or `WARPTRACE_FUZZ_INPUTS`.
macro_rules! tests {
    ($($name:ident: $run:path, $damage:path;)*) => {
        $(
            #[test]
            fn $name() {
                run(stringify!($name), few(stringify!($name)));
            }
        )*

        mod full {
            use super::run;

            fn inputs() -> u64 {
                let said = std::env::var("WARPTRACE_FUZZ_INPUTS").ok();
                said.map_or(2_000, |number| number.parse().expect("WARPTRACE_FUZZ_INPUTS is a number"))
            }

            $(
                #[test]
                fn $name() {
                    run(stringify!($name), inputs());
                }
            )*
        }
    };
}
warptrace_fuzz::with_targets!(tests);
