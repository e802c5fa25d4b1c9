//! Recording brings no `YIELD` into a program's loops.
//!
//! A `YIELD` lets lanes go that wait for others, and so parts lanes that the untraced kernel keeps in one
//! group. The assembler puts one at the head of a loop with an atomic whose answer is used. Where it would
//! stand in a program's loop, segments are claimed in a loop of their own, which is entered only when a
//! segment is full.

use std::collections::BTreeMap;

use warptrace_build::Disassembler;
use warptrace_format::Counting;
use warptrace_ptx::splice::{LogKind, Options, Recording, TRACED_SUFFIX, splice};
use warptrace_ptx::{Cfg, Module};

use crate::{RECORDINGS, assembler, kernels, ptx, registers, sass, traced, workspace};

const ARCHITECTURE: &str = "sm_90";
/// Instructions from the head of a claim's own loop to its atomic, at most.
const CLAIM: usize = 12;

fn is_counted(recording: Recording) -> bool {
    recording.counting == Counting::All
}

/// A kernel's loops and the ends of its counted loops, in PTX.
#[derive(Clone, Copy, Debug)]
struct Loops {
    loops: usize,
    leaves: usize,
}

fn loops(text: &str) -> BTreeMap<String, Loops> {
    let module = Module::parse(text).expect("it is PTX");
    let entries = module.functions.iter().filter(|function| function.is_entry());
    let of = |body| Cfg::new(body).expect("all labels are there").loops().len();
    let loops = entries.filter_map(|entry| {
        let body = entry.body.as_ref()?;
        let comments = body.statements.iter().filter_map(|statement| statement.comment());
        let leaves = comments.filter(|comment| comment.starts_with("// warptrace.loop.leave")).count();
        Some((entry.name.to_owned(), Loops { loops: of(body), leaves }))
    });
    loops.collect()
}

/// The `YIELD`s of a function, and how many of them a claim's atomic follows.
fn yields(instructions: &[String]) -> (usize, usize) {
    let found = instructions.iter().enumerate().filter(|(_, instruction)| sass::is(instruction, "YIELD"));
    let claims = |at: usize| {
        let next = instructions[at..].iter().take(1 + CLAIM);
        usize::from(next.into_iter().any(|instruction| sass::is(instruction, "ATOMG")))
    };
    found.fold((0, 0), |(all, claiming), (at, _)| (all + 1, claiming + claims(at)))
}

fn check(recording: Recording, text: &str, machine_code: &str) -> [usize; 2] {
    let (loops, functions) = (loops(text), sass::functions(machine_code));
    let mut kinds = [0; 2];
    // The loop in which `fault` waits has a `YIELD` untraced, too; how many copies of it there are is the
    // assembler's choice.
    for kernel in kernels().into_iter().filter(|kernel| *kernel != "fault") {
        let traced = format!("{kernel}{TRACED_SUFFIX}");
        let of = |name: &str| yields(functions.get(name).unwrap_or_else(|| panic!("no code of `{name}`")));
        let ((before, _), (now, claiming)) = (of(kernel), of(&traced));
        // The end of a counted loop records its runs in a loop, which is none of the program's; it may stand
        // on several ways out of the kernel.
        let ends = if is_counted(recording) { loops[&traced].leaves } else { 0 };
        assert!(
            now - claiming <= before + ends,
            "{traced}, {recording:?}: {now} YIELDs, {claiming} of them of claims; untraced {before}"
        );
        let has_own_loops = !is_counted(recording) && loops[&traced].loops > loops[kernel].loops;
        kinds[usize::from(has_own_loops)] += 1;
        if !is_counted(recording) && !has_own_loops {
            assert_eq!(now, before, "{traced}, {recording:?}: it claims segments in no loop of their own");
        }
    }
    kinds
}

#[test]
fn no_loop_of_a_program_lets_waiting_lanes_go() {
    let (Some(ptx), Some(assembler)) = (ptx(), assembler()) else { return };
    let disassembler = match Disassembler::find(&workspace()) {
        Ok(found) => found,
        Err(error) => {
            eprintln!("skipped: {error}");
            return;
        }
    };
    let folder = tempfile::tempdir().expect("a folder for the assembler");
    let limits = registers(&assembler, folder.path(), ptx, ARCHITECTURE);
    std::thread::scope(|scope| {
        for (number, recording) in RECORDINGS.into_iter().enumerate() {
            let path = folder.path().join(format!("{number}.ptx"));
            let (assembler, disassembler, limits) = (&assembler, &disassembler, &limits);
            scope.spawn(move || {
                let text = traced(ptx, recording, ARCHITECTURE, limits);
                std::fs::write(&path, &text).expect("the folder takes files");
                assembler.assemble(&path, ARCHITECTURE).unwrap_or_else(|error| panic!("{error}"));
                let cubin = warptrace_build::Ptxas::cubin(&path, ARCHITECTURE);
                let code = disassembler.disassemble(&cubin).unwrap_or_else(|error| panic!("{error}"));
                let [plain, own_loops] = check(recording, &text, &code);
                // Or one of the two rules was tried on nothing.
                assert!(is_counted(recording) || plain > 0 && own_loops > 0, "{plain} {own_loops}");
            });
        }
    });
}

#[test]
fn no_loop_lets_waiting_lanes_go_where_logs_are_rings() {
    let (Some(ptx), Some(assembler)) = (ptx(), assembler()) else { return };
    let Ok(disassembler) = Disassembler::find(&workspace()) else { return };
    let folder = tempfile::tempdir().expect("a folder for the assembler");
    // Claims would have loops of their own for the other one.
    for (architecture, recording) in [(ARCHITECTURE, RECORDINGS[0]), ("sm_80", RECORDINGS[3])] {
        let limits = registers(&assembler, folder.path(), ptx, architecture);
        let ring = Recording { logs: LogKind::Ring, ..recording };
        let text = traced(ptx, ring, architecture, &limits);
        let path = folder.path().join(format!("{architecture}.ptx"));
        std::fs::write(&path, &text).expect("the folder takes files");
        assembler.assemble(&path, architecture).unwrap_or_else(|error| panic!("{error}"));
        let cubin = warptrace_build::Ptxas::cubin(&path, architecture);
        let code = disassembler.disassemble(&cubin).unwrap_or_else(|error| panic!("{error}"));
        let (loops, functions) = (loops(&text), sass::functions(&code));
        for kernel in kernels().into_iter().filter(|kernel| *kernel != "fault") {
            let of =
                |name: &str| yields(functions.get(name).unwrap_or_else(|| panic!("no code of `{name}`")));
            let copy = format!("{kernel}{TRACED_SUFFIX}");
            let ((before, _), (now, _)) = (of(kernel), of(&copy));
            let ends = if is_counted(recording) { loops[&copy].leaves } else { 0 };
            assert!(now <= before + ends, "{kernel} for {architecture}: {now} YIELDs, untraced {before}");
        }
    }
}

/// Where lanes leave decides where others wait for each other: an epilogue that several ways out share would
/// be a place to meet that the untraced kernel does not have.
#[test]
fn lanes_leave_on_as_many_ways_as_untraced() {
    let (Some(ptx), Some(assembler)) = (ptx(), assembler()) else { return };
    let Ok(disassembler) = Disassembler::find(&workspace()) else { return };
    let folder = tempfile::tempdir().expect("a folder for the assembler");
    let options =
        Options { recording: Some(RECORDINGS[0]), architecture: 90, marks: 1, ..Options::default() };
    let text = splice(ptx, &options).expect("it can be spliced").text;
    let path = folder.path().join("exits.ptx");
    std::fs::write(&path, &text).expect("the folder takes files");
    assembler.assemble(&path, ARCHITECTURE).unwrap_or_else(|error| panic!("{error}"));
    let cubin = warptrace_build::Ptxas::cubin(&path, ARCHITECTURE);
    let code = disassembler.disassemble(&cubin).unwrap_or_else(|error| panic!("{error}"));
    let functions = sass::functions(&code);
    let exits = |name: &str| functions[name].iter().filter(|it| sass::is(it, "EXIT")).count();
    for kernel in kernels() {
        assert_eq!(exits(&format!("{kernel}{TRACED_SUFFIX}")), exits(kernel), "{kernel}");
    }
}

#[test]
fn tells_yields_of_claims_from_others() {
    let code = |text: &str| -> Vec<String> { text.split(';').map(|line| line.trim().to_owned()).collect() };
    assert_eq!(yields(&code("YIELD; MOV R1, R2; ATOMG.E.ADD.64.STRONG.GPU PT, R6, R6; YIELD; EXIT")), (2, 1));
    let far = format!("YIELD; {} ATOMG.E.ADD R1", "NOP; ".repeat(12));
    assert_eq!(yields(&code(&far)), (1, 0));
}
