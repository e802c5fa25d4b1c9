//! Spans of warps on the simulator: exact numbers with any policy, window and memory.

use warptrace_decoder::TraceFile;
use warptrace_format::codec::CodecSpec;
use warptrace_format::span::WarpSpan;
use warptrace_macros::kernels;

use super::output::Shared;
use crate::{
    DEVICE_PREDICT, LaunchShape, Launcher, MemorySize, Policy, RecordingSpec, Session, SimDevice, SimOptions,
    Times, TracedProgram, Window,
};

/// Blocks of a launch, warps of a block, and multiprocessors.
const BLOCKS: u32 = 10;
const WARPS: u32 = 2;
const SMS: u32 = 3;
/// The block that takes long.
const SLOW: u32 = 4;
/// Nanoseconds between two launches.
const GAP: u64 = 1_000;

#[kernels(device = warptrace_device, only_marked)]
mod uneven_kernel {
    use super::{SLOW, WARPS};

    /// Each warp loops as often as its number, 50 times as often in one block. Lanes above 15 leave before.
    #[kernel]
    pub fn uneven(more: u32) {
        let thread = warptrace_device::simt::global_thread_x();
        let warp = thread / 32;
        trace!("BEGIN");
        if thread % 32 > 15 {
            return;
        }
        let turns = more + (warp + 1) * if warp / WARPS == SLOW { 50 } else { 1 };
        for turn in 0..turns {
            if turn % 2 == 0 {
                trace!("EVEN");
            } else {
                trace!("ODD");
            }
        }
    }
}
use uneven_kernel::uneven;

const PROGRAM: TracedProgram<'static> =
    TracedProgram { kernels: &[("uneven", "")], modules: &[uneven_kernel::MODULE], ptx: "" };

/// Records launches, each with the additional iterations in `launches`.
fn record(spec: &RecordingSpec, launches: &[u32]) -> TraceFile {
    let options = SimOptions { multiprocessors: Some(SMS), ..SimOptions::default() };
    let mut device = SimDevice::new(options);
    let file = Shared::default();
    let mut session = Session::start(&mut device, &PROGRAM, spec, file.clone()).unwrap();
    for &more in launches {
        // SAFETY: the kernel's argument is a number.
        unsafe {
            session.launch(&uneven(more), &LaunchShape::linear((BLOCKS * 32 * WARPS).into(), 32 * WARPS))
        }
        .unwrap();
    }
    session.finish().unwrap();
    TraceFile::from_bytes(file.bytes()).unwrap()
}

/// Returns the spans and the end of a launch. The simulator's clock counts a warp's events.
fn expected(more: u32, start: u64, is_chosen: impl Fn(u32) -> bool) -> (Vec<(u32, WarpSpan)>, u64) {
    let (mut free, mut spans) = ([start; SMS as usize], Vec::new());
    for block in 0..BLOCKS {
        let (sm, mut longest) = (block % SMS, 0);
        let begin = free[sm as usize];
        for warp in (block * WARPS..(block + 1) * WARPS).filter(|warp| is_chosen(*warp)) {
            let events = u64::from(1 + more + (warp + 1) * if block == SLOW { 50 } else { 1 });
            let span = WarpSpan {
                begin_clock: 0,
                begin_timer: begin,
                end_clock: events,
                end_timer: begin + events,
                begin_sm: sm + 1,
                end_sm: sm + 1,
            };
            spans.push((warp, span));
            longest = longest.max(events);
        }
        free[sm as usize] += longest;
    }
    (spans, free.into_iter().max().unwrap_or(start))
}

fn found(trace: &TraceFile, launch: u32) -> Vec<(u32, WarpSpan)> {
    trace.warp_spans(launch).collect::<Result<_, _>>().unwrap()
}

fn spec(times: Times) -> RecordingSpec {
    let memory = Some(MemorySize(64 << 20));
    RecordingSpec { times, memory, ..RecordingSpec::new(CodecSpec::Predict(DEVICE_PREDICT)) }
}

#[test]
fn warps_lie_on_one_axis_with_every_policy() {
    for times in [Times::Blocks, Times::All] {
        for policy in Policy::ALL {
            for (dual, kib) in [(false, 64 << 10), (true, 64 << 10), (false, 3 << 10)] {
                let memory = Some(MemorySize(kib << 10));
                let spec = RecordingSpec { policy, dual, memory, ..spec(times) };
                let trace = record(&spec, &[0, 7]);
                let (first, end) = expected(0, GAP, |_| true);
                assert_eq!(found(&trace, 0), first, "{policy} {dual} {kib}");
                assert_eq!(found(&trace, 1), expected(7, end + GAP, |_| true).0, "{policy} {dual} {kib}");
                let report = trace.verify();
                assert_eq!(report.timed_warps, u64::from(2 * BLOCKS * WARPS), "{report}");
                let unlost = report.problems.iter().filter(|problem| !problem.to_string().contains("lost"));
                assert_eq!(unlost.count(), 0, "{report}");
                assert_eq!(trace.has_times(), times == Times::All);
            }
        }
    }
}

#[test]
fn what_is_lost_is_timed_all_the_same() {
    let spec = RecordingSpec { memory: Some(MemorySize(1 << 20)), chunk_bytes: 512, ..spec(Times::Blocks) };
    let trace = record(&spec, &[30_000]);
    assert!(trace.verify().lost_events > 0);
    assert_eq!(found(&trace, 0), expected(30_000, GAP, |_| true).0);
}

#[test]
fn chosen_warps_only_are_timed() {
    for policy in Policy::ALL {
        let window = Window { blocks: "1/4".parse().unwrap(), ..Window::default() };
        let spec = RecordingSpec { window, policy, ..spec(Times::All) };
        let trace = record(&spec, &[0]);
        let info = *trace.launch(0).unwrap();
        assert!(!info.is_whole() && info.is_recorded());
        assert_eq!(found(&trace, 0), expected(0, GAP, |warp| info.is_chosen(warp)).0, "{policy}");
        assert_eq!(trace.verify().problems.len(), 0);
    }
}

#[test]
fn without_them_nothing_is_told() {
    for times in [Times::Off, Times::Runs] {
        let trace = record(&spec(times), &[0]);
        assert!(!trace.has_spans() && found(&trace, 0).is_empty());
        assert_eq!(trace.verify().timed_warps, 0);
    }
}
