//! NVIDIA's assembler accepts all kernels for every architecture, within the limits on registers.

use warptrace_build::ARCHITECTURES;
use warptrace_ptx::splice::{LogKind, Recording};

use super::stored_code::CodeStore;
use super::{Assembled, DISTINCT, FEW_BYTES, RECORDINGS, ROOM, ptx, store};

/// All recordings for one architecture; for each of the others, one recording; for the distinct ones, one ring.
fn work() -> Vec<(&'static str, Recording)> {
    let others = DISTINCT.into_iter().filter(|architecture| *architecture != "sm_90");
    let similar = ARCHITECTURES.into_iter().filter(|architecture| !DISTINCT.contains(architecture));
    let kept = RECORDINGS.map(|recording| ("sm_90", recording)).into_iter().chain(others.zip(RECORDINGS));
    let kept = kept.chain(similar.zip(RECORDINGS));
    let rings = DISTINCT.into_iter().zip(RECORDINGS.into_iter().cycle());
    let ring = |(architecture, recording)| (architecture, Recording { logs: LogKind::Ring, ..recording });
    kept.chain(rings.map(ring)).collect()
}

pub(crate) fn check(store: &CodeStore) {
    let Some(ptx) = ptx() else { return };
    let mut spills = Vec::new();
    println!("registers, untraced and traced:");
    for (architecture, recording) in work() {
        let Some(assembled) = Assembled::new(store, ptx, recording, architecture) else { return };
        let Recording { counting, dual, logs, .. } = recording;
        print!("{architecture}, counting {counting:?}, dual {dual}, logs {logs:?}:");
        for (kernel, limit) in &assembled.limits {
            let [untraced, traced] = assembled.both(kernel);
            assert!(untraced.registers > 0 && traced.registers > 0, "{kernel}: {untraced:?}, {traced:?}");
            print!(" {kernel} {} {}", untraced.registers, traced.registers);
            assert!(traced.registers <= *limit, "{kernel}: {traced:?}, at most {limit} registers");
            let allowed = if (limit - ROOM..=*limit).contains(&untraced.registers) { FEW_BYTES } else { 0 };
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

#[test]
fn all_kernels_assemble_without_spills_of_the_tracer() {
    assert_eq!(work().len(), 17);
    check(&store());
}
