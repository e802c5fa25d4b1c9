//! Several sessions and devices in one process, on simulators.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ops::ControlFlow;

use crate::programs::simulator;
use warptrace_decoder::{TraceFile, WarpFilter};
use warptrace_format::codec::CodecSpec;
use warptrace_host::{
    DEVICE_ECL, DEVICE_PREDICT, Device, Launcher, MemorySize, Policy, RecordingSpec, Session, Untraced,
};
use warptrace_workloads::fault::{self, Fault, FaultOptions};
use warptrace_workloads::fractal::{self, FractalOptions};
use warptrace_workloads::stress::{self, StressOptions};
use warptrace_workloads::{ProgramInfo, WorkloadError};

const PREDICT: CodecSpec = CodecSpec::Predict(DEVICE_PREDICT);

const WAYS: [(Policy, CodecSpec, bool); 5] = [
    (Policy::Stop, PREDICT, true),
    (Policy::Stream, PREDICT, true),
    (Policy::Ring, PREDICT, false),
    (Policy::Stream, CodecSpec::Raw, false),
    (Policy::Stop, CodecSpec::Ecl(DEVICE_ECL), false),
];

#[derive(Clone, Copy)]
enum Program {
    Walks(u32),
    Picture(u32),
}

impl Program {
    fn info(self) -> &'static ProgramInfo {
        match self {
            Self::Walks(_) => &stress::PROGRAM,
            Self::Picture(_) => &fractal::PROGRAM,
        }
    }

    fn run(self, launcher: &mut dyn Launcher) -> Result<(), WorkloadError> {
        match self {
            Self::Walks(walks) => {
                let options = StressOptions::new(walks, 6);
                stress::check(&options, &stress::run(launcher, &options)?.result).unwrap();
            }
            Self::Picture(depth) => {
                let options = FractalOptions::new(48, depth);
                fractal::check(&options, &fractal::run(launcher, &options)?.image).unwrap();
            }
        }
        Ok(())
    }
}

fn options((policy, codec, dual): (Policy, CodecSpec, bool)) -> RecordingSpec {
    RecordingSpec { policy, dual, memory: Some(MemorySize(48 << 20)), ..RecordingSpec::new(codec) }
}

/// An event: launch, warp, track, location and mask.
type Named = (u32, u32, u32, u16, u32);

/// Returns all events of a complete trace, sorted, because disjoint groups of lanes may occur in any order.
fn events(bytes: Vec<u8>) -> Vec<Named> {
    let file = TraceFile::from_bytes(bytes).unwrap();
    let verified = file.verify();
    assert!(verified.is_ok() && verified.lost_events == 0, "{verified:?}");
    let mut events = Vec::new();
    for launch in file.launches() {
        for track in 0..file.metadata().tracks.len() as u32 {
            let flow = file.decode_all(launch.number(), track, &WarpFilter::all(), &mut |block| {
                let of = |event: &warptrace_format::Event| {
                    (launch.number(), block.warp, track, event.location, event.mask)
                };
                events.extend(block.events.iter().map(of));
                ControlFlow::Continue(())
            });
            assert_eq!(flow.unwrap(), ControlFlow::Continue(()));
        }
    }
    events.sort_unstable();
    events
}

fn record(
    device: &mut dyn Device,
    program: Program,
    way: (Policy, CodecSpec, bool),
    runs: u32,
) -> Vec<Named> {
    let mut session = Session::start(device, &program.info().traced(), &options(way), Vec::new()).unwrap();
    for _ in 0..runs {
        program.run(&mut session).unwrap();
    }
    let (bytes, _, report) = session.finish().unwrap();
    assert_eq!((report.lost, report.launches), (0, u64::from(runs)));
    events(bytes)
}

fn alone(program: Program) -> Vec<Vec<Named>> {
    WAYS.iter().map(|way| record(&mut simulator(0), program, *way, 2)).collect()
}

#[test]
fn sessions_on_devices_of_their_own_run_at_once() {
    let programs = [Program::Walks(150), Program::Picture(50)];
    let expected = programs.map(alone);
    // All threads of a turn use different ways. Both programs use every way in some turn.
    for turn in 0..WAYS.len() {
        std::thread::scope(|scope| {
            for (number, (program, expected)) in programs.iter().zip(&expected).enumerate() {
                for copy in 0..2 {
                    let way = (turn + 2 * number + copy) % WAYS.len();
                    scope.spawn(move || {
                        let found = record(&mut simulator(0), *program, WAYS[way], 2);
                        assert!(found == expected[way], "{:?}", WAYS[way]);
                    });
                }
            }
        });
    }
}

#[test]
fn launches_on_several_devices_take_turns() {
    let program = Program::Walks(200);
    let expected = alone(program);
    let mut devices: Vec<_> = WAYS.iter().map(|_| simulator(0)).collect();
    let traced = program.info().traced();
    let mut sessions: Vec<_> = devices
        .iter_mut()
        .zip(WAYS)
        .map(|(device, way)| Session::start(device, &traced, &options(way), Vec::new()).unwrap())
        .collect();
    for _ in 0..2 {
        for session in &mut sessions {
            program.run(session).unwrap();
        }
    }
    for ((session, expected), way) in sessions.into_iter().zip(expected).zip(WAYS) {
        assert!(events(session.finish().unwrap().0) == expected, "{way:?}");
    }
}

#[test]
fn a_device_takes_one_session_after_the_other() {
    let programs = [Program::Walks(100), Program::Picture(40)];
    let expected = programs.map(alone);
    let mut device = simulator(0);
    for turn in 0..2 {
        for (program, expected) in programs.iter().zip(&expected) {
            for number in 0..WAYS.len() {
                let way = (number * 2 + turn) % WAYS.len();
                assert!(record(&mut device, *program, WAYS[way], 2) == expected[way], "{:?}", WAYS[way]);
                // The program also runs without a session between two sessions.
                program.run(&mut Untraced(&mut device)).unwrap();
            }
        }
    }
}

#[test]
fn a_device_made_elsewhere_records_in_another_thread() {
    let program = Program::Walks(100);
    let expected = alone(program);
    let mut device = simulator(0);
    program.run(&mut Untraced(&mut device)).unwrap();
    let found = std::thread::spawn(move || WAYS.map(|way| record(&mut device, program, way, 2)));
    assert!(found.join().unwrap() == *expected);
}

#[test]
fn sessions_that_end_early_leave_the_device_and_the_others_as_they_are() {
    let program = Program::Walks(150);
    let expected = alone(program);
    let trap = FaultOptions { fault: Fault::Trap, threads: 200, culprit: 77, turns: 5 };
    std::thread::scope(|scope| {
        for (way, expected) in WAYS.into_iter().zip(&expected) {
            let trap = &trap;
            scope.spawn(move || {
                let mut device = simulator(0);
                // After one dropped and one failed session, the device records normally.
                let traced = program.info().traced();
                let mut session = Session::start(&mut device, &traced, &options(way), Vec::new()).unwrap();
                program.run(&mut session).unwrap();
                drop(session);
                let traced = fault::PROGRAM.traced();
                let mut session = Session::start(&mut device, &traced, &options(way), Vec::new()).unwrap();
                assert!(fault::run(&mut session, trap).is_err());
                drop(session);
                assert!(record(&mut device, program, way, 2) == *expected, "{way:?}");
            });
        }
    });
}
