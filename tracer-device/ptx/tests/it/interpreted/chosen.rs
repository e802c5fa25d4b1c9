//! Kernels with chosen warps: the other warps run the original instructions.

use warptrace_format::chosen::ChosenWarps;
use warptrace_ptx::Module;
use warptrace_ptx::interpret::Observed;
use warptrace_ptx::splice::{LogKind, Options, Placement, Recording, SpliceError, splice};

use super::Extent;
use super::case::{Shape, Traced};
use super::drainer::Streaming;
use super::kernels::{module, run_spliced};
use super::launch;
use super::logs::{Layout, Track};
use super::sequences::{shape, splicings};
use super::streams::Seen;
use warptrace_abi::log::FirstSegments;

/// Returns choices of a launch's warps. A part of the cases uses one of them.
fn choices(extent: Extent, number: u64, shape: Shape) -> Vec<ChosenWarps> {
    let (blocks, warps) = (shape.blocks(), shape.block_warps());
    let all = ChosenWarps::all(blocks, warps);
    let mut choices = vec![
        all,
        ChosenWarps { blocks: 1, ..all },
        ChosenWarps { first_block: blocks - 1, blocks: 1, ..all },
        ChosenWarps { blocks: blocks.div_ceil(2), block_step: 2, ..all },
        ChosenWarps { first_warp: warps - 1, block_warps: 1, ..all },
    ];
    if blocks > 3 {
        choices.push(ChosenWarps { first_block: 1, blocks: (blocks - 1).div_ceil(3), block_step: 3, ..all });
    }
    match extent {
        Extent::Full => choices,
        Extent::Part => vec![choices[number as usize % choices.len()]],
    }
}

fn check_all(extent: Extent, placement: Placement, calls: bool, segments: u32) {
    let (mut chosen_warps, mut others) = (0, 0);
    for (number, splicing) in extent.choose(splicings(placement, calls)) {
        let shape = shape(number, segments);
        for chosen in choices(extent, number, shape) {
            assert!(chosen.fits(shape.blocks(), shape.block_warps()));
            let traced = Traced::choosing(splicing, false, chosen);
            let mix = traced.mix(8 + 8 * (number % 5) as usize, number % 2 == 0, number % 3 != 0);
            let outcome = traced.check(number, mix, shape);
            assert!(outcome.tracks.iter().all(|track| track.len() as u32 == chosen.count()));
            chosen_warps += u64::from(chosen.count());
            others += u64::from(shape.blocks() * shape.block_warps() - chosen.count());
        }
    }
    let least = extent.least(200);
    assert!(chosen_warps > least && others > least, "{chosen_warps} {others}");
}

in_both_tiers! {
    chosen_warps_record_in_registers_and_the_others_not:
        |extent| check_all(extent, Placement::Registers, false, 1 << 12);
    chosen_warps_record_in_shared_memory_and_the_others_not:
        |extent| check_all(extent, Placement::Shared, false, 1 << 12);
    chosen_warps_record_in_local_memory_and_lose_what_has_no_room:
        |extent| check_all(extent, Placement::Local, false, 1);
    only_chosen_warps_call_functions_that_record: |extent| check_all(extent, Placement::Shared, true, 1 << 12);
    chosen_warps_stream_from_registers_and_the_others_not:
        |extent| check_streams(extent, Placement::Registers, false);
    only_chosen_warps_call_functions_that_stream: |extent| check_streams(extent, Placement::Shared, true);
    chosen_warps_stream_from_local_memory_and_lose_what_has_no_room: |extent: Extent| {
        let seen = stream_all(extent, Placement::Local, false, 16);
        assert!(seen.lost > extent.least(500) && seen.kept > extent.least(1_000), "{seen:?}");
    };
}

fn stream_all(extent: Extent, placement: Placement, calls: bool, most: u32) -> Seen {
    let mut seen = Seen::default();
    for (number, splicing) in extent.choose(splicings(placement, calls)) {
        let shape = shape(number, 0);
        for chosen in choices(extent, number, shape) {
            let traced = Traced::choosing(splicing, true, chosen);
            let mix = traced.mix(16 + 16 * (number % 3) as usize, number % 2 == 0, number % 3 != 0);
            let least = 32 * chosen.count() * traced.tracks() + 1;
            let stall = if extent == Extent::Full { 40_000 } else { 10_000 };
            let streaming = Streaming { stall, ..Streaming::patient(least.min(most)) };
            let streaming = if least > most { streaming } else { Streaming::patient(least) };
            traced.stream(number, mix, shape, streaming, &mut seen);
        }
    }
    seen
}

fn check_streams(extent: Extent, placement: Placement, calls: bool) {
    let seen = stream_all(extent, placement, calls, u32::MAX);
    let enough = seen.whole > extent.least(200) && seen.kept > extent.least(5_000);
    assert!(seen.lost == 0 && enough, "{seen:?}");
}

const CHOOSING: Recording = Recording { chooses: true, ..Recording::DEFAULT };

fn options(recording: Recording) -> Options<'static> {
    Options { recording: Some(recording), architecture: 90, ..Options::default() }
}

/// Runs the kernel `k`, without parameters, in four blocks of 40 threads. Chooses blocks 1 and 3.
fn trace(kernel: &str) -> (Observed, Vec<Track>) {
    let chosen = ChosenWarps { first_block: 1, blocks: 2, block_step: 2, first_warp: 0, block_warps: 2 };
    let mut layout = Layout::new([chosen.count(), 1], 40, FirstSegments::of_streams(8), 8, 0);
    layout.launch.chosen = chosen;
    let launch = launch("k$traced", [2, 2, 1], [8, 5, 1], Vec::new());
    let (observed, memory) = run_spliced(&module(kernel), &options(CHOOSING), &layout, 0, launch);
    let tracks = layout.read(&memory, 0).remove(0);
    (observed, tracks)
}

#[test]
fn every_kind_of_end_ends_the_others_too() {
    for end in ["ret;", "exit;", "", "setp.lt.u32 %p, %r, 7; @%p ret; exit;", "@!%p bra $L; ret;\n$L: exit;"]
    {
        let kernel = format!(
            ".visible .entry k()\n{{\n.reg .pred %p; .reg .b32 %r;\n.shared .align 4 .b8 common[4];\n.local .b8 own[4];\n\
             mov.u32 %r, %tid.x; setp.lt.u32 %p, %r, 4;\n@%p bra $M;\n// warptrace.loc 9\n$M:\n// warptrace.loc 8\n{end}\n}}"
        );
        let (observed, tracks) = trace(&kernel);
        let lanes = |warp: u32, location| -> u32 {
            let here = observed.markers.iter().filter(|event| event.warp == warp);
            here.filter(|event| event.marker == location).map(|event| event.mask.count_ones()).sum()
        };
        use warptrace_ptx::splice::Marker::Event;
        for warp in 0..8 {
            let all = if warp % 2 == 0 { 32 } else { 8 };
            assert_eq!(
                (lanes(warp, Event(9)), lanes(warp, Event(8))),
                (all / 2, all),
                "warp {warp}, `{end}`"
            );
        }
        for (track, all) in tracks.iter().zip([32, 8, 32, 8]) {
            let lanes: u32 = track.entries.iter().map(|entry| entry.count * entry.mask.count_ones()).sum();
            assert_eq!(lanes, all + all / 2, "`{end}`");
        }
    }
}

#[test]
fn what_warps_share_is_there_once() {
    let kernel = ".visible .entry k()\n{\n.shared .align 4 .b8 common[4];\n.reg .b32 %r;\nmov.u32 %r, common;\nret;\n}";
    let spliced = splice(&module(kernel), &options(CHOOSING)).expect("it can be spliced");
    let text = Module::parse(&spliced.text).expect("PTX").functions[1].span.text(&spliced.text);
    assert_eq!(
        (text.matches(".shared").count(), text.matches("mov.u32 %r, common;").count()),
        (1, 2),
        "{text}"
    );

    let inner = ".visible .entry k()\n{\n{\n.shared .align 4 .b8 inner[4];\n}\nret;\n}";
    let function = ".func f() { .shared .b32 count; // warptrace.loc 4\nret; }\n.visible .entry k() { call f, (); ret; }";
    for (kernel, function, variable) in [(inner, "k", "inner"), (function, "f", "count")] {
        let named = SpliceError::Shared { function: function.to_owned(), variable: variable.to_owned() };
        assert_eq!(splice(&module(kernel), &options(CHOOSING)).expect_err("twice"), named);
        splice(&module(kernel), &options(Recording::DEFAULT)).expect("all warps record");
    }
}

#[test]
fn a_kernel_that_does_not_ask_is_as_it_was() {
    let kernel = ".visible .entry k()\n{\n// warptrace.loc 9\nret;\n}";
    let text = |chooses| {
        splice(&module(kernel), &options(Recording { chooses, ..CHOOSING })).expect("it is spliced").text
    };
    assert!(text(false).contains("warptrace_launch[64]") && text(true).contains("warptrace_launch[88]"));
    assert_eq!(text(false).matches("// warptrace.loc 9").count(), 2);
    assert_eq!(text(true).matches("// warptrace.loc 9").count(), 3);
    assert!(!text(false).contains("div.u32"));
    let logs = LogKind::Streamed;
    let streamed = |chooses| options(Recording { chooses, logs, ..CHOOSING });
    let text = |chooses| splice(&module(kernel), &streamed(chooses)).expect("it is spliced").text;
    assert!(text(false).contains("warptrace_launch[64]") && text(true).contains("warptrace_launch[88]"));
    assert!(!text(false).contains("div.u32"));
}
