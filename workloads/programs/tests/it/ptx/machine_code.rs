//! Checks that recording adds no `YIELD` to a program's loops.
//!
//! A `YIELD` releases lanes that wait for others, and so it can separate lanes that the untraced kernel keeps
//! in one group. The assembler puts one at the head of a loop with an atomic whose result is used. To keep it
//! out of a program's loops, recording code reserves segments in a separate loop, which lanes enter only when
//! a segment is full.

use std::collections::BTreeMap;

use warptrace_format::Counting;
use warptrace_ptx::splice::{LogKind, Options, Recording, TRACED_SUFFIX, splice};
use warptrace_ptx::{Cfg, Module};

use super::stored_code::CodeStore;
use super::{Assembled, RECORDINGS, kernels, ptx, store};

const ARCHITECTURE: &str = "sm_90";

fn is_counted(recording: Recording) -> bool {
    recording.counting == Counting::All
}

/// Number of a kernel's loops, and of the ends of its counted loops, in PTX.
#[derive(Clone, Copy, Debug)]
struct Loops {
    loops: usize,
    leaves: u32,
}

fn loops(text: &str) -> BTreeMap<String, Loops> {
    let module = Module::parse(text).expect("it is PTX");
    let entries = module.functions.iter().filter(|function| function.is_entry());
    let of = |body| Cfg::new(body).expect("all labels are there").loops().len();
    let loops = entries.filter_map(|entry| {
        let body = entry.body.as_ref()?;
        let comments = body.statements.iter().filter_map(|statement| statement.comment());
        let leaves = comments.filter(|comment| comment.starts_with("// warptrace.loop.leave")).count() as u32;
        Some((entry.name.to_owned(), Loops { loops: of(body), leaves }))
    });
    loops.collect()
}

/// Returns the number of kernels with no more loops than untraced, and of kernels with more.
fn check(recording: Recording, assembled: &Assembled) -> [usize; 2] {
    let loops = loops(&assembled.text);
    let mut kinds = [0; 2];
    // The untraced `fault` has no `YIELD`, but the assembler puts one into its wait loop as soon as the loop
    // contains instructions of a trace point. The assembler also chooses the number of copies of that loop.
    for kernel in kernels().into_iter().filter(|kernel| *kernel != "fault") {
        let traced = format!("{kernel}{TRACED_SUFFIX}");
        let [before, now] = assembled.both(kernel);
        // The end of a counted loop records its runs in a loop that is not the program's. Copies of it may be
        // on several paths out of the kernel.
        let ends = if is_counted(recording) { loops[&traced].leaves } else { 0 };
        assert!(
            now.yields - now.claims <= before.yields + ends,
            "{traced}, {recording:?}: {now:?}; untraced {before:?}"
        );
        let has_own_loops = !is_counted(recording) && loops[&traced].loops > loops[kernel].loops;
        kinds[usize::from(has_own_loops)] += 1;
        if !is_counted(recording) && !has_own_loops {
            assert_eq!(
                now.yields, before.yields,
                "{traced}, {recording:?}: it claims segments in no loop of their own"
            );
        }
    }
    kinds
}

pub(crate) fn check_yields(store: &CodeStore) {
    let Some(ptx) = ptx() else { return };
    for recording in RECORDINGS {
        let Some(assembled) = Assembled::new(store, ptx, recording, ARCHITECTURE) else { return };
        let [plain, own_loops] = check(recording, &assembled);
        // Otherwise, one of the two rules would be untested.
        assert!(is_counted(recording) || plain > 0 && own_loops > 0, "{plain} {own_loops}");
    }
}

#[test]
fn no_loop_of_a_program_lets_waiting_lanes_go() {
    check_yields(&store());
}

pub(crate) fn check_yields_of_rings(store: &CodeStore) {
    let Some(ptx) = ptx() else { return };
    // On the other architecture of each pair, segments would be reserved in separate loops.
    for (architecture, recording) in [(ARCHITECTURE, RECORDINGS[0]), ("sm_80", RECORDINGS[3])] {
        let ring = Recording { logs: LogKind::Ring, ..recording };
        let Some(assembled) = Assembled::new(store, ptx, ring, architecture) else { return };
        let loops = loops(&assembled.text);
        for kernel in kernels().into_iter().filter(|kernel| *kernel != "fault") {
            let [before, now] = assembled.both(kernel).map(|function| function.yields);
            let copy = format!("{kernel}{TRACED_SUFFIX}");
            let ends = if is_counted(recording) { loops[&copy].leaves } else { 0 };
            assert!(now <= before + ends, "{kernel} for {architecture}: {now} YIELDs, untraced {before}");
        }
    }
}

#[test]
fn no_loop_lets_waiting_lanes_go_where_logs_are_rings() {
    check_yields_of_rings(&store());
}

/// Checks that recording does not merge exits. Exits determine where lanes wait for each other: if several
/// exits shared one epilogue, lanes would reconverge where the untraced kernel does not.
pub(crate) fn check_exits(store: &CodeStore) {
    let Some(ptx) = ptx() else { return };
    let options =
        Options { recording: Some(RECORDINGS[0]), architecture: 90, marks: 1, ..Options::default() };
    let text = splice(ptx, &options).expect("it can be spliced").text;
    let Some(functions) = store.functions(&text, ARCHITECTURE) else { return };
    for kernel in kernels() {
        let traced = format!("{kernel}{TRACED_SUFFIX}");
        // The assembler may duplicate an exit after the code that reserves a segment. Either all lanes of a
        // group go there or none.
        let [now, before] = [&traced, kernel].map(|name| functions[name].exits);
        assert!(now >= before, "{kernel}: {now} ways out, untraced {before}");
    }
}

#[test]
fn lanes_share_no_way_out_that_is_not_shared_untraced() {
    check_exits(&store());
}
