//! Classes: streams with the same chunks. The device encodes the first stream of each class.

use std::ops::Range;
use std::time::Duration;

use rustc_hash::FxHashMap;
use warptrace_abi::log::LoggedLaunch;
use warptrace_abi::pool::{NO_STREAM, PARTED, PoolDescriptor};
use warptrace_format::file::LaunchInfo;

use super::SessionError;
use super::worker::Account;
use crate::{Allocation, Device, EncodeJob, Encoded};

/// The lanes of a launch's warps part if more than this part of its streams have logs of several lanes.
const CONVERGED_SHARE: usize = 16;

/// Streams that follow each other and are in one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClassRun {
    /// The first one's number.
    pub(crate) first: u32,
    /// How many they are.
    pub(crate) count: u32,
    /// The class: the number of its first stream, which was encoded.
    pub(crate) class: u32,
}

/// A stream of a launch: a warp's track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamName {
    pub(crate) launch: u32,
    pub(crate) track: u32,
    /// Index among the warps that record.
    pub(crate) warp: u32,
}

/// The classes of the streams of a drain. Streams are numbered launch by launch, track by track, recorded warp by
/// warp, as their accounts are.
#[derive(Debug)]
pub(crate) struct Classes {
    launches: Vec<LoggedLaunch>,
    /// Index of each launch, by its number.
    by_number: FxHashMap<u32, usize>,
    /// Of all streams, in the order of their numbers.
    runs: Vec<ClassRun>,
    /// For the first stream of each class, the number of streams in the class. For other streams 0.
    sizes: Vec<u32>,
}

impl Classes {
    /// Finds the classes of launches that have left logs. Returns them, or `None` if each stream is a class; for
    /// each launch whether the lanes of its warps part; and the device's time.
    ///
    /// # Errors
    /// The device's, or if a stream's class has no first stream, which means that memory is damaged.
    pub(super) fn find(
        device: &mut dyn Device,
        pool: &PoolDescriptor,
        launches: &[LoggedLaunch],
        table: Allocation,
    ) -> Result<(Option<Self>, Vec<bool>, Duration), SessionError> {
        let streams: u32 = launches.iter().map(|launch| launch.warps * launch.tracks).sum();
        let slots = pool.classes + 4 * u64::from(streams);
        device.fill(slots, 4 * u64::from(pool.class_slots), NO_STREAM as u8)?;
        let Encoded { time, .. } = device.encode(EncodeJob::Classes { pool, launches, table })?;
        let mut firsts = vec![0_u32; streams as usize];
        device.read(pool.classes, bytemuck::cast_slice_mut(&mut firsts))?;
        let parts = |launch: &LoggedLaunch| {
            let streams = &firsts[launch.first_stream as usize..][..(launch.warps * launch.tracks) as usize];
            let parted = streams.iter().filter(|&&first| first & PARTED != 0).count();
            parted * CONVERGED_SHARE > streams.len()
        };
        let parted = launches.iter().map(parts).collect();
        firsts.iter_mut().for_each(|first| *first &= !PARTED);
        let is_class = |&first: &u32| firsts.get(first as usize) == Some(&first);
        if !firsts.iter().all(is_class) {
            return Err(SessionError::Pool {
                problem: "the classes of warps are damaged; the kernel, or another program, wrote into the tracer's memory".to_owned(),
            });
        }
        Ok((Self::new(launches, &firsts), parted, time))
    }

    /// Makes classes from the first stream of each stream's class. `None` if each stream is a class.
    pub(crate) fn new(launches: &[LoggedLaunch], firsts: &[u32]) -> Option<Self> {
        let mut first = 0;
        let runs = firsts.chunk_by(|a, b| a == b).map(|run| {
            let run = ClassRun { first, count: run.len() as u32, class: run[0] };
            first += run.count;
            run
        });
        let runs: Vec<_> = runs.collect();
        let is_class = |run: &ClassRun| (run.class, run.count) == (run.first, 1);
        if runs.iter().all(is_class) {
            return None;
        }
        let mut sizes = vec![0; firsts.len()];
        runs.iter().for_each(|run| sizes[run.class as usize] += run.count);
        let by_number = launches.iter().map(|launch| launch.launch).zip(0..).collect();
        Some(Self { launches: launches.to_vec(), by_number, runs, sizes })
    }

    /// Gives each stream the account of its class.
    pub(super) fn fill(&self, accounts: &mut [Account]) {
        for &ClassRun { first, count, class } in &self.runs {
            let account = accounts[class as usize];
            accounts[first as usize..][..count as usize].fill(account);
        }
    }

    /// The numbers of the streams of a launch's track, and their runs; nothing if the launch is not among those whose
    /// classes were found.
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

    /// Returns how many streams have the chunks of an encoded stream. 1 for a launch without classes.
    pub(crate) fn size(&self, StreamName { launch, track, warp }: StreamName) -> u32 {
        let logged = self.by_number.get(&launch).map(|&at| &self.launches[at]);
        let number = logged.map(|logged| logged.first_stream + track * logged.warps + warp);
        number.and_then(|number| self.sizes.get(number as usize)).map_or(1, |&size| size.max(1))
    }

    /// The stream with a number.
    pub(crate) fn stream(&self, number: u32) -> StreamName {
        let at = self.launches.partition_point(|launch| launch.first_stream <= number) - 1;
        let LoggedLaunch { launch, first_stream, warps, .. } = self.launches[at];
        let inside = number - first_stream;
        StreamName { launch, track: inside / warps, warp: inside % warps }
    }
}
