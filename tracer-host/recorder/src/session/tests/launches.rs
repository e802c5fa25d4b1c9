//! Launches that no caller waits for, made on the simulator by one device and drained by another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use warptrace_abi::log::LaunchLogs;
use warptrace_format::file::LaunchInfo;
use warptrace_sim::{Launch, Simulator};

use super::output::Shared;
use super::{PROGRAM, options};
use warptrace_macros::kernels;

use crate::session::{
    Drainer, Ended, Ending, LaunchReport, Launches, Next, Patience, Reserved, SessionError, TracedProgram,
};
use crate::{
    DeviceError, LaunchName, LaunchShape, Policy, Recording, RecordingSpec, SimDevice, SimOptions, Window,
};

#[kernels(device = warptrace_device, only_marked)]
mod k_kernel {
    /// Runs `steps` steps; each is a separate run.
    #[kernel]
    pub fn k(steps: u32) {
        for step in 0..steps {
            if step % 2 == 0 {
                trace!("EVEN");
            } else {
                trace!("ODD");
            }
        }
    }
}
use k_kernel::k;

/// A launch that ends when the test says so.
#[derive(Clone, Debug, Default)]
struct Fake {
    /// 0 while it runs, 1 after it has ended, 2 after it has failed.
    state: Arc<AtomicU32>,
}

impl Ending for Fake {
    fn has_ended(&mut self) -> Result<bool, DeviceError> {
        match self.state.load(Ordering::Relaxed) {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DeviceError::Unsupported { problem: "it failed".to_owned() }),
        }
    }
}

type Drains = Drainer<SimDevice, Shared, Fake>;

struct Program {
    launches: Launches<Fake>,
    recording: Recording,
    kernel: u32,
}

struct Recorded {
    program: Program,
    drainer: Option<Drains>,
    file: Shared,
}

impl std::ops::Deref for Recorded {
    type Target = Program;

    fn deref(&self) -> &Program {
        &self.program
    }
}

const PATIENCE: Patience = Patience { short: Duration::ZERO, unknown: Duration::ZERO };
/// Longer than any test takes.
const LONG: Patience = Patience { short: Duration::from_secs(600), unknown: Duration::from_secs(600) };

impl Program {
    fn reserve(&self, warps: u64, patience: Patience) -> Result<Reserved, SessionError> {
        self.launches.reserve(
            &[(self.kernel, LaunchShape::linear(32 * warps, 32))],
            &LaunchName::default(),
            patience,
        )
    }

    /// Makes a reserved launch. It writes its logs at once, and ends when the test says so.
    fn run(&self, Reserved { ticket, logs }: Reserved, warps: u64, steps: u32) -> Fake {
        let fake = Fake::default();
        for logs in logs.into_iter().flatten() {
            let launch = Launch::new([warps as u32, 1, 1], [32, 1, 1]).threads(1);
            // SAFETY: the logs are host memory of the recording, and the kernel uses no other memory.
            unsafe {
                let launch = launch.traced(logs, self.recording);
                let (call, simulator) = (k(steps), Simulator::default());
                let thread = call.thread();
                simulator.launch(&launch, &|| thread()).unwrap();
            }
        }
        self.launches.launched(ticket, fake.clone());
        fake
    }

    /// Makes a launch that has ended.
    fn launch(&self, warps: u64, steps: u32) -> Result<(), SessionError> {
        let fake = self.run(self.reserve(warps, PATIENCE)?, warps, steps);
        fake.state.store(1, Ordering::Relaxed);
        Ok(())
    }
}

impl Recorded {
    fn new(options: &RecordingSpec) -> Self {
        let device = SimDevice::new(SimOptions { threads: Some(1), ..SimOptions::default() });
        let file = Shared::default();
        let (launches, drainer) =
            Launches::start(device, options, file.clone()).map_err(|(error, _)| error).unwrap();
        let locations = TracedProgram { kernels: &[], modules: &[k_kernel::MODULE], ptx: "" }.locations();
        let first = launches.add_kernels(PROGRAM.kernels, locations).unwrap();
        let program = Program { launches, recording: options.traced(None), kernel: first };
        Self { program, drainer: Some(drainer), file }
    }

    fn step(&mut self) -> Next {
        self.drainer.as_mut().unwrap().step(Instant::now()).unwrap()
    }

    fn drain(&mut self) {
        let later = Instant::now() + Duration::from_secs(3600);
        self.drainer.as_mut().unwrap().step(later).unwrap();
    }

    fn finish(&mut self) -> Result<LaunchReport, SessionError> {
        self.launches.end(Duration::ZERO);
        let Ended { outcome, .. } = self.drainer.take().unwrap().run(|| None, |_, _| {});
        outcome.map(|(_, _, report)| report)
    }
}

fn events(warps: u64, steps: u32) -> u64 {
    warps * u64::from(steps)
}

#[test]
fn launches_go_on_while_others_are_drained_and_nothing_is_lost() {
    let mut recorded = Recorded::new(&options(16 << 10));
    // The need of the first launch is unknown: it gets all log memory, and the second one waits for it.
    recorded.launch(4, 40).unwrap();
    recorded.step();
    let mut expected = events(4, 40);
    for round in 0..400 {
        match recorded.launch(4, 40) {
            Ok(()) => expected += events(4, 40),
            Err(error) => {
                assert!(matches!(error, SessionError::Busy { .. }), "{error}");
                assert!(round > 20, "four arenas have room for some");
                recorded.step();
                recorded.launch(4, 40).unwrap();
                expected += events(4, 40);
            }
        }
    }
    let report = recorded.finish().unwrap();
    assert_eq!((report.recorded, report.lost, report.launches), (expected, 0, 401));
    let launches: Vec<u32> = recorded.file.launches().iter().map(LaunchInfo::number).collect();
    assert!(launches.is_sorted() && launches.len() == 401, "{launches:?}");
    let (chunks, accounts) = recorded.file.contents();
    assert_eq!(accounts, 401);
    // All launches have the same records.
    let of = |number| chunks.iter().filter(move |chunk| chunk.0 == number).map(|chunk| (chunk.1, &chunk.3));
    let first: Vec<_> = of(0).collect();
    assert!((1..401).all(|number| of(number).eq(first.iter().copied())));
}

#[test]
fn who_waits_for_room_is_counted_and_goes_on_when_there_is_some() {
    let mut recorded = Recorded::new(&options(2 << 10));
    recorded.launch(4, 8).unwrap();
    recorded.step();
    let mut made = 1;
    let full = loop {
        match recorded.reserve(4, PATIENCE) {
            Ok(reserved) => recorded.run(reserved, 4, 8).state.store(1, Ordering::Relaxed),
            Err(error) => break error,
        }
        made += 1;
    };
    assert!(matches!(full, SessionError::Busy { running, .. } if running + 2 >= made), "{full} {made}");
    assert_eq!(recorded.launches.total().waits.for_room, 0, "no launch has waited");
    let drainer = recorded.drainer.take().unwrap();
    let program = &recorded.program;
    let ended = std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let reserved = program.reserve(4, LONG).unwrap();
            program.run(reserved, 4, 8).state.store(1, Ordering::Relaxed);
            program.launches.end(Duration::from_secs(600));
        });
        while program.launches.waiting() == 0 {
            std::thread::yield_now();
        }
        let ended = drainer.run(|| None, |_, _| {});
        waits.join().unwrap();
        ended
    });
    let (_, _, report) = ended.outcome.unwrap();
    assert_eq!((report.launches, report.lost), (made as u64 + 1, 0));
    assert_eq!((report.waits.for_room, report.waits.for_first), (1, 0));
    assert_eq!(report.recorded, events(4, 8) * (made as u64 + 1));
}

/// Number of launches while their records are held back.
const MANY: u32 = 10_000;

/// Checks a file with this many launches, which have the same records and are in the order of their numbers.
fn check_many(file: &Shared, launches: u32) {
    let numbers: Vec<u32> = file.launches().iter().map(LaunchInfo::number).collect();
    assert!(numbers.iter().copied().eq(0..launches), "{} launches", numbers.len());
    let (chunks, accounts) = file.contents();
    assert_eq!(accounts, launches as usize);
    let mut of = vec![Vec::new(); launches as usize];
    for (launch, warp, _, payload) in &chunks {
        of[*launch as usize].push((warp, payload));
    }
    assert!(!of[0].is_empty() && of.iter().all(|chunks| *chunks == of[0]), "a launch differs from the first");
}

/// Makes [`MANY`] launches of one warp and four steps. Encodes, copies and writes only if a launch waits for
/// memory. Returns the number of launches before the first wait, and the number of waits.
fn held_back(recorded: &mut Recorded) -> [u64; 2] {
    recorded.launch(1, 4).unwrap();
    // The need of the kernel is known from now on.
    recorded.step();
    let (program, mut drainer) = (&recorded.program, recorded.drainer.take().unwrap());
    let made = std::thread::scope(|scope| {
        let made = scope.spawn(|| {
            let (mut before, mut waits) = (1, 0);
            for _ in 1..MANY {
                // No memory becomes free otherwise, so a launch without memory waits.
                let reserved = program.reserve(1, PATIENCE).unwrap_or_else(|error| {
                    assert!(matches!(error, SessionError::Busy { .. }), "{error}");
                    waits += 1;
                    program.reserve(1, LONG).unwrap()
                });
                before += u64::from(waits == 0);
                program.run(reserved, 1, 4).state.store(1, Ordering::Relaxed);
            }
            [before, waits]
        });
        while !made.is_finished() {
            if program.launches.waiting() > 0 {
                drainer.step(Instant::now()).unwrap();
            } else {
                std::thread::yield_now();
            }
        }
        made.join().unwrap()
    });
    recorded.drainer = Some(drainer);
    made
}

/// Makes many launches in a pool of `kib` KiB, in which more than `least_before` fit at once.
fn check_held_back(kib: u64, least_before: u64) {
    let mut recorded = Recorded::new(&options(kib));
    let [before, waits] = held_back(&mut recorded);
    assert!(before > least_before && waits > 2, "{before} before {waits} waited");
    let report = recorded.finish().unwrap();
    // A launch need not wait if the drainer was faster than its second call.
    let for_room = report.waits.for_room;
    assert!((3..=waits).contains(&for_room), "{for_room} of {waits} waited");
    assert_eq!((report.waits.for_first, report.launches, report.lost), (0, MANY.into(), 0));
    assert_eq!(report.recorded, events(1, 4) * u64::from(MANY));
    check_many(&recorded.file, MANY);
}

#[test]
fn of_ten_thousand_launches_those_wait_that_find_the_arenas_full() {
    check_held_back(1 << 10, 20);
}

mod full {
    #[test]
    fn of_ten_thousand_launches_those_wait_that_find_large_arenas_full() {
        // Nothing is drained before, so each lane has a first segment.
        super::check_held_back(54 << 10, 800);
    }
}

#[test]
fn a_launch_behind_the_first_of_its_kernel_waits_for_it_but_not_in_vain_twice() {
    let mut recorded = Recorded::new(&options(16 << 10));
    let first = recorded.run(recorded.reserve(2, PATIENCE).unwrap(), 2, 8);
    recorded.step();
    // Without patience it is placed next to the first launch, in the reserve.
    let second = recorded.run(recorded.reserve(2, PATIENCE).unwrap(), 2, 8);
    let drainer = recorded.drainer.take().unwrap();
    let ended = std::thread::scope(|scope| {
        let thread = scope.spawn(|| drainer.run(|| None, |_, _| {}));
        first.state.store(1, Ordering::Relaxed);
        second.state.store(1, Ordering::Relaxed);
        let reserved = recorded.reserve(2, LONG).unwrap();
        recorded.run(reserved, 2, 8).state.store(1, Ordering::Relaxed);
        recorded.launches.end(Duration::from_secs(600));
        thread.join().unwrap()
    });
    let (_, _, report) = ended.outcome.unwrap();
    assert_eq!((report.recorded, report.lost), (3 * events(2, 8), 0));
}

#[test]
fn a_kernel_that_needs_more_than_an_arena_has_all_of_them() {
    let mut recorded = Recorded::new(&options(4 << 10));
    let claims_end = |program: &Program, warps| {
        let reserved = program.reserve(warps, PATIENCE).unwrap();
        let end = reserved.logs[0].unwrap().claims_end;
        program.run(reserved, warps, 3000).state.store(1, Ordering::Relaxed);
        end
    };
    let whole = claims_end(&recorded, 10);
    // Twice its claims exceed a quarter of log memory, so it does not run in a part.
    recorded.step();
    recorded.drain();
    assert_eq!(claims_end(&recorded, 10), whole);
    recorded.step();
    recorded.drain();
    // A larger launch, whose need is unknown, also gets all log memory.
    assert_eq!(claims_end(&recorded, 40), whole);
    assert_eq!(recorded.finish().unwrap().launches, 3);
}

#[test]
fn a_launch_for_which_there_never_is_room_is_refused_and_others_go_on() {
    let mut recorded = Recorded::new(&options(2 << 10));
    let error = recorded.reserve(4000, PATIENCE).unwrap_err();
    assert!(matches!(error, SessionError::Memory { .. }) && error.is_refusal(), "{error}");
    recorded.launch(2, 8).unwrap();
    let report = recorded.finish().unwrap();
    assert_eq!((report.launches, report.recorded), (1, events(2, 8)));
    assert_eq!(recorded.file.launches()[0].number(), 0, "a launch that was not made has no number");
}

#[test]
fn what_is_cancelled_leaves_nothing() {
    let mut recorded = Recorded::new(&options(16 << 10));
    recorded.launch(2, 8).unwrap();
    recorded.step();
    let cancelled = recorded.reserve(2, PATIENCE).unwrap();
    let kept = recorded.reserve(3, PATIENCE).unwrap();
    recorded.launches.cancel(cancelled.ticket);
    recorded.run(kept, 3, 8).state.store(1, Ordering::Relaxed);
    recorded.launch(2, 8).unwrap();
    let report = recorded.finish().unwrap();
    assert_eq!((report.launches, report.recorded, report.lost), (3, events(7, 8), 0));
    let numbers: Vec<u32> = recorded.file.launches().iter().map(LaunchInfo::number).collect();
    assert_eq!(numbers, [0, 2, 3]);
}

#[test]
fn a_launch_that_fails_ends_the_file_with_what_came_before() {
    let mut recorded = Recorded::new(&options(16 << 10));
    recorded.launch(2, 8).unwrap();
    recorded.step();
    recorded.run(recorded.reserve(2, PATIENCE).unwrap(), 2, 8).state.store(2, Ordering::Relaxed);
    let mut told = None;
    let Ended { outcome, device } = recorded.drainer.take().unwrap().run(
        || None,
        |error, report| {
            told = Some((error.to_string(), report.launches));
        },
    );
    assert!(outcome.unwrap_err().to_string().contains("it failed") && device.is_some());
    assert_eq!(told.map(|(error, launches)| (error.contains("it failed"), launches)), Some((true, 1)));
    let error = recorded.launch(2, 8).unwrap_err();
    assert!(matches!(&error, SessionError::Ended { reason } if reason.contains("it failed")), "{error}");
    assert_eq!(recorded.file.launches().len(), 2, "the one that failed is named");
    assert_eq!(recorded.file.contents().1, 2, "its logs are still there");
}

#[test]
fn a_recording_that_ends_before_its_launches_says_so_and_leaves_them_their_memory() {
    let mut recorded = Recorded::new(&options(16 << 10));
    recorded.run(recorded.reserve(2, PATIENCE).unwrap(), 2, 8);
    recorded.launches.end(Duration::ZERO);
    let Ended { outcome, device } = recorded.drainer.take().unwrap().run(|| None, |_, _| {});
    assert!(matches!(outcome, Err(SessionError::Running { running: 1 })) && device.is_none());
    assert_eq!(recorded.file.launches().len(), 1);
}

#[test]
fn a_flush_writes_all_and_max_events_are_counted() {
    let window = Window { max_events: Some(20), ..Window::default() };
    let mut recorded = Recorded::new(&RecordingSpec { window, ..options(16 << 10) });
    let drainer = recorded.drainer.take().unwrap();
    let ended = std::thread::scope(|scope| {
        let thread = scope.spawn(|| drainer.run(|| None, |_, _| {}));
        for _ in 0..3 {
            let reserved = recorded.reserve(2, LONG).unwrap();
            recorded.run(reserved, 2, 8).state.store(1, Ordering::Relaxed);
        }
        recorded.launches.flush().unwrap();
        assert_eq!(recorded.launches.total().recorded, 2 * events(2, 8), "the third one is not recorded");
        recorded.launches.end(Duration::from_secs(600));
        thread.join().unwrap()
    });
    let (_, _, report) = ended.outcome.unwrap();
    assert_eq!((report.launches, report.recorded_launches), (3, 2));
}

#[test]
fn rings_overlap_and_keep_their_length() {
    let mut recorded = Recorded::new(&RecordingSpec { policy: Policy::Ring, ..options(32 << 10) });
    let reserved: Vec<Reserved> = (0..2).map(|_| recorded.reserve(1, PATIENCE).unwrap()).collect();
    let logs: Vec<LaunchLogs> = reserved.iter().filter_map(|reserved| reserved.logs[0]).collect();
    assert!(
        logs[0].first_entries == logs[1].first_entries && logs[0].first_segments < logs[1].first_segments,
        "{logs:?}"
    );
    for reserved in reserved {
        recorded.run(reserved, 1, 100).state.store(1, Ordering::Relaxed);
    }
    let report = recorded.finish().unwrap();
    assert_eq!((report.launches, report.recorded), (2, 2 * events(1, 100)));
}

#[test]
fn logs_are_not_streamed_without_waiting() {
    let started = Launches::<Fake>::start(
        SimDevice::new(SimOptions::default()),
        &RecordingSpec { policy: Policy::Stream, ..options(16 << 10) },
        Shared::default(),
    );
    let (error, _) = started.err().unwrap();
    assert!(matches!(error, SessionError::NoOverlap), "{error}");
}

mod model;
mod needs;
