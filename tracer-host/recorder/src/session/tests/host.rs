//! Host times of launches: exact numbers from a clock with fixed steps.

use warptrace_decoder::TraceFile;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{ClockReading, HostLaunch};
use warptrace_macros::kernels;

use super::output::Shared;
use crate::{
    DEVICE_PREDICT, HostClock, LaunchShape, Launcher, MemorySize, Moment, Policy, RecordingSpec, Session,
    SimDevice, SimOptions, Times, TracedProgram, Window,
};

/// First reading of the clock, and its step.
const START: Moment = Moment { realtime: 1_790_000_000_123_456_789, monotonic: 77_000 };
const STEP: u64 = 1_000;

#[kernels(device = warptrace_device, only_marked)]
mod turning_kernel {
    /// Loops, and fails if `turns` is 13.
    #[kernel]
    pub fn turning(turns: u32) {
        for _ in 0..turns {
            trace!("TURN");
        }
        assert!(turns != 13, "as it was told");
    }
}
use turning_kernel::turning;

const PROGRAM: TracedProgram<'static> =
    TracedProgram { kernels: &[("turning", "")], modules: &[turning_kernel::MODULE], ptx: "" };

fn device() -> SimDevice {
    SimDevice::new(SimOptions { clock: HostClock::steps(START, STEP), ..SimOptions::default() })
}

fn spec(policy: Policy, times: Times) -> RecordingSpec {
    let memory = Some(MemorySize(8 << 20));
    RecordingSpec { policy, times, memory, ..RecordingSpec::new(CodecSpec::Predict(DEVICE_PREDICT)) }
}

/// The clocks at the reading with this number, from 0.
fn at(reads: u64) -> Moment {
    Moment { realtime: START.realtime + reads * STEP, monotonic: START.monotonic + reads * STEP }
}

/// Without a device timer the clocks are read once.
fn reading(reads: u64) -> ClockReading {
    let Moment { realtime, monotonic } = at(reads);
    ClockReading { realtime, monotonic, timer: None, width: 0 }
}

/// The clocks are read at the begin and at the end of a launch.
fn ran(launch: u32) -> HostLaunch {
    let begin = at(1 + 2 * u64::from(launch)).realtime;
    HostLaunch { launch, begin, nanoseconds: Some(STEP) }
}

fn record(spec: &RecordingSpec, launches: &[u32]) -> TraceFile {
    let (mut device, file) = (device(), Shared::default());
    let mut session = Session::start(&mut device, &PROGRAM, spec, file.clone()).unwrap();
    let mut has_failed = false;
    session.recorder.label("turns");
    for &turns in launches {
        // SAFETY: the kernel's argument is a number.
        has_failed = unsafe { session.launch(&turning(turns), &LaunchShape::linear(64, 64)) }.is_err();
    }
    if !has_failed {
        session.finish().unwrap();
    }
    TraceFile::from_bytes(file.bytes()).unwrap()
}

fn launches(trace: &TraceFile) -> Vec<HostLaunch> {
    trace.host_launches().copied().collect()
}

#[test]
fn each_launch_is_noted_recorded_or_not() {
    for policy in Policy::ALL {
        for times in [Times::Runs, Times::Blocks, Times::All] {
            let window = Window { launches: "1".parse().unwrap(), ..Window::default() };
            for spec in [spec(policy, times), RecordingSpec { window, ..spec(policy, times) }] {
                let trace = record(&spec, &[3, 4, 5]);
                assert_eq!(launches(&trace), [0, 1, 2].map(ran), "{policy} {times:?}");
                assert_eq!(trace.clock_readings(), [reading(0), reading(7)]);
                assert_eq!(trace.on_host(5), None);
                assert!((0..3).all(|launch| trace.label(launch) == Some("turns")), "{policy}");
                assert!(trace.verify().is_ok(), "{}", trace.verify());
            }
        }
    }
}

#[test]
fn a_launch_that_failed_is_noted_until_that_was_seen() {
    for policy in Policy::ALL {
        let trace = record(&spec(policy, Times::Blocks), &[3, 13]);
        assert_eq!(launches(&trace), [0, 1].map(ran), "{policy}");
        assert_eq!(trace.clock_readings(), [reading(0)]);
    }
}

#[test]
fn without_times_nothing_is_noted() {
    let trace = record(&spec(Policy::Stop, Times::Off), &[3]);
    assert!(launches(&trace).is_empty() && trace.clock_readings().is_empty());
}
