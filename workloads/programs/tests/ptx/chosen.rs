//! Kernels that hold both what records and their own instructions, for launches of which some warps are
//! chosen.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use warptrace_build::{ARCHITECTURES, Disassembler, Ptxas};
use warptrace_ptx::splice::{LogKind, Options, Placement, Recording, TRACED_SUFFIX, splice};
use warptrace_ptx::{Body, Cfg, Module, fuzzing};

use crate::usage::{self, Usage};
use crate::{RECORDINGS, assembler, kernels, ptx, registers, sass, traced, workspace};

/// A kernel whose limit leaves recording fewer registers than this may spill a little: stores and loads, in
/// bytes of a lane.
const ROOM: u32 = 16;
const FEW_BYTES: u32 = 256;

/// With kernels that look which of their warps record, if `chooses`.
fn choosing(recording: Recording, chooses: bool) -> Recording {
    Recording { chooses, ..recording }
}

fn body<'m, 'a>(module: &'m Module<'a>, name: &str) -> &'m Body<'a> {
    let function = module.functions.iter().find(|function| function.name == name);
    function.and_then(|function| function.body.as_ref()).expect("a kernel")
}

/// The kernels' lines without blanks and without what declares variables that lanes share.
fn instructions(text: &str) -> Vec<&str> {
    let is_shared = |line: &str| line.starts_with(".shared") || line.starts_with(".local");
    // Comments at waits go where waits are no events.
    let is_left_out = |line: &str| line.is_empty() || line.starts_with("//") || is_shared(line);
    text.lines().map(str::trim).filter(|line| !is_left_out(line)).collect()
}

#[test]
fn a_kernel_holds_its_own_instructions_as_they_are() {
    let Some(ptx) = ptx() else { return };
    let original = Module::parse(ptx).expect("the compiler writes PTX");
    for (recording, placement) in RECORDINGS.into_iter().zip([None, Some(Placement::Shared), None, None]) {
        let recording = Recording { placement, chooses: true, ..recording };
        let options = Options { recording: Some(recording), ..Options::default() };
        let text = splice(ptx, &options).unwrap_or_else(|error| panic!("{options:?}: {error}")).text;
        assert!(fuzzing::check(&text), "it is no module");
        let module = Module::parse(&text).expect("it is PTX");
        for kernel in kernels() {
            let (own, both) = (body(&original, kernel), body(&module, &format!("{kernel}{TRACED_SUFFIX}")));
            let scope = &text[both.open..both.close];
            let scope = &scope[scope.rfind("\n\t{\n").expect("a scope")..];
            // Its brace, then the kernel's instructions, then its other brace.
            let found = instructions(scope);
            let expected = instructions(&ptx[own.open + 1..own.close]);
            assert!(found[1..found.len() - 1] == expected, "{kernel}: not its own instructions");
            let loops = |body: &Body<'_>| Cfg::new(body).expect("all labels are there").loops().len();
            assert!(loops(both) >= 2 * loops(own), "{kernel}");
        }
    }
}

#[test]
fn they_assemble_for_all_architectures() {
    let (Some(ptx), Some(assembler)) = (ptx(), assembler()) else { return };
    let folder = tempfile::tempdir().expect("a folder for the assembler");
    let work: Vec<_> = ARCHITECTURES.into_iter().zip(RECORDINGS.into_iter().cycle()).collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some((architecture, recording)) = work.get(number) else { break };
                    let limits = registers(&assembler, folder.path(), ptx, architecture);
                    let text = traced(ptx, choosing(*recording, true), architecture, &limits);
                    let path = folder.path().join(format!("{number}.ptx"));
                    std::fs::write(&path, text).expect("the folder takes files");
                    let said = assembler.assemble(&path, architecture);
                    let said = said.unwrap_or_else(|error| panic!("{architecture}, {recording:?}: {error}"));
                    let usage = usage::parse(&said);
                    found.lock().expect("nothing panics meanwhile").insert(number, (usage, limits));
                }
            });
        }
    });
    let found = found.into_inner().expect("nothing has panicked");
    assert_eq!(found.len(), ARCHITECTURES.len());
    for ((architecture, recording), (usage, limits)) in work.iter().zip(found.values()) {
        print!("{architecture}, {recording:?}:");
        for (kernel, limit) in limits {
            let of = |name: &str| -> Usage { usage[name] };
            let (untraced, traced) = (of(kernel), of(&format!("{kernel}{TRACED_SUFFIX}")));
            print!(" {kernel} {} {}", untraced.registers, traced.registers);
            assert!((1..=*limit).contains(&traced.registers), "{kernel}: {traced:?}");
            let allowed = if untraced.registers + ROOM > *limit { FEW_BYTES } else { 0 };
            let spills = traced.spill_bytes.saturating_sub(untraced.spill_bytes);
            assert!(spills <= allowed, "{kernel}: {traced:?}, {untraced:?}");
        }
        println!();
    }
}

#[test]
fn they_assemble_with_streamed_logs() {
    let (Some(ptx), Some(assembler)) = (ptx(), assembler()) else { return };
    let folder = tempfile::tempdir().expect("a folder for the assembler");
    // Both ways to take a segment.
    for (architecture, recording) in ["sm_80", "sm_90"].into_iter().zip([RECORDINGS[0], RECORDINGS[3]]) {
        let logs = LogKind::Streamed { open_runs: false };
        let text = traced(ptx, choosing(Recording { logs, ..recording }, true), architecture, &[]);
        let path = folder.path().join(format!("{architecture}.ptx"));
        std::fs::write(&path, text).expect("the folder takes files");
        let said = assembler.assemble(&path, architecture);
        let usage = usage::parse(&said.unwrap_or_else(|error| panic!("{architecture}: {error}")));
        assert!(kernels().iter().all(|kernel| usage.contains_key(&format!("{kernel}{TRACED_SUFFIX}"))));
    }
}

#[test]
fn the_question_brings_no_yield() {
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
    let yields = |chooses| {
        let path = folder.path().join(format!("{chooses}.ptx"));
        let text = traced(ptx, choosing(RECORDINGS[0], chooses), "sm_90", &limits);
        std::fs::write(&path, text).expect("the folder takes files");
        assembler.assemble(&path, "sm_90").unwrap_or_else(|error| panic!("{error}"));
        let code = disassembler.disassemble(&Ptxas::cubin(&path, "sm_90"));
        let code = sass::functions(&code.unwrap_or_else(|error| panic!("{error}")));
        let count = |code: &Vec<String>| code.iter().filter(|it| sass::is(it, "YIELD")).count();
        code.iter().map(|(name, code)| (name.clone(), count(code))).collect::<BTreeMap<_, _>>()
    };
    let (without, with) = (yields(false), yields(true));
    for kernel in kernels() {
        let traced = format!("{kernel}{TRACED_SUFFIX}");
        // Those of the part that records, and those of the kernel's own instructions.
        assert_eq!(with[&traced], without[&traced] + without[kernel], "{kernel}");
    }
}
