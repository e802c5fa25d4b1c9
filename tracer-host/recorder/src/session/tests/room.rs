//! Recordings with little memory: losses are counted.

use warptrace_format::codec::{CodecSpec, EclParams, PredictParams};

use super::options;
use super::output::Shared;
use warptrace_macros::kernels;

use crate::session::{LaunchReport, TracedProgram};
use crate::{LaunchShape, MemorySize, RecordingSpec, SimDevice, SimOptions};
use crate::{Launcher, Session};

#[kernels(device = warptrace_device, only_marked)]
mod staircase_kernel {
    /// Each lane runs as many inner iterations as its number, `rounds` times.
    #[kernel]
    pub fn staircase(rounds: u32) {
        for _ in 0..rounds {
            for _ in 0..warptrace_device::simt::lane() {
                trace!("STEP");
            }
            trace!("ROUND");
        }
    }
}
use staircase_kernel::staircase;

const CODECS: [CodecSpec; 3] =
    [CodecSpec::Raw, CodecSpec::Ecl(EclParams::DEFAULT), CodecSpec::Predict(PredictParams::DEFAULT)];

/// Records `warps` warps with 32 events in each of `rounds` rounds. Returns the report, the claimed entries
/// of log memory, and each warp's payloads.
fn staircases(options: &RecordingSpec, warps: u64, rounds: u32) -> (LaunchReport, u64, Vec<Vec<Vec<u8>>>) {
    let program = TracedProgram { kernels: &[("staircase", "")], modules: &[], ptx: "" };
    let mut device = SimDevice::new(SimOptions { threads: Some(1), ..SimOptions::default() });
    let mut session = Session::start(&mut device, &program, options, Shared::default()).unwrap();
    // SAFETY: no argument refers to memory.
    let time = unsafe { session.launch(&staircase(rounds), &LaunchShape::linear(32 * warps, 64)) }.unwrap();
    let (file, summary, report) = session.finish().unwrap();
    assert_eq!(report.attempted, warps * u64::from(32 * rounds));
    assert_eq!((report.recorded + report.lost, summary.events), (report.attempted, report.recorded));
    assert!(report.memory.peak <= report.memory.limit && report.memory.filled <= report.memory.peak);
    let mut payloads = vec![Vec::new(); warps as usize];
    let mut found = file.contents().0;
    assert_eq!(report.chunks, found.len() as u64);
    found.sort_by_key(|&(_, warp, sequence, _)| (warp, sequence));
    for (_, warp, sequence, payload) in found {
        assert_eq!(sequence as usize, payloads[warp as usize].len());
        payloads[warp as usize].push(payload);
    }
    (report, time.claims.log_entries, payloads)
}

/// Records with each codec in little memory. With `is_part`, one number of rounds for each number of warps.
fn check_losses(is_part: bool) {
    for codec in CODECS {
        let (mut some, mut none) = (0, 0);
        for (number, (warps, kib)) in [(4, 1024), (30, 1024), (150, 2048)].into_iter().enumerate() {
            for rounds in if is_part { &[20, 100, 1][number..][..1] } else { &[1, 20, 100][..] } {
                let (report, ..) = staircases(&RecordingSpec { codec, ..options(kib) }, warps, *rounds);
                if codec == CodecSpec::Raw {
                    assert_eq!(report.payload_bytes, 6 * report.recorded);
                }
                some += u32::from(report.lost > 0 && report.recorded > 0);
                none += u32::from(report.lost == 0);
            }
        }
        let least = if is_part { 0 } else { 2 };
        assert!(some > least && none > least, "{codec:?}: {some} {none}");
    }
}

#[test]
fn log_memory_too_small_loses_events_and_counts_every_one() {
    check_losses(true);
}

mod full {
    #[test]
    fn log_memory_too_small_loses_events_and_counts_every_one() {
        super::check_losses(false);
    }
}

#[test]
fn few_chunks_lose_nothing() {
    for codec in CODECS {
        let ample = RecordingSpec { codec, ..options(16 << 10) };
        let (whole, _, payloads) = staircases(&ample, 50, 60);
        // 450 chunks; raw needs 600.
        let (report, _, few) =
            staircases(&RecordingSpec { memory: Some(MemorySize(4 << 20)), ..ample }, 50, 60);
        assert_eq!((whole.lost, report.lost), (0, 0), "{codec:?}");
        assert!(few == payloads, "{codec:?}");
    }
}

#[test]
fn few_large_chunks_lose_nothing() {
    for codec in CODECS {
        // Three chunks of 128 KiB at a time.
        let large = RecordingSpec { codec, chunk_bytes: 128 << 10, ..options(4096) };
        let (report, ..) = staircases(&large, 40, 60);
        assert_eq!((report.lost, report.chunks), (0, 40), "{codec:?}");
    }
}

#[test]
fn the_size_of_a_launch_changes_no_chunk() {
    // Lanes claim segments of 128 entries with four warps, and shorter ones with 600.
    let (_, _, of_few) = staircases(&options(16 << 10), 4, 20);
    let (report, _, of_many) = staircases(&options(16 << 10), 600, 20);
    assert!(report.lost == 0 && of_few[0].len() > 1, "several chunks");
    assert!(of_few.iter().chain(&of_many).all(|payloads| *payloads == of_few[0]), "all warps do the same");
}
