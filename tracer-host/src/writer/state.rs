//! What has been announced and written so far, so that misuse is refused before a byte is written.

use std::collections::{BTreeMap, BTreeSet};

use warptrace_format::file::{ChunkRef, IndexEntry, LaunchInfo, Metadata, SectionKind};

use super::TrackEnd;
use super::error::WriteError;

/// One track of an open launch.
#[derive(Debug)]
enum Track {
    /// Least sequence number that each warp may bring next; grown as warps appear. u64, so that the number
    /// after the last possible one exists.
    Open(Vec<u64>),
    /// Its accounting is written.
    Ended,
}

#[derive(Debug)]
struct Launch {
    warps: u32,
    tracks: Vec<Track>,
}

/// Every launch of the file.
#[derive(Debug)]
pub(super) struct Launches {
    kernels: usize,
    tracks: usize,
    payload_capacity: u32,
    launches: BTreeMap<u32, Launch>,
}

impl Launches {
    pub(super) fn new(metadata: &Metadata) -> Self {
        Self {
            kernels: metadata.kernels.len(),
            tracks: metadata.tracks.len(),
            payload_capacity: metadata.payload_capacity(),
            launches: BTreeMap::new(),
        }
    }

    /// Registers a launch.
    pub(super) fn begin(&mut self, info: &LaunchInfo) -> Result<(), WriteError> {
        let launch = info.number();
        if info.kernel() as usize >= self.kernels {
            let (kernel, kernels) = (info.kernel(), self.kernels);
            return Err(WriteError::UnknownKernel { launch, kernel, kernels });
        }
        if self.launches.contains_key(&launch) {
            return Err(WriteError::LaunchTwice { launch });
        }
        let tracks = (0..self.tracks).map(|_| Track::Open(Vec::new())).collect();
        self.launches.insert(launch, Launch { warps: info.warps(), tracks });
        Ok(())
    }

    /// Whether a launch was registered.
    pub(super) fn contains(&self, launch: u32) -> bool {
        self.launches.contains_key(&launch)
    }

    /// Checks chunks, launch by launch, sorted by (track, warp, sequence).
    pub(super) fn accept(&self, sorted: &[(u32, &[ChunkRef<'_>])]) -> Result<(), WriteError> {
        sorted.iter().try_for_each(|&(launch, chunks)| self.accept_launch(launch, chunks))
    }

    fn accept_launch(&self, launch: u32, sorted: &[ChunkRef<'_>]) -> Result<(), WriteError> {
        let tracks = self.tracks;
        let capacity = self.payload_capacity;
        let open = self.launches.get(&launch).ok_or(WriteError::UnknownLaunch { launch })?;
        let mut before: Option<&ChunkRef<'_>> = None;
        for chunk in sorted {
            let &ChunkRef { track, warp, sequence, events, payload } = chunk;
            let seen = match open.tracks.get(track as usize) {
                None => return Err(WriteError::UnknownTrack { launch, track, tracks }),
                Some(Track::Ended) => return Err(WriteError::TrackEnded { launch, track }),
                Some(Track::Open(seen)) => seen,
            };
            if warp >= open.warps {
                return Err(WriteError::UnknownWarp { launch, track, warp, warps: open.warps });
            }
            if events == 0 || payload.is_empty() {
                return Err(WriteError::EmptyChunk { launch, track, warp, sequence });
            }
            if payload.len() > capacity as usize {
                let bytes = payload.len();
                return Err(WriteError::PayloadTooLarge { launch, track, warp, sequence, bytes, capacity });
            }
            let next = match before {
                Some(before) if (before.track, before.warp) == (track, warp) => {
                    u64::from(before.sequence) + 1
                }
                _ => seen.get(warp as usize).copied().unwrap_or(0),
            };
            if u64::from(sequence) < next {
                return Err(WriteError::SequenceNotAscending { launch, track, warp, sequence, next });
            }
            before = Some(chunk);
        }
        Ok(())
    }

    /// Takes note of chunks that were accepted.
    pub(super) fn note(&mut self, sorted: &[(u32, &[ChunkRef<'_>])]) {
        for (launch, chunks) in sorted {
            let Some(open) = self.launches.get_mut(launch) else { continue };
            for chunk in *chunks {
                if let Some(Track::Open(seen)) = open.tracks.get_mut(chunk.track as usize) {
                    let warp = chunk.warp as usize;
                    if seen.len() <= warp {
                        seen.resize(warp + 1, 0);
                    }
                    seen[warp] = u64::from(chunk.sequence) + 1;
                }
            }
        }
    }

    /// Ends tracks; of all or, on error, of none.
    pub(super) fn end(&mut self, ends: &[TrackEnd<'_>]) -> Result<(), WriteError> {
        let mut named = BTreeSet::new();
        for end in ends {
            let &TrackEnd { launch, track, .. } = end;
            self.check_end(end)?;
            if !named.insert((launch, track)) {
                return Err(WriteError::TrackEnded { launch, track });
            }
        }
        for end in ends {
            let track =
                self.launches.get_mut(&end.launch).and_then(|open| open.tracks.get_mut(end.track as usize));
            if let Some(track) = track {
                *track = Track::Ended;
            }
        }
        Ok(())
    }

    fn check_end(&self, &TrackEnd { launch, track, accounts }: &TrackEnd<'_>) -> Result<(), WriteError> {
        let tracks = self.tracks;
        let open = self.launches.get(&launch).ok_or(WriteError::UnknownLaunch { launch })?;
        let warps = open.warps;
        let state =
            open.tracks.get(track as usize).ok_or(WriteError::UnknownTrack { launch, track, tracks })?;
        if matches!(state, Track::Ended) {
            return Err(WriteError::TrackEnded { launch, track });
        }
        let found = accounts.len() as u64;
        if found != u64::from(warps) {
            return Err(WriteError::AccountCount { launch, track, found, warps });
        }
        if let Some(warp) = accounts.iter().position(|account| account.finished > 1) {
            let finished = accounts[warp].finished;
            return Err(WriteError::AccountFinished { launch, track, warp, finished });
        }
        Ok(())
    }
}

/// The index entry of a launch section.
pub(super) fn launch_entry(launch: &LaunchInfo, offset: u64, length: u64) -> IndexEntry {
    IndexEntry {
        kind: SectionKind::Launch,
        offset,
        length,
        launch: launch.number(),
        track: 0,
        first_warp: 0,
        last_warp: 0,
        chunks: 0,
        events: 0,
    }
}
