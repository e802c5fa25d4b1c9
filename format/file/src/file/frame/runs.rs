//! Contents of frames of version 2: runs of warps, and classes of equal chunks.

use std::ops::{Range, RangeInclusive};

use super::SECTION;
use super::compression::{Compression, StoredAs};
use super::encode::{EncodedFrame, finish};
use super::header::{CHUNK_ENTRY_BYTES, ChunkEntry, FrameHeader};
use super::table::{NEW, Parsed, parse_lengths};
use crate::file::error::FormatError;
use crate::file::fields::{Fields, push_varint};
use crate::file::limits::{MAX_FRAME_BYTES, MAX_FRAME_CHUNKS};

pub(in crate::file) const RUNS_VERSION: u16 = 2;

/// Consecutive warps with equal chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WarpRun {
    /// Linear index of the first warp in its launch.
    pub first: u32,
    /// Number of warps, at least 1.
    pub warps: u32,
    /// Class number. Classes are numbered in the order of their first runs.
    pub class: u32,
}

/// One chunk of a class. Its sequence number is its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassChunk<'a> {
    /// Events in the payload.
    pub events: u32,
    /// Encoded events.
    pub payload: &'a [u8],
}

/// Encodes a frame of version 2. `runs` are sorted by warp and do not overlap. Each warp of a run has all
/// chunks of `classes[run.class]`. Fails for other runs or none, classes that are empty, without runs, or not
/// in the order of their first runs, empty chunks, and a payload or a frame over the format's limits.
pub fn encode_frame_of_runs(
    launch: u32,
    track: u32,
    runs: &[WarpRun],
    classes: &[&[ClassChunk<'_>]],
    compression: Compression,
) -> Result<EncodedFrame, FormatError> {
    let invalid =
        |field, value, expected: String| Err(FormatError::invalid(SECTION, field, 0, value, expected));
    let (mut chunks, mut events, mut bytes) = (0u64, 0, 0);
    let (mut end, mut known) = (0, 0);
    for run in runs {
        let class = classes.get(run.class as usize).filter(|class| run.class <= known && !class.is_empty());
        let Some(class) = class else {
            return invalid(
                "run class",
                run.class.into(),
                format!("at most {known}, and a class with chunks"),
            );
        };
        known = known.max(run.class + 1);
        let (first, warps) = (u64::from(run.first), u64::from(run.warps));
        if first < end || warps == 0 || first + warps > 1 << 32 {
            return invalid("run warps", warps, format!("warps of 32 bits from {end} on"));
        }
        end = first + warps;
        chunks = chunks.saturating_add(warps.saturating_mul(class.len() as u64));
        if chunks > u64::from(MAX_FRAME_CHUNKS) {
            return Err(FormatError::too_large(SECTION, "chunks", 0, chunks, MAX_FRAME_CHUNKS));
        }
        for chunk in *class {
            let length = u32::try_from(chunk.payload.len()).unwrap_or(u32::MAX);
            let entry = ChunkEntry { warp: run.first, sequence: 0, events: chunk.events, length };
            if let Err((field, value, expected)) = entry.check() {
                return invalid(field, value, expected);
            }
            events += warps * u64::from(chunk.events);
            bytes += warps * (CHUNK_ENTRY_BYTES as u64 + u64::from(length));
        }
    }
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else {
        return invalid("runs", 0, "at least 1".into());
    };
    if known as usize != classes.len() {
        return invalid("classes", classes.len() as u64, format!("{known}, the classes of runs"));
    }
    if bytes > u64::from(MAX_FRAME_BYTES) {
        return Err(FormatError::too_large(SECTION, "plain bytes", 0, bytes, MAX_FRAME_BYTES));
    }
    let header = FrameHeader {
        launch,
        track,
        first_warp: first.first,
        last_warp: last.last(),
        chunks: u32::try_from(chunks).unwrap_or(u32::MAX),
        stored_as: StoredAs::Plain,
        events,
        plain_bytes: 0,
    };
    let contents = contents(runs, classes);
    finish(RUNS_VERSION, header, bytes, &contents, compression, &mut Vec::new())
}

impl WarpRun {
    /// Returns the linear index of the last warp.
    pub const fn last(&self) -> u32 {
        self.first.saturating_add(self.warps.saturating_sub(1))
    }
}

fn contents(runs: &[WarpRun], classes: &[&[ClassChunk<'_>]]) -> Vec<u8> {
    let mut contents = Vec::new();
    let mut push = |value: usize| push_varint(&mut contents, value as u64);
    push(runs.len());
    push(0);
    runs.windows(2).for_each(|pair| push((pair[1].first - pair[0].last() - 1) as usize));
    runs.iter().for_each(|run| push(run.warps as usize - 1));
    let mut known = 0;
    for run in runs {
        push(if run.class == known { NEW as usize } else { run.class as usize + 1 });
        known = known.max(run.class + 1);
    }
    classes.iter().for_each(|class| push(class.len() - 1));
    let chunks = classes.iter().copied().flatten();
    chunks.clone().for_each(|chunk| push(chunk.events as usize));
    chunks.clone().for_each(|chunk| push(chunk.payload.len()));
    chunks.for_each(|chunk| contents.extend_from_slice(chunk.payload));
    contents
}

fn bounded(
    fields: &mut Fields<'_>,
    field: &'static str,
    range: RangeInclusive<u32>,
) -> Result<u32, FormatError> {
    let offset = fields.offset();
    let value = fields.varint32(field)?;
    if range.contains(&value) {
        return Ok(value);
    }
    Err(fields.invalid(field, offset, value.into(), format!("{} to {}", range.start(), range.end())))
}

/// Decodes contents of version 2 at file offset `at`. Their size bounds all lists.
pub(super) fn parse(contents: &[u8], header: &FrameHeader, at: u64) -> Result<Parsed, FormatError> {
    let mut fields = Fields::new(SECTION, contents, at);
    let count = bounded(&mut fields, "runs", 1..=header.chunks)?;
    let mut runs = Vec::new();
    for number in 0..count {
        let most = if number == 0 { 0 } else { u32::MAX };
        let gap = bounded(&mut fields, "run gap", 0..=most)?;
        runs.push(WarpRun { first: gap, warps: 0, class: 0 });
    }
    let mut next = Some(header.first_warp);
    for run in &mut runs {
        let offset = fields.offset();
        let more = bounded(&mut fields, "run warps", 0..=header.chunks - 1)?;
        let first = next.and_then(|next| next.checked_add(run.first));
        let Some((first, last)) = first.and_then(|first| Some((first, first.checked_add(more)?))) else {
            return Err(fields.invalid("run warps", offset, more.into(), "an end within 32 bits"));
        };
        (run.first, run.warps, next) = (first, more + 1, last.checked_add(1));
    }
    let mut known = 0;
    for run in &mut runs {
        let number = bounded(&mut fields, "run class", 0..=known)?;
        run.class = if number == NEW { known } else { number - 1 };
        known += u32::from(number == NEW);
    }
    let (mut classes, mut end) = (Vec::<Range<u32>>::new(), 0u32);
    for _ in 0..known {
        let start = end;
        end = end.saturating_add(bounded(&mut fields, "class chunks", 0..=header.chunks - 1)? + 1);
        classes.push(start..end);
    }
    // At most 2^18 runs of 2^18 warps of 2^18 chunks; as each class has a run, also in all classes.
    let chunks: u64 =
        runs.iter().map(|run| u64::from(run.warps) * classes[run.class as usize].len() as u64).sum();
    if chunks != u64::from(header.chunks) {
        let expected = format!("{}, the frame's chunks", header.chunks);
        return Err(fields.invalid("chunks of all runs", fields.offset(), chunks, expected));
    }
    let mut entries = Vec::new();
    for class in &classes {
        for sequence in 0..class.end - class.start {
            let events = bounded(&mut fields, "chunk events", 1..=u32::MAX)?;
            entries.push(ChunkEntry { warp: 0, sequence, events, length: 0 });
        }
    }
    let (lengths, starts) = parse_lengths(&mut fields, end)?;
    entries.iter_mut().zip(lengths).for_each(|(entry, length)| entry.length = length);
    let payloads_at = contents.len() - fields.rest().len();
    Ok(Parsed { entries, numbers: (0..end).collect(), runs, classes, starts, payloads_at })
}

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;
