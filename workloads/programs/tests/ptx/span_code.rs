//! What saying where and when warps run adds to machine code.

use std::fmt::Write;

use warptrace_build::{Disassembler, Ptxas};
use warptrace_ptx::splice::{Recording, TRACED_SUFFIX};

use crate::{RECORDINGS, assembler, kernels, ptx, registers, sass, traced, usage, workspace};

const ARCHITECTURE: &str = "sm_90";
/// Instructions that the median kernel has more at most. What the assembler makes of loops may differ, too,
/// so of a single one this says little.
const MOST_IN_MEDIAN: usize = 120;

/// Prints a table, which `results/spans-sass.md` has.
#[test]
fn spans_add_some_instructions_and_no_yield() {
    let (Some(ptx), Some(assembler)) = (ptx(), assembler()) else { return };
    let Ok(disassembler) = Disassembler::find(&workspace()) else { return };
    let folder = tempfile::tempdir().expect("a folder for the assembler");
    let limits = registers(&assembler, folder.path(), ptx, ARCHITECTURE);
    let [without, with] = [false, true].map(|spans| {
        let text = traced(ptx, Recording { spans, ..RECORDINGS[1] }, ARCHITECTURE, &limits);
        let path = folder.path().join(format!("{spans}.ptx"));
        std::fs::write(&path, &text).expect("the folder takes files");
        let said = assembler.assemble(&path, ARCHITECTURE).unwrap_or_else(|error| panic!("{error}"));
        let cubin = Ptxas::cubin(&path, ARCHITECTURE);
        let code = disassembler.disassemble(&cubin).unwrap_or_else(|error| panic!("{error}"));
        (usage::parse(&said), sass::functions(&code))
    });
    let mut table = String::from(
        "| kernel | instructions without, with | more | ends | registers without, with |\n| --- | --: | --: | --: | --: |\n",
    );
    let mut all_more = Vec::new();
    for kernel in kernels() {
        let name = format!("{kernel}{TRACED_SUFFIX}");
        let [before, now] = [&without, &with].map(|(usage, functions)| {
            let code = &functions[&name];
            let of = |what: &str| code.iter().filter(|instruction| sass::is(instruction, what)).count();
            let all = code.iter().filter(|instruction| !sass::is(instruction, "NOP")).count();
            (all, of("YIELD"), of("EXIT"), of("RED") + of("REDG"), usage[name.as_str()].registers)
        });
        assert_eq!(now.1, before.1, "{kernel}: YIELDs");
        assert_eq!(now.2, before.2, "{kernel}: ways out");
        // Of each end two: clock and timer.
        assert!(now.3 >= before.3 + 2, "{kernel}: reductions {} and {}", before.3, now.3);
        let more = now.0.saturating_sub(before.0);
        all_more.push(more);
        let _ = writeln!(
            table,
            "| {kernel} | {}, {} | {more} | {} | {}, {} |",
            before.0, now.0, now.2, before.4, now.4
        );
    }
    println!("{table}");
    all_more.sort_unstable();
    let median = all_more[all_more.len() / 2];
    assert!(median <= MOST_IN_MEDIAN, "the median kernel has {median} instructions more");
}
