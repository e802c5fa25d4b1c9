//! Compares each lane's sequence of locations on this device, on the simulator and on the CPU.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;
use warptrace_decoder::lanes::{LaneDigest, LaneDigests};
use warptrace_decoder::{DecodeError, TraceFile, WarpFilter};
use warptrace_format::file::LaunchInfo;

use super::report::Report;
use crate::codecs::Codec;
use crate::machine;
use crate::runs::Bench;
use crate::subject::{Case, LaneReference};
use crate::table::count;

/// Number of warps that a thread decodes at a time.
const WARPS_AT_ONCE: u32 = 2048;

const OTHER_SEED: u64 = 1;

/// Runs a small case on this device and on the simulator, with each codec that has `dual`. If this device is
/// the simulator, the second run has another order of blocks and warps. Compares the lanes of the two runs
/// with each other and, if the program has a reference on the CPU, with the reference.
pub(super) fn check_twins(
    bench: &mut Bench,
    case: &Case,
    codecs: &[&'static Codec],
    report: &mut Report,
) -> anyhow::Result<()> {
    if report.leaves_out(case, "on two devices") {
        return Ok(());
    }
    let subject = &*case.make()?;
    let (other, both) = if machine::is_gpu(&*bench.device) {
        ("simulator", "lanes of GPU and simulator")
    } else {
        ("another order", "lanes in two orders of blocks and warps")
    };
    for codec in codecs.iter().filter(|codec| codec.dual) {
        let name = format!("twin {}", case.name());
        let here = bench.traced_whole(&name, subject, codec, false, "here.wtrc")?.path;
        let device = std::mem::replace(&mut bench.device, machine::simulator(OTHER_SEED));
        let there = bench.traced_whole(&format!("{name}, {other}"), subject, codec, false, "there.wtrc");
        bench.device = device;
        let (here, there) = (TraceFile::open(here)?, TraceFile::open(there?.path)?);
        let title = |what: &str| format!("{}: {what}", codec.name);
        if let Some(reference) = subject.lanes() {
            report.add(case, &title("lanes as on the CPU"), compare_with_reference(&here, reference));
            let on_other = title(&format!("lanes as on the CPU, {other}"));
            report.add(case, &on_other, compare_with_reference(&there, reference));
        }
        report.add(case, &title(both), compare_traces(&here, &there));
    }
    Ok(())
}

pub(super) fn compare_with_reference(
    trace: &TraceFile,
    reference: &dyn LaneReference,
) -> Result<String, String> {
    let mut lanes = 0;
    for info in trace.launches() {
        let found = digests(trace, info).map_err(|error| error.to_string())?;
        let wrong = found.par_iter().enumerate().find_map_first(|(warp, digests)| {
            (0..32).find_map(|lane| {
                let expected = match thread(info, warp as u32, lane) {
                    Some(thread) => reference.lane(info.number(), thread),
                    None => LaneDigest::default(),
                };
                let found = digests.lane(lane as usize);
                (found != expected).then(|| difference(info, warp as u32, lane, found, expected))
            })
        });
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        lanes += found.len() as u64 * 32;
    }
    Ok(format!("{} lanes of {} launches equal", count(lanes), trace.launches().len()))
}

fn compare_traces(here: &TraceFile, there: &TraceFile) -> Result<String, String> {
    let launches: Vec<&LaunchInfo> = here.launches().collect();
    if !launches.iter().copied().eq(there.launches()) {
        return Err("the launches have different shapes".to_owned());
    }
    let mut lanes = 0;
    for info in launches {
        let one = digests(here, info).map_err(|error| error.to_string())?;
        let other = digests(there, info).map_err(|error| error.to_string())?;
        for (warp, (one, other)) in one.iter().zip(&other).enumerate() {
            if let Some(lane) = (0..32).find(|&lane| one.lane(lane) != other.lane(lane)) {
                return Err(difference(info, warp as u32, lane as u32, one.lane(lane), other.lane(lane)));
            }
        }
        lanes += one.len() as u64 * 32;
    }
    Ok(format!("{} lanes of {} launches equal", count(lanes), here.launches().len()))
}

fn difference(info: &LaunchInfo, warp: u32, lane: u32, found: LaneDigest, expected: LaneDigest) -> String {
    format!(
        "launch {}, warp {warp}, lane {lane}: {} locations with digest {:#018x}, expected {} with {:#018x}",
        info.number(),
        found.length,
        found.hash,
        expected.length,
        expected.hash
    )
}

/// Returns the linear index of a lane's thread; `None` if the warp has no such lane.
fn thread(info: &LaunchInfo, warp: u32, lane: u32) -> Option<u64> {
    let (block, in_block) = (warp / info.warps_per_block(), warp % info.warps_per_block());
    let thread = in_block * 32 + lane;
    (thread < info.threads_per_block())
        .then(|| u64::from(block) * u64::from(info.threads_per_block()) + u64::from(thread))
}

/// Returns the digests of a launch, by warp. Decodes in parallel, and never holds all events in memory.
fn digests(trace: &TraceFile, info: &LaunchInfo) -> Result<Vec<LaneDigests>, DecodeError> {
    let next = AtomicU32::new(0);
    let digests = Mutex::new(vec![LaneDigests::default(); info.warps() as usize]);
    // Uses separate threads: a waiting rayon task may start another task and hold the memory of both.
    let work = || -> Result<(), DecodeError> {
        loop {
            let first = next.fetch_add(WARPS_AT_ONCE, Ordering::Relaxed);
            if first >= info.warps() {
                return Ok(());
            }
            let end = info.warps().min(first + WARPS_AT_ONCE);
            let mut part = vec![LaneDigests::default(); (end - first) as usize];
            let _ = trace.decode_all(info.number(), 0, &WarpFilter::warps(first..end), &mut |block| {
                part[(block.warp - first) as usize].extend(block.events.iter().copied());
                ControlFlow::Continue(())
            })?;
            let mut digests = digests.lock().expect("no thread panics while it holds the lock");
            digests[first as usize..end as usize].copy_from_slice(&part);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("decoding does not panic"))
    })?;
    Ok(digests.into_inner().expect("all threads have ended"))
}
