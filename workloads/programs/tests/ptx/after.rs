//! Kernels whose lanes are recorded from some visit of a location on.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use warptrace_build::{Disassembler, Ptxas};
use warptrace_format::chosen::After;
use warptrace_ptx::splice::{LogKind, Recording, TRACED_SUFFIX};

use crate::usage::{self, Usage};
use crate::{RECORDINGS, assembler, kernels, ptx, registers, sass, traced, workspace};

/// A kernel whose limit leaves recording fewer registers than this may spill a little: stores and loads, in
/// bytes of a lane.
const ROOM: u32 = 16;
const FEW_BYTES: u32 = 256;

/// From the thousandth visit of a location on that most programs have.
fn recording(recording: Recording, streamed: bool) -> Recording {
    let after = After { location: 2, count: NonZeroU32::new(1_000).expect("it is not 0") };
    let logs = if streamed { LogKind::Streamed { open_runs: false } } else { LogKind::Kept };
    Recording { after: Some(after), logs, ..recording }
}

#[test]
fn they_assemble_and_have_registers_for_all() {
    let (Some(ptx), Some(assembler)) = (ptx(), assembler()) else { return };
    let folder = tempfile::tempdir().expect("a folder for the assembler");
    for (architecture, number, streamed) in
        [("sm_75", 0, false), ("sm_90", 0, false), ("sm_90", 2, false), ("sm_90", 0, true)]
    {
        let limits = registers(&assembler, folder.path(), ptx, architecture);
        let text = traced(ptx, recording(RECORDINGS[number], streamed), architecture, &limits);
        let path = folder.path().join(format!("{architecture}-{number}-{streamed}.ptx"));
        std::fs::write(&path, text).expect("the folder takes files");
        let said = assembler.assemble(&path, architecture);
        let usage = usage::parse(&said.unwrap_or_else(|error| panic!("{architecture}: {error}")));
        for (kernel, limit) in limits {
            let of = |name: &str| -> Usage { usage[name] };
            let (untraced, traced) = (of(kernel), of(&format!("{kernel}{TRACED_SUFFIX}")));
            assert!((1..=limit).contains(&traced.registers), "{kernel}: {traced:?}");
            let allowed = if untraced.registers + ROOM > limit { FEW_BYTES } else { 0 };
            let spills = traced.spill_bytes.saturating_sub(untraced.spill_bytes);
            assert!(spills <= allowed, "{kernel}, {architecture}, {streamed}: {traced:?}, {untraced:?}");
        }
    }
}

#[test]
fn waiting_for_a_visit_brings_no_yield() {
    let (Some(ptx), Some(assembler)) = (ptx(), assembler()) else { return };
    let disassembler = match Disassembler::find(&workspace()) {
        Ok(found) => found,
        Err(error) => {
            eprintln!("skipped: {error}");
            return;
        }
    };
    let folder = tempfile::tempdir().expect("a folder for the assembler");
    let limits = registers(&assembler, folder.path(), ptx, "sm_90");
    let yields = |recording: Recording| {
        let path = folder.path().join(format!("{}.ptx", recording.after.is_some()));
        let text = traced(ptx, recording, "sm_90", &limits);
        std::fs::write(&path, text).expect("the folder takes files");
        assembler.assemble(&path, "sm_90").unwrap_or_else(|error| panic!("{error}"));
        let code = disassembler.disassemble(&Ptxas::cubin(&path, "sm_90"));
        let code = sass::functions(&code.unwrap_or_else(|error| panic!("{error}")));
        let count = |code: &Vec<String>| code.iter().filter(|it| sass::is(it, "YIELD")).count();
        code.iter().map(|(name, code)| (name.clone(), count(code))).collect::<BTreeMap<_, _>>()
    };
    let (without, with) = (yields(RECORDINGS[0]), yields(recording(RECORDINGS[0], false)));
    for kernel in kernels() {
        let traced = format!("{kernel}{TRACED_SUFFIX}");
        assert!(with[&traced] <= without[&traced], "{kernel}: {} and {}", without[&traced], with[&traced]);
    }
}
