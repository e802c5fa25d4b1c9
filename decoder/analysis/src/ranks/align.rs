//! Puts the launches of ranks on one time axis, and compares them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::named::{clocks_of, names};
use super::{RankClock, RankTimes};
use crate::counts::median;
use crate::order::OrderItems;

/// A file on the axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RankOnAxis {
    /// Name of the file.
    pub file: String,
    /// Display name: the rank if it is unique, otherwise rank and device, or the file name.
    pub name: String,
    /// Rank; `None` if the file does not have it.
    pub rank: Option<u32>,
    /// Host; `None` if the file does not have it.
    pub host: Option<String>,
    /// Number of the host's clock, equal for files of the same host.
    pub host_clock: u32,
    /// Source of its launch times; `None` if it has none.
    pub clock: Option<RankClock>,
    /// Offset from its clock to the axis in nanoseconds; 0 for all if no clocks share a launch. `None` if it
    /// has no times, or if shared launches align only other clocks.
    pub offset_ns: Option<i64>,
    /// Number of its launches.
    pub launches: u64,
    /// Launches with a known start time.
    pub timed_launches: u64,
    /// Sentence about missing or assumed data; may be empty.
    pub missing: String,
    /// Launches that this rank began last.
    pub late: LateRank,
}

/// Launches that a rank began last, later than all other ranks by more than the error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LateRank {
    /// Number of these launches.
    pub launches: u64,
    /// Delay relative to the median rank, in nanoseconds, summed over these launches.
    pub sum_ns: u64,
    /// Greatest delay relative to the median rank, in nanoseconds.
    pub max_ns: u64,
}

/// A launch on several ranks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RankLaunch {
    /// Name of the kernel.
    pub kernel: String,
    /// Number among the launches of this kernel, from 0.
    pub number: u64,
    /// Number of ranks that are compared.
    pub ranks: u64,
    /// First rank to start it, as an index into the files.
    pub earliest: u32,
    /// Start on that rank, in nanoseconds on the axis.
    pub begin_ns: u64,
    /// Last rank to start it, as an index into the files.
    pub latest: u32,
    /// Nanoseconds from the first to the last start.
    pub spread_ns: u64,
    /// True if the spread is greater than the error.
    pub is_decided: bool,
}

/// Alignment of the hosts' clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Alignment {
    /// Number of clocks.
    pub clocks: u64,
    /// Shared launches with ends on several clocks.
    pub shared_launches: u64,
    /// Error in nanoseconds: the bound of the devices' timers and, with several clocks, at least the greatest
    /// distance between aligned ends of a shared launch. `None` if several clocks share no launch.
    pub error_ns: Option<u64>,
    /// Median distance between the ends of a shared launch, in nanoseconds. Also known for a single clock.
    pub median_error_ns: u64,
}

/// Launches of ranks on one time axis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Timeline {
    /// Files, in the order of ranks.
    pub files: Vec<RankOnAxis>,
    /// Alignment of the clocks.
    pub alignment: Alignment,
    /// Sentences about files and launches that are not compared, and about assumptions.
    pub notes: Vec<String>,
    /// Launches on several ranks, by their first start.
    pub launches: Vec<RankLaunch>,
    /// Time of the first file's host at the start of the axis, in nanoseconds since 1970-01-01 UTC.
    pub begin_realtime_ns: u64,
    /// By file, the launches with a known start time.
    #[serde(skip)]
    pub slices: Vec<RankSlices>,
}

/// Launches of a file on the axis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankSlices {
    /// Names of kernels.
    pub kernels: Vec<String>,
    /// Index of the kernel, start and end on the axis, in nanoseconds.
    pub launches: Vec<(u32, u64, Option<u64>)>,
}

/// Key of a shared launch: the number of its kernel, and its number among the launches of that kernel.
type Key = (u32, u32);

struct Ranks<'a> {
    files: &'a [RankTimes],
    clocks: Vec<u32>,
    names: Vec<&'a str>,
    /// By file and key: the launch, for kernels with the most common number of launches.
    launches: Vec<BTreeMap<Key, usize>>,
    notes: Vec<String>,
}

impl Timeline {
    /// Puts launches of ranks on one axis. Launches of kernels for whose names `is_shared` returns true are
    /// assumed to end at the same time on all ranks.
    pub fn new(mut files: Vec<RankTimes>, is_shared: &dyn Fn(&str) -> bool) -> Self {
        files.order_by(|a, b| place(a).cmp(&place(b)));
        let mut ranks = Ranks::new(&files);
        let (offsets, alignment) = ranks.align(is_shared);
        ranks.compared(offsets, alignment)
    }
}

fn place(file: &RankTimes) -> (u32, u32, &str) {
    let known = |of: fn(&warptrace_format::file::Origin) -> Option<u32>| {
        file.origin.as_deref().and_then(of).unwrap_or(u32::MAX)
    };
    (known(|origin| origin.rank), known(|origin| origin.device), &file.file)
}

impl<'a> Ranks<'a> {
    fn new(files: &'a [RankTimes]) -> Self {
        let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
        let mut names = Vec::new();
        let mut notes = Vec::new();
        let mut all: Vec<BTreeMap<usize, Vec<usize>>> = Vec::new();
        for (at, file) in files.iter().enumerate() {
            for (number, launch) in file.launches.iter().enumerate() {
                let name = file.kernels.get(launch.kernel as usize).map_or("?", String::as_str);
                let next = names.len() as u32;
                let kernel = *numbers.entry(name).or_insert_with(|| {
                    names.push(name);
                    all.push(BTreeMap::new());
                    next
                });
                all[kernel as usize].entry(at).or_default().push(number);
            }
        }
        let mut launches = vec![BTreeMap::new(); files.len()];
        for ((kernel, name), found) in (0..).zip(&names).zip(all) {
            // Files with a different number of launches than most cannot be matched.
            let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
            found.values().for_each(|launches| *counts.entry(launches.len()).or_default() += 1);
            let most = counts.iter().max_by_key(|(launches, files)| (**files, **launches));
            let Some(usual) = most.map(|(launches, _)| *launches) else { continue };
            let odd: Vec<&usize> =
                found.iter().filter(|(_, of)| of.len() != usual).map(|(at, _)| at).collect();
            if let Some(first) = odd.first() {
                let (files_of, has) = (many(odd.len(), "file"), found[first].len());
                notes.push(format!(
                    "launches of {name} are not compared for {files_of} with another number of them than most: {} has {has}, most have {usual}",
                    files[**first].file
                ));
            }
            for (at, of) in found.iter().filter(|(_, of)| of.len() == usual) {
                launches[*at].extend((0..).zip(of).map(|(number, launch)| ((kernel, number), *launch)));
            }
        }
        let clocks = clocks_of(files);
        Self { files, clocks, names, launches, notes }
    }

    /// Returns the offset of each host's clock, `None` if it is unknown, and the quality of the alignment.
    fn align(&mut self, is_shared: &dyn Fn(&str) -> bool) -> (Vec<Option<i128>>, Alignment) {
        let clocks = self.clocks.iter().max().map_or(0, |last| *last as usize + 1);
        let is_shared: Vec<bool> = self.names.iter().map(|name| is_shared(name)).collect();
        let mut ends: BTreeMap<Key, BTreeMap<u32, Vec<i128>>> = BTreeMap::new();
        for ((file, of), clock) in self.files.iter().zip(&self.launches).zip(&self.clocks) {
            for (key, launch) in of.iter().filter(|((kernel, _), _)| is_shared[*kernel as usize]) {
                if let Some(end) = file.launches[*launch].end {
                    ends.entry(*key).or_default().entry(*clock).or_default().push(end.into());
                }
            }
        }
        ends.retain(|_, by_clock| by_clock.values().map(Vec::len).sum::<usize>() > 1);
        let shared = ends.values().filter(|by_clock| by_clock.len() > 1).count();
        let mut alignment =
            Alignment { clocks: clocks as u64, shared_launches: shared as u64, ..Alignment::default() };
        let within = self.files.iter().map(|file| file.within).max().unwrap_or(0);
        if clocks > 1 && shared == 0 {
            return (vec![Some(0); clocks], alignment);
        }
        let offsets = offsets(&ends, clocks);
        let mut spreads: Vec<u64> = Vec::new();
        for by_clock in ends.values() {
            let on_axis = by_clock.iter().filter_map(|(clock, ends)| Some((offsets[*clock as usize]?, ends)));
            let on_axis: Vec<i128> =
                on_axis.flat_map(|(offset, ends)| ends.iter().map(move |end| end + offset)).collect();
            let (least, most) = (on_axis.iter().min(), on_axis.iter().max());
            spreads.extend(least.zip(most).map(|(least, most)| distance(*least, *most)));
        }
        let most = spreads.iter().copied().max().unwrap_or(0);
        alignment.median_error_ns = median(&mut spreads);
        // Times on one clock do not depend on the assumption that launches end at the same time.
        alignment.error_ns = Some(if clocks > 1 { most.max(within) } else { within });
        for clock in 0..clocks as u32 {
            let told = ends.values().filter(|by_clock| by_clock.len() > 1 && by_clock.contains_key(&clock));
            if clocks > 1 && told.count() == 1 {
                self.notes.push(format!(
                    "the clock of {} is compared by a single launch: its error is not known",
                    self.host(clock)
                ));
            }
        }
        (offsets, alignment)
    }

    fn host(&self, clock: u32) -> String {
        let of = self.files.iter().zip(&self.clocks).find(|(_, of)| **of == clock);
        let host = of.and_then(|(file, _)| file.origin.as_ref()?.host.clone());
        host.or_else(|| of.map(|(file, _)| file.file.clone())).unwrap_or_default()
    }

    fn compared(mut self, offsets: Vec<Option<i128>>, alignment: Alignment) -> Timeline {
        let moved = |at: usize, moment: u64| Some(i128::from(moment) + offsets[self.clocks[at] as usize]?);
        let begins = self.files.iter().enumerate().flat_map(|(at, file)| {
            let begins = file.launches.iter().filter_map(|launch| launch.begin);
            begins.filter_map(move |begin| moved(at, begin))
        });
        let zero = begins.min().unwrap_or(0);
        let on_axis = |at: usize, moment: u64| moved(at, moment).map(|moved| distance(zero, moved));
        let mut by_key: BTreeMap<Key, Vec<(u64, u32)>> = BTreeMap::new();
        for (at, of) in self.launches.iter().enumerate() {
            for (key, launch) in of {
                let begin = self.files[at].launches[*launch].begin.and_then(|begin| on_axis(at, begin));
                if let Some(begin) = begin {
                    by_key.entry(*key).or_default().push((begin, at as u32));
                }
            }
        }
        let mut late = vec![LateRank::default(); self.files.len()];
        let mut launches = Vec::new();
        for ((kernel, number), mut found) in by_key.into_iter().filter(|(_, found)| found.len() > 1) {
            found.sort_unstable();
            let ((begin_ns, earliest), (last, latest)) = (found[0], found[found.len() - 1]);
            let spread_ns = last - begin_ns;
            // A rank that began earlier by no more than the error may actually be the last one.
            let before = found[found.len() - 2].0;
            let is_decided = alignment.error_ns.is_some_and(|error| spread_ns > error);
            if alignment.error_ns.is_some_and(|error| last - before > error) {
                let by = last - found[(found.len() - 1) / 2].0;
                let late = &mut late[latest as usize];
                late.launches += 1;
                late.sum_ns = late.sum_ns.saturating_add(by);
                late.max_ns = late.max_ns.max(by);
            }
            launches.push(RankLaunch {
                kernel: self.names[kernel as usize].to_owned(),
                number: number.into(),
                ranks: found.len() as u64,
                earliest,
                begin_ns,
                latest,
                spread_ns,
                is_decided,
            });
        }
        launches.order_by_key(|launch| launch.begin_ns);
        let slices = self.files.iter().enumerate().map(|(at, file)| {
            let slice = |launch: &super::Ran| {
                let end = launch.end.and_then(|end| on_axis(at, end));
                Some((launch.kernel, on_axis(at, launch.begin?)?, end))
            };
            let launches = file.launches.iter().filter_map(slice).collect();
            RankSlices { kernels: file.kernels.clone(), launches }
        });
        let slices = slices.collect();
        let named = names(self.files);
        let files =
            self.files.iter().zip(&self.clocks).zip(named).zip(late).map(|(((file, clock), name), late)| {
                let offset = offsets[*clock as usize].filter(|_| file.clock.is_some());
                RankOnAxis {
                    file: file.file.clone(),
                    name,
                    rank: file.origin.as_ref().and_then(|origin| origin.rank),
                    host: file.origin.as_ref().and_then(|origin| origin.host.clone()),
                    host_clock: *clock,
                    clock: file.clock,
                    offset_ns: offset.map(|offset| i64::try_from(offset).unwrap_or(i64::MAX)),
                    launches: file.launches.len() as u64,
                    timed_launches: file.launches.iter().filter(|launch| launch.begin.is_some()).count()
                        as u64,
                    missing: file.missing.clone(),
                    late,
                }
            });
        let files: Vec<RankOnAxis> = files.collect();
        self.note(&files);
        let begin_realtime_ns = u64::try_from(zero).unwrap_or(0);
        Timeline { files, alignment, notes: self.notes, launches, begin_realtime_ns, slices }
    }

    fn note(&mut self, files: &[RankOnAxis]) {
        for file in files {
            if file.clock.is_none() {
                self.notes.push(format!(
                    "{} does not say when its launches ran, and is not on the axis: record with --times",
                    file.file
                ));
            } else if file.offset_ns.is_none() {
                self.notes.push(format!(
                    "{} shares no launch by which its clock could be compared, and is not on the axis",
                    file.file
                ));
            } else if file.timed_launches < file.launches {
                let (lacking, all) = (file.launches - file.timed_launches, file.launches);
                self.notes
                    .push(format!("{} does not say of {lacking} of {all} launches when they ran", file.file));
            }
        }
        let clocks: BTreeSet<_> =
            files.iter().filter_map(|file| file.clock.map(|clock| clock as u8)).collect();
        if clocks.len() > 1 {
            let note = "some files have times of the device, others of the host alone, where a launch begins when it is given to the device";
            self.notes.push(note.to_owned());
        }
        let origins = || self.files.iter().filter_map(|file| file.origin.as_deref());
        let jobs: BTreeSet<&str> = origins().filter_map(|origin| origin.job.as_deref()).collect();
        if jobs.len() > 1 {
            self.notes.push(format!("the files are of {} jobs", jobs.len()));
        }
        let mut known = BTreeSet::new();
        let twice = origins().find(|origin| {
            origin.rank.is_some() && !known.insert((origin.rank, origin.device, &origin.device_uuid))
        });
        if let Some(rank) = twice.and_then(|origin| origin.rank) {
            self.notes.push(format!("several files are of rank {rank} and the same device"));
        }
        let ranks: BTreeSet<u32> = origins().filter_map(|origin| origin.rank).collect();
        if let Some(all) = origins().filter_map(|origin| origin.ranks).max()
            && (ranks.len() as u64) < u64::from(all)
        {
            self.notes.push(format!("files of {} of {all} ranks were given", ranks.len()));
        }
    }
}

/// Returns offsets of the clocks that make shared launches end at the same time, 0 for the first. Adds clocks to
/// the one with the most shared launches, each by its median distance from clocks with common launches.
fn offsets(ends: &BTreeMap<Key, BTreeMap<u32, Vec<i128>>>, clocks: usize) -> Vec<Option<i128>> {
    let mut offsets: Vec<Option<i128>> = vec![None; clocks];
    let mut shares = vec![0usize; clocks];
    for by_clock in ends.values().filter(|by_clock| by_clock.len() > 1) {
        by_clock.keys().for_each(|clock| shares[*clock as usize] += 1);
    }
    let first = (0..clocks).max_by_key(|clock| (shares[*clock], std::cmp::Reverse(*clock)));
    if let Some(first) = first {
        offsets[first] = Some(0);
    }
    loop {
        let mut distances: BTreeMap<u32, Vec<i128>> = BTreeMap::new();
        for by_clock in ends.values() {
            let known = by_clock.iter().filter_map(|(clock, ends)| Some((offsets[*clock as usize]?, ends)));
            let mut known: Vec<i128> =
                known.flat_map(|(offset, ends)| ends.iter().map(move |end| end + offset)).collect();
            let Some(known) = middle(&mut known) else { continue };
            for (clock, ends) in by_clock.iter().filter(|(clock, _)| offsets[**clock as usize].is_none()) {
                let own = middle(&mut ends.clone());
                distances.entry(*clock).or_default().extend(own.map(|own| known - own));
            }
        }
        if distances.is_empty() {
            break;
        }
        for (clock, mut distances) in distances {
            offsets[clock as usize] = middle(&mut distances);
        }
    }
    let zero = offsets.iter().flatten().next().copied().unwrap_or(0);
    offsets.into_iter().map(|offset| offset.map(|offset| offset - zero)).collect()
}

fn middle(numbers: &mut [i128]) -> Option<i128> {
    let last = numbers.len().checked_sub(1)?;
    Some(*numbers.select_nth_unstable(last / 2).1)
}

/// Returns the distance between two moments, from the earlier to the later; 0 if they are in the other order.
fn distance(from: i128, to: i128) -> u64 {
    u64::try_from(to - from).unwrap_or(if to > from { u64::MAX } else { 0 })
}

fn many(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
