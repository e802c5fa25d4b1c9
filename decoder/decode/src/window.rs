//! Windows: the chunks of consecutive warps, gathered from frames that overlap in any way, in bounded memory.
//!
//! Frames of one batch follow each other in order of warp; frames of several batches (a long kernel that is
//! drained while it runs) all cover the same warps. To go through such a file in order of warp, a window
//! takes the chunks of the lowest warps from every frame that has some, until they fill [`WINDOW_BYTES`];
//! then the next window begins at the first warp that did not fit. Each frame is read once for each window
//! that it reaches into: once or twice for one batch, more often the more batches overlap.
//!
//! A single warp that fills a window on its own is marked as [`Held::Huge`], and its reader goes from frame
//! to frame instead.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{Frame, FrameTimes, IndexEntry};

use crate::error::DecodeError;
use crate::feed::ChunkData;
use crate::file::TraceFile;
use crate::work::steps;

/// Payload, and [`CHUNK_OVERHEAD`](crate::feed::CHUNK_OVERHEAD) for each chunk, that a window holds at most.
const WINDOW_BYTES: usize = 64 << 20;
/// Frames that are read and decompressed at once.
const FRAMES_AT_ONCE: usize = 8;

/// What a window holds of one warp.
#[derive(Debug)]
pub(crate) enum Held {
    /// Its chunks in file order; one list for each track of the window.
    Chunks(Vec<Vec<ChunkData>>),
    /// More than a window: to be read from the frames.
    Huge,
}

/// The chunks of the warps in a range.
#[derive(Debug)]
pub(crate) struct Window {
    /// The warps that the window covers.
    pub(crate) warps: Range<u32>,
    /// The warps that have chunks.
    pub(crate) held: BTreeMap<u32, Held>,
    /// Whether the chunks were to come with times. Times that are lost or damaged are missing in them.
    is_timed: bool,
    /// Frames that were read, or could not be, and have no times, if these are wanted: their first warps and offsets, and why.
    pub(crate) untimed: Vec<((u32, u64), DecodeError)>,
}

/// The chunks of a warp on the first track, and a group: equal if both are, and the chunks have the same events.
struct Alike<'a>(u64, &'a [ChunkData]);

impl Hash for Alike<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
        for ChunkData { sequence, events, payload, .. } in self.1 {
            (sequence, events, payload.as_ptr()).hash(state);
        }
    }
}

impl PartialEq for Alike<'_> {
    fn eq(&self, other: &Self) -> bool {
        let chunks = || self.1.iter().zip(other.1);
        self.0 == other.0 && self.1.len() == other.1.len() && chunks().all(|(one, other)| one.is_like(other))
    }
}

impl Eq for Alike<'_> {}

impl Window {
    /// Puts the warps of the window into classes. The warps of a class are in one group and have the same events on
    /// the first track. In a launch with times each warp is a class. `group` gives a warp's group; warps without a
    /// group are in no class. The warps of a class are in ascending order, and classes are in the order of their
    /// first warps.
    pub(crate) fn classes(&self, group: impl Fn(u32) -> Option<u64>) -> Vec<Vec<u32>> {
        let (mut classes, mut number_of) = (Vec::<Vec<u32>>::new(), HashMap::new());
        for (&warp, held) in &self.held {
            let Some(group) = group(warp) else { continue };
            let number = match held {
                Held::Chunks(tracks) => match tracks.first() {
                    Some(chunks) if !self.is_timed => {
                        *number_of.entry(Alike(group, chunks)).or_insert(classes.len())
                    }
                    _ => classes.len(),
                },
                Held::Huge => classes.len(),
            };
            match classes.get_mut(number) {
                Some(class) => class.push(warp),
                None => classes.push(vec![warp]),
            }
        }
        classes
    }
}

/// Goes through a launch in windows.
pub(crate) struct Windows<'a> {
    file: &'a TraceFile,
    tracks: Vec<u32>,
    /// Frames of all tracks, sorted by first warp.
    frames: Vec<(usize, IndexEntry)>,
    rest: Range<u32>,
    window_bytes: usize,
    /// Whether events are wanted one by one, and not as items.
    is_expanded: bool,
    /// Whether times are wanted.
    is_timed: bool,
}

impl<'a> Windows<'a> {
    /// Goes through `warps` of launch `launch`, with the chunks of all of `tracks` side by side.
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

    /// Has the chunks of the trace come with their times, if it has any.
    pub(crate) fn timed(mut self) -> Self {
        self.is_timed = self.tracks.first() == Some(&0) && self.file.has_times();
        self.is_expanded |= self.is_timed;
        self
    }

    /// Has the chunks count as expanded.
    pub(crate) fn expanded(mut self) -> Self {
        self.is_expanded = true;
        self
    }

    /// Sets another bound, so that small traces reach it in tests.
    #[cfg(test)]
    pub(crate) fn with_window_bytes(mut self, window_bytes: usize) -> Self {
        self.window_bytes = window_bytes;
        self
    }

    /// The next window; `None` when every warp has been covered. `bad_frame` decides about each frame that
    /// cannot be read: an error ends the walk, `Ok` leaves the frame out. It is asked again when a later
    /// window needs the same frame.
    pub(crate) fn next_window(
        &mut self,
        bad_frame: &mut dyn FnMut(&IndexEntry, DecodeError) -> Result<(), DecodeError>,
    ) -> Result<Option<Window>, DecodeError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let from = self.rest.start;
        // No later window needs what ends before this one. (The order by first warp stays.)
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
                // Events are there without their times, too; verification says what is wrong with these.
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
        let Gathered { warps, mut held, .. } = gathered;
        for held in held.values_mut() {
            if let Held::Chunks(tracks) = held {
                // File order, which the format promises to be the order of the sequence numbers (inside a
                // frame the table is sorted). The decoder checks that promise.
                tracks.iter_mut().for_each(|chunks| chunks.sort_by_key(|chunk| chunk.frame_offset));
            }
        }
        self.rest.start = warps.end;
        Ok(Some(Window { warps, is_timed: self.is_timed, held, untimed }))
    }
}

/// A window in the making: its end moves down when it is full.
struct Gathered {
    warps: Range<u32>,
    /// The codec of each track.
    codecs: Vec<CodecSpec>,
    is_expanded: bool,
    held: BTreeMap<u32, Held>,
    /// The payloads of all chunks so far, each once.
    payloads: HashSet<Arc<[u8]>>,
    bytes: usize,
    /// What the warp costs that fills the window on its own.
    huge_steps: u64,
}

fn held_bytes(held: &Held) -> usize {
    match held {
        Held::Chunks(tracks) => tracks.iter().flatten().map(ChunkData::held_bytes).sum(),
        Held::Huge => 0,
    }
}

impl Gathered {
    fn new(windows: &Windows<'_>) -> Self {
        let of_file = &windows.file.metadata().tracks;
        let codecs = windows.tracks.iter().map(|&track| of_file.get(track as usize).copied());
        Self {
            warps: windows.rest.clone(),
            codecs: codecs.map(|codec| codec.unwrap_or(CodecSpec::Raw)).collect(),
            is_expanded: windows.is_expanded,
            held: BTreeMap::new(),
            payloads: HashSet::new(),
            bytes: 0,
            huge_steps: 0,
        }
    }

    /// What it costs to decode the chunks.
    fn steps(&self) -> u64 {
        self.held.values().map(|held| self.steps_of(held)).fold(self.huge_steps, u64::saturating_add)
    }

    fn steps_of(&self, held: &Held) -> u64 {
        let Held::Chunks(tracks) = held else { return 0 };
        let chunks = tracks
            .iter()
            .zip(&self.codecs)
            .flat_map(|(chunks, &codec)| chunks.iter().map(move |chunk| (chunk, codec)));
        let steps =
            chunks.map(|(chunk, codec)| steps(codec, chunk.events, chunk.payload.len(), self.is_expanded));
        steps.fold(0, u64::saturating_add)
    }

    fn take(
        &mut self,
        slot: usize,
        frame: &Frame,
        times: Option<&FrameTimes>,
        frame_offset: u64,
        limit: usize,
    ) {
        let mut of_frame: Vec<Option<Arc<[u8]>>> = Vec::new();
        for (at, chunk) in frame.chunks().enumerate() {
            if !self.warps.contains(&chunk.entry.warp) {
                continue;
            }
            let tracks = self.codecs.len();
            let empty = || Held::Chunks((0..tracks).map(|_| Vec::new()).collect());
            match self.held.entry(chunk.entry.warp).or_insert_with(empty) {
                Held::Chunks(of_warp) => {
                    let times = times.map(|times| (times.step(), times.chunk(at)));
                    let number = chunk.payload_number as usize;
                    if of_frame.len() <= number {
                        of_frame.resize(number + 1, None);
                    }
                    let payload = of_frame[number].get_or_insert_with(|| {
                        self.payloads.get(chunk.payload).cloned().unwrap_or_else(|| {
                            let payload: Arc<[u8]> = chunk.payload.into();
                            self.payloads.insert(Arc::clone(&payload));
                            payload
                        })
                    });
                    let chunk = ChunkData::new(chunk, Arc::clone(payload), frame_offset, times);
                    self.bytes += chunk.held_bytes();
                    // Most warps have one.
                    if of_warp[slot].is_empty() {
                        of_warp[slot].reserve_exact(1);
                    }
                    of_warp[slot].push(chunk);
                    self.shrink(limit);
                }
                Held::Huge => {
                    let more =
                        steps(self.codecs[slot], chunk.entry.events, chunk.payload.len(), self.is_expanded);
                    self.huge_steps = self.huge_steps.saturating_add(more);
                }
            }
        }
    }

    /// Gives up the highest warps until the window fits.
    fn shrink(&mut self, limit: usize) {
        while self.bytes > limit {
            let Some((warp, held)) = self.held.pop_last() else { return };
            self.bytes -= held_bytes(&held);
            if self.held.is_empty() {
                // The lowest warp so far, and it does not fit by itself.
                self.huge_steps = self.steps_of(&held);
                self.held.insert(warp, Held::Huge);
                self.warps.end = warp + 1;
            } else {
                self.warps.end = warp;
            }
        }
    }
}

#[cfg(test)]
mod tests;
