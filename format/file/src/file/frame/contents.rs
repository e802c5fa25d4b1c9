//! Decoded frames.

use std::ops::Range;

use super::SECTION;
use super::compression::{StoredAs, decompress};
use super::header::{CHUNK_ENTRY_BYTES, ChunkEntry, FRAME_HEADER_BYTES, FrameHeader};
use super::runs::{self, RUNS_VERSION, WarpRun};
use super::table;
use crate::file::error::FormatError;
use crate::file::limits::MAX_FRAME_BYTES;

/// Checked chunks of a frame: the table is sorted, covers exactly the contents, and agrees with the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    header: FrameHeader,
    /// Chunks; in version 2, the chunks of all classes, with warp 0.
    entries: Vec<ChunkEntry>,
    numbers: Vec<u32>,
    /// Empty in version 1.
    runs: Vec<WarpRun>,
    classes: Vec<Range<u32>>,
    /// Start of each distinct payload, then the end of the last one.
    starts: Vec<u32>,
    payloads: Vec<u8>,
}

/// One chunk of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// Entry in the table.
    pub entry: ChunkEntry,
    /// Encoded events.
    pub payload: &'a [u8],
    /// Number of the payload in the frame. Chunks with the same number have the same payload.
    pub payload_number: u32,
}

impl Frame {
    /// Decodes the body of a frame section of this version at file offset `at`. The caller checks its
    /// checksum. Rejects headers like [`FrameHeader::parse`], contents that do not decompress as announced,
    /// and a table that is not sorted or contradicts contents or header. Offsets in errors about the table
    /// are as if the contents were stored uncompressed.
    pub fn decode(version: u16, body: &[u8], at: u64) -> Result<Self, FormatError> {
        let header = FrameHeader::parse(version, body, at)?;
        let stored = body.get(FRAME_HEADER_BYTES..).unwrap_or_default();
        let stored_at = at.saturating_add(FRAME_HEADER_BYTES as u64);
        if header.stored_as == StoredAs::Plain && stored.len() as u64 != u64::from(header.plain_bytes) {
            let (at, found) = (at.saturating_add(32), header.plain_bytes.into());
            let expected = format!("{}, the bytes stored", stored.len());
            return Err(FormatError::invalid(SECTION, "plain bytes", at, found, expected));
        }
        let plain_bytes = header.plain_bytes as usize;
        let contents = decompress(SECTION, header.stored_as, stored, plain_bytes, stored_at)?;
        if contents.len() != plain_bytes {
            let message = format!("{} bytes came out, the header announces {plain_bytes}", contents.len());
            return Err(FormatError::Decompress { section: SECTION, offset: stored_at, message });
        }
        let parsed = match version {
            RUNS_VERSION => runs::parse(&contents, &header, stored_at)?,
            _ => table::parse(&contents, header.chunks, header.first_warp, stored_at)?,
        };
        let table::Parsed { entries, numbers, runs, classes, starts, payloads_at } = parsed;
        let mut payloads = contents;
        payloads.drain(..payloads_at);
        let frame = Self { header, entries, numbers, runs, classes, starts, payloads };
        frame.check(stored_at)?;
        Ok(frame)
    }

    fn check(&self, offset: u64) -> Result<(), FormatError> {
        let invalid = |field, value, expected: String| {
            Err(FormatError::invalid(SECTION, field, offset, value, expected))
        };
        let header = &self.header;
        let last = match self.runs.last() {
            Some(run) => run.last(),
            None => self.entries.last().map_or(0, |entry| entry.warp),
        };
        if last != header.last_warp {
            let expected = format!("the frame's last warp, {}", header.last_warp);
            return invalid("chunk warp", u64::from(last), expected);
        }
        // Sums do not overflow: a frame has at most 2^18 chunks.
        let (mut events, mut unfolded) = (0, 0);
        let listed = self.listed().map(|chunk| (1, chunk.entry));
        let of_runs = self.runs.iter().flat_map(|run| {
            self.warp_chunks(run.first, run.class).map(|chunk| (u64::from(run.warps), chunk.entry))
        });
        for (warps, entry) in listed.chain(of_runs) {
            events += warps * u64::from(entry.events);
            unfolded += warps * (u64::from(entry.length) + CHUNK_ENTRY_BYTES as u64);
        }
        if events != header.events {
            let expected = format!("{}, the frame's events", header.events);
            return invalid("sum of chunk events", events, expected);
        }
        if unfolded > u64::from(MAX_FRAME_BYTES) {
            let expected = format!("at most {MAX_FRAME_BYTES}, with {CHUNK_ENTRY_BYTES} bytes a chunk");
            return invalid("sum of chunk lengths", unfolded, expected);
        }
        Ok(())
    }

    /// Returns the fixed part.
    pub const fn header(&self) -> &FrameHeader {
        &self.header
    }

    /// Returns the entries of the chunks, in order of warp and sequence.
    pub fn entries(&self) -> impl Iterator<Item = ChunkEntry> + '_ {
        self.chunks().map(|chunk| chunk.entry)
    }

    /// Returns the chunks, in order of warp and sequence.
    pub fn chunks(&self) -> impl Iterator<Item = Chunk<'_>> + '_ {
        let of_runs = self
            .runs
            .iter()
            .flat_map(|run| (run.first..=run.last()).flat_map(|warp| self.warp_chunks(warp, run.class)));
        self.listed().chain(of_runs)
    }

    fn listed(&self) -> impl Iterator<Item = Chunk<'_>> + '_ {
        let entries = if self.runs.is_empty() { &self.entries[..] } else { &[] };
        entries.iter().zip(&self.numbers).map(|(&entry, &number)| self.chunk(entry, number))
    }

    /// Returns the runs, in order of warp; none in a frame of version 1.
    pub fn runs(&self) -> &[WarpRun] {
        &self.runs
    }

    /// Returns the chunks of a class with the given warp number; none if the class does not exist.
    pub fn warp_chunks(&self, warp: u32, class: u32) -> impl Iterator<Item = Chunk<'_>> + '_ {
        let numbers = self.classes.get(class as usize).cloned().unwrap_or_default();
        let entries = self.entries.get(numbers.start as usize..numbers.end as usize).unwrap_or_default();
        entries
            .iter()
            .zip(numbers)
            .map(move |(&entry, number)| self.chunk(ChunkEntry { warp, ..entry }, number))
    }

    fn chunk(&self, entry: ChunkEntry, payload_number: u32) -> Chunk<'_> {
        let start = self.starts.get(payload_number as usize).map_or(0, |&start| start as usize);
        let payload = self.payloads.get(start..start + entry.length as usize).unwrap_or_default();
        Chunk { entry, payload, payload_number }
    }
}
