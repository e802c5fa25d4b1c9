//! How many blocks of each kernel a multiprocessor holds, untraced and traced.
//!
//! `occupancy.txt` has registers, shared memory and blocks for each kernel and architecture. The rules are those of
//! the CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", and of its occupancy
//! calculator: each of four partitions allocates registers in units of 256 for a warp; a block takes 1,024 bytes of
//! shared memory for the system, in units of 128 bytes.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use warptrace_ptx::splice::Recording;

use super::stored_code::CodeStore;
use super::{Assembled, hashes, ptx, store};

/// Architectures with the bytes of shared memory of a multiprocessor.
const DEVICES: [(&str, u32); 3] = [("sm_80", 164 << 10), ("sm_90", 228 << 10), ("sm_100", 228 << 10)];
/// Threads of a block in the table, and their warps.
const THREADS: u32 = 256;
const WARPS: u32 = THREADS / 32;
const TABLE: &str = "tests/it/ptx/occupancy.txt";
const HEAD: &str = "\
# Registers of a thread, static and added shared memory of a block in bytes, and resident blocks of 256 threads per
# multiprocessor: untraced > traced.
";

/// Returns how many blocks of [`THREADS`] threads fit on a multiprocessor.
fn resident_blocks(registers: u32, shared: u32, shared_in_all: u32) -> u32 {
    let of_warp = (registers * 32).next_multiple_of(256);
    // A partition has 16,384 registers and 16 warps.
    let warps = 4 * (16_384 / of_warp).min(16);
    let of_block = (shared + 1024).next_multiple_of(128);
    (warps / WARPS).min(shared_in_all / of_block).min(32)
}

/// Returns the bytes of static shared memory that a kernel's text names. The compiler declares arrays of bytes.
fn static_shared(text: &str, kernel: &str) -> u32 {
    let (_, body) = text.split_once(&format!(".entry {kernel}(")).expect("the kernel is there");
    let body = body.split_once("\n}").expect("it ends").0;
    let arrays = text.lines().filter_map(|line| {
        let (_, array) = line.split_once(".shared ")?.1.split_once(".b8 ")?;
        let (name, bytes) = array.strip_suffix("];")?.split_once('[')?;
        Some((name, bytes.parse::<u32>().ok()?))
    });
    arrays.filter(|(name, _)| body.contains(name)).map(|(_, bytes)| bytes).sum()
}

pub(crate) fn check(store: &CodeStore) {
    let Some(ptx) = ptx() else { return };
    let mut rows = BTreeMap::<&str, String>::new();
    for (architecture, shared_in_all) in DEVICES {
        let Some(assembled) = Assembled::new(store, ptx, Recording::DEFAULT, architecture) else { return };
        for kernel in &assembled.traced {
            let (name, _) =
                assembled.limits.iter().find(|(name, _)| *name == kernel.name).expect("all are traced");
            let [untraced, traced] = assembled.both(name).map(|function| function.registers);
            let (own, added) = (static_shared(ptx, name), kernel.shared_bytes * WARPS);
            let [before, after] = [(untraced, own), (traced, own + added)]
                .map(|(registers, shared)| resident_blocks(registers, shared, shared_in_all));
            let row = rows.entry(name).or_insert_with(|| (*name).to_owned());
            write!(row, " | {architecture}: {untraced} > {traced}, {own} + {added}, {before} > {after}")
                .expect("a text");
        }
    }
    let table = rows.into_values().fold(HEAD.to_owned(), |table, row| table + &row + "\n");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(TABLE);
    if hashes::overwrites() {
        std::fs::write(&path, &table).expect("the table is written");
    }
    assert_eq!(
        std::fs::read_to_string(&path).unwrap_or_default(),
        table,
        "`cargo xtask golden` writes {TABLE}"
    );
}

#[test]
fn blocks_of_all_kernels_are_in_the_table() {
    check(&store());
}

#[test]
fn resident_blocks_are_those_of_the_occupancy_calculator() {
    // Compute capability 9.0, 256 threads: limited by warps, by registers, by shared memory.
    assert_eq!(
        [32, 40, 64, 128, 255].map(|registers| resident_blocks(registers, 0, 228 << 10)),
        [8, 6, 4, 2, 1]
    );
    assert_eq!(
        [48 << 10, 100 << 10, 227 << 10].map(|shared| resident_blocks(32, shared, 228 << 10)),
        [4, 2, 1]
    );
}
