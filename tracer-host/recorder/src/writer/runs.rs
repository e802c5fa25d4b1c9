//! Frames of launches whose warps repeat: runs of warps with the same chunks.

use rustc_hash::{FxHashMap, FxHashSet};
use warptrace_format::file::limits::{MAX_FRAME_BYTES, MAX_FRAME_CHUNKS};
use warptrace_format::file::{
    CHUNK_ENTRY_BYTES, ClassChunk, Compression, EncodedFrame, FormatError, WarpRun, encode_frame_of_runs,
};

use super::batch::{BatchChunk, Payload};

/// Minimum average warps per run for writing runs instead of separate chunks.
const WORTH: u64 = 4;

/// Approximate bytes of a run in a frame.
const RUN_BYTES: u64 = 4;

#[derive(Clone, Copy, Debug)]
pub(super) struct WarpsWithChunks<'b> {
    pub(super) first: u32,
    pub(super) warps: u32,
    /// The chunks of each warp, at least one. Runs of one class share the slice.
    pub(super) chunks: &'b [BatchChunk],
}

/// Runs of one launch and track, ordered by warp.
#[derive(Clone, Debug)]
pub(super) struct Repeated<'b> {
    pub(super) launch: u32,
    pub(super) track: u32,
    pub(super) runs: Vec<WarpsWithChunks<'b>>,
}

/// Returns true if runs are few compared with warps, complete from sequence 0, and fit into one frame each.
pub(super) fn are_worth_runs(runs: &[WarpsWithChunks<'_>]) -> bool {
    let warps: u64 = runs.iter().map(|run| u64::from(run.warps)).sum();
    let is_whole = |run: &WarpsWithChunks<'_>| {
        let fits = run.chunks.len() <= MAX_FRAME_CHUNKS as usize && run.bytes() <= MAX_FRAME_BYTES.into();
        fits && (0..).zip(run.chunks).all(|(at, chunk)| chunk.sequence == at)
    };
    !runs.is_empty() && warps >= WORTH * runs.len() as u64 && runs.iter().all(is_whole)
}

impl WarpsWithChunks<'_> {
    fn bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| CHUNK_ENTRY_BYTES as u64 + u64::from(chunk.length)).sum()
    }
}

impl<'b> Repeated<'b> {
    /// Cuts runs that [are worth it](are_worth_runs) into frames. A frame ends when its runs and distinct
    /// chunks reach `most(total bytes)`, or its chunks reach a limit of the format.
    pub(super) fn cut(&self, most: impl FnOnce(u64) -> u64) -> Vec<Self> {
        let mut frames = Vec::new();
        let (mut frame, mut chunks, mut bytes) = (Vec::new(), 0, 0);
        let (mut classes, mut stored) = (FxHashSet::default(), 0);
        let cost = |run: &WarpsWithChunks<'_>, classes: &mut FxHashSet<_>| {
            let is_new = classes.insert(run.chunks.as_ptr());
            RUN_BYTES + if is_new { run.bytes() } else { 0 }
        };
        let most = most(self.runs.iter().map(|run| cost(run, &mut classes)).sum());
        classes.clear();
        for run in &self.runs {
            let (each, each_bytes) = (run.chunks.len() as u64, run.bytes());
            if stored >= most {
                frames.push(Self { runs: std::mem::take(&mut frame), ..*self });
                (chunks, bytes, stored) = (0, 0, 0);
                classes.clear();
            }
            stored += cost(run, &mut classes);
            let (mut first, mut warps) = (run.first, run.warps);
            while warps != 0 {
                let by_chunks = u64::from(MAX_FRAME_CHUNKS).saturating_sub(chunks) / each;
                let by_bytes = u64::from(MAX_FRAME_BYTES).saturating_sub(bytes) / each_bytes;
                let fit = by_chunks.min(by_bytes).min(warps.into());
                if fit == 0 {
                    frames.push(Self { runs: std::mem::take(&mut frame), ..*self });
                    (chunks, bytes, stored) = (0, 0, 0);
                    classes.clear();
                    continue;
                }
                frame.push(WarpsWithChunks { first, warps: fit as u32, ..*run });
                (chunks, bytes) = (chunks + fit * each, bytes + fit * each_bytes);
                (first, warps) = (first + fit as u32, warps - fit as u32);
            }
        }
        frames.push(Self { runs: frame, ..*self });
        frames
    }

    pub(super) fn encode<'p>(
        &self,
        payload: &impl Fn(&BatchChunk) -> Payload<'p>,
        compression: Compression,
    ) -> Result<EncodedFrame, FormatError> {
        let (mut numbers, mut classes) = (FxHashMap::default(), Vec::new());
        let run = |run: &WarpsWithChunks<'b>| {
            let class = *numbers.entry(run.chunks.as_ptr()).or_insert_with(|| {
                let of_chunk =
                    |chunk: &BatchChunk| ClassChunk { events: chunk.events, payload: payload(chunk)[0] };
                classes.push(run.chunks.iter().map(of_chunk).collect::<Vec<_>>());
                classes.len() as u32 - 1
            });
            WarpRun { first: run.first, warps: run.warps, class }
        };
        let runs: Vec<_> = self.runs.iter().map(run).collect();
        let classes: Vec<_> = classes.iter().map(Vec::as_slice).collect();
        encode_frame_of_runs(self.launch, self.track, &runs, &classes, compression)
    }
}
