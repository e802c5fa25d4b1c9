//! Classes: sets of streams with the same chunks. The device encodes only one representative stream of each.
//! Streams of addresses and values have no classes.

use std::ops::Range;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use warptrace_abi::log::LoggedLaunch;
use warptrace_abi::pool::{NO_STREAM, PARTED, PoolDescriptor};
use warptrace_format::file::LaunchInfo;

use super::SessionError;
use crate::{Allocation, Device, EncodeJob, Encoded, HostMemory};

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

/// The representative stream of each stream of a drain, as the device found them.
#[derive(Debug)]
pub(crate) struct Representatives {
    launches: Vec<LoggedLaunch>,
    /// Event tracks of a launch. The data track follows them.
    tracks: u32,
    firsts: HostMemory<u32>,
    classes: OnceLock<Result<Option<Classes>, Damaged>>,
}

impl Representatives {
    pub(crate) fn new(launches: &[LoggedLaunch], tracks: u32, firsts: HostMemory<u32>) -> Self {
        Self { launches: launches.to_vec(), tracks, firsts, classes: OnceLock::new() }
    }

    /// Finds the classes of the streams of `launches`, whose logs are on the device. Also returns the times
    /// that the device and the host took.
    pub(super) fn find(
        device: &mut dyn Device,
        pool: &PoolDescriptor,
        launches: &[LoggedLaunch],
        table: Allocation,
    ) -> Result<(Self, [Duration; 2]), SessionError> {
        let streams: u32 = launches.iter().map(|launch| launch.warps * launch.tracks).sum();
        let slots = pool.classes + 4 * u64::from(streams);
        device.fill(slots, 4 * u64::from(pool.class_slots), NO_STREAM as u8)?;
        let Encoded { time, .. } = device.encode(EncodeJob::Classes { pool, launches, table })?;
        let started = Instant::now();
        let mut firsts = HostMemory::default();
        device.read_to(pool.classes, streams as usize, &mut firsts)?;
        let tracks = if pool.data_track == 0 { u32::MAX } else { pool.data_track };
        Ok((Self::new(launches, tracks, firsts), [time, started.elapsed()]))
    }

    /// Returns the approximate size in host memory.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.firsts[..])
    }

    /// Returns the streams of a launch's event tracks.
    fn streams(&self, launch: &LoggedLaunch) -> Range<u32> {
        launch.first_stream..launch.first_stream + launch.tracks.min(self.tracks) * launch.warps
    }

    /// Returns the behavior of each launch.
    pub(super) fn behavior(&self) -> impl Iterator<Item = Behavior> {
        self.launches.iter().map(|launch| {
            let (mut parts, mut encoded, of_launch) = (0, 0, self.streams(launch));
            let streams = of_launch.end - of_launch.start;
            for stream in of_launch {
                let first = self.firsts[stream as usize];
                parts += u32::from(first & PARTED != 0);
                encoded += u32::from(first & !PARTED == stream);
            }
            let repeats = streams < FEW_STREAMS || encoded <= streams / 4 * 3;
            Behavior { parts: parts > streams / CONVERGED_SHARE, repeats }
        })
    }

    /// Returns the classes; `None` if each stream is a separate class. Fails if a class has no representative
    /// stream, or a stream of the data track has a class: memory is damaged. The first call takes time.
    pub(crate) fn classes(&self) -> Result<Option<&Classes>, Damaged> {
        self.classes.get_or_init(|| self.find_classes()).as_ref().map(Option::as_ref).map_err(|error| *error)
    }

    fn find_classes(&self) -> Result<Option<Classes>, Damaged> {
        let mut runs = Vec::new();
        for launch in &self.launches {
            let of_launch = self.streams(launch);
            let mut first = of_launch.start;
            let of_launch = &self.firsts[first as usize..of_launch.end as usize];
            for run in of_launch.chunk_by(|a, b| a == b) {
                let (class, count) = (run[0] & !PARTED, run.len() as u32);
                if self.firsts.get(class as usize).is_none_or(|of| of & !PARTED != class) {
                    return Err(Damaged);
                }
                runs.push(ClassRun { first, count, class });
                first += count;
            }
            let behind = launch.first_stream + launch.tracks * launch.warps;
            if (first..behind).any(|stream| self.firsts[stream as usize] != stream) {
                return Err(Damaged);
            }
        }
        if runs.iter().all(|run| (run.class, run.count) == (run.first, 1)) {
            return Ok(None);
        }
        let mut sizes = vec![0; self.firsts.len()];
        runs.iter().for_each(|run| sizes[run.class as usize] += run.count);
        let by_number = self.launches.iter().map(|launch| launch.launch).zip(0..).collect();
        Ok(Some(Classes { launches: self.launches.clone(), tracks: self.tracks, by_number, runs, sizes }))
    }
}

/// A stream has a class that it cannot have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Damaged;

impl From<Damaged> for SessionError {
    fn from(_: Damaged) -> Self {
        let problem = "the classes of warps are damaged; the kernel, or another program, wrote into the tracer's memory";
        Self::Pool { problem: problem.to_owned() }
    }
}

/// The classes of the streams of a drain. Stream numbers follow the order of accounts.
#[derive(Debug)]
pub(crate) struct Classes {
    launches: Vec<LoggedLaunch>,
    /// Event tracks of a launch.
    tracks: u32,
    by_number: FxHashMap<u32, usize>,
    /// Runs of all streams of event tracks, ordered by number.
    runs: Vec<ClassRun>,
    /// For a representative stream, the number of streams in its class; 0 for other streams.
    sizes: Vec<u32>,
}

impl Classes {
    /// Returns the streams of a launch's track and their runs; `None` if it has no classes.
    pub(crate) fn of_track(
        &self,
        launch: &LaunchInfo,
        track: u32,
    ) -> Option<(Range<u32>, impl Iterator<Item = ClassRun>)> {
        let logged = &self.launches[*self.by_number.get(&launch.number()).filter(|_| track < self.tracks)?];
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_classes_are_refused() {
        // Two warps, a track of events and one of data.
        let launch = LoggedLaunch { warps: 2, tracks: 2, ..LoggedLaunch::default() };
        let found = |firsts: [u32; 4]| Representatives::new(&[launch], 1, firsts.to_vec().into());
        let sizes = |firsts| found(firsts).classes().map(|it| it.map(|classes| classes.sizes.clone())).ok();
        assert_eq!(sizes([0, PARTED, 2, 3]), Some(Some(vec![2, 0, 0, 0])));
        assert_eq!(sizes([0, 1, 2, 3]), Some(None));
        for damaged in [[1, 0, 2, 3], [0, 4, 2, 3], [0, NO_STREAM, 2, 3], [0, 0, 2, 2], [0, 0, 2, 3 | PARTED]]
        {
            assert_eq!(sizes(damaged), None, "{damaged:?}");
        }
    }
}
