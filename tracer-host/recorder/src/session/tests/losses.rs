//! Every reason for missing events, provoked on the simulator, and its record in the file.

use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::Duration;

use warptrace_decoder::{Completeness, LaunchEnd, LossyWarps, TraceFile, WarpFilter};
use warptrace_device::{KernelCall, SafeCall};
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{LossPosition, LossReason};

use super::kernels::{self, fails, turns};
use super::output::Shared;
use warptrace_macros::kernels;

use crate::{
    LaunchReport, LaunchShape, Launcher, MemorySize, Policy, RecordingSpec, Session, SessionError, SimDevice,
    SimOptions, TracedProgram, Window,
};

/// Lets the kernel `hangs` end.
static RELEASED: AtomicBool = AtomicBool::new(false);
static TURNS: AtomicU32 = AtomicU32::new(0);

#[kernels(device = warptrace_device, only_marked)]
mod hangs_kernel {
    use super::*;

    /// Loops until it is released.
    #[kernel]
    pub fn hangs(turns: u32) {
        while !RELEASED.load(Relaxed) {
            TURNS.fetch_add(1, Relaxed);
            trace!("LEFT");
            trace!("RIGHT");
        }
        assert!(turns == 0);
    }
}
use hangs_kernel::hangs;

const PROGRAM: TracedProgram<'static> = TracedProgram {
    kernels: &[("fails", ""), ("hangs", ""), ("late", "")],
    modules: &[kernels::MODULE],
    ptx: "",
};

fn options(policy: Policy) -> RecordingSpec {
    let stall_limit = (policy == Policy::Stream).then_some(Duration::from_secs(100));
    let memory = Some(MemorySize(1 << 20));
    RecordingSpec { policy, stall_limit, memory, ..RecordingSpec::new(CodecSpec::Raw) }
}

fn device() -> SimDevice {
    SimDevice::new(SimOptions { threads: Some(2), ..SimOptions::default() })
}

/// Lanes of the kernel `late` that have not ended.
static HELD: AtomicU32 = AtomicU32::new(0);

#[kernels(device = warptrace_device, only_marked)]
mod late_kernel {
    use super::*;

    /// Loops while nothing is written.
    #[kernel]
    pub fn late(turns: u32) {
        for _ in 0..turns {
            trace!("LEFT");
            trace!("RIGHT");
        }
        HELD.fetch_sub(1, Relaxed);
    }
}
use late_kernel::late;

/// A file whose writes wait for the lanes of `late`, so that the host is slow.
struct Late(Shared);

impl Write for Late {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        while HELD.load(Relaxed) != 0 {
            std::thread::yield_now();
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Launches two blocks of one warp.
fn launch<W: Write + Send + 'static>(
    session: &mut Session<'_, W>,
    call: &KernelCall,
) -> Result<(), SessionError> {
    // SAFETY: no argument refers to memory.
    unsafe { session.launch(call, &LaunchShape::linear(64, 32)) }.map(drop)
}

/// Records these launches until one fails; returns the trace, the report if none failed, and the error.
fn record(options: &RecordingSpec, calls: &[SafeCall<'_>]) -> (TraceFile, Option<LaunchReport>, String) {
    let (mut device, file) = (device(), Shared::default());
    let mut session = Session::start(&mut device, &PROGRAM, options, file.clone()).unwrap();
    let failed = calls.iter().find_map(|call| launch(&mut session, call).err());
    let report = failed.is_none().then(|| session.finish().unwrap().2);
    let error = failed.map_or_else(String::new, |error| error.to_string());
    (TraceFile::from_bytes(file.bytes()).unwrap(), report, error)
}

/// Returns the loss marks of a launch, each with the number of events before it.
fn marks(trace: &TraceFile, launch: u32) -> Vec<(LossyWarps, u64)> {
    let mut found = Vec::new();
    let flow = trace.items_in_order(launch, 0, &WarpFilter::all().with_marks(), &mut |item| {
        found.extend(item.missing.map(|missing| (missing, item.first_event)));
        ControlFlow::Continue(())
    });
    assert_eq!(flow.unwrap(), ControlFlow::Continue(()));
    found
}

/// Checks that marks, sums and verification match the session's losses, all with one reason.
fn check_counted(trace: &TraceFile, report: &LaunchReport, expected: LossReason) {
    let losses = trace.losses(0, 0).unwrap();
    assert_eq!((losses.recorded, losses.lost()), (report.recorded, report.lost));
    assert_eq!(trace.launch_end(0), Some(LaunchEnd::Completed));
    assert!(losses.losses.iter().all(|loss| loss.reason == expected), "{losses:?}");
    let marks = marks(trace, 0);
    let marked: u64 = marks.iter().map(|(missing, _)| missing.events.unwrap()).sum();
    let by_account: u64 =
        trace.streams(0, 0).unwrap().map(|stream| stream.unwrap().account.unwrap().lost).sum();
    assert_eq!([marked, by_account], [report.lost; 2]);
    let verified = trace.verify();
    assert_eq!((verified.lost_events, verified.lost.unwrap().reason), (report.lost, expected));
    for (missing, next_event) in marks {
        let events = trace.decode_warp(0, missing.first, 0).unwrap().count() as u64;
        assert_eq!(next_event, if missing.position() == LossPosition::End { events } else { 0 });
    }
}

#[test]
fn memory_that_is_full_loses_the_end_of_each_warp() {
    let (trace, report, _) = record(&options(Policy::Stop), &[turns(50_000)]);
    let report = report.unwrap();
    assert!(report.lost > 0 && report.recorded > 0, "{report:?}");
    check_counted(&trace, &report, LossReason::Memory);
}

#[test]
fn lanes_that_do_not_wait_lose_events_somewhere() {
    let (memory, stall_limit) = (Some(MemorySize(200 << 10)), Some(Duration::ZERO));
    let options = RecordingSpec { memory, stall_limit, ..options(Policy::Stream) };
    let (mut device, file) = (device(), Shared::default());
    let mut session = Session::start(&mut device, &PROGRAM, &options, Late(file.clone())).unwrap();
    HELD.store(64, Relaxed);
    launch(&mut session, &late(30_000)).unwrap();
    let (_, _, report) = session.finish().unwrap();
    assert!(report.lost > 0 && report.recorded > 0, "{report:?}");
    let trace = TraceFile::from_bytes(file.bytes()).unwrap();
    check_counted(&trace, &report, LossReason::Timeout);
}

#[test]
fn a_launch_that_fails_is_named_and_ends_the_file() {
    for policy in [Policy::Stop, Policy::Stream] {
        let (trace, _, error) = record(&options(policy), &[turns(10), fails(100)]);
        assert_eq!(*trace.completeness(), Completeness::Complete, "{policy:?}");
        assert_eq!(trace.launch_end(0), Some(LaunchEnd::Completed));
        let Some(LaunchEnd::Failed { message }) = trace.launch_end(1) else { panic!("{policy:?}") };
        assert!(message == error && message.contains("`fails`") && message.contains("as it was told"));
        assert_eq!(trace.losses(0, 0).unwrap().losses, []);
        let losses = trace.losses(1, 0).unwrap().losses;
        assert!(!losses.is_empty() && losses.iter().all(|loss| loss.reason == LossReason::Died));
        let verified = trace.verify();
        assert!(verified.unfinished_warps > 0 && verified.lost_events == 0, "{verified}");
        assert!(verified.to_string().contains("launch 1 of kernel `fails` failed: "), "{verified}");
        let page = verified.to_string();
        assert!(!page.contains("no accounting"), "{page}");
        for (missing, next_event) in marks(&trace, 1) {
            let events = trace.decode_warp(1, missing.first, 0).unwrap().count() as u64;
            assert_eq!((missing.reason, next_event), (LossReason::Died, events));
        }
    }
}

#[test]
fn a_launch_that_finds_no_memory_at_all_is_named() {
    let mut device = device();
    let file = Shared::default();
    let mut session = Session::start(&mut device, &PROGRAM, &options(Policy::Stop), file.clone()).unwrap();
    launch(&mut session, &turns(10)).unwrap();
    // SAFETY: no argument refers to memory.
    let error = unsafe { session.launch(&turns(1), &LaunchShape::linear(1 << 20, 256)) }.unwrap_err();
    assert!(matches!(error, SessionError::Memory { .. }), "{error}");
    drop(session);
    let trace = TraceFile::from_bytes(file.bytes()).unwrap();
    assert_eq!(*trace.completeness(), Completeness::Complete);
    assert_eq!(trace.losses(0, 0).unwrap().recorded, 40, "what came before is there");
    assert_eq!(trace.launch_end(1), Some(LaunchEnd::Failed { message: error.to_string() }));
}

#[test]
fn an_interrupted_launch_is_named() {
    let (mut device, file) = (device(), Shared::default());
    let asked = Arc::new(AtomicBool::new(false));
    let options = options(Policy::Stream);
    let mut session = Session::start(&mut device, &PROGRAM, &options, file.clone()).unwrap();
    session.interrupt_by(Arc::clone(&asked), |_| RELEASED.store(true, Relaxed)).unwrap();
    let watch = std::thread::spawn(move || {
        while TURNS.load(Relaxed) < 20_000 {
            std::thread::yield_now();
        }
        asked.store(true, Relaxed);
    });
    let error = launch(&mut session, &hangs(0)).unwrap_err();
    watch.join().unwrap();
    assert!(matches!(error, SessionError::Interrupted { launch: 0, .. }), "{error}");
    drop(session);
    let trace = TraceFile::from_bytes(file.bytes()).unwrap();
    assert_eq!(*trace.completeness(), Completeness::Complete);
    assert_eq!(trace.launch_end(0), Some(LaunchEnd::Interrupted));
    let marks = marks(&trace, 0);
    assert!(!marks.is_empty() && marks.iter().all(|(missing, _)| missing.reason == LossReason::Died));
}

#[test]
fn warps_outside_of_the_window_are_no_loss() {
    let window = Window { blocks: "1".parse().unwrap(), ..Window::default() };
    for policy in [Policy::Stop, Policy::Stream] {
        let options = RecordingSpec { window: window.clone(), ..options(policy) };
        let (trace, ..) = record(&options, &[turns(10)]);
        assert!(trace.verify().is_ok());
        let losses = trace.losses(0, 0).unwrap();
        let reasons: Vec<_> = losses.losses.iter().map(|loss| loss.reason).collect();
        assert!(losses.is_none() && reasons == [LossReason::NotChosen], "{losses:?}");
        assert_eq!(trace.lossy_warps(0, 0).unwrap().count(), 0);
        assert_eq!(marks(&trace, 0), []);
    }
}
