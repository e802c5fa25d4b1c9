//! NVIDIA's assembler takes all kernels, untraced and traced, for every architecture, and has registers for
//! all.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use warptrace_build::ARCHITECTURES;
use warptrace_ptx::Module;
use warptrace_ptx::splice::{LogKind, Recording, TRACED_SUFFIX};

use crate::usage::{self, Usage};
use crate::{RECORDINGS, assembler, kernels, ptx, registers, traced};

/// A kernel whose limit leaves recording fewer registers than this may spill: its limit is what lets as many
/// warps run at a time as its program counts on.
const ROOM: u32 = 16;
/// How much it may spill: stores and loads, in bytes of a lane; and where the compiler writes a later PTX,
/// whose votes name their lanes.
const FEW_BYTES: [u32; 2] = [128, 256];

/// All recordings for one architecture, and one recording for each of the others; with logs that are rings
/// one for each architecture.
fn work() -> Vec<(&'static str, Recording)> {
    let others = ARCHITECTURES.into_iter().filter(|architecture| *architecture != "sm_90");
    let kept = RECORDINGS.map(|recording| ("sm_90", recording)).into_iter().chain(others.zip(RECORDINGS));
    let rings = ARCHITECTURES.into_iter().zip(RECORDINGS.into_iter().cycle());
    let ring = |(architecture, recording)| (architecture, Recording { logs: LogKind::Ring, ..recording });
    kept.chain(rings.map(ring)).collect()
}

#[test]
fn all_kernels_assemble_without_spills_of_the_tracer() {
    let (Some(ptx), Some(assembler)) = (ptx(), assembler()) else { return };
    let folder = tempfile::tempdir().expect("a folder for the assembler");
    let work = work();
    assert_eq!(work.len(), 13);
    let limits: BTreeMap<_, _> = ARCHITECTURES
        .into_iter()
        .map(|architecture| (architecture, registers(&assembler, folder.path(), ptx, architecture)))
        .collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some((architecture, recording)) = work.get(number) else { break };
                    let path = folder.path().join(format!("{number}.ptx"));
                    let text = traced(ptx, *recording, architecture, &limits[architecture]);
                    std::fs::write(&path, text).expect("the folder takes files");
                    let said = assembler
                        .assemble(&path, architecture)
                        .unwrap_or_else(|error| panic!("{recording:?}: {error}"));
                    found.lock().expect("nothing panics meanwhile").insert(number, usage::parse(&said));
                }
            });
        }
    });
    let found = found.into_inner().expect("nothing has panicked");
    let names_lanes = Module::parse(ptx).expect("the compiler writes PTX").version() > (6, 3);
    let few_bytes = FEW_BYTES[usize::from(names_lanes)];
    let mut spills = Vec::new();
    println!("registers, untraced and traced:");
    for ((architecture, recording), usage) in work.iter().zip(found.values()) {
        let Recording { counting, dual, logs, .. } = recording;
        print!("{architecture}, counting {counting:?}, dual {dual}, logs {logs:?}:");
        for kernel in kernels() {
            let of = |name: &str| -> Usage {
                *usage.get(name).unwrap_or_else(|| panic!("{architecture}: `{name}` is not assembled"))
            };
            let (untraced, traced) = (of(kernel), of(&format!("{kernel}{TRACED_SUFFIX}")));
            assert!(untraced.registers > 0 && traced.registers > 0, "{kernel}: {untraced:?}, {traced:?}");
            print!(" {kernel} {} {}", untraced.registers, traced.registers);
            let limit =
                limits[architecture].iter().find(|(name, _)| *name == kernel).map_or(0, |found| found.1);
            assert!(traced.registers <= limit, "{kernel}: {traced:?}, at most {limit} registers");
            let allowed = if (limit - ROOM..=limit).contains(&untraced.registers) { few_bytes } else { 0 };
            if untraced.spill_bytes == 0 && traced.spill_bytes > allowed {
                spills.push(format!(
                    "{kernel} for {architecture}, {recording:?}: {} bytes",
                    traced.spill_bytes
                ));
            }
        }
        println!();
    }
    assert!(spills.is_empty(), "traced kernels spill:\n{}", spills.join("\n"));
}
