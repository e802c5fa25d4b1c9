//! Time and place of warps.

use warptrace_format::chosen::ChosenWarps;
use warptrace_format::span::WarpSpan;
use warptrace_ptx::interpret::{CLOCKS_APART, Launch};
use warptrace_ptx::splice::{LogKind, Options, Placement, Recording};

use super::case::{MULTIPROCESSORS, Shape, Traced};
use super::kernels::run_spliced;
use super::launch;
use super::logs::{ACCOUNTS, Layout, Track};

pub(crate) fn read_spans(bytes: &[u8]) -> Vec<WarpSpan> {
    let span = |bytes: &[u8]| {
        let [begin_clock, begin_timer, end_clock, end_timer, sms] =
            [0, 8, 16, 24, 32].map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes")));
        let (begin_sm, end_sm) = (sms as u32, (sms >> 32) as u32);
        WarpSpan { begin_clock, begin_timer, end_clock, end_timer, begin_sm, end_sm }
    };
    bytes.chunks_exact(size_of::<WarpSpan>()).map(span).collect()
}

/// Checks that runs begin within their warp's span. `tracks` may be empty.
pub(crate) fn check_spans(traced: &Traced, shape: Shape, spans: &[WarpSpan], tracks: &[Track]) {
    let recorded = traced.recorded(shape);
    assert_eq!(spans.len() as u32, recorded.count());
    for (index, span) in (0..).zip(spans) {
        let warp = recorded.warp(index, shape.block_warps()).expect("a warp that records");
        let sm = warp / shape.block_warps() % MULTIPROCESSORS;
        assert_eq!([span.begin_sm, span.end_sm], [sm + 1; 2], "warp {warp}");
        // If the clock wraps, the latest value is not the greatest.
        if shape.clock.checked_add(1 << 32).is_none() {
            continue;
        }
        let clock = shape.clock + u64::from(sm) * CLOCKS_APART;
        assert!(clock < span.begin_clock && span.begin_clock < span.end_clock, "warp {warp}: {span:?}");
        assert!(
            shape.clock <= span.begin_timer && span.begin_timer < span.end_timer,
            "warp {warp}: {span:?}"
        );
        let units = |clock: u64| (clock >> 4) as u32;
        let length = units(span.end_clock - (span.begin_clock & !15));
        for entry in tracks.get(index as usize).into_iter().flat_map(|track| &track.entries) {
            let since = entry.time.wrapping_sub(units(span.begin_clock));
            assert!(since <= length, "warp {warp}: {entry:?} {span:?}");
        }
    }
}

/// A kernel in which lane `l` of block `b` executes `l` iterations, in block 2 50 times as many. Lane 0 exits
/// at once; every second of the other lanes takes another exit.
const KERNEL: &str = ".version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{
.reg .pred %p; .reg .b32 %r<4>;
mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;
// warptrace.loc 1
setp.eq.u32 %p, %r0, 0;
@%p ret;
setp.ne.u32 %p, %r1, 2;
@%p bra $L;
mul.lo.u32 %r0, %r0, 50;
$L:
// warptrace.loc 2
sub.u32 %r0, %r0, 1;
setp.ne.u32 %p, %r0, 0;
@%p bra $L;
mov.u32 %r2, %tid.x; and.b32 %r2, %r2, 1;
setp.eq.u32 %p, %r2, 0;
@%p exit;
// warptrace.loc 3
ret;
}
";
/// Instructions of an iteration, without recording.
const LOOP: u64 = 3;

fn spans(placement: Placement, dual: bool, chosen: Option<ChosenWarps>, grid: u32) -> Vec<WarpSpan> {
    let recording = Recording {
        placement: Some(placement),
        dual,
        spans: true,
        chooses: chosen.is_some(),
        logs: LogKind::Ring,
        ..Recording::DEFAULT
    };
    let options = Options { recording: Some(recording), architecture: 90, ..Options::default() };
    let warps = chosen.map_or(2 * grid, |chosen| chosen.count());
    let mut layout = Layout::ring([warps, recording.tracks()], 40, 16);
    layout.launch.chosen = chosen.unwrap_or_default();
    let launch = launch("k$traced", [grid, 1, 1], [40, 1, 1], Vec::new());
    let launch = Launch { clock: 1_000, multiprocessors: MULTIPROCESSORS, ..launch };
    let (_, memory) = run_spliced(KERNEL, &options, &layout, warps as usize * size_of::<WarpSpan>(), launch);
    read_spans(&memory.region(ACCOUNTS).expect("a region")[layout.account_bytes()..])
}

#[test]
fn the_last_lane_that_leaves_ends_a_warp() {
    for (placement, dual) in
        [(Placement::Registers, false), (Placement::Shared, true), (Placement::Local, false)]
    {
        let spans = spans(placement, dual, None, 7);
        let cycles: Vec<u64> = spans.iter().map(|span| span.end_clock - span.begin_clock).collect();
        for (warp, cycles) in cycles.iter().enumerate() {
            let iterations = [31, 39][warp % 2] * if warp / 2 == 2 { 50 } else { 1 };
            assert!(*cycles > iterations * LOOP, "warp {warp}: {cycles} cycles");
            assert!(spans[warp].end_timer - spans[warp].begin_timer >= iterations * LOOP, "warp {warp}");
            let sm = warp as u32 / 2 % MULTIPROCESSORS + 1;
            assert_eq!([spans[warp].begin_sm, spans[warp].end_sm], [sm; 2]);
        }
        // The slow block is clearly slower, whatever the cost of recording.
        let others = (0..14).filter(|warp| warp / 2 != 2).map(|warp| cycles[warp]).max();
        let slow = cycles[4].min(cycles[5]);
        assert!(others.is_some_and(|most| slow > 5 * most), "{cycles:?}");
    }
}

#[test]
fn only_chosen_warps_say_where_they_ran() {
    let chosen = ChosenWarps { first_block: 1, blocks: 2, block_step: 3, first_warp: 1, block_warps: 1 };
    let spans = spans(Placement::Registers, false, Some(chosen), 6);
    let sms: Vec<u32> = spans.iter().map(|span| span.begin_sm).collect();
    assert_eq!(sms, [2, 2]);
    assert!(spans.iter().all(|span| span.end_timer > span.begin_timer));
}
