//! Kernels of nvcc.

use warptrace_abi::recording::Spaces;
use warptrace_ptx::splice::Placement;

use super::super::Extent;
use super::super::case::Shape;
use super::super::foreign::{KERNELS, OUTPUT, TEXTS, launch, memory, shape};
use super::{Case, Traced};
use warptrace_abi::log::FirstSegments;

fn case(kernel: &str, shape: Shape, seed: u64) -> Case<'_> {
    let parameters = launch(kernel, shape, 0, None).parameters;
    Case { kernel, shape, parameters, memory: memory(seed), output: OUTPUT, dynamic_shared: 0 }
}

in_both_tiers! {
    sites_of_nvcc_kernels_record_each_access: check_each_access;
    sites_with_little_memory_record_a_beginning: check_little_memory;
}

fn seeds(extent: Extent, number: usize, all: u64) -> impl Iterator<Item = u64> {
    (0..all).filter(move |seed| extent == Extent::Full || seed % 3 == number as u64 % 3)
}

fn check_each_access(extent: Extent) {
    let (mut accesses, mut entries, mut derived) = (0, 0, 0);
    for (number, (name, text)) in TEXTS.into_iter().enumerate() {
        let placements = [None, Some(Placement::Shared)];
        let placements =
            if extent == Extent::Full { &placements[..] } else { &placements[number % 2..][..1] };
        for placement in placements.iter().copied() {
            let architecture = if name == "flow-100" { 100 } else { 80 };
            let traced = Traced::new(text, Spaces::ALL, placement, architecture);
            assert_eq!(traced.marked.unrecorded, []);
            for (number, kernel) in KERNELS.into_iter().enumerate() {
                for seed in seeds(extent, number, 3) {
                    let outcome = traced.check(&case(kernel, shape(kernel), seed), seed);
                    assert_eq!((outcome.lost, outcome.unmatched), (0, 0), "{name}, {kernel}");
                    accesses += outcome.accesses;
                    entries += outcome.entries;
                    derived += outcome.derived;
                }
            }
        }
    }
    let least = extent.least(1_000);
    assert!(accesses > 5 * least && entries > least, "{accesses} {entries}");
    assert!(derived > extent.least(100), "{derived}");
}

fn check_little_memory(extent: Extent) {
    let (mut lost, mut known, mut unmatched) = (0, 0, 0);
    for (name, text) in TEXTS {
        let traced = Traced::new(text, Spaces::ALL, None, if name == "flow" { 80 } else { 90 });
        for (number, kernel) in KERNELS.into_iter().enumerate() {
            for seed in seeds(extent, number, 4) {
                let segments = [0, 2, 9, 40][seed as usize];
                let shape = Shape {
                    first: FirstSegments::of_streams(8),
                    segments,
                    clock: seed << 34,
                    ..shape(kernel)
                };
                let outcome = traced.check(&case(kernel, shape, seed), seed);
                assert_eq!(outcome.known + outcome.unmatched + outcome.lost, outcome.accesses);
                lost += outcome.lost;
                known += outcome.known;
                unmatched += outcome.unmatched;
            }
        }
    }
    let least = extent.least(1_000);
    assert!(lost > least && known > least && unmatched > extent.least(100), "{lost} {known} {unmatched}");
}

#[test]
fn only_the_spaces_that_are_asked_for_have_sites() {
    let (_, text) = TEXTS[0];
    let shared = Traced::new(text, Spaces { shared: true, ..Spaces::NONE }, None, 90);
    assert!(!shared.marked.sites.is_empty());
    assert!(shared.marked.sites.iter().all(|site| &*site.function == "block_sum"));
    let outcome = shared.check(&case("block_sum", shape("block_sum"), 3), 3);
    assert!(outcome.accesses > 0);
    assert_eq!(shared.check(&case("escape", shape("escape"), 3), 3).accesses, 0);
}
