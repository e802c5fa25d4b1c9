//! The chunks of a batch: checked one by one, then brought into the order of the file. A batch may have a
//! million chunks of a few bytes each, so only a few words per chunk are moved.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;
use warptrace_format::file::{ChunkRef, LaunchInfo};

use super::error::WriteError;
use super::order::order;
use super::runs::{Repeated, WarpsWithChunks, are_worth_runs};
use crate::session::{ClassRun, Classes, StreamName};

/// A chunk: its place in the file and the place of its payload.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BatchChunk {
    /// The stream, among the streams of the batch's launches.
    pub(super) stream: u64,
    pub(super) sequence: u32,
    pub(super) events: u32,
    pub(crate) length: u32,
    /// The place of the payload; the code that fills the batch defines its meaning.
    pub(crate) at: u32,
    /// The header's `runs`, and bytes between the payload and the times.
    pub(crate) times: [u32; 2],
}

impl BatchChunk {
    /// Returns a chunk of the data track, where a stream is a warp of one launch.
    pub(super) fn of_warp(warp: u32, sequence: u32) -> Self {
        Self { stream: warp.into(), sequence, ..Self::default() }
    }
}

/// The encoded events of a chunk, and the times of its runs as the device writes them.
pub(crate) type Payload<'p> = [&'p [u8]; 2];

#[derive(Clone, Copy, Debug)]
struct Launch {
    info: LaunchInfo,
    /// The stream of track 0 and warp 0, followed by the other warps, then by the next track.
    first: u64,
}

#[derive(Debug)]
pub(crate) struct Batch {
    /// Sorted by number.
    launches: Vec<Launch>,
    tracks: u32,
    capacity: u32,
    streams: u64,
    pieces: Vec<Vec<BatchChunk>>,
}

impl Batch {
    /// Returns an empty batch for chunks of these launches, whose numbers ascend. `capacity` is the maximum
    /// payload of a chunk in bytes.
    pub(super) fn new(launches: &[LaunchInfo], tracks: u32, capacity: u32) -> Self {
        let mut streams = 0;
        let launches = launches.iter().map(|&info| {
            let first = streams;
            streams += u64::from(info.warps()) * u64::from(tracks);
            Launch { info, first }
        });
        Self { launches: launches.collect(), tracks, capacity, streams, pieces: Vec::new() }
    }

    fn find(&self, number: u32) -> Option<Launch> {
        // Launch numbers are usually consecutive.
        let first = self.launches.first()?.info.number();
        match self.launches.get(number.wrapping_sub(first) as usize) {
            Some(launch) if launch.info.number() == number => Some(*launch),
            _ => {
                let at = self.launches.binary_search_by_key(&number, |launch| launch.info.number()).ok()?;
                self.launches.get(at).copied()
            }
        }
    }

    pub(crate) fn launch(&self, number: u32) -> Option<LaunchInfo> {
        self.find(number).map(|launch| launch.info)
    }

    pub(crate) fn add(&mut self, piece: Vec<BatchChunk>) {
        self.pieces.push(piece);
    }

    /// Returns an entry for a chunk if it is valid for the launch; `at` is the place of its payload.
    pub(crate) fn check(&self, launch: u32, chunk: &ChunkRef<'_>, at: u32) -> Result<BatchChunk, WriteError> {
        let &ChunkRef { track, warp, sequence, events, payload } = chunk;
        let Launch { info, first } = self.find(launch).ok_or(WriteError::UnknownLaunch { launch })?;
        let warps = info.warps();
        if track >= self.tracks {
            return Err(WriteError::UnknownTrack { launch, track, tracks: self.tracks as usize });
        }
        if warp >= warps {
            return Err(WriteError::UnknownWarp { launch, track, warp, warps });
        }
        if !info.is_whole() && !info.is_chosen(warp) {
            return Err(WriteError::NotChosen { launch, track, warp });
        }
        if events == 0 || payload.is_empty() {
            return Err(WriteError::EmptyChunk { launch, track, warp, sequence });
        }
        let (bytes, capacity) = (payload.len(), self.capacity);
        if bytes > capacity as usize {
            return Err(WriteError::PayloadTooLarge { launch, track, warp, sequence, bytes, capacity });
        }
        let stream = first + u64::from(track) * u64::from(warps) + u64::from(warp);
        Ok(BatchChunk { stream, sequence, events, length: bytes as u32, at, times: [0; 2] })
    }

    /// Sorts the chunks into `ordered`, whose old content is overwritten.
    pub(super) fn order(&self, ordered: &mut Vec<BatchChunk>) {
        order(&self.pieces, self.streams, ordered);
    }

    /// Returns the chunks of each launch and track. With `classes`, `ordered` has the chunks of one stream of
    /// each class, and each stream gets the chunks of its class.
    pub(super) fn tracks<'b>(
        &self,
        ordered: &'b [BatchChunk],
        classes: Option<&Classes>,
    ) -> Vec<TrackChunks<'b>> {
        let starts = classes.map_or_else(Vec::new, |_| self.starts(ordered));
        let of_launch = |launch: &Launch| {
            let (launch, warps) = (*launch, u64::from(launch.info.warps()));
            (0..self.tracks).map(move |track| (launch.info, track, launch.first + u64::from(track) * warps))
        };
        let tracks: Vec<_> = self.launches.iter().flat_map(of_launch).collect();
        let chunks = |(info, track, first): (LaunchInfo, u32, u64)| {
            let found = classes.and_then(|classes| Some((classes, classes.of_track(&info, track)?)));
            let (chunks, runs) = match found {
                None => (Cow::Borrowed(within(ordered, first..first + u64::from(info.warps()))), None),
                Some((classes, (streams, runs))) => {
                    let of_class = |class: u32| {
                        let stream = if streams.contains(&class) {
                            Some(self.stream(&info, first, class - streams.start))
                        } else {
                            self.find_stream(classes.stream(class))
                        };
                        let ends = stream.and_then(|stream| starts.get(stream as usize..stream as usize + 2));
                        ends.map_or(&[][..], |ends| &ordered[ends[0] as usize..ends[1] as usize])
                    };
                    let run = |run: ClassRun| WarpsWithChunks {
                        first: run.first - streams.start,
                        warps: run.count,
                        chunks: of_class(run.class),
                    };
                    let runs: Vec<_> = runs.map(run).filter(|run| !run.chunks.is_empty()).collect();
                    if info.is_whole() && are_worth_runs(&runs) {
                        let launch = info.number();
                        (Cow::Borrowed(&[][..]), Some(Repeated { launch, track, runs }))
                    } else {
                        (Cow::Owned(self.one_by_one(&info, first, &runs)), None)
                    }
                }
            };
            TrackChunks { launch: info.number(), track, first_stream: first, chunks, runs }
        };
        // Launches differ in duration.
        tracks.into_par_iter().with_max_len(1).map(chunks).collect()
    }

    /// Returns the index of each stream's first chunk in ordered chunks, followed by the number of chunks.
    fn starts(&self, ordered: &[BatchChunk]) -> Vec<u32> {
        let mut starts = Vec::with_capacity(self.streams as usize + 1);
        for (at, chunk) in (0..).zip(ordered) {
            starts.resize(starts.len().max(chunk.stream as usize + 1), at);
        }
        starts.resize(self.streams as usize + 1, ordered.len() as u32);
        starts
    }

    /// Returns the stream of the recorded warp with this index. `first` is the first stream of the track.
    fn stream(&self, info: &LaunchInfo, first: u64, index: u32) -> u64 {
        first + u64::from(info.chosen_warp(index).unwrap_or(index))
    }

    fn find_stream(&self, name: StreamName) -> Option<u64> {
        let Launch { info, first } = self.find(name.launch)?;
        Some(self.stream(&info, first + u64::from(name.track) * u64::from(info.warps()), name.warp))
    }

    /// Expands runs to the chunks of each warp.
    fn one_by_one(&self, info: &LaunchInfo, first: u64, runs: &[WarpsWithChunks<'_>]) -> Vec<BatchChunk> {
        let chunks = runs.iter().map(|run| run.warps as usize * run.chunks.len()).sum();
        let mut all = Vec::with_capacity(chunks);
        for run in runs {
            for index in run.first..run.first + run.warps {
                let stream = self.stream(info, first, index);
                all.extend(run.chunks.iter().map(|chunk| BatchChunk { stream, ..*chunk }));
            }
        }
        all
    }
}

/// Returns the chunks of a range of streams, from ordered chunks.
fn within(ordered: &[BatchChunk], streams: Range<u64>) -> &[BatchChunk] {
    let at = |stream| ordered.partition_point(|chunk| chunk.stream < stream);
    &ordered[at(streams.start)..at(streams.end)]
}

#[derive(Debug)]
pub(super) struct TrackChunks<'b> {
    launch: u32,
    track: u32,
    first_stream: u64,
    chunks: Cow<'b, [BatchChunk]>,
    /// Runs, if the warps repeat.
    pub(super) runs: Option<Repeated<'b>>,
}

impl TrackChunks<'_> {
    pub(super) fn part(&self) -> Option<Part<'_>> {
        let &Self { launch, track, first_stream, ref chunks, .. } = self;
        (!chunks.is_empty()).then_some(Part { launch, track, first_stream, chunks })
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'b> {
    pub(super) launch: u32,
    pub(super) track: u32,
    /// The stream of warp 0.
    first_stream: u64,
    pub(super) chunks: &'b [BatchChunk],
}

impl<'b> Part<'b> {
    /// Returns ordered chunks of a launch's data track.
    pub(super) const fn of_launch(launch: u32, track: u32, chunks: &'b [BatchChunk]) -> Self {
        Self { launch, track, first_stream: 0, chunks }
    }

    pub(super) const fn warp(&self, chunk: &BatchChunk) -> u32 {
        // Fits: checked when the chunk was added.
        (chunk.stream - self.first_stream) as u32
    }

    pub(super) fn chunk<'p>(&self, chunk: &BatchChunk, payload: &'p [u8]) -> ChunkRef<'p> {
        let &BatchChunk { sequence, events, .. } = chunk;
        ChunkRef { track: self.track, warp: self.warp(chunk), sequence, events, payload }
    }

    pub(super) const fn with_chunks(&self, chunks: &'b [BatchChunk]) -> Self {
        Self { chunks, ..*self }
    }
}
