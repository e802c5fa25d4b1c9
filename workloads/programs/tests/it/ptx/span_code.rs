//! Machine code added by the recording of where and when warps run.

use std::fmt::Write;

use warptrace_ptx::splice::Recording;

use super::stored_code::CodeStore;
use super::{Assembled, RECORDINGS, kernels, ptx, store};

const ARCHITECTURE: &str = "sm_90";
/// Additional instructions of the median kernel. Single kernels vary: the assembler may change loops.
const MOST_IN_MEDIAN: u32 = 120;

/// Prints the table of `results/spans-sass.md`.
pub(crate) fn check(store: &CodeStore) {
    let Some(ptx) = ptx() else { return };
    let assembled = |spans| Assembled::new(store, ptx, Recording { spans, ..RECORDINGS[1] }, ARCHITECTURE);
    let (Some(without), Some(with)) = (assembled(false), assembled(true)) else { return };
    let mut table = String::from(
        "| kernel | instructions without, with | more | ends | registers without, with |\n| --- | --: | --: | --: | --: |\n",
    );
    let mut all_more = Vec::new();
    for kernel in kernels() {
        let [before, now] = [&without, &with].map(|assembled| assembled.both(kernel)[1]);
        assert_eq!(now.yields, before.yields, "{kernel}: YIELDs");
        assert_eq!(now.exits, before.exits, "{kernel}: ways out");
        // Two reductions per exit: clock and timer.
        assert!(
            now.reductions >= before.reductions + 2,
            "{kernel}: reductions {} and {}",
            before.reductions,
            now.reductions
        );
        let more = now.instructions.saturating_sub(before.instructions);
        all_more.push(more);
        let _ = writeln!(
            table,
            "| {kernel} | {}, {} | {more} | {} | {}, {} |",
            before.instructions, now.instructions, now.exits, before.registers, now.registers
        );
    }
    println!("{table}");
    all_more.sort_unstable();
    let median = all_more[all_more.len() / 2];
    assert!(median <= MOST_IN_MEDIAN, "the median kernel has {median} instructions more");
}

#[test]
fn spans_add_some_instructions_and_no_yield() {
    check(&store());
}
