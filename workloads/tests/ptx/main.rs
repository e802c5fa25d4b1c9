//! The compiled kernels: is the untraced module free of the tracer, is each trace point there once? (`cargo xtask test` assembles them for every
//! architecture.)
//!
//! Without a device compiler there are no kernels to look at, and each test says so.

mod listing;
mod source;

use std::collections::{BTreeMap, BTreeSet};

use warptrace_build::VARIANTS;
use warptrace_host::PtxModule;
use warptrace_workloads::{PTX, ProgramInfo, dmr, fractal, matmul, mis, mst, nbody, stress};

const PROGRAMS: [ProgramInfo; 7] = [
    fractal::PROGRAM,
    nbody::PROGRAM,
    mis::PROGRAM,
    mst::PROGRAM,
    dmr::PROGRAM,
    matmul::PROGRAM,
    stress::PROGRAM,
];

/// Trace points in loops of a constant number of rounds, which every lane of the warp takes: LLVM may unroll them in
/// full. Each copy is then one round, and records what the round in a loop would.
const UNROLLED: [(&str, usize); 1] = [("LANE_STEP", 5)];

/// The modules, or `None` after saying why there are none.
fn modules() -> Option<&'static [PtxModule]> {
    if PTX.is_empty() {
        eprintln!("skipped: built without a device compiler, so there is no PTX; run `cargo xtask setup`");
        return None;
    }
    Some(PTX)
}

fn traced(modules: &'static [PtxModule]) -> impl Iterator<Item = &'static PtxModule> {
    modules.iter().filter(|module| module.variant != "untraced")
}

#[test]
fn every_variant_is_there() {
    let Some(modules) = modules() else { return };
    let names: Vec<_> = modules.iter().map(|module| module.variant).collect();
    assert_eq!(names, VARIANTS.iter().map(|variant| variant.name).collect::<Vec<_>>());
    let kernels: BTreeSet<&str> =
        PROGRAMS.iter().flat_map(|program| program.kernels).map(|kernel| kernel.0).collect();
    for module in modules {
        let mut entries: BTreeSet<&str> = listing::entries(module.text).into_keys().collect();
        // What warps have left is merged and encoded by kernels of the tracer.
        for (own, is_there) in [
            ("warptrace_merge", module.variant != "untraced"),
            ("warptrace_encode", module.variant != "untraced"),
            ("warptrace_encode_together", module.variant.contains("predict")),
        ] {
            assert_eq!(entries.remove(own), is_there, "{own} of `{}`", module.variant);
        }
        assert_eq!(entries, kernels, "kernels of `{}`", module.variant);
    }
}

#[test]
fn the_untraced_module_holds_nothing_of_the_tracer() {
    let Some(modules) = modules() else { return };
    let untraced =
        modules.iter().find(|module| module.variant == "untraced").expect("the variant is compiled");
    for word in [
        "WARPTRACE_",
        "warptrace_none",
        "warptrace_dynamic",
        "warptrace_drain",
        "warptrace_due",
        "warptrace_claim",
        "warptrace_lose",
        "warptrace_merge",
        "warptrace_encode",
        "activemask",
    ] {
        assert!(!untraced.text.contains(word), "the untraced module contains `{word}`");
        let everywhere = traced(modules).all(|module| module.text.contains(word));
        assert!(everywhere, "`{word}` says nothing: not every traced module has it");
    }
    for word in ["warptrace_twin", "warptrace_counts", "warptrace_twin_counts"] {
        assert!(!untraced.text.contains(word), "the untraced module contains `{word}`");
        assert!(traced(modules).any(|module| module.text.contains(word)), "no module has `{word}`");
    }
    // Inlined without a trace in some traced modules, but nothing of it may be here either.
    assert!(!untraced.text.contains("warptrace_format"), "the untraced module contains the codecs");
}

#[test]
fn only_states_in_shared_memory_take_some() {
    let Some(modules) = modules() else { return };
    for module in traced(modules) {
        let is_global = module.variant.ends_with("-global");
        for (word, is_there) in [
            (".shared .align 16 .b8 warptrace_none", !is_global),
            (".global .align 16 .b8 warptrace_none", is_global),
            ("%dynamic_smem_size", !is_global),
        ] {
            assert_eq!(module.text.contains(word), is_there, "`{word}` in `{}`", module.variant);
        }
    }
}

/// Stands for the vote at a trace point, among the tracer's functions.
const VOTE: &str = "the vote";

/// Where a trace point is, there is a vote on its location, and in some modules functions are called that are not inlined. So the id stands in the PTX as a
/// constant, once for each place in the source and each such function: no trace point is lost, merged or copied.
#[test]
fn each_trace_point_records_its_own_location() {
    let Some(modules) = modules() else { return };
    for module in traced(modules) {
        let entries = listing::entries(module.text);
        let [counted, dual] = ["counted", "dual"].map(|feature| module.variant.contains(feature));
        // Each function, whether it is called there, and whether at the ends of counted loops alone.
        let functions = [
            (VOTE, true, false),
            ("warptrace_twin", dual, false),
            ("warptrace_counts", counted, true),
            ("warptrace_twin_counts", counted && dual, true),
        ];
        for (program, kernel) in PROGRAMS
            .iter()
            .flat_map(|program| program.kernels.iter().map(move |(kernel, _)| (program, kernel)))
        {
            for (function, is_called, at_loops) in functions {
                let mut found: BTreeMap<u16, usize> = BTreeMap::new();
                let body = entries[kernel];
                let ids = if function == VOTE {
                    listing::locations_voted_on(body)
                } else {
                    listing::locations_for(function, body)
                };
                for id in ids {
                    *found.entry(id).or_default() += 1;
                }
                let mut written: BTreeMap<u16, (&str, usize)> = BTreeMap::new();
                for place in source::places(program, kernel, counted) {
                    if is_called && (place.ends_loop || !at_loops) {
                        written.entry(place.point.id).or_insert((place.point.name, 0)).1 += 1;
                    }
                }
                for (id, (name, places)) in written {
                    let copies = found.remove(&id).unwrap_or(0);
                    let rounds =
                        UNROLLED.iter().find(|(unrolled, _)| *unrolled == name).map_or(1, |all| all.1);
                    assert!(
                        copies == places || copies == places * rounds,
                        "`{}`: {kernel} hands {name} to {function} at {copies} places, its source at {places}",
                        module.variant,
                    );
                }
                assert!(
                    found.is_empty(),
                    "`{}`: {kernel} hands locations not its own to {function}: {found:?}",
                    module.variant
                );
            }
        }
    }
}

/// What ptxas puts a `YIELD` before, and what lets lanes part from their group: atomics that answer something, strong and volatile loads, calls.
const NOT_AT_TRACE_POINTS: [&str; 5] = ["atom.", "ld.volatile.", "ld.relaxed.", "ld.acquire.", "call "];

#[test]
fn what_trace_points_call_lets_no_waiting_lanes_go() {
    let Some(modules) = modules() else { return };
    for module in traced(modules) {
        let functions = listing::functions(module.text);
        let [counted, dual] = ["counted", "dual"].map(|feature| module.variant.contains(feature));
        for (name, is_there) in [
            ("warptrace_due", true),
            ("warptrace_counts", counted),
            ("warptrace_twin", dual),
            ("warptrace_twin_counts", counted && dual),
        ] {
            assert_eq!(functions.contains_key(name), is_there, "{name} in `{}`", module.variant);
            let Some(body) = functions.get(name) else { continue };
            for word in NOT_AT_TRACE_POINTS {
                assert!(!body.contains(word), "{name} of `{}` has `{word}`", module.variant);
            }
        }
        // The one that comes after them, if areas are used up, does.
        assert!(functions["warptrace_claim"].contains("atom."), "a claim of `{}`", module.variant);
    }
}

#[test]
fn every_declared_trace_point_is_in_some_kernel() {
    for program in &PROGRAMS {
        let used: BTreeSet<u16> = program
            .kernels
            .iter()
            .flat_map(|(kernel, _)| source::places(program, kernel, false))
            .map(|place| place.point.id)
            .collect();
        let declared: BTreeSet<u16> =
            program.points.iter().flat_map(|table| table.points).map(|point| point.id).collect();
        assert_eq!(used, declared, "{}", program.name);
    }
}
