//! Random kernels: a loop of accesses to all spaces with various address patterns.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use warptrace_abi::recording::Spaces;
use warptrace_ptx::interpret::Memory;
use warptrace_ptx::splice::Placement;

use warptrace_abi::log::FirstSegments;

use super::super::Extent;
use super::super::case::Shape;
use super::super::program::below;
use super::{Case, Outcome, Traced};

/// Regions to read (two, far from each other), to write, and for results.
const READ: u64 = 0x10_0000;
const FAR: u64 = 0x7000_0010_0000;
const WRITTEN: u64 = 0x30_0000;
const RESULTS: u64 = 0x40_0000;
/// Sizes in bytes of each region, and of the shared and the local array.
const BYTES: usize = 1 << 16;
const SHARED_BYTES: u32 = 1 << 10;
const LOCAL_BYTES: u32 = 1 << 8;

fn kernel(random: &mut ChaCha8Rng, accesses: u32, sync: bool) -> String {
    let mut text = format!(
        ".version {}\n.target {}\n.address_size 64
.visible .entry k(.param .u64 k_read, .param .u64 k_far, .param .u64 k_written, .param .u64 k_results)
{{
\t.reg .pred %p<4>;
\t.reg .b16 %rs<2>;
\t.reg .b32 %r<32>;
\t.reg .b64 %rd<32>;
\t.local .align 16 .b8 own[{LOCAL_BYTES}];
\t.shared .align 16 .b8 tile[{SHARED_BYTES}];
\tld.param.u64 %rd1, [k_read];
\tld.param.u64 %rd2, [k_far];
\tld.param.u64 %rd3, [k_written];
\tld.param.u64 %rd4, [k_results];
\tmov.u32 %r1, %tid.x;
\tmov.u32 %r2, %ctaid.x;
\tmov.u32 %r3, %ntid.x;
\tmad.lo.u32 %r1, %r2, %r3, %r1;
\tmov.u32 %r4, 0;
\tmov.u32 %r9, 0;
\tmov.u32 %r10, 0;
\tmov.u32 %r17, 0;
\tmov.u64 %rd20, own;
\tmov.u32 %r20, tile;
\tmov.u32 %r5, 0;
$FILL:
\tcvt.u64.u32 %rd5, %r5;
\tadd.u64 %rd5, %rd5, %rd20;
\tst.local.u32 [%rd5], %r5;
\tadd.u32 %r5, %r5, 4;
\tsetp.lt.u32 %p1, %r5, {LOCAL_BYTES};
\t@%p1 bra $FILL;
\tmov.u32 %r5, %tid.x;
\tshl.b32 %r5, %r5, 2;
$TILE:
\tadd.u32 %r6, %r20, %r5;
\tst.shared.u32 [%r6], %r5;
\tmad.lo.u32 %r5, %r3, 4, %r5;
\tsetp.lt.u32 %p1, %r5, {SHARED_BYTES};
\t@%p1 bra $TILE;
\tbar.sync 0;
",
        if sync { "8.0" } else { "6.3" },
        if sync { "sm_90" } else { "sm_70" },
    );
    let trips = match below(random, 3) {
        0 => format!("mov.u32 %r11, {}", 1 + below(random, 9)),
        1 => "and.b32 %r11, %r1, 7".to_owned(),
        _ => "mul.lo.u32 %r11, %r1, 40503; shr.u32 %r11, %r11, 13; and.b32 %r11, %r11, 15".to_owned(),
    };
    text.push_str(&format!("\t{trips};\n\tadd.u32 %r11, %r11, 1;\n$LOOP:\n"));
    for number in 0..accesses {
        text.push_str(&access(random, number));
    }
    text.push_str(
        "\tadd.u32 %r4, %r4, 1;
\tsetp.lt.u32 %p1, %r4, %r11;
\t@%p1 bra $LOOP;
\tmul.wide.u32 %rd6, %r1, 4;
\tadd.s64 %rd7, %rd4, %rd6;
\tst.global.u32 [%rd7], %r9;
\tret;
}
",
    );
    text
}

fn access(random: &mut ChaCha8Rng, number: u32) -> String {
    let (a, b) = (4 * below(random, 9), 4 * below(random, 5));
    let offset = match below(random, 6) {
        0 => format!("mov.u32 %r12, {}", 4 * below(random, 60)),
        1 | 2 => format!("mul.lo.u32 %r12, %r1, {a}; mad.lo.u32 %r12, %r4, {b}, %r12"),
        // Descending.
        3 => format!(
            "mul.lo.u32 %r12, %r4, {b}; sub.u32 %r12, {}, %r12; mad.lo.u32 %r12, %r1, {a}, %r12",
            BYTES / 2
        ),
        // Equal for both lanes of a pair.
        4 => format!("shr.u32 %r12, %r1, 1; mul.lo.u32 %r12, %r12, 16; mad.lo.u32 %r12, %r4, {b}, %r12"),
        _ => format!(
            "mad.lo.u32 %r12, %r1, 2654435761, %r4; mul.lo.u32 %r12, %r12, {}; shr.u32 %r12, %r12, 9",
            2 * below(random, 1 << 20) + 1
        ),
    };
    let mut text = format!("\t{offset};\n");
    let (mut before, mut behind, mut guard) = (String::new(), String::new(), String::new());
    let condition = format!(
        "add.u32 %r13, %r1, %r4; and.b32 %r13, %r13, {}; setp.lt.u32 %p2, %r13, 2;",
        below(random, 8)
    );
    match below(random, 6) {
        0 => {
            before = format!("\t{condition}\n\t@%p2 bra $OVER{number};\n");
            behind = format!("$OVER{number}:\n");
        }
        1 => {
            before = format!("\t{condition}\n");
            guard = "@%p2 ".to_owned();
        }
        2 => {
            before = format!("\t{condition}\n");
            guard = "@!%p2 ".to_owned();
        }
        _ => {}
    }
    text.push_str(&before);
    let global = |base: &str| {
        format!(
            "\tand.b32 %r12, %r12, {};\n\tcvt.u64.u32 %rd8, %r12;\n\tadd.s64 %rd9, %rd8, {base};\n",
            BYTES - 16
        )
    };
    let shared = format!("\tand.b32 %r12, %r12, {};\n\tadd.u32 %r14, %r12, %r20;\n", SHARED_BYTES - 16);
    let local = format!(
        "\tand.b32 %r12, %r12, {};\n\tcvt.u64.u32 %rd8, %r12;\n\tadd.s64 %rd9, %rd8, %rd20;\n",
        LOCAL_BYTES - 16
    );
    // Lanes never use values that others write, so results are the same for all schedules.
    let (address, instruction) = match below(random, 11) {
        0 | 1 => (global("%rd1"), "ld.global.nc.u32 %r10, [%rd9]"),
        2 => (global("%rd1"), "ld.global.u32 %r10, [%rd9+4]"),
        // Two regions, selected by the lane and the iteration.
        3 => (
            format!(
                "{}\tadd.u32 %r15, %r1, %r4;\n\tand.b32 %r15, %r15, 1;\n\tsetp.eq.u32 %p3, %r15, 0;\n\tselp.b64 %rd10, %rd1, %rd2, %p3;\n\tadd.s64 %rd9, %rd8, %rd10;\n",
                global("%rd1")
            ),
            "ld.global.b32 %r10, [ %rd9 + -0 ]",
        ),
        4 => (global("%rd2"), "ld.volatile.global.v2.u32 {%r10, %r16}, [%rd9]"),
        5 => (global("%rd3"), "st.global.u16 [%rd9+2], %rs1"),
        6 => (global("%rd3"), "atom.global.add.u32 %r16, [%rd9], 3"),
        7 => (global("%rd3"), "red.global.max.u32 [%rd9], %r4"),
        8 => (shared, "ld.shared.u32 %r10, [%r14+4]"),
        9 => (local, "ld.local.u8 %r10, [%rd9]"),
        _ => (global("%rd1"), "ld.u32 %r10, [%rd9]"),
    };
    // `v2` takes eight bytes.
    let address = if instruction.contains("v2") {
        address.replace("and.b32 %r12", "shl.b32 %r12, %r12, 1;\n\tand.b32 %r12")
    } else {
        address
    };
    let address =
        address.replace("\tand.b32 %r12, %r12, ", "\tand.b32 %r12, %r12, -8;\n\tand.b32 %r12, %r12, ");
    text.push_str(&address);
    if instruction.contains("%rs1") {
        text.push_str("\tcvt.u16.u32 %rs1, %r4;\n");
    }
    // Neighbours: their addresses are derived from the first one, unless the code in between hides it.
    // Regions that others may write are loaded, but the values are not used.
    let goes_on = if instruction.starts_with("ld") { ";\n\tadd.u32 %r9, %r9, %r17" } else { "" };
    let mut instruction = instruction.to_owned();
    for _ in 0..below(random, 3) {
        let register = if instruction.contains("[%r14") { "%r14" } else { "%rd9" };
        let bits = if register == "%r14" { 32 } else { 64 };
        let between = match below(random, 6) {
            0 => format!("add.s{bits} {register}, {register}, -4; add.s{bits} {register}, {register}, 8"),
            1 => format!("sub.s{bits} {register}, {register}, -4"),
            2 => format!("mul.lo.s{bits} {register}, {register}, 1"),
            3 if bits == 64 => "add.s64 %rd11, 4, %rd9; mov.u64 %rd9, %rd11".to_owned(),
            4 if !guard.is_empty() => {
                "@%p2 add.s32 %r12, %r12, 0; not.pred %p2, %p2; not.pred %p2, %p2".to_owned()
            }
            _ => "membar.cta".to_owned(),
        };
        let kind = match (register, instruction.split(['.', ' ']).nth(1)) {
            ("%r14", _) => "ld.shared.u8",
            (_, Some("local")) => "ld.local.u8",
            (_, Some("global" | "volatile")) => "ld.global.u8",
            _ => "ld.u8",
        };
        let guard = if below(random, 4) == 0 { "" } else { guard.as_str() };
        let added = below(random, 3);
        instruction =
            format!("{instruction};\n\t{between};\n\t{guard}{kind} %r17, [{register}+{added}]{goes_on}");
    }
    text.push_str(&format!(
        "\t{guard}{instruction};\n\tadd.u32 %r9, %r9, %r10;\n\txor.b32 %r9, %r9, %r12;\n{behind}"
    ));
    text
}

fn case<'a>(shape: Shape) -> Case<'a> {
    let mut memory = Memory::new();
    let number = |index: u32| index.wrapping_mul(2_654_435_761) ^ index >> 3;
    for region in [READ, FAR, WRITTEN] {
        let words = (0..BYTES as u32 / 4).map(|index| number(index ^ region as u32));
        memory.declare(region, words.flat_map(u32::to_le_bytes).collect());
    }
    memory.declare(RESULTS, vec![0; 4 * (shape.threads() * shape.blocks()) as usize]);
    let parameters = [READ, FAR, WRITTEN, RESULTS].map(|address| address.to_le_bytes().to_vec());
    Case { kernel: "k", shape, parameters: parameters.to_vec(), memory, output: RESULTS, dynamic_shared: 0 }
}

/// Returns the numbers of accesses, of known and lost ones, of accesses in unmatched entries, of entries,
/// of derived accesses and of known derived accesses.
fn check(
    extent: Extent,
    kernels: std::ops::Range<u64>,
    first: FirstSegments,
    segments: impl Fn(u64) -> u32,
) -> [u64; 7] {
    let mut sums = [0; 7];
    for number in kernels {
        let mut random = ChaCha8Rng::seed_from_u64(number);
        let sync = number % 2 == 0;
        let count = 1 + below(&mut random, 6) as u32;
        let text = kernel(&mut random, count, sync);
        let placement = [None, Some(Placement::Shared), Some(Placement::Local)][number as usize % 3];
        let traced = Traced::new(&text, Spaces::ALL, placement, if sync { 90 } else { 70 });
        assert_eq!((traced.marked.unrecorded.len(), traced.marked.skipped.len()), (0, 0));
        for seed in (0..20).filter(|seed| extent == Extent::Full || seed % 10 == number % 10) {
            // Whole and partial warps; clocks that wrap.
            let threads = [32, 40, 5, 64][seed as usize % 4];
            let clock = [0, u64::MAX - 1000, 1 << 36, (1 << 36) - 4000][(seed / 4) as usize % 4];
            let shape = Shape {
                grid: [2, 1, 1],
                block: [threads, 1, 1],
                first,
                segments: segments(seed),
                claimed: 0,
                clock,
            };
            let outcome = traced.check(&case(shape), 100 * number + seed);
            let Outcome { accesses, known, lost, unmatched, entries, derived, known_derived } = outcome;
            let all = [accesses, known, lost, unmatched, entries, derived, known_derived];
            sums.iter_mut().zip(all).for_each(|(sum, one)| *sum += one);
        }
    }
    sums
}

in_both_tiers! {
    random_kernels_record_each_access: check_each_access;
    random_kernels_with_little_memory_record_a_beginning: check_little_memory;
}

fn check_each_access(extent: Extent) {
    let kernels = std::env::var("WARPTRACE_RANDOM_KERNELS").ok().and_then(|count| count.parse().ok());
    let [accesses, known, lost, unmatched, entries, derived, known_derived] =
        check(extent, 0..kernels.unwrap_or(12), FirstSegments::of_streams(16), |_| 4096);
    assert_eq!([known, lost, unmatched, known_derived], [accesses, 0, 0, derived]);
    let least = extent.least(5_000);
    assert!(accesses > 4 * least && entries > least && derived > least, "{accesses} {entries} {derived}");
}

fn check_little_memory(extent: Extent) {
    let segments = |seed| [0, 1, 2, 3, 5, 8, 13, 21, 34, 55][seed as usize % 10];
    let [accesses, known, lost, unmatched, _, derived, known_derived] =
        check(extent, 100..112, FirstSegments::of_lanes(8), segments);
    assert_eq!(known + lost + unmatched, accesses);
    let least = extent.least(3_000);
    assert!(known > least && lost > least && unmatched > extent.least(100), "{known} {lost} {unmatched}");
    assert!(known_derived > extent.least(1_000) && known_derived < derived, "{known_derived} of {derived}");
}

/// An entry holds at most 1,023 accesses: a loop of 2,500 with equal steps.
#[test]
fn long_runs_take_several_entries() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64
.visible .entry k(.param .u64 k_read, .param .u64 k_far, .param .u64 k_written, .param .u64 k_results)
{
\t.reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<3>;
\tld.param.u64 %rd1, [k_read];
\tmov.u32 %r1, %tid.x;
\tmul.wide.u32 %rd2, %r1, 16;
\tadd.s64 %rd1, %rd1, %rd2;
\tmov.u32 %r1, 0;
$LOOP:
\tld.global.u32 %r2, [%rd1];
\tadd.s64 %rd1, %rd1, 4;
\tadd.u32 %r1, %r1, 1;
\tsetp.lt.u32 %p1, %r1, 2500;
\t@%p1 bra $LOOP;
\tret;
}
";
    let traced = Traced::new(text, Spaces::ALL, None, 90);
    let shape = Shape {
        grid: [1; 3],
        block: [40, 1, 1],
        first: FirstSegments::of_streams(16),
        segments: 64,
        claimed: 0,
        clock: 0,
    };
    let outcome = traced.check(&case(shape), 3);
    assert_eq!((outcome.known, outcome.lost), (40 * 2500, 0));
    // A header and values for each 1,023 accesses, in two warps, if lanes stay together.
    assert!(outcome.entries >= 12, "{}", outcome.entries);
}
