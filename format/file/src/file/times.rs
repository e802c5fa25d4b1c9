//! Times of the runs in a frame's chunks: the `TIME` section, directly after the frame's.
//!
//! ```text
//! offset  size  field
//!      0     4  section before, the checksum of the frame's body; missing in version 1
//!      4     4  runs          of all chunks of the frame, at most 2^21
//!      8     4  step          cycles of the multiprocessor's clock per unit of time, at least 1
//!     12     4  plain bytes   of the contents before compression, at most 16 MiB
//!     16     1  compression   0 none, 1 zstd
//!     17     3  zero
//!     20     …  contents, compressed or not: consecutive columns
//! ```
//!
//! A *run* is a repeated event: equal consecutive events of a chunk are one run, or several if the last two
//! columns say so. The columns have 32-bit elements (`docs/reference/codecs.md`):
//! ```text
//! runs     number of runs of each chunk, at least 1
//! first    for each chunk, the time of its first run, in units, modulo 2^32
//! steps    for each other run, its time minus the time of the previous run, modulo 2^32, zigzag
//! split    each run whose next run in the chunk has the same event: its number minus the number after the
//!          previous such run
//! events   for each of these, its number of events in the chunk
//! ```

use warptrace_columns::{Element, Shape};

use super::contents::{Contents, Stored, shorter};
use super::error::FormatError;
use super::fields::Fields;
use super::frame::Compression;
use super::limits::{MAX_FRAME_BYTES, MAX_FRAME_RUNS};
use super::section::SectionKind;
use super::tie::Tie;
use crate::Event;
use crate::chunk::DeviceTimes;

const SECTION: &str = "TIME";

/// Times of the runs in a frame's chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameTimes {
    step: u32,
    /// First run of each chunk, then the number of all runs.
    starts: Vec<u32>,
    times: Vec<u32>,
    /// Number of each split run, and its events.
    splits: Vec<(u32, u32)>,
}

/// Returns the shape of the column `steps`, which has differences already. If the chunks have about as many
/// runs as the first one, each step may be like the same step of the previous chunk.
fn shape_of_steps(runs: &[u32], steps: &[u32]) -> Option<Shape> {
    let plain = Shape::new(0, 1);
    let each = runs.first().map_or(0, |runs| runs.saturating_sub(1) as usize);
    let is_alike = (each * runs.len()).abs_diff(steps.len()) <= steps.len() / 8;
    if is_alike && each > 0 { shorter(steps, [plain, Shape::new(1, each)]) } else { plain }
}

impl FrameTimes {
    /// Encodes the section, header and body, of the times of chunks. `tie` identifies their frame. Fails for
    /// more than [`MAX_FRAME_RUNS`] runs.
    pub fn encode_section<'a>(
        tie: Tie,
        chunks: impl Iterator<Item = DeviceTimes<'a>>,
        step: u32,
        compression: Compression,
    ) -> Result<Vec<u8>, FormatError> {
        let (mut runs, mut first, mut steps) = (Vec::new(), Vec::new(), Vec::new());
        let (mut split, mut events) = (Vec::new(), Vec::new());
        let (mut count, mut next) = (0u32, 0);
        for chunk in chunks {
            let (before, mut last) = (count, None::<u32>);
            for (time, in_run) in chunk.runs() {
                match last.replace(time) {
                    None => first.push(time),
                    Some(last) => steps.push(time.wrapping_sub(last).zigzag()),
                }
                if in_run != 0 {
                    split.push(count - next);
                    events.push(in_run);
                    next = count + 1;
                }
                count = count.saturating_add(1);
            }
            runs.push(count - before);
        }
        if count > MAX_FRAME_RUNS {
            let runs = (first.len() + steps.len()) as u64;
            return Err(FormatError::too_large(SECTION, "runs", 0, runs, MAX_FRAME_RUNS));
        }
        // Neighbouring warps begin at about the same time.
        let (plain, ordered) = (Shape::new(0, 1), Shape::new(1, 1));
        let of_steps = shape_of_steps(&runs, &steps);
        let columns =
            [(&runs[..], plain), (&first, ordered), (&steps, of_steps), (&split, plain), (&events, plain)];
        let fixed = [tie.encode(), count.to_le_bytes(), step.to_le_bytes()];
        Stored::new(SECTION, &columns, compression)?.encode(SectionKind::Times, fixed.as_flattened())
    }

    /// Decodes the body of a section of this version at file offset `at`, after a frame of `chunks` chunks.
    /// Rejects the times of another frame, contents that do not decompress as announced, and columns that are
    /// invalid or contradict each other or the frame.
    pub fn decode(
        (version, body): (u16, &[u8]),
        at: u64,
        tie: Tie,
        chunks: usize,
    ) -> Result<Self, FormatError> {
        let mut fields = Fields::new(SECTION, body, at);
        Self::check_tie(&mut fields, version, tie)?;
        let at = fields.offset();
        let runs = fields.u32("runs")?;
        fields.limit("runs", 4, runs.into(), MAX_FRAME_RUNS.into())?;
        let step = fields.u32("step")?;
        if step == 0 {
            return Err(fields.invalid("step", at.saturating_add(4), 0, "at least 1"));
        }
        let contents = Contents::read(SECTION, fields, MAX_FRAME_BYTES)?;
        let mut columns = contents.columns();
        let of_chunks: Vec<u32> = columns.next("runs", chunks..=chunks)?;
        let first: Vec<u32> = columns.next("first", chunks..=chunks)?;
        let others = (runs as usize).saturating_sub(chunks);
        let steps: Vec<u32> = columns.next("steps", others..=others)?;
        let split: Vec<u32> = columns.next("split", 0..=runs as usize)?;
        let events: Vec<u32> = columns.next("events", split.len()..=split.len())?;
        columns.end()?;
        let (mut starts, mut sum) = (vec![0], 0u32);
        for count in &of_chunks {
            sum = sum.saturating_add(*count);
            starts.push(sum);
        }
        if sum != runs || of_chunks.contains(&0) {
            return Err(
                contents.wrong(format!("the chunks have {sum} runs, at least one each, the section {runs}"))
            );
        }
        let mut times = Vec::with_capacity(runs as usize);
        let mut steps = steps.into_iter();
        for (count, mut time) in of_chunks.into_iter().zip(first) {
            times.push(time);
            for step in steps.by_ref().take(count as usize - 1) {
                time = time.wrapping_add(step.unzigzag());
                times.push(time);
            }
        }
        let mut next = 0u32;
        let mut splits = Vec::with_capacity(split.len());
        for (gap, events) in split.into_iter().zip(events) {
            let run = next.saturating_add(gap);
            if run >= runs || events == 0 {
                return Err(
                    contents.wrong(format!("run {run} of {runs} cannot have {events} events and a next one"))
                );
            }
            splits.push((run, events));
            next = run + 1;
        }
        Ok(Self { step, starts, times, splits })
    }

    fn check_tie(fields: &mut Fields<'_>, version: u16, tie: Tie) -> Result<(), FormatError> {
        tie.check(fields, version, "the checksum of the FRAM section before it, to which it belongs")
    }

    /// Checks that a section with this start ([`TIE_BYTES`](Self::TIE_BYTES)) belongs to the frame before it.
    pub fn is_of(version: u16, start: &[u8], at: u64, tie: Tie) -> Result<(), FormatError> {
        Self::check_tie(&mut Fields::new(SECTION, start, at), version, tie)
    }

    /// Size of the part of a body that identifies its frame, in bytes.
    pub const TIE_BYTES: usize = 4;

    /// Returns the number of cycles of the multiprocessor's clock per unit of time.
    pub const fn step(&self) -> u32 {
        self.step
    }

    /// Returns the number of runs of all chunks.
    pub fn runs(&self) -> usize {
        self.times.len()
    }

    /// Returns the times of the chunk with this number in the frame. Panics if it does not exist.
    pub fn chunk(&self, number: usize) -> ChunkTimes {
        let (first, end) = (self.starts[number], self.starts[number + 1]);
        let from = self.splits.partition_point(|(run, _)| *run < first);
        let to = self.splits.partition_point(|(run, _)| *run < end);
        ChunkTimes {
            times: self.times[first as usize..end as usize].into(),
            splits: self.splits[from..to].iter().map(|&(run, events)| (run - first, events)).collect(),
        }
    }
}

/// Times of the runs in a chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkTimes {
    /// Time of each run, in units, modulo 2^32.
    times: Box<[u32]>,
    /// Number of each split run, and its events.
    splits: Box<[(u32, u32)]>,
}

impl ChunkTimes {
    /// Returns the number of runs.
    pub const fn runs(&self) -> usize {
        self.times.len()
    }

    /// Returns the memory size of the times, in bytes.
    pub const fn held_bytes(&self) -> usize {
        size_of::<u32>() * self.times.len() + size_of::<(u32, u32)>() * self.splits.len()
    }

    /// Returns a walk over the runs.
    pub fn walk(&self) -> RunWalk<'_> {
        let split = self.splits.first().map(|(run, _)| *run);
        RunWalk { times: self, next: 0, next_split: 0, split, last: None, left: 0 }
    }
}

/// Walk over a chunk's runs, driven by the chunk's events.
#[derive(Clone, Debug)]
pub struct RunWalk<'a> {
    times: &'a ChunkTimes,
    next: usize,
    next_split: usize,
    split: Option<u32>,
    last: Option<Event>,
    /// Remaining events of the last run, if it is split; otherwise 0.
    left: u32,
}

impl RunWalk<'_> {
    /// Takes the next `count` events of the chunk, all equal to `event`. Calls `each` for the part in each
    /// run, with its number of events and, if it begins the run, the time. Returns false on a mismatch.
    #[must_use]
    #[inline(always)]
    pub fn take(&mut self, event: Event, count: u32, mut each: impl FnMut(u32, Option<u32>)) -> bool {
        let number = self.next;
        if self.left == 0
            && self.last != Some(event)
            && self.split.is_none_or(|run| run as usize != number)
            && let Some(&time) = self.times.times.get(number)
            && count > 0
        {
            // The common case: an unsplit run of all these events.
            (self.last, self.next) = (Some(event), number + 1);
            each(count, Some(time));
            return true;
        }
        self.take_parts(event, count, &mut each)
    }

    #[inline(never)]
    fn take_parts(&mut self, event: Event, mut count: u32, each: &mut impl FnMut(u32, Option<u32>)) -> bool {
        while count > 0 {
            let goes_on = self.last == Some(event) && (self.left > 0 || !self.was_split());
            let mut begins = None;
            if !goes_on {
                if self.left > 0 {
                    return false;
                }
                let Some(&time) = self.times.times.get(self.next) else { return false };
                begins = Some(time);
                self.last = Some(event);
                if let Some(&(run, events)) = self.times.splits.get(self.next_split)
                    && run as usize == self.next
                {
                    self.left = events;
                    self.next_split += 1;
                    self.split = self.times.splits.get(self.next_split).map(|(run, _)| *run);
                }
                self.next += 1;
            }
            let part = if self.left > 0 { count.min(self.left) } else { count };
            self.left = self.left.saturating_sub(part);
            count -= part;
            each(part, begins);
        }
        true
    }

    fn was_split(&self) -> bool {
        let last = self.next_split.checked_sub(1).and_then(|at| self.times.splits.get(at));
        last.is_some_and(|(run, _)| *run as usize + 1 == self.next)
    }

    /// Returns true if all runs are complete.
    pub fn is_done(&self) -> bool {
        self.next == self.times.times.len() && self.left == 0 && !self.was_split()
    }
}

#[cfg(test)]
#[path = "times_tests.rs"]
mod tests;
