//! Classes: sets of streams with the same chunks. The device encodes only one representative stream of each.

use std::ops::Range;
use std::time::{Duration, Instant};

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use warptrace_abi::log::LoggedLaunch;
use warptrace_abi::pool::{NO_STREAM, PARTED, PoolDescriptor};
use warptrace_format::file::LaunchInfo;

use super::SessionError;
use crate::{Allocation, Device, EncodeJob, Encoded, threads};

/// A launch's warps count as diverged if more than 1/16 of its streams have logs of several lanes.
const CONVERGED_SHARE: u32 = 16;
/// Launches with fewer streams do not show whether streams repeat: each stream may be equal to a stream of
/// another launch, and a search costs little.
const FEW_STREAMS: u32 = 64;

/// Consecutive streams in one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClassRun {
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// The class: the number of its representative stream.
    pub(crate) class: u32,
}

impl ClassRun {
    /// Returns true if the representative stream of the class is in this run.
    fn has_representative(&self) -> bool {
        self.class.checked_sub(self.first).is_some_and(|at| at < self.count)
    }
}

/// Behavior of a launch, according to its classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Behavior {
    /// Whether the lanes of its warps diverge.
    pub(crate) parts: bool,
    /// Whether finding the classes took less than it saved: many streams are equal to others.
    pub(crate) repeats: bool,
}

/// A stream of a launch: one warp on one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamName {
    pub(crate) launch: u32,
    pub(crate) track: u32,
    /// Index among the recorded warps.
    pub(crate) warp: u32,
}

#[derive(Debug)]
pub(super) struct Found {
    pub(super) classes: Option<Classes>,
    /// For each launch.
    pub(super) behavior: Vec<Behavior>,
    /// Time that the device took, and time that the host took.
    pub(super) device: Duration,
    pub(super) host: Duration,
}

/// The classes of the streams of a drain. Stream numbers follow the order of accounts.
#[derive(Debug)]
pub(crate) struct Classes {
    launches: Vec<LoggedLaunch>,
    by_number: FxHashMap<u32, usize>,
    /// Runs of all streams, ordered by number.
    runs: Vec<ClassRun>,
    /// The representative streams, ordered by number.
    encoded: Vec<u32>,
    /// For a representative stream, the number of streams in its class; 0 for other streams.
    sizes: Vec<u32>,
}

impl Classes {
    /// Finds the classes of the streams of `launches`, whose logs are on the device. Fails if a class has no
    /// representative stream, which means that memory is damaged.
    pub(super) fn find(
        device: &mut dyn Device,
        pool: &PoolDescriptor,
        launches: &[LoggedLaunch],
        table: Allocation,
    ) -> Result<Found, SessionError> {
        let streams: u32 = launches.iter().map(|launch| launch.warps * launch.tracks).sum();
        let slots = pool.classes + 4 * u64::from(streams);
        device.fill(slots, 4 * u64::from(pool.class_slots), NO_STREAM as u8)?;
        let Encoded { time, .. } = device.encode(EncodeJob::Classes { pool, launches, table })?;
        let started = Instant::now();
        let mut firsts = vec![0_u32; streams as usize];
        device.read(pool.classes, bytemuck::cast_slice_mut(&mut firsts))?;
        let (runs, behavior) = Self::runs(launches, &firsts);
        let is_class =
            |run: &ClassRun| firsts.get(run.class as usize).is_some_and(|&of| of & !PARTED == run.class);
        if !runs.iter().all(is_class) {
            return Err(SessionError::Pool {
                problem: "the classes of warps are damaged; the kernel, or another program, wrote into the tracer's memory".to_owned(),
            });
        }
        Ok(Found { classes: Self::new(launches, runs), behavior, device: time, host: started.elapsed() })
    }

    /// Returns the runs of consecutive streams in one class, split at the ends of launches, and the behavior
    /// of each launch. `firsts` has the representative of each stream.
    pub(crate) fn runs(launches: &[LoggedLaunch], firsts: &[u32]) -> (Vec<ClassRun>, Vec<Behavior>) {
        let of_launch = |launch: &LoggedLaunch| {
            let streams = launch.warps * launch.tracks;
            let (mut runs, mut first, mut parts, mut encoded) = (Vec::new(), launch.first_stream, 0, 0);
            for run in firsts[first as usize..][..streams as usize].chunk_by(|a, b| a == b) {
                let count = run.len() as u32;
                let found = ClassRun { first, count, class: run[0] & !PARTED };
                parts += if run[0] & PARTED == 0 { 0 } else { count };
                encoded += u32::from(found.has_representative());
                runs.push(found);
                first += count;
            }
            let parts = parts > streams / CONVERGED_SHARE;
            (runs, Behavior { parts, repeats: streams < FEW_STREAMS || encoded <= streams / 4 * 3 })
        };
        let (runs, behavior): (Vec<_>, _) =
            threads::copy(|| launches.par_iter().with_max_len(1).map(of_launch).unzip());
        let runs = runs.concat();
        (runs, behavior)
    }

    /// Creates classes from the runs of all streams. Returns `None` if each stream is a separate class.
    pub(crate) fn new(launches: &[LoggedLaunch], runs: Vec<ClassRun>) -> Option<Self> {
        let is_class = |run: &ClassRun| (run.class, run.count) == (run.first, 1);
        if runs.iter().all(is_class) {
            return None;
        }
        let streams = runs.last().map_or(0, |run| run.first + run.count);
        let mut sizes = vec![0; streams as usize];
        runs.iter().for_each(|run| sizes[run.class as usize] += run.count);
        let encoded = runs.iter().filter(|run| run.has_representative()).map(|run| run.class).collect();
        let by_number = launches.iter().map(|launch| launch.launch).zip(0..).collect();
        Some(Self { launches: launches.to_vec(), by_number, runs, encoded, sizes })
    }

    pub(super) fn encoded(&self, streams: Range<u32>) -> &[u32] {
        let at = |stream| self.encoded.partition_point(|&encoded| encoded < stream);
        &self.encoded[at(streams.start)..at(streams.end)]
    }

    /// Returns the streams of a launch's track and their runs; `None` if its classes were not searched.
    pub(crate) fn of_track(
        &self,
        launch: &LaunchInfo,
        track: u32,
    ) -> Option<(Range<u32>, impl Iterator<Item = ClassRun>)> {
        let logged = &self.launches[*self.by_number.get(&launch.number())?];
        let from = logged.first_stream + track * logged.warps;
        let end = from + logged.warps;
        let before = self.runs.partition_point(|run| run.first + run.count <= from);
        let inside = self.runs[before..].iter().take_while(move |run| run.first < end);
        let cut = move |run: &ClassRun| {
            let (first, behind) = (run.first.max(from), (run.first + run.count).min(end));
            ClassRun { first, count: behind - first, class: run.class }
        };
        Some((from..end, inside.map(cut)))
    }

    /// Returns how many streams have the chunks of a representative stream; 1 for a launch without classes.
    pub(crate) fn size(&self, StreamName { launch, track, warp }: StreamName) -> u32 {
        let logged = self.by_number.get(&launch).map(|&at| &self.launches[at]);
        let number = logged.map(|logged| logged.first_stream + track * logged.warps + warp);
        number.and_then(|number| self.sizes.get(number as usize)).map_or(1, |&size| size.max(1))
    }

    pub(crate) fn stream(&self, number: u32) -> StreamName {
        let at = self.launches.partition_point(|launch| launch.first_stream <= number) - 1;
        let LoggedLaunch { launch, first_stream, warps, .. } = self.launches[at];
        let inside = number - first_stream;
        StreamName { launch, track: inside / warps, warp: inside % warps }
    }
}
