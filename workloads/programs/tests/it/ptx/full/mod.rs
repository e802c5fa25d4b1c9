//! All checks with the assembler and all ways to splice. Takes long.

mod compilers;

use std::sync::atomic::{AtomicUsize, Ordering};

use warptrace_build::Compiler;

use super::stored_code::CodeStore;
use super::{
    STORE, after, assembled, chosen, compiled, convergence, golden, machine_code, occupancy, span_code,
    spliced,
};

const CHECKS: [fn(&CodeStore); 11] = [
    assembled::check,
    machine_code::check_yields,
    chosen::check_registers,
    after::check_registers,
    machine_code::check_yields_of_rings,
    machine_code::check_exits,
    chosen::check_streamed,
    chosen::check_yields,
    after::check_yields,
    span_code::check,
    occupancy::check,
];

#[test]
fn the_store_has_what_the_assembler_makes_of_each_text() {
    let (Some(_), Some(store)) = (compiled(), CodeStore::fresh(STORE)) else { return };
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(check) = CHECKS.get(next.fetch_add(1, Ordering::Relaxed)) {
                    check(&store);
                }
            });
        }
    });
    let compiler = Compiler::find().expect("the kernels are compiled").version;
    store.check(&format!(", {compiler}"));
}

#[test]
fn lanes_reconverge_where_they_did() {
    convergence::check(true);
}

#[test]
fn kernels_and_what_is_spliced_of_them_stay_the_same_text() {
    golden::check(false);
}

#[test]
fn all_kernels_can_be_recorded_in_all_ways() {
    spliced::check(1);
}
