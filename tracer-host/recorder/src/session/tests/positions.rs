//! Interrupted, hanging and failing kernels on the simulator: the positions of their warps.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use warptrace_decoder::TraceFile;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{EarlyEnd, LanesAt, WarpsAt};
use warptrace_macros::kernels;

use super::output::Shared;
use crate::{
    DEVICE_PREDICT, LaunchShape, Launcher, MemorySize, Policy, RecordingSpec, Session, SessionError,
    SimDevice, SimOptions, Simulated, TracedProgram, Window,
};

#[kernels(device = warptrace_device, only_marked)]
mod places_kernel {
    use warptrace_device::simt;

    /// Warp 0 leaves. Warp 1 loops; then all of its lanes but the last one do what `how` says.
    #[kernel]
    pub fn places(turns: u32, how: u32) {
        let thread = simt::global_thread_x();
        if thread < 32 {
            trace!("LEFT");
            return;
        }
        for turn in 0..turns {
            if (turn * 5 + thread).is_multiple_of(3) {
                trace!("ODD");
            } else {
                trace!("EVEN");
            }
        }
        if thread == 63 {
            trace!("LAST");
        } else {
            trace!("OTHERS");
            loop {
                if how != 1 {
                    break;
                }
                trace!("SPIN");
                simt::spin_hint();
            }
            assert!(how != 2, "as it was told");
        }
        // SAFETY: all lanes of the warp that continue reach this call.
        unsafe { simt::sync_warp(u32::MAX) };
        trace!("DONE");
    }
}
use places_kernel::places;

const PROGRAM: TracedProgram<'static> =
    TracedProgram { kernels: &[("places", "")], modules: &[places_kernel::MODULE], ptx: "" };
/// Location IDs, in source order.
const LAST: u16 = 4;
const OTHERS: u16 = 5;
const SPIN: u16 = 6;

/// Records a launch that completes, and one that does not; returns the file and the error.
fn record(how: u32, turns: u32, spec: &RecordingSpec, asked: Option<bool>) -> (TraceFile, SessionError) {
    let (mut device, file) = (SimDevice::new(SimOptions::default()), Shared::default());
    let mut session = Session::start(&mut device, &PROGRAM, spec, file.clone()).unwrap();
    let told = Arc::new(AtomicBool::new(false));
    let simulated = Simulated { steps: Some(100_000), ..Simulated::default() };
    let shape = LaunchShape { simulated, ..LaunchShape::linear(64, 64) };
    // SAFETY: the arguments are numbers.
    unsafe { session.launch(&places(turns, 0), &shape) }.unwrap();
    if let Some(asked) = asked {
        let tell = Arc::clone(&told);
        let interrupted =
            session.interrupt_by(Arc::new(AtomicBool::new(asked)), move |_| tell.store(true, Relaxed));
        interrupted.unwrap();
    }
    // SAFETY: the arguments are numbers.
    let error = unsafe { session.launch(&places(turns, how), &shape) }.unwrap_err();
    assert_eq!(told.load(Relaxed), asked == Some(true));
    drop(session);
    (TraceFile::from_bytes(file.bytes()).unwrap(), error)
}

fn spec(policy: Policy, memory: u64) -> RecordingSpec {
    let memory = Some(MemorySize(memory));
    RecordingSpec { policy, memory, ..RecordingSpec::new(CodecSpec::Predict(DEVICE_PREDICT)) }
}

/// Returns the expected positions of warp 1: the last lane separate from the others.
fn apart(others: u16) -> Vec<WarpsAt> {
    let of = |location, mask| LanesAt { location, mask, left_behind: false };
    vec![WarpsAt { warps: vec![(1, 1)], lanes: vec![of(LAST, 1 << 31), of(others, !(1 << 31))] }]
}

#[test]
fn of_a_kernel_that_never_ends_the_file_has_the_places_of_its_lanes() {
    for host_logs in [false, true] {
        // Also with full logs.
        for (turns, memory, is_whole) in [(40, 8 << 20, true), (3_000, 256 << 10, false)] {
            let spec = RecordingSpec { host_logs, ..spec(Policy::Stop, memory) };
            let (trace, error) = record(1, turns, &spec, None);
            assert!(error.to_string().contains("more than 100000 steps"), "{error}");
            let Some(EarlyEnd::Running { positions }) = trace.early_end(1) else {
                panic!("{:?}", trace.early_end(1))
            };
            // A lane without a log gets none once memory is full.
            let known = if is_whole { 0..2 } else { 1..2 };
            assert_eq!(positions[0].lanes[known.clone()], apart(SPIN)[0].lanes[known], "{positions:?}");
            assert_eq!((positions.len(), &positions[0].warps), (1, &vec![(1, 1)]));
            let report = trace.verify();
            assert_eq!((report.unfinished_warps, report.lost_events == 0), (1, is_whole), "{report}");
            // The first launch is complete.
            assert_eq!(trace.losses(0, 0).unwrap().losses.is_empty(), is_whole);
            assert!(report.events > 100, "{report}");
        }
    }
}

#[test]
fn of_a_kernel_that_fails_the_file_has_the_places_of_its_lanes() {
    let (trace, error) = record(2, 40, &spec(Policy::Stop, 8 << 20), None);
    assert!(error.to_string().contains("as it was told"), "{error}");
    let Some(EarlyEnd::Failed { message, positions }) = trace.early_end(1) else { panic!() };
    assert_eq!((message, positions), (&error.to_string(), &apart(OTHERS)));
    assert!(trace.early_end(0).is_none() && trace.losses(0, 0).unwrap().losses.is_empty());
    let (trace, _) = record(2, 40, &spec(Policy::Ring, 8 << 20), None);
    let Some(EarlyEnd::Failed { positions, .. }) = trace.early_end(1) else { panic!() };
    assert!(positions.is_empty(), "{positions:?}");
}

#[test]
fn launches_that_hang_are_named_whether_they_are_recorded_or_not() {
    // The second launch is not recorded, or no hanging warp is.
    for (window, how) in [
        (Window { launches: "0".parse().unwrap(), ..Window::default() }, true),
        (Window { warps: "0".parse().unwrap(), ..Window::default() }, false),
    ] {
        let spec = RecordingSpec { window, ..spec(Policy::Stop, 8 << 20) };
        let (trace, error) = record(1, 40, &spec, None);
        let end = trace.early_end(1).unwrap();
        match how {
            true => assert_eq!(*end, EarlyEnd::failed(error.to_string())),
            false => assert_eq!(*end, EarlyEnd::Interrupted),
        }
        let (trace, _) = record(1, 40, &spec, Some(true));
        assert_eq!(trace.early_end(1), Some(&EarlyEnd::Interrupted));
    }
}

#[test]
fn a_device_can_be_used_after_an_interruption() {
    let (mut device, asked) = (SimDevice::new(SimOptions::default()), Arc::new(AtomicBool::new(true)));
    let shape = LaunchShape::linear(64, 64);
    for is_interrupted in [true, false] {
        let file = Shared::default();
        let mut session =
            Session::start(&mut device, &PROGRAM, &spec(Policy::Stop, 8 << 20), file.clone()).unwrap();
        if is_interrupted {
            session.interrupt_by(Arc::clone(&asked), |_| {}).unwrap();
        }
        // SAFETY: the arguments are numbers.
        let launched = unsafe { session.launch(&places(40, 0), &shape) };
        assert_eq!(launched.is_err(), is_interrupted);
    }
}

#[test]
fn a_kernel_that_is_interrupted_ends_and_the_file_has_its_places() {
    let (trace, error) = record(1, 40, &spec(Policy::Stop, 8 << 20), Some(true));
    assert!(matches!(error, SessionError::Interrupted { launch: 1, .. }), "{error}");
    assert!(matches!(trace.early_end(1), Some(EarlyEnd::Running { .. })), "{:?}", trace.early_end(1));
    let (trace, error) = record(1, 40, &spec(Policy::Stop, 8 << 20), Some(false));
    assert!(matches!(error, SessionError::Device(_)) && trace.early_end(1).is_some(), "{error}");
}
