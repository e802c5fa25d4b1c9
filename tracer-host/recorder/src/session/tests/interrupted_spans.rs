//! Spans of warps of an interrupted launch, on the simulator: exact numbers.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use warptrace_decoder::{Problem, TraceFile};
use warptrace_format::codec::CodecSpec;
use warptrace_format::span::WarpSpan;
use warptrace_macros::kernels;
use warptrace_sim::Progress;

use super::output::Shared;
use crate::{
    DEVICE_PREDICT, Interrupted, LaunchShape, Launcher, MemorySize, Policy, RecordingSpec, Session,
    SessionError, SimDevice, SimOptions, Times, TracedProgram,
};

const BLOCKS: u32 = 5;
const SMS: u32 = 2;
/// Start of the launch, in nanoseconds of the simulator's timer.
const BEGIN: u64 = 1_000;

static FREED: AtomicBool = AtomicBool::new(false);

#[kernels(device = warptrace_device, only_marked)]
mod hanging_kernel {
    use super::{FREED, Relaxed};

    /// Each block has three events more than its number. The last lane of block 0 then hangs.
    #[kernel]
    pub fn hanging(turns: u32) {
        let thread = warptrace_device::simt::global_thread_x();
        for _ in 0..turns + thread / 32 {
            trace!("TURN");
        }
        while thread == 31 && !FREED.load(Relaxed) {
            std::hint::spin_loop();
        }
    }
}
use hanging_kernel::hanging;

const PROGRAM: TracedProgram<'static> =
    TracedProgram { kernels: &[("hanging", "")], modules: &[hanging_kernel::MODULE], ptx: "" };

#[test]
fn warps_that_had_not_ended_began_and_those_behind_them_are_where_they_belong() {
    let asked = Arc::new(AtomicBool::new(false));
    let ask = Arc::clone(&asked);
    let progress = move |done: Progress| ask.store(done.blocks_done == u64::from(BLOCKS) - 1, Relaxed);
    let mut device = SimDevice::new(SimOptions {
        threads: Some(2),
        multiprocessors: Some(SMS),
        progress: Some(Arc::new(progress)),
        ..SimOptions::default()
    });
    let spec = RecordingSpec {
        policy: Policy::Stream,
        times: Times::All,
        memory: Some(MemorySize(1 << 20)),
        ..RecordingSpec::new(CodecSpec::Predict(DEVICE_PREDICT))
    };
    let file = Shared::default();
    let mut session = Session::start(&mut device, &PROGRAM, &spec, file.clone()).unwrap();
    session.interrupt_by(asked, |_: &Interrupted| FREED.store(true, Relaxed)).unwrap();
    // SAFETY: no argument refers to memory.
    let error =
        unsafe { session.launch(&hanging(3), &LaunchShape::linear((32 * BLOCKS).into(), 32)) }.unwrap_err();
    assert!(matches!(error, SessionError::Interrupted { launch: 0, .. }), "{error}");
    drop(session);

    let trace = TraceFile::from_bytes(file.bytes()).unwrap();
    let found: Vec<(u32, WarpSpan)> = trace.warp_spans(0).collect::<Result<_, _>>().unwrap();
    let mut free = [BEGIN; SMS as usize];
    let expected: Vec<(u32, WarpSpan)> = (0..BLOCKS)
        .map(|block| {
            let (sm, events) = (block % SMS, u64::from(3 + block));
            let begin_timer = free[sm as usize];
            free[sm as usize] += events;
            let begin = WarpSpan { begin_timer, begin_sm: sm + 1, ..WarpSpan::default() };
            let end =
                WarpSpan { end_clock: events, end_timer: begin_timer + events, end_sm: sm + 1, ..begin };
            (block, if block == 0 { begin } else { end })
        })
        .collect();
    assert_eq!(found, expected);
    let report = trace.verify();
    let is_of_end = |problem: &Problem| {
        matches!(problem, Problem::EndedEarly { .. } | Problem::Unfinished { .. } | Problem::Incomplete(_))
    };
    assert!(report.problems.iter().all(is_of_end) && report.unfinished_warps == 1, "{report}");
    assert!(report.state.sentence.contains("1 warp not finished"), "{}", report.state.sentence);
    assert!(report.state.sentence.contains("begin or end of 1 warp missing"), "{}", report.state.sentence);
}
