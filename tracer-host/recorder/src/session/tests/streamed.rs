//! Streamed sessions on the simulator: interruptions, failing kernels, and slow hosts.

use std::io::Write;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use warptrace_decoder::{TraceFile, VerifyReport};
use warptrace_format::codec::CodecSpec;

use warptrace_macros::kernels;

use super::kernels::{fails, turns};
use super::output::{Full, Shared};
use crate::session::Interrupted;
use crate::{
    DEVICE_PREDICT, LaunchShape, Launcher, MemorySize, Policy, RecordingSpec, Session, SessionError,
    SimDevice, SimOptions, TracedProgram,
};

/// Lets the kernel `hangs` end.
static RELEASED: AtomicBool = AtomicBool::new(false);
static TURNS: AtomicU32 = AtomicU32::new(0);

#[kernels(device = warptrace_device, only_marked)]
mod hangs_kernel {
    use super::*;

    /// Lanes of warp 1 loop until they are released; the others leave.
    #[kernel]
    pub fn hangs(turns: u32) {
        if warptrace_device::simt::global_thread_x() / 32 == 1 {
            while !RELEASED.load(Relaxed) {
                TURNS.fetch_add(1, Relaxed);
                trace!("LEFT");
                trace!("RIGHT");
            }
        } else {
            trace!("ALONE");
        }
        assert!(turns == 0);
    }
}
use hangs_kernel::hangs;

#[kernels(device = warptrace_device, only_marked)]
mod scatters_kernel {
    /// Lanes branch depending on their number and the iteration.
    #[kernel]
    pub fn scatters(turns: u32) {
        let thread = warptrace_device::simt::global_thread_x();
        for turn in 0..turns + thread / 32 % 7 {
            if (thread.wrapping_mul(2_654_435_769) >> (turn % 29)).is_multiple_of(2) {
                trace!("LEFT");
            } else {
                trace!("RIGHT");
            }
        }
        trace!("ALONE");
    }
}
use scatters_kernel::scatters;

/// Set by block 1 of `waits`.
static SET: AtomicBool = AtomicBool::new(false);

#[kernels(device = warptrace_device, only_marked)]
mod waits_kernel {
    use super::*;

    /// Block 0 loops until block 1 has run this many iterations.
    #[kernel]
    pub fn waits(turns: u32) {
        if warptrace_device::simt::global_thread_x() < 32 {
            while !SET.load(Relaxed) {
                trace!("LEFT");
                trace!("RIGHT");
            }
        } else {
            for _ in 0..turns {
                trace!("ALONE" = 3);
                trace!("AGAIN");
            }
            SET.store(true, Relaxed);
        }
    }
}
use waits_kernel::waits;

const PROGRAM: TracedProgram<'static> = TracedProgram {
    kernels: &[("fails", ""), ("turns", ""), ("waits", ""), ("scatters", "")],
    modules: &[hangs_kernel::MODULE],
    ptx: "",
};

fn verify(file: &Shared) -> VerifyReport {
    TraceFile::from_bytes(file.bytes()).unwrap().verify()
}

fn options(max_wait: Duration, memory: u64) -> RecordingSpec {
    RecordingSpec {
        policy: Policy::Stream,
        stall_limit: Some(max_wait),
        memory: Some(MemorySize(memory)),
        ..RecordingSpec::new(CodecSpec::Predict(DEVICE_PREDICT))
    }
}

fn device() -> SimDevice {
    SimDevice::new(SimOptions { threads: Some(2), ..SimOptions::default() })
}

#[test]
fn what_a_refused_launch_is_said_to_need_is_enough() {
    let recorded = |lanes: u64, memory: u64| {
        let mut device = device();
        let options = options(Duration::from_secs(100), memory);
        let mut session = Session::start(&mut device, &PROGRAM, &options, Shared::default())?;
        // SAFETY: no argument refers to memory.
        unsafe { session.launch(&scatters(3), &LaunchShape::linear(lanes, 64)) }?;
        session.finish().map(|(_, _, report)| report)
    };
    for lanes in [1 << 12, 1 << 14, 50_000] {
        // Each of these has a part for rounds.
        for memory in [1 << 19, 1 << 20, 3 << 19] {
            let Err(error) = recorded(lanes, memory) else { continue };
            let SessionError::Memory { needed: Some(needed), limit, .. } = error else { panic!("{error}") };
            assert!(limit == memory && needed > memory, "{lanes} lanes: {error}");
            assert_eq!(recorded(lanes, needed).unwrap().lost, 0, "{lanes} lanes in {needed} bytes");
        }
    }
    assert!(recorded(50_000, 3 << 19).is_err(), "or this shows little");
}

#[test]
fn an_interrupted_kernel_leaves_a_file_and_is_named() {
    let (file, asked) = (Shared::default(), Arc::new(AtomicBool::new(false)));
    let told = Arc::new(Mutex::new(None));
    let mut device = device();
    let options = options(Duration::from_secs(100), 1 << 20);
    let mut session = Session::start(&mut device, &PROGRAM, &options, file.clone()).unwrap();
    let tell = Arc::clone(&told);
    let told_of = session.interrupt_by(Arc::clone(&asked), move |interrupted: &Interrupted| {
        *tell.lock().unwrap() = Some(interrupted.clone());
        // Otherwise the kernel would never end.
        RELEASED.store(true, Relaxed);
    });
    told_of.unwrap();
    let watch = std::thread::spawn(move || {
        while TURNS.load(Relaxed) < 20_000 {
            std::thread::yield_now();
        }
        asked.store(true, Relaxed);
    });
    let call = hangs(0);
    // SAFETY: no argument refers to memory.
    let error = unsafe { session.launch(&call, &LaunchShape::linear(64, 64)) }.unwrap_err();
    watch.join().unwrap();
    let is_it = |kernel: &str| kernel == call.name();
    assert!(matches!(&error, SessionError::Interrupted { launch: 0, kernel } if is_it(kernel)), "{error}");
    drop(session);
    let told = told.lock().unwrap().take().unwrap();
    assert_eq!((told.kernel.as_str(), told.launch), (call.name(), 0));
    let verified = verify(&file);
    assert_eq!((verified.lost_events, verified.unfinished_warps), (0, 1), "{verified:?}");
    assert!(verified.events > 1_000, "{verified:?}");
}

#[test]
fn of_a_kernel_that_fails_the_file_has_what_had_come_of_it() {
    let file = Shared::default();
    let mut device = device();
    let options = options(Duration::from_secs(100), 200 << 10);
    let mut session = Session::start(&mut device, &PROGRAM, &options, file.clone()).unwrap();
    // SAFETY: no argument refers to memory.
    let error = unsafe { session.launch(&fails(60_000), &LaunchShape::linear(32, 32)) }.unwrap_err();
    assert!(error.to_string().contains("as it was told"), "{error}");
    drop(session);
    let verified = verify(&file);
    assert!(verified.events > 50_000, "what went through 200 KiB of memory is there: {verified:?}");
    assert_eq!((verified.lost_events, verified.unfinished_warps), (0, 1), "{verified:?}");
}

#[test]
fn no_kernel_waits_for_a_disk_that_is_full() {
    let mut device = device();
    // The wait is longer than a test may take.
    let options = RecordingSpec { codec: CodecSpec::Raw, ..options(Duration::from_secs(3_600), 200 << 10) };
    let mut session = Session::start(&mut device, &PROGRAM, &options, Full(4_000)).unwrap();
    // SAFETY: no argument refers to memory.
    let error = unsafe { session.launch(&turns(200_000), &LaunchShape::linear(32, 32)) }.unwrap_err();
    assert!(matches!(error, SessionError::Write(_)), "{error}");
}

/// Whether the disk waits for `waits`.
static HELD: AtomicBool = AtomicBool::new(false);

/// A disk that, if held, writes nothing before block 1 of `waits` has ended.
#[derive(Clone)]
struct Slow(Shared);

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        while HELD.load(Relaxed) && !SET.load(Relaxed) {
            std::thread::yield_now();
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_kernel_whose_blocks_wait_for_each_other_ends_however_slow_the_disk_is() {
    for (max_wait, is_held) in
        [(Duration::from_secs(600), false), (Duration::from_millis(1), true), (Duration::ZERO, false)]
    {
        SET.store(false, Relaxed);
        HELD.store(false, Relaxed);
        let file = Shared::default();
        let mut device = device();
        let options = options(max_wait, 200 << 10);
        let mut session = Session::start(&mut device, &PROGRAM, &options, Slow(file.clone())).unwrap();
        HELD.store(is_held, Relaxed);
        // SAFETY: no argument refers to memory.
        unsafe { session.launch(&waits(20_000), &LaunchShape::persistent(2, 32)) }.unwrap();
        let (_, _, report) = session.finish().unwrap();
        assert_eq!(report.attempted, report.recorded + report.lost);
        // In addition to the events of block 0 until then.
        assert!(report.attempted >= 40_000);
        let verified = verify(&file);
        assert_eq!((verified.lost_events, verified.unfinished_warps), (report.lost, 0), "{verified:?}");
        // With short waits, the number of lost events depends on timing.
        assert!(max_wait < Duration::from_secs(1) || report.lost == 0);
    }
}

/// Records launches of `scatters`, given by iterations, threads and block size, with a raw second track.
/// Checks that nothing is lost; returns the number of warps encoded in rounds.
fn warps_in_rounds(memory: u64, launches: &[(u32, u64, u32)]) -> u64 {
    let file = Shared::default();
    let mut device = device();
    let options = RecordingSpec { dual: true, ..options(Duration::from_secs(600), memory) };
    let mut session = Session::start(&mut device, &PROGRAM, &options, file.clone()).unwrap();
    for &(turns, threads, block) in launches {
        // SAFETY: no argument refers to memory.
        unsafe { session.launch(&scatters(turns), &LaunchShape::linear(threads, block)) }.unwrap();
    }
    let in_rounds = session.recorder.warps_in_rounds();
    let (_, _, report) = session.finish().unwrap();
    assert_eq!((report.lost, report.twin_lost), (0, 0));
    let verified = verify(&file);
    assert!(verified.problems.is_empty(), "{verified:?}");
    in_rounds
}

#[test]
fn warps_that_leave_are_encoded_in_rounds() {
    for (memory, has_rounds) in [(8 << 20, false), (24 << 20, true), (64 << 20, true)] {
        assert_eq!(warps_in_rounds(memory, &[(60, 12_000, 96); 2]) > 0, has_rounds, "{memory}");
    }
}

#[test]
fn warps_that_hold_all_memory_are_taken_over() {
    let in_rounds = warps_in_rounds(24 << 20, &[(20_000, 64, 32), (60, 12_000, 32), (20_000, 64, 32)]);
    // Some, but not all.
    assert!((1..380).contains(&in_rounds), "{in_rounds}");
}
