//! Pools that are too small: what is lost is counted.

use warptrace_format::codec::{CodecSpec, EclParams, PredictParams};

use super::fake::{FakeDevice, script};
use super::output::{Found, Shared};
use super::{PROGRAM, launch, options};
use crate::session::{LaunchReport, Session, SessionOptions, TracedProgram};
use crate::{LaunchShape, SimDevice, SimOptions};

#[test]
fn what_finds_no_chunk_is_lost_and_counted() {
    let many = script(&(0..50).map(|sequence| (0, sequence, 1)).collect::<Vec<_>>());
    let mut device = FakeDevice::of([many, script(&[(1, 0, 2)])]);
    let mut session = Session::start(&mut device, &PROGRAM, &options(40), Shared::default()).unwrap();
    launch(&mut session, "k").unwrap();
    session.flush().unwrap();
    launch(&mut session, "k").unwrap();
    let (_, summary, report) = session.finish().unwrap();
    assert_eq!((report.attempted, report.recorded, report.lost), (51, 41, 10));
    assert_eq!(summary.events, 41);
}

warptrace_device::trace_points! {
    /// Decisions of the kernel.
    mod at in "room.rs" {
        STEP = 1: "one more step of the round",
        ROUND = 2: "one more round",
    }
}

warptrace_device::kernel! {
    /// Each lane makes as many rounds as its number says, `rounds` times.
    fn staircase(rounds: u32) {
        for _ in 0..rounds {
            for _ in 0..warptrace_device::simt::lane() {
                warptrace_device::trace_loc(at::STEP);
            }
            warptrace_device::trace_loc(at::ROUND);
        }
    }
}

/// Records four warps that make 32 events in each of `rounds` rounds. Answers the report and the chunks written.
fn staircases(codec: CodecSpec, rounds: u32, chunks: u64) -> (LaunchReport, Vec<Found>) {
    let program = TracedProgram { kernels: &[("staircase", "")], points: &[] };
    let mut device = SimDevice::new(SimOptions { threads: Some(1), ..SimOptions::default() });
    let options = SessionOptions { codec, ..options(chunks) };
    let mut session = Session::start(&mut device, &program, &options, Shared::default()).unwrap();
    // SAFETY: no memory among the arguments.
    unsafe { session.record(&staircase(rounds), &LaunchShape::linear(128, 64)) }.unwrap();
    let (file, summary, report) = session.finish().unwrap();
    assert_eq!(summary.events, report.recorded);
    let found = file.contents().0;
    (report, found)
}

#[test]
fn a_pool_too_small_loses_events_and_counts_every_one() {
    let codecs =
        [CodecSpec::Raw, CodecSpec::Ecl(EclParams::DEFAULT), CodecSpec::Predict(PredictParams::DEFAULT)];
    for codec in codecs {
        // What fills a part of a chunk, one or two, and several.
        for rounds in [1, 2, 11] {
            let attempted = u64::from(4 * 32 * rounds);
            let (mut some, mut all) = (0, 0);
            for chunks in (1..24).chain([400]) {
                let (report, found) = staircases(codec, rounds, chunks);
                assert_eq!(report.attempted, attempted, "{codec:?}, {rounds} rounds, {chunks} chunks");
                assert_eq!(
                    report.recorded + report.lost,
                    attempted,
                    "{codec:?}, {rounds} rounds, {chunks} chunks"
                );
                assert_eq!(report.chunks, found.len() as u64);
                if codec == CodecSpec::Raw {
                    let bytes: usize = found.iter().map(|(.., payload)| payload.len()).sum();
                    assert_eq!(bytes as u64, 6 * report.recorded, "{rounds} rounds, {chunks} chunks");
                }
                some += u32::from(report.lost > 0 && report.recorded > 0);
                all += u32::from(report.lost == 0);
            }
            assert!(all > 0, "{codec:?}, {rounds} rounds: the largest pool has room for all");
            assert!(some > 0, "{codec:?}, {rounds} rounds: no pool has room for a part");
        }
    }
}

/// Records so many warps that make 32 events in each of 20 rounds. Answers the entries of log memory that they claimed, and each
/// warp's payloads.
fn claimed_by(warps: u64) -> (u64, Vec<Vec<Vec<u8>>>) {
    let program = TracedProgram { kernels: &[("staircase", "")], points: &[] };
    let mut device = SimDevice::new(SimOptions { threads: Some(1), ..SimOptions::default() });
    let mut session = Session::start(&mut device, &program, &options(4000), Shared::default()).unwrap();
    // SAFETY: no memory among the arguments.
    let time = unsafe { session.record(&staircase(20), &LaunchShape::linear(32 * warps, 64)) }.unwrap();
    let (file, _, report) = session.finish().unwrap();
    assert_eq!((report.attempted, report.recorded), (warps * 32 * 20, warps * 32 * 20));
    let mut payloads = vec![Vec::new(); warps as usize];
    let mut found = file.contents().0;
    found.sort_by_key(|&(_, warp, sequence, _)| (warp, sequence));
    found.into_iter().for_each(|(_, warp, _, payload)| payloads[warp as usize].push(payload));
    (time.claims.log_entries, payloads)
}

#[test]
fn a_small_launch_claims_no_log_memory() {
    // Four warps have first segments of 64 entries; 600 have some of 8, and claim more.
    let (few, of_few) = claimed_by(4);
    let (many, of_many) = claimed_by(600);
    assert!(few == 0 && many >= 600 * 8, "{few} {many}");
    assert!(of_few[0].len() > 1, "several chunks");
    assert!(of_few.iter().chain(&of_many).all(|payloads| *payloads == of_few[0]), "all warps do the same");
}
