//! State of a file: announced launches and written chunks. Misuse is refused before anything is written.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use warptrace_format::file::limits::MAX_EARLY_ENDS;
use warptrace_format::file::{
    Additions, Growing, IndexEntry, LaunchInfo, Metadata, MetadataError, SectionKind,
};

use super::TrackEnd;
use super::batch::{BatchChunk, Part};
use super::error::WriteError;
use super::runs::Repeated;

/// Minimum chunks that are worth a separate task.
const AT_ONCE: usize = 1 << 13;

#[derive(Debug)]
enum Track {
    /// Lowest sequence number of each warp's next chunk; grown on demand. `u64`, to hold one after the last.
    Open(Vec<u64>),
    Ended,
}

#[derive(Debug)]
struct Launch {
    info: LaunchInfo,
    /// The tracks of events, followed by the data track.
    tracks: Vec<Track>,
    ended_early: bool,
}

#[derive(Debug)]
pub(super) struct Launches {
    metadata: Growing,
    launches: BTreeMap<u32, Launch>,
    early_ends: usize,
}

impl Launches {
    pub(super) fn new(metadata: &Metadata) -> Result<Self, MetadataError> {
        let metadata = Growing::new(metadata.clone())?;
        Ok(Self { metadata, launches: BTreeMap::new(), early_ends: 0 })
    }

    pub(super) fn add(&mut self, additions: &Additions) -> Result<(), MetadataError> {
        self.metadata.add(additions.clone())
    }

    pub(super) fn begin(&mut self, info: &LaunchInfo) -> Result<(), WriteError> {
        let launch = info.number();
        let kernels = self.metadata.metadata().kernels.len();
        if info.kernel() as usize >= kernels {
            let kernel = info.kernel();
            return Err(WriteError::UnknownKernel { launch, kernel, kernels });
        }
        if self.launches.contains_key(&launch) {
            return Err(WriteError::LaunchTwice { launch });
        }
        let tracks = (0..=self.tracks()).map(|_| Track::Open(Vec::new())).collect();
        self.launches.insert(launch, Launch { info: *info, tracks, ended_early: false });
        Ok(())
    }

    pub(super) fn info(&self, launch: u32) -> Option<LaunchInfo> {
        self.launches.get(&launch).map(|launch| launch.info)
    }

    /// Returns the number of event tracks of each launch.
    pub(super) fn tracks(&self) -> usize {
        self.metadata.metadata().tracks.len()
    }

    /// Checks that sequence numbers ascend, also from earlier chunks.
    pub(super) fn accept(&self, parts: &[Part<'_>]) -> Result<(), WriteError> {
        parts.iter().try_for_each(|part| self.accept_part(part))
    }

    /// Checks that a track is one of the event tracks in the metadata.
    pub(super) fn check_declared(&self, launch: u32, track: u32) -> Result<(), WriteError> {
        let tracks = self.tracks();
        if (track as usize) < tracks {
            Ok(())
        } else {
            Err(WriteError::UnknownTrack { launch, track, tracks })
        }
    }

    fn accept_part(&self, part: &Part<'_>) -> Result<(), WriteError> {
        let &Part { launch, track, .. } = part;
        let open = self.launches.get(&launch).ok_or(WriteError::UnknownLaunch { launch })?;
        let seen = match open.tracks.get(track as usize) {
            None => return Err(WriteError::UnknownTrack { launch, track, tracks: self.tracks() }),
            Some(Track::Ended) => return Err(WriteError::TrackEnded { launch, track }),
            Some(Track::Open(seen)) => seen,
        };
        let check = |from: usize, chunks: &[BatchChunk]| {
            let mut before = from.checked_sub(1).map(|before| &part.chunks[before]);
            for chunk in chunks {
                let (warp, sequence) = (part.warp(chunk), chunk.sequence);
                let next = match before {
                    Some(before) if part.warp(before) == warp => u64::from(before.sequence) + 1,
                    _ => seen.get(warp as usize).copied().unwrap_or(0),
                };
                if u64::from(sequence) < next {
                    return Some(WriteError::SequenceNotAscending { launch, track, warp, sequence, next });
                }
                before = Some(chunk);
            }
            None
        };
        let pieces = part.chunks.par_chunks(AT_ONCE).enumerate();
        match pieces.find_map_first(|(piece, chunks)| check(piece * AT_ONCE, chunks)) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Checks that the warps of runs have no earlier chunks.
    pub(super) fn accept_runs(&self, part: &Repeated<'_>) -> Result<(), WriteError> {
        let &Repeated { launch, track, ref runs } = part;
        let open = self.launches.get(&launch).ok_or(WriteError::UnknownLaunch { launch })?;
        let Some(Track::Open(seen)) = open.tracks.get(track as usize) else {
            return Err(WriteError::TrackEnded { launch, track });
        };
        for run in runs {
            let (first, end) = (run.first as usize, run.first as usize + run.warps as usize);
            let seen = seen.get(first.min(seen.len())..end.min(seen.len())).unwrap_or_default();
            if let Some((&next, warp)) = seen.iter().zip(run.first..).find(|(next, _)| **next != 0) {
                return Err(WriteError::SequenceNotAscending { launch, track, warp, sequence: 0, next });
            }
        }
        Ok(())
    }

    pub(super) fn note_runs(&mut self, part: &Repeated<'_>) {
        let track =
            self.launches.get_mut(&part.launch).and_then(|open| open.tracks.get_mut(part.track as usize));
        let Some(Track::Open(seen)) = track else { return };
        for run in &part.runs {
            let (first, end) = (run.first as usize, run.first as usize + run.warps as usize);
            seen.resize(seen.len().max(end), 0);
            seen[first..end].fill(run.chunks.len() as u64);
        }
    }

    /// Registers accepted chunks. Ignores tracks that have ended since.
    pub(super) fn note(&mut self, parts: &[Part<'_>]) {
        for part in parts {
            let track =
                self.launches.get_mut(&part.launch).and_then(|open| open.tracks.get_mut(part.track as usize));
            let (Some(Track::Open(seen)), Some(last)) = (track, part.chunks.last()) else { continue };
            let warps = part.warp(last) as usize + 1;
            if seen.len() < warps {
                seen.resize(warps, 0);
            }
            for chunk in part.chunks {
                seen[part.warp(chunk) as usize] = u64::from(chunk.sequence) + 1;
            }
        }
    }

    /// Checks that tracks can end: each once, with an account for each recorded warp.
    pub(super) fn check_ends(&self, ends: &[TrackEnd<'_>]) -> Result<(), WriteError> {
        let mut named = BTreeSet::new();
        for end in ends {
            let &TrackEnd { launch, track, .. } = end;
            self.check_end(end)?;
            if !named.insert((launch, track)) {
                return Err(WriteError::TrackEnded { launch, track });
            }
        }
        Ok(())
    }

    /// Ends checked tracks.
    pub(super) fn end(&mut self, ends: &[TrackEnd<'_>]) {
        for end in ends {
            let track =
                self.launches.get_mut(&end.launch).and_then(|open| open.tracks.get_mut(end.track as usize));
            if let Some(track) = track {
                *track = Track::Ended;
            }
        }
    }

    pub(super) fn end_early(&mut self, launch: u32) -> Result<(), WriteError> {
        let open = self.launches.get_mut(&launch).ok_or(WriteError::UnknownLaunch { launch })?;
        if open.ended_early {
            return Err(WriteError::EndedTwice { launch });
        }
        if self.early_ends == MAX_EARLY_ENDS {
            return Err(WriteError::TooManyEarlyEnds { limit: MAX_EARLY_ENDS });
        }
        open.ended_early = true;
        self.early_ends += 1;
        Ok(())
    }

    fn check_end(
        &self,
        &TrackEnd { launch, track, ref accounts, .. }: &TrackEnd<'_>,
    ) -> Result<(), WriteError> {
        let tracks = self.tracks();
        let open = self.launches.get(&launch).ok_or(WriteError::UnknownLaunch { launch })?;
        let warps = open.info.chosen().count();
        let state =
            open.tracks.get(track as usize).ok_or(WriteError::UnknownTrack { launch, track, tracks })?;
        if matches!(state, Track::Ended) {
            return Err(WriteError::TrackEnded { launch, track });
        }
        let found = accounts.iter().map(|run| u64::from(run.warps)).sum();
        if found != u64::from(warps) {
            return Err(WriteError::AccountCount { launch, track, found, warps });
        }
        if let Some(at) = accounts.iter().position(|run| run.account.finished > 1) {
            let finished = accounts[at].account.finished;
            let index = accounts[..at].iter().map(|run| run.warps).sum();
            let warp = open.info.chosen_warp(index).unwrap_or(u32::MAX) as usize;
            return Err(WriteError::AccountFinished { launch, track, warp, finished });
        }
        Ok(())
    }
}

/// Returns the index entry of a section that belongs to a whole launch, or, with launch 0, to the file.
pub(super) fn launch_entry(kind: SectionKind, launch: u32, offset: u64, length: u64) -> IndexEntry {
    IndexEntry { kind, offset, length, launch, track: 0, first_warp: 0, last_warp: 0, chunks: 0, events: 0 }
}
