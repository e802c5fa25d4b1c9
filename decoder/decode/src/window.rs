//! Windows: the chunks of consecutive warps, gathered from overlapping frames in bounded memory.
//!
//! Frames of one batch follow each other in order of warp. Frames of several batches (a long kernel that is
//! drained while it runs) all cover the same warps. To read such a file in order of warp, a window takes the
//! chunks of the lowest warps from every frame, until they fill [`WINDOW_BYTES`]. The next window begins at
//! the first warp that did not fit. Each frame is read once for each window that it overlaps.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use rayon::prelude::*;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{Chunk, ChunkTimes, Frame, FrameTimes, IndexEntry};

use crate::error::DecodeError;
use crate::feed::ChunkData;
use crate::file::TraceFile;
use crate::work::steps;

/// Maximum bytes of a window: payloads and [`CHUNK_OVERHEAD`](crate::feed::CHUNK_OVERHEAD) per chunk.
const WINDOW_BYTES: usize = 64 << 20;
const FRAMES_AT_ONCE: usize = 8;

/// Chunks that each warp of a run has in one frame.
type Piece = Arc<[ChunkData]>;

#[derive(Clone, Debug)]
pub(crate) enum Held {
    /// Pieces in file order, each with the index of its track in the window.
    Chunks(Vec<(usize, Piece)>),
    /// The chunks exceed a window and must be read from the frames.
    Huge,
}

impl Held {
    pub(crate) fn chunks(&self, slot: usize) -> impl Iterator<Item = &ChunkData> {
        let pieces = if let Self::Chunks(pieces) = self { &pieces[..] } else { &[] };
        pieces.iter().filter(move |(of, _)| *of == slot).flat_map(|(_, piece)| &piece[..])
    }

    /// Returns the size of the chunks in memory.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Chunks(pieces) => pieces.iter().map(|(_, piece)| piece_bytes(piece)).sum(),
            Self::Huge => 0,
        }
    }
}

#[derive(Debug)]
pub(crate) struct HeldRun {
    pub(crate) warps: Range<u32>,
    pub(crate) held: Held,
}

impl HeldRun {
    pub(crate) fn each(&self) -> impl Iterator<Item = (u32, &Held)> {
        self.warps.clone().map(|warp| (warp, &self.held))
    }
}

#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) warps: Range<u32>,
    pub(crate) held: Vec<HeldRun>,
    /// Whether times were requested. Lost or damaged times are absent from the chunks.
    is_timed: bool,
    /// Frames that are unreadable or lack times, if times were requested: first warp, offset and error.
    pub(crate) untimed: Vec<((u32, u64), DecodeError)>,
}

/// Warps of a launch with equal events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WarpClass {
    runs: Vec<Range<u32>>,
    warps: u64,
}

impl WarpClass {
    /// Appends warps. They must follow the last one.
    fn push(&mut self, warps: Range<u32>) {
        self.warps += warps.len() as u64;
        match self.runs.last_mut() {
            Some(last) if last.end == warps.start => last.end = warps.end,
            _ => self.runs.push(warps),
        }
    }

    /// Returns the warps in ascending order, as ranges that do not touch.
    pub fn runs(&self) -> &[Range<u32>] {
        &self.runs
    }

    /// Returns the number of warps.
    pub const fn warps(&self) -> u64 {
        self.warps
    }

    /// Returns the first warp.
    pub fn first(&self) -> u32 {
        self.runs.first().map_or(0, |run| run.start)
    }
}

/// A group and pieces. Two are equal if the groups are equal and the chunks have the same events.
struct Alike<'a>(u64, &'a [(usize, Piece)]);

impl Alike<'_> {
    fn chunks(&self) -> impl Iterator<Item = (usize, &ChunkData)> {
        self.1.iter().flat_map(|(slot, piece)| piece.iter().map(move |chunk| (*slot, chunk)))
    }
}

impl Hash for Alike<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
        for (slot, ChunkData { sequence, events, payload, .. }) in self.chunks() {
            (slot, sequence, events, payload.as_ptr()).hash(state);
        }
    }
}

impl PartialEq for Alike<'_> {
    fn eq(&self, other: &Self) -> bool {
        let is_like = |(one, other): ((usize, &ChunkData), (usize, &ChunkData))| {
            one.0 == other.0 && one.1.is_like(other.1)
        };
        let same = || self.chunks().count() == other.chunks().count();
        self.0 == other.0 && same() && self.chunks().zip(other.chunks()).all(is_like)
    }
}

impl Eq for Alike<'_> {}

impl Window {
    /// Divides the warps of the window into classes with the same group and the same events, in the order of
    /// their first warps. In a launch with times, each warp is a class. `group` returns the group of the
    /// first warp of a range, and the end of the warps known to have the same group; `None` leaves them out.
    pub(crate) fn classes(
        &self,
        group: impl Fn(Range<u32>) -> (u32, Option<u64>),
    ) -> Vec<(&Held, WarpClass)> {
        let (mut classes, mut number_of) = (Vec::<(&Held, WarpClass)>::new(), HashMap::new());
        for HeldRun { warps, held } in &self.held {
            let mut rest = warps.clone();
            while !rest.is_empty() {
                let (end, group) = group(rest.clone());
                let of_group = rest.start..end.clamp(rest.start + 1, rest.end);
                rest.start = of_group.end;
                let Some(group) = group else { continue };
                let next = classes.len();
                let number = match held {
                    Held::Chunks(pieces) if !self.is_timed => {
                        *number_of.entry(Alike(group, pieces)).or_insert(next)
                    }
                    _ => next,
                };
                if number == next {
                    classes.push((held, WarpClass::default()));
                }
                classes[number].1.push(of_group);
            }
        }
        classes
    }
}

pub(crate) struct Windows<'a> {
    file: &'a TraceFile,
    tracks: Vec<u32>,
    /// Frames of all tracks, sorted by first warp.
    frames: Vec<(usize, IndexEntry)>,
    rest: Range<u32>,
    window_bytes: usize,
    is_expanded: bool,
    is_timed: bool,
}

impl<'a> Windows<'a> {
    pub(crate) fn new(file: &'a TraceFile, launch: u32, tracks: Vec<u32>, warps: Range<u32>) -> Self {
        let mut frames = Vec::new();
        for (slot, &track) in tracks.iter().enumerate() {
            let of_track = file.frames(launch, track).iter();
            let inside =
                of_track.filter(|frame| frame.first_warp < warps.end && frame.last_warp >= warps.start);
            frames.extend(inside.map(|&frame| (slot, frame)));
        }
        frames.sort_by_key(|(_, frame)| (frame.first_warp, frame.offset));
        let (window_bytes, is_expanded, is_timed) = (WINDOW_BYTES, false, false);
        Self { file, tracks, frames, rest: warps, window_bytes, is_expanded, is_timed }
    }

    pub(crate) fn timed(mut self) -> Self {
        self.is_timed = self.tracks.first() == Some(&0) && self.file.has_times();
        self.is_expanded |= self.is_timed;
        self
    }

    /// Counts the work of each event, not of each item.
    pub(crate) fn expanded(mut self) -> Self {
        self.is_expanded = true;
        self
    }

    #[cfg(test)]
    pub(crate) fn with_window_bytes(mut self, window_bytes: usize) -> Self {
        self.window_bytes = window_bytes;
        self
    }

    /// Returns the next window; `None` after the last warp. Calls `bad_frame` for each frame that cannot be
    /// read: `Err` ends the walk, `Ok` leaves the frame out. Later windows may call it again.
    pub(crate) fn next_window(
        &mut self,
        bad_frame: &mut dyn FnMut(&IndexEntry, DecodeError) -> Result<(), DecodeError>,
    ) -> Result<Option<Window>, DecodeError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let from = self.rest.start;
        // Later windows do not need these frames. The order by first warp is preserved.
        self.frames.retain(|(_, frame)| frame.last_warp >= from);
        let (mut gathered, mut untimed) = (Gathered::new(self), Vec::new());
        let mut at = 0;
        while at < self.frames.len() {
            let batch: Vec<&(usize, IndexEntry)> = self.frames[at..]
                .iter()
                .take(FRAMES_AT_ONCE)
                .take_while(|(_, frame)| frame.first_warp < gathered.warps.end)
                .collect();
            if batch.is_empty() {
                break;
            }
            at += batch.len();
            let (file, is_timed) = (self.file, self.is_timed);
            let load = |(_, entry): &&(usize, IndexEntry)| {
                let is_timed = is_timed && entry.track == 0;
                (file.load_frame(entry), is_timed.then(|| file.load_times(entry, entry.chunks as usize)))
            };
            let loaded: Vec<_> = batch.par_iter().map(load).collect();
            for ((slot, entry), (frame, times)) in batch.into_iter().zip(loaded) {
                // Events can be decoded without times; verification reports the error.
                let times = times.and_then(|times| {
                    times.map_err(|error| untimed.push(((entry.first_warp, entry.offset), error))).ok()
                });
                match frame {
                    Ok(frame) => {
                        gathered.take(*slot, &frame, times.as_ref(), entry.offset, self.window_bytes);
                    }
                    Err(error) => bad_frame(entry, error)?,
                }
            }
        }
        self.file.work.spend(gathered.steps())?;
        let Gathered { warps, held, .. } = gathered;
        let mut held: Vec<HeldRun> = held.into_values().collect();
        for run in &mut held {
            if let Held::Chunks(pieces) = &mut run.held {
                // File order must be the order of sequence numbers. The decoder checks this.
                pieces.sort_by_key(|(slot, piece)| (*slot, piece.first().map(|chunk| chunk.frame_offset)));
            }
        }
        self.rest.start = warps.end;
        Ok(Some(Window { warps, is_timed: self.is_timed, held, untimed }))
    }
}

/// A window under construction. Its end moves down when it is full.
struct Gathered {
    warps: Range<u32>,
    codecs: Vec<CodecSpec>,
    is_expanded: bool,
    is_timed: bool,
    held: BTreeMap<u32, HeldRun>,
    /// All runs so far end before this warp.
    end: u32,
    /// The payloads of all chunks so far, without duplicates.
    payloads: HashSet<Arc<[u8]>>,
    bytes: usize,
    huge_steps: u64,
}

fn piece_bytes(piece: &Piece) -> usize {
    piece.iter().map(ChunkData::held_bytes).sum()
}

impl Gathered {
    fn new(windows: &Windows<'_>) -> Self {
        let of_file = &windows.file.metadata().tracks;
        let codecs = windows.tracks.iter().map(|&track| of_file.get(track as usize).copied());
        Self {
            warps: windows.rest.clone(),
            codecs: codecs.map(|codec| codec.unwrap_or(CodecSpec::Raw)).collect(),
            is_expanded: windows.is_expanded,
            is_timed: windows.is_timed,
            held: BTreeMap::new(),
            end: 0,
            payloads: HashSet::new(),
            bytes: 0,
            huge_steps: 0,
        }
    }

    fn steps(&self) -> u64 {
        let of_run = |run: &HeldRun| self.steps_of(&run.held).saturating_mul(run.warps.len() as u64);
        self.held.values().map(of_run).fold(self.huge_steps, u64::saturating_add)
    }

    fn steps_of(&self, held: &Held) -> u64 {
        let Held::Chunks(pieces) = held else { return 0 };
        pieces.iter().map(|(slot, piece)| self.piece_steps(*slot, piece)).fold(0, u64::saturating_add)
    }

    fn piece_steps(&self, slot: usize, piece: &Piece) -> u64 {
        let steps =
            |chunk: &ChunkData| steps(self.codecs[slot], chunk.events, chunk.payload.len(), self.is_expanded);
        piece.iter().map(steps).fold(0, u64::saturating_add)
    }

    fn take(
        &mut self,
        slot: usize,
        frame: &Frame,
        times: Option<&FrameTimes>,
        frame_offset: u64,
        limit: usize,
    ) {
        let mut payloads: Vec<Option<Arc<[u8]>>> = Vec::new();
        // With times, chunks of different warps are never equal.
        if !self.is_timed && !frame.runs().is_empty() {
            let mut pieces: Vec<Option<Piece>> = Vec::new();
            for run in frame.runs() {
                let last = run.last().saturating_add(1);
                let warps = run.first.max(self.warps.start)..last.min(self.warps.end);
                if warps.is_empty() {
                    continue;
                }
                let class = run.class as usize;
                pieces.resize(pieces.len().max(class + 1), None);
                let chunks = || frame.warp_chunks(run.first, run.class);
                let chunk = |chunk| self.chunk(chunk, &mut payloads, frame_offset, None);
                let piece = pieces[class].get_or_insert_with(|| chunks().map(chunk).collect());
                self.add(warps, slot, piece, limit);
            }
            return;
        }
        let mut chunks = frame.chunks().enumerate().peekable();
        while let Some((_, first)) = chunks.peek() {
            let warp = first.entry.warp;
            let of_warp = std::iter::from_fn(|| chunks.next_if(|(_, chunk)| chunk.entry.warp == warp));
            if !self.warps.contains(&warp) {
                of_warp.for_each(drop);
                continue;
            }
            let times = |at| times.map(|times| (times.step(), times.chunk(at)));
            let chunk = |(at, chunk)| self.chunk(chunk, &mut payloads, frame_offset, times(at));
            let piece = of_warp.map(chunk).collect();
            self.add(warp..warp + 1, slot, &piece, limit);
        }
    }

    /// Copies a chunk out of its frame. `payloads` holds the frame's payloads so far.
    fn chunk(
        &mut self,
        chunk: Chunk<'_>,
        payloads: &mut Vec<Option<Arc<[u8]>>>,
        frame_offset: u64,
        times: Option<(u32, ChunkTimes)>,
    ) -> ChunkData {
        let number = chunk.payload_number as usize;
        payloads.resize(payloads.len().max(number + 1), None);
        let payload = payloads[number].get_or_insert_with(|| {
            self.payloads.get(chunk.payload).cloned().unwrap_or_else(|| {
                let payload: Arc<[u8]> = chunk.payload.into();
                self.payloads.insert(Arc::clone(&payload));
                payload
            })
        });
        ChunkData::new(chunk, Arc::clone(payload), frame_offset, times)
    }

    fn add(&mut self, warps: Range<u32>, slot: usize, piece: &Piece, limit: usize) {
        let (bytes, steps) = (piece_bytes(piece), self.piece_steps(slot, piece));
        // Ordered input rarely needs a cut.
        if self.end > warps.start {
            self.cut(warps.start);
            self.cut(warps.end);
        }
        self.end = self.end.max(warps.end);
        let mut at = warps.start;
        while at < warps.end {
            let next = self.held.range_mut(at..warps.end).next();
            at = match next {
                Some((&first, run)) if first == at => {
                    match &mut run.held {
                        Held::Chunks(pieces) => {
                            pieces.push((slot, Arc::clone(piece)));
                            self.bytes += bytes;
                        }
                        Held::Huge => self.huge_steps = self.huge_steps.saturating_add(steps),
                    }
                    run.warps.end
                }
                next => {
                    let end = next.map_or(warps.end, |(&first, _)| first);
                    let held = Held::Chunks(vec![(slot, Arc::clone(piece))]);
                    self.held.insert(at, HeldRun { warps: at..end, held });
                    self.bytes += bytes;
                    end
                }
            };
        }
        self.shrink(limit);
    }

    fn cut(&mut self, at: u32) {
        let before = self.held.range_mut(..at).next_back();
        if let Some((_, run)) = before.filter(|(_, run)| run.warps.end > at) {
            let rest = HeldRun { warps: at..run.warps.end, held: run.held.clone() };
            run.warps.end = at;
            self.bytes += rest.held.bytes();
            self.held.insert(at, rest);
        }
    }

    fn shrink(&mut self, limit: usize) {
        while self.bytes > limit {
            let Some((first, HeldRun { held, .. })) = self.held.pop_last() else { return };
            self.bytes -= held.bytes();
            self.warps.end = first;
            if self.held.is_empty() {
                self.huge_steps = self.steps_of(&held);
                self.warps.end = first + 1;
                self.held.insert(first, HeldRun { warps: first..first + 1, held: Held::Huge });
            }
        }
    }
}

#[cfg(test)]
mod tests;
