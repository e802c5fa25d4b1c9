//! Kernels that record lanes from a given visit of a location on.

use std::num::NonZeroU32;

use warptrace_format::chosen::After;
use warptrace_ptx::splice::{LogKind, Recording};

use super::stored_code::CodeStore;
use super::{Assembled, RECORDINGS, kernels, ptx, store};

/// Records from the thousandth visit of a location that most programs have.
fn recording(recording: Recording, streamed: bool) -> Recording {
    let after = After { location: 2, count: NonZeroU32::new(1_000).expect("it is not 0") };
    let logs = if streamed { LogKind::Streamed } else { LogKind::Kept };
    Recording { after: Some(after), logs, ..recording }
}

pub(crate) fn check_registers(store: &CodeStore) {
    let Some(ptx) = ptx() else { return };
    for (architecture, number, streamed) in
        [("sm_75", 0, false), ("sm_90", 0, false), ("sm_90", 2, false), ("sm_90", 0, true)]
    {
        let recording = recording(RECORDINGS[number], streamed);
        let Some(assembled) = Assembled::new(store, ptx, recording, architecture) else { return };
        assembled.check_registers();
    }
}

#[test]
fn they_assemble_and_have_registers_for_all() {
    check_registers(&store());
}

pub(crate) fn check_yields(store: &CodeStore) {
    let Some(ptx) = ptx() else { return };
    let assembled = |recording| Assembled::new(store, ptx, recording, "sm_90");
    let Some(without) = assembled(RECORDINGS[0]) else { return };
    let Some(with) = assembled(recording(RECORDINGS[0], false)) else { return };
    for kernel in kernels() {
        let [without, with] = [&without, &with].map(|assembled| assembled.both(kernel)[1].yields);
        assert!(with <= without, "{kernel}: {without} and {with}");
    }
}

#[test]
fn waiting_for_a_visit_brings_no_yield() {
    check_yields(&store());
}
