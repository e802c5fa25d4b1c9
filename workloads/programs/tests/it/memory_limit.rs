//! All programs with limits on device memory: recordings stay within the limit, results are right, and losses
//! are counted.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::time::Duration;

use crate::programs::triangulate;
use warptrace_decoder::TraceFile;
use warptrace_format::Counting;
use warptrace_format::Event;
use warptrace_format::codec::CodecSpec;
use warptrace_host::{
    DEVICE_ECL, DEVICE_PREDICT, Launcher, MemorySize, Policy, RecordingSpec, Session, SessionError,
    SimDevice, SimOptions, Untraced,
};
use warptrace_workloads::dmr::{self, DmrError, DmrOptions};
use warptrace_workloads::fractal::{self, FractalOptions};
use warptrace_workloads::inputs::generate::{self, Rmat, rmat};
use warptrace_workloads::matmul::{self, Matrices};
use warptrace_workloads::mis::{self, MisOptions};
use warptrace_workloads::mst::{self, MstOptions};
use warptrace_workloads::nbody::{self, NbodyOptions};
use warptrace_workloads::stress::{self, StressOptions};
use warptrace_workloads::{Grid, ProgramInfo, WorkloadError};

type LimitedRun = Box<dyn Fn(&mut dyn Launcher) -> Result<(), WorkloadError>>;

fn programs() -> Vec<(&'static ProgramInfo, LimitedRun)> {
    let grid = Grid::new(4, 64).ok();
    let network = rmat(&Rmat { scale: 8, edges: 900, a: 0.55, b: 0.1, c: 0.1, d: 0.25 }, 5).unwrap();
    let weighted = network.clone();
    let mesh = triangulate(generate::points_in_triangle(60, 3).unwrap());
    let bodies = nbody::plummer(150, 1);
    let matrices = Matrices::random(72, 1).unwrap();
    let [fractal, nbody, matmul, stress, mis, mst, dmr]: [LimitedRun; 7] = [
        Box::new(|launcher| {
            let options = FractalOptions::new(96, 80);
            let image = fractal::run(launcher, &options)?.image;
            assert!(fractal::check(&options, &image).is_ok());
            Ok(())
        }),
        Box::new(move |launcher| {
            let options = NbodyOptions::new(2);
            let outcome = nbody::run(launcher, &bodies, &options)?;
            assert!(nbody::check(&bodies, &options, &outcome.bodies, &outcome.accelerations).is_ok());
            Ok(())
        }),
        Box::new(move |launcher| {
            assert!(matmul::check(&matrices, &matmul::run(launcher, &matrices)?.product).is_ok());
            Ok(())
        }),
        Box::new(|launcher| {
            let options = StressOptions::new(300, 20);
            assert!(stress::check(&options, &stress::run(launcher, &options)?.result).is_ok());
            Ok(())
        }),
        Box::new(move |launcher| {
            let options = MisOptions { grid, ..MisOptions::default() };
            assert!(mis::check(&network, &mis::run(launcher, &network, &options)?.in_set).is_ok());
            Ok(())
        }),
        Box::new(move |launcher| {
            let outcome = mst::run(launcher, &weighted, &MstOptions { grid })?;
            assert!(mst::check(&weighted, &outcome.arcs, outcome.weight).is_ok());
            Ok(())
        }),
        Box::new(move |launcher| {
            let options = DmrOptions { grid, ..DmrOptions::default() };
            let outcome = dmr::run(launcher, &mesh, &options).map_err(|error| match error {
                DmrError::Workload(error) => *error,
                error => panic!("{error}"),
            })?;
            assert!(dmr::check(&mesh, &options, &outcome.refined).is_ok());
            Ok(())
        }),
    ];
    vec![
        (&fractal::PROGRAM, fractal),
        (&nbody::PROGRAM, nbody),
        (&matmul::PROGRAM, matmul),
        (&stress::PROGRAM, stress),
        (&mis::PROGRAM, mis),
        (&mst::PROGRAM, mst),
        (&dmr::PROGRAM, dmr),
    ]
}

/// Returns the number of lost events.
fn record(
    program: &ProgramInfo,
    run: &LimitedRun,
    recording: Recording,
    policy: Policy,
    limit: u64,
) -> Result<u64, WorkloadError> {
    record_file(program, run, recording, policy, limit, None).map(|(_, lost)| lost)
}

fn record_file(
    program: &ProgramInfo,
    run: &LimitedRun,
    recording: Recording,
    policy: Policy,
    limit: u64,
    threads: Option<usize>,
) -> Result<(TraceFile, u64), WorkloadError> {
    let Recording { codec, dual, counting } = recording;
    let what = || format!("{}, {recording:?}, {policy:?}, {limit} bytes", program.name);
    let mut device = SimDevice::new(SimOptions { threads, ..SimOptions::default() });
    run(&mut Untraced(&mut device))?;
    let untraced = device.peak_bytes();

    let stall_limit = (policy == Policy::Stream).then_some(STALL);
    let memory = Some(MemorySize(limit));
    let options = RecordingSpec { dual, counting, policy, stall_limit, memory, ..RecordingSpec::new(codec) };
    let mut session = Session::start(&mut device, &program.traced(), &options, Vec::new())?;
    run(&mut session)?;
    let (bytes, _, report) = session.finish()?;
    let peak = device.peak_bytes();
    assert!(peak <= untraced + limit, "{}: {peak} of {untraced} untraced", what());
    assert_eq!(device.allocated_bytes(), 0, "{}: all is given back", what());
    assert_eq!(report.memory.limit, limit);
    assert!(report.memory.peak <= limit && report.memory.filled <= report.memory.peak, "{}", what());
    assert_eq!(report.attempted, report.recorded + report.lost, "{}", what());
    assert!(report.kernel > Duration::ZERO && report.attempted > 0);

    let file = TraceFile::from_bytes(bytes).unwrap();
    let verified = file.verify();
    let lost = report.lost + report.twin_lost;
    assert_eq!((verified.is_ok(), verified.lost_events), (lost == 0, lost), "{}: {verified:?}", what());
    let twin = verified.twin.unwrap_or_default();
    assert_eq!(verified.twin.is_some(), dual);
    assert_eq!((twin.different_warps, twin.unreadable_warps), (0, 0), "{}: {twin:?}", what());
    Ok((file, lost))
}

fn events(file: &TraceFile) -> BTreeMap<(u32, u32), Vec<Event>> {
    let launches = file.launches().flat_map(|launch| (0..launch.warps()).map(|warp| (launch.number(), warp)));
    let of = |name: (u32, u32)| {
        let events = file.decode_warp(name.0, name.1, 0).unwrap();
        (name, events.map(Result::unwrap).collect())
    };
    launches.map(of).collect()
}

const STALL: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug)]
struct Recording {
    codec: CodecSpec,
    dual: bool,
    counting: Counting,
}

const RECORDINGS: [Recording; 4] = [
    Recording { codec: CodecSpec::Raw, dual: false, counting: Counting::Never },
    Recording { codec: CodecSpec::Ecl(DEVICE_ECL), dual: true, counting: Counting::Never },
    Recording { codec: CodecSpec::Predict(DEVICE_PREDICT), dual: false, counting: Counting::Never },
    Recording { codec: CodecSpec::Predict(DEVICE_PREDICT), dual: true, counting: Counting::All },
];

/// Records each program in 18 ways, or in two of them if `is_part` is set.
fn check_limits(is_part: bool) {
    for (which, (program, run)) in programs().into_iter().enumerate() {
        let mut ways = 0..;
        for (number, limit) in [64 << 20, 256 << 20, 1 << 30].into_iter().enumerate() {
            for recording in [RECORDINGS[number], RECORDINGS[3]] {
                for policy in [Policy::Stop, Policy::Ring, Policy::Stream] {
                    if is_part && ways.next().is_some_and(|way: usize| way % 9 != which) {
                        continue;
                    }
                    let lost = record(program, &run, recording, policy, limit).unwrap();
                    assert_eq!(lost, 0, "{}, {recording:?}, {policy:?}, {limit} bytes", program.name);
                }
            }
        }
    }
}

#[test]
fn no_program_takes_more_than_the_limit() {
    check_limits(true);
}

mod full {
    #[test]
    fn no_program_takes_more_than_the_limit() {
        super::check_limits(false);
    }
}

#[test]
fn with_little_memory_results_stay_and_losses_are_counted() {
    let (mut refused, mut lost, mut whole) = (0, 0, 0);
    for (program, run) in programs() {
        for (number, limit) in [150_000, 400_000, 3 << 20].into_iter().enumerate() {
            match record(program, &run, RECORDINGS[number], Policy::Stop, limit) {
                Ok(0) => whole += 1,
                Ok(_) => lost += 1,
                Err(WorkloadError::Session(SessionError::Memory { needed, limit: told, .. })) => {
                    assert!(told == limit && needed > Some(limit), "{}", program.name);
                    refused += 1;
                }
                Err(error) => panic!("{}: {error}", program.name),
            }
        }
    }
    assert!(
        refused > 1 && lost > 1 && whole > 3,
        "{refused} refused, {lost} lost something, {whole} nothing"
    );
}

#[test]
fn with_little_memory_nothing_is_lost_where_warps_wait() {
    let (mut refused, mut whole) = (0, 0);
    for (program, run) in programs() {
        for (number, limit) in [100_000, 1 << 20, 3 << 20].into_iter().enumerate() {
            match record(program, &run, RECORDINGS[number], Policy::Stream, limit) {
                Ok(lost) => {
                    assert_eq!(lost, 0, "{}, {limit} bytes", program.name);
                    whole += 1;
                }
                Err(WorkloadError::Session(SessionError::Memory { needed, limit: told, .. })) => {
                    assert!(told == limit && needed > Some(limit), "{}", program.name);
                    refused += 1;
                }
                Err(error) => panic!("{}: {error}", program.name),
            }
        }
    }
    assert!(refused > 1 && whole > 5, "{refused} refused, {whole} lost nothing");
}

#[test]
fn with_little_memory_rings_have_the_end_of_each_warps_events() {
    let (mut refused, mut wrapped, mut whole) = (0, 0, 0);
    for (turn, (program, run)) in programs().into_iter().enumerate() {
        for (number, limit) in [600_000, 1 << 20, 2 << 20].into_iter().enumerate() {
            if (turn + number) % 3 == 0 {
                continue;
            }
            let recording = RECORDINGS[[3, 1, 2][number]];
            let (part, lost) = match record_file(program, &run, recording, Policy::Ring, limit, Some(1)) {
                Ok(recorded) => recorded,
                Err(WorkloadError::Session(SessionError::Memory { needed, limit: told, .. })) => {
                    assert!(told == limit && needed > Some(limit), "{}", program.name);
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("{}: {error}", program.name),
            };
            *(if lost == 0 { &mut whole } else { &mut wrapped }) += 1;
            // With one thread, the order of the blocks at an atomic is deterministic.
            let (all, none) = record_file(program, &run, recording, Policy::Stop, 1 << 30, Some(1)).unwrap();
            assert_eq!(none, 0);
            let (all, part) = (events(&all), events(&part));
            assert!(part.keys().eq(all.keys()));
            for (warp, events) in &part {
                let all = &all[warp];
                assert!(all.ends_with(events), "{}, {limit} bytes, warp {warp:?}", program.name);
                assert!(!events.is_empty() || all.is_empty(), "{}: each warp has an end", program.name);
            }
        }
    }
    assert!(wrapped > 5 && whole > 3, "{refused} refused, {wrapped} lost something, {whole} nothing");
}
