//! The compiled kernels: do they assemble, is the untraced module free of the tracer, is each trace point there
//! once?
//!
//! Without a device compiler there are no kernels to look at, and each test says so.

mod listing;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use warptrace_build::{ARCHITECTURES, Ptxas, VARIANTS};
use warptrace_host::PtxModule;
use warptrace_workloads::{PTX, ProgramInfo, dmr, fractal, mis, mst, nbody};

const PROGRAMS: [ProgramInfo; 5] =
    [fractal::PROGRAM, nbody::PROGRAM, mis::PROGRAM, mst::PROGRAM, dmr::PROGRAM];

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
        let entries: BTreeSet<&str> = listing::entries(module.text).into_keys().collect();
        assert_eq!(entries, kernels, "kernels of `{}`", module.variant);
    }
}

#[test]
fn every_variant_assembles_for_every_architecture() {
    let Some(modules) = modules() else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace's root");
    let ptxas = match Ptxas::find(root) {
        Ok(ptxas) => ptxas,
        Err(error) => {
            eprintln!("skipped: {error}");
            return;
        }
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut work = Vec::new();
    for module in modules {
        let path = folder.path().join(format!("{}.ptx", module.variant));
        std::fs::write(&path, module.text).expect("a file in a temporary folder");
        work.extend(ARCHITECTURES.map(|architecture| (path.clone(), architecture)));
    }
    let (next, refused) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((path, architecture)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = ptxas.assemble(path, architecture) {
                        refused.lock().unwrap().push(format!("{}: {error}", path.display()));
                    }
                }
            });
        }
    });
    let refused = refused.into_inner().unwrap();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn the_untraced_module_holds_nothing_of_the_tracer() {
    let Some(modules) = modules() else { return };
    let untraced =
        modules.iter().find(|module| module.variant == "untraced").expect("the variant is compiled");
    for word in ["WARPTRACE_", "warptrace_state", "warptrace_dynamic", "warptrace_format", "activemask"] {
        assert!(!untraced.text.contains(word), "the untraced module contains `{word}`");
        let everywhere = traced(modules).all(|module| module.text.contains(word));
        assert!(everywhere || word == "warptrace_dynamic", "`{word}` says nothing: no traced module has it");
    }
}

/// A trace point reads the active lanes a fixed number of times, and so does the rest of the tracer in a kernel.
/// Two kernels tell these numbers, and all kernels must agree with them.
#[test]
fn no_trace_point_is_lost_merged_or_copied() {
    let Some(modules) = modules() else { return };
    let points_of = |kernel: &str| {
        let program = PROGRAMS.iter().find(|program| program.kernels.iter().any(|(name, _)| *name == kernel));
        source::trace_points(program.expect("a program has the kernel"), kernel)
    };
    for module in traced(modules) {
        let reads: BTreeMap<&str, usize> = listing::entries(module.text)
            .into_iter()
            .map(|(kernel, body)| (kernel, body.matches("activemask").count()))
            .collect();
        let (few, many) = ("nbody_integrate", "fractal");
        let (few_points, many_points) = (points_of(few).len(), points_of(many).len());
        let per_point = (reads[many] - reads[few]) / (many_points - few_points);
        let per_kernel = reads[few] - per_point * few_points;
        assert!(per_point >= 1, "`{}`: trace points do not read the active lanes", module.variant);
        for (kernel, found) in reads {
            let points = points_of(kernel);
            let names: Vec<&str> = points.iter().map(|point| point.name).collect();
            let unrolled: usize =
                UNROLLED.iter().filter(|(name, _)| names.contains(name)).map(|(_, rounds)| rounds - 1).sum();
            let expected = per_kernel + per_point * names.len();
            assert!(
                found == expected || found == expected + per_point * unrolled,
                "`{}`: {kernel} reads the active lanes {found} times; its {} trace points should, {expected} times: {names:?}",
                module.variant,
                names.len()
            );
        }
    }
}

/// `ecl` hands the location to a function, so that the id stands in the PTX as a constant.
#[test]
fn each_trace_point_records_its_own_location() {
    let Some(modules) = modules() else { return };
    for module in traced(modules).filter(|module| module.variant.starts_with("ecl")) {
        let entries = listing::entries(module.text);
        for program in &PROGRAMS {
            for (kernel, _) in program.kernels {
                let mut found: BTreeMap<u16, usize> = BTreeMap::new();
                for id in listing::recorded_locations(entries[kernel]) {
                    *found.entry(id).or_default() += 1;
                }
                for point in source::trace_points(program, kernel) {
                    let copies = found.remove(&point.id);
                    let unrolled =
                        UNROLLED.iter().find(|(name, _)| *name == point.name).map(|(_, rounds)| *rounds);
                    assert!(
                        copies == Some(1) || (copies.is_some() && copies == unrolled),
                        "`{}`: {kernel} records {} at {copies:?} places",
                        module.variant,
                        point.name
                    );
                }
                assert!(
                    found.is_empty(),
                    "`{}`: {kernel} records locations not its own: {found:?}",
                    module.variant
                );
            }
        }
    }
}

#[test]
fn every_declared_trace_point_is_in_some_kernel() {
    for program in &PROGRAMS {
        let used: BTreeSet<u16> = program
            .kernels
            .iter()
            .flat_map(|(kernel, _)| source::trace_points(program, kernel))
            .map(|point| point.id)
            .collect();
        let declared: BTreeSet<u16> =
            program.points.iter().flat_map(|table| table.points).map(|point| point.id).collect();
        assert_eq!(used, declared, "{}", program.name);
    }
}
