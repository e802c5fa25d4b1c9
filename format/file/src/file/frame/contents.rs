//! A frame in memory, checked.

use super::SECTION;
use super::compression::{StoredAs, decompress};
use super::header::{CHUNK_ENTRY_BYTES, ChunkEntry, FRAME_HEADER_BYTES, FrameHeader};
use super::table;
use crate::file::error::FormatError;
use crate::file::limits::MAX_FRAME_BYTES;

/// A frame's chunks in memory, decompressed and checked: the table is sorted, covers exactly the contents,
/// and agrees with the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    header: FrameHeader,
    entries: Vec<ChunkEntry>,
    /// For each chunk the number of its payload.
    numbers: Vec<u32>,
    /// Where each distinct payload begins, and where the last one ends.
    starts: Vec<u32>,
    /// The distinct payloads, one after the other.
    payloads: Vec<u8>,
}

/// One chunk of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// The table's entry.
    pub entry: ChunkEntry,
    /// The encoded events.
    pub payload: &'a [u8],
    /// Number of the payload in the frame: chunks of the frame with the same number have the same bytes.
    pub payload_number: u32,
}

impl Frame {
    /// Reads the body of a frame section at file offset `at`, whose checksum the caller has checked.
    ///
    /// # Errors
    /// What [`FrameHeader::parse`] refuses; contents that do not decompress to the announced length; a table
    /// that is not sorted, does not cover the contents exactly, or does not agree with the header. Offsets in
    /// errors about the table count from the start of the contents as if they were stored uncompressed.
    pub fn decode(body: &[u8], at: u64) -> Result<Self, FormatError> {
        let header = FrameHeader::parse(body, at)?;
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
        let table::Parsed { entries, numbers, starts, payloads_at } =
            table::parse(&contents, header.chunks, header.first_warp, stored_at)?;
        let mut payloads = contents;
        payloads.drain(..payloads_at);
        let frame = Self { header, entries, numbers, starts, payloads };
        frame.check(stored_at)?;
        Ok(frame)
    }

    /// Compares table and header.
    fn check(&self, offset: u64) -> Result<(), FormatError> {
        let invalid = |field, value, expected: String| {
            Err(FormatError::invalid(SECTION, field, offset, value, expected))
        };
        let header = &self.header;
        let last = self.entries.last().map_or(0, |entry| entry.warp);
        if last != header.last_warp {
            let expected = format!("the frame's last warp, {}", header.last_warp);
            return invalid("chunk warp", u64::from(last), expected);
        }
        let events: u64 = self.entries.iter().map(|entry| u64::from(entry.events)).sum();
        if events != header.events {
            let expected = format!("{}, the frame's events", header.events);
            return invalid("sum of chunk events", events, expected);
        }
        let lengths: u64 = self.entries.iter().map(|entry| u64::from(entry.length)).sum();
        let unfolded = lengths + (self.entries.len() * CHUNK_ENTRY_BYTES) as u64;
        if unfolded > u64::from(MAX_FRAME_BYTES) {
            let expected = format!("at most {MAX_FRAME_BYTES}, with {CHUNK_ENTRY_BYTES} bytes a chunk");
            return invalid("sum of chunk lengths", unfolded, expected);
        }
        Ok(())
    }

    /// The fixed part.
    pub const fn header(&self) -> &FrameHeader {
        &self.header
    }

    /// The table, in order of warp and sequence.
    pub fn entries(&self) -> impl Iterator<Item = ChunkEntry> + '_ {
        self.entries.iter().copied()
    }

    /// The chunks, in order of warp and sequence.
    pub fn chunks(&self) -> impl Iterator<Item = Chunk<'_>> + '_ {
        self.entries.iter().zip(&self.numbers).map(|(&entry, &payload_number)| {
            let start = self.starts.get(payload_number as usize).map_or(0, |&start| start as usize);
            let payload = self.payloads.get(start..start + entry.length as usize).unwrap_or_default();
            Chunk { entry, payload, payload_number }
        })
    }
}
