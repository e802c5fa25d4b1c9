//! Kernels of nvcc.

use warptrace_abi::recording::Spaces;
use warptrace_ptx::splice::Placement;

use super::{Case, Traced};
use crate::case::Shape;
use crate::foreign::{KERNELS, OUTPUT, TEXTS, launch, memory, shape};

fn case(kernel: &str, shape: Shape, seed: u64) -> Case<'_> {
    let parameters = launch(kernel, shape, 0, None).parameters;
    Case { kernel, shape, parameters, memory: memory(seed), output: OUTPUT, dynamic_shared: 0 }
}

#[test]
fn sites_of_nvcc_kernels_record_each_access() {
    let (mut accesses, mut entries, mut derived) = (0, 0, 0);
    for (name, text) in TEXTS {
        for placement in [None, Some(Placement::Shared)] {
            let architecture = if name == "flow-100" { 100 } else { 80 };
            let traced = Traced::new(text, Spaces::ALL, placement, architecture);
            assert_eq!(traced.marked.unrecorded, []);
            for kernel in KERNELS {
                for seed in 0..3 {
                    let outcome = traced.check(&case(kernel, shape(kernel), seed), seed);
                    assert_eq!((outcome.lost, outcome.unmatched), (0, 0), "{name}, {kernel}");
                    accesses += outcome.accesses;
                    entries += outcome.entries;
                    derived += outcome.derived;
                }
            }
        }
    }
    assert!(accesses > 5_000 && entries > 1_000 && derived > 100, "{accesses} {entries} {derived}");
}

#[test]
fn sites_with_little_memory_record_a_beginning() {
    let (mut lost, mut known, mut unmatched) = (0, 0, 0);
    for (name, text) in TEXTS {
        let traced = Traced::new(text, Spaces::ALL, None, if name == "flow" { 80 } else { 90 });
        for kernel in KERNELS {
            for (seed, segments) in (0..4).zip([0, 2, 9, 40]) {
                let shape = Shape { first: 8, segments, clock: seed << 34, ..shape(kernel) };
                let outcome = traced.check(&case(kernel, shape, seed), seed);
                assert_eq!(outcome.known + outcome.unmatched + outcome.lost, outcome.accesses);
                lost += outcome.lost;
                known += outcome.known;
                unmatched += outcome.unmatched;
            }
        }
    }
    assert!(lost > 1_000 && known > 1_000 && unmatched > 100, "{lost} {known} {unmatched}");
}

#[test]
fn only_the_spaces_that_are_asked_for_have_sites() {
    let (_, text) = TEXTS[0];
    let shared = Traced::new(text, Spaces { shared: true, ..Spaces::NONE }, None, 90);
    assert!(!shared.marked.sites.is_empty());
    assert!(shared.marked.sites.iter().all(|site| &*site.function == "block_sum"));
    let outcome = shared.check(&case("block_sum", shape("block_sum"), 3), 3);
    assert!(outcome.accesses > 0);
    // A kernel without sites has a log of data all the same.
    assert_eq!(shared.check(&case("escape", shape("escape"), 3), 3).accesses, 0);
}
