//! A frame in memory, checked.

use super::SECTION;
use super::compression::{StoredAs, decompress};
use super::header::{CHUNK_ENTRY_BYTES, ChunkEntry, FRAME_HEADER_BYTES, FrameHeader};
use crate::file::error::FormatError;

/// A frame's chunks in memory, decompressed and checked: the table is sorted, covers exactly the contents, and
/// agrees with the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    header: FrameHeader,
    contents: Vec<u8>,
}

/// One chunk of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// The table's entry.
    pub entry: ChunkEntry,
    /// The encoded events.
    pub payload: &'a [u8],
}

impl Frame {
    /// Reads the body of a frame section at file offset `at`, whose checksum the caller has checked.
    ///
    /// # Errors
    /// What [`FrameHeader::parse`] refuses; contents that do not decompress to the announced length; a table that
    /// is not sorted, does not cover the contents exactly, or does not agree with the header. Offsets in errors
    /// about the table count from the start of the contents as if they were stored uncompressed.
    pub fn decode(body: &[u8], at: u64) -> Result<Self, FormatError> {
        let header = FrameHeader::parse(body, at)?;
        let stored = body.get(FRAME_HEADER_BYTES..).unwrap_or_default();
        let stored_at = at.saturating_add(FRAME_HEADER_BYTES as u64);
        if header.stored_as == StoredAs::Plain && stored.len() as u64 != u64::from(header.plain_bytes) {
            return Err(FormatError::Invalid {
                section: SECTION,
                field: "plain bytes",
                offset: at.saturating_add(32),
                value: u64::from(header.plain_bytes),
                expected: format!("{}, the bytes stored", stored.len()).into(),
            });
        }
        let contents = decompress(SECTION, header.stored_as, stored, header.plain_bytes as usize, stored_at)?;
        let frame = Self { header, contents };
        frame.check_table(stored_at)?;
        Ok(frame)
    }

    fn check_table(&self, contents_at: u64) -> Result<(), FormatError> {
        let invalid = |field, index: u64, value, expected: String| {
            let offset = contents_at.saturating_add(index * CHUNK_ENTRY_BYTES as u64);
            Err(FormatError::Invalid { section: SECTION, field, offset, value, expected: expected.into() })
        };
        let header = &self.header;
        let mut before: Option<ChunkEntry> = None;
        let (mut events, mut bytes) = (0u64, 0u64);
        // The parsed header guarantees that the contents hold the whole table.
        for (index, entry) in (0u64..).zip(self.entries()) {
            if let Err((field, value, expected)) = entry.check() {
                return invalid(field, index, value, expected);
            }
            if let Some(before) = before
                && (before.warp, before.sequence) >= (entry.warp, entry.sequence)
            {
                let expected = format!("an entry after warp {} sequence {}", before.warp, before.sequence);
                return invalid("chunk warp", index, u64::from(entry.warp), expected);
            }
            if before.is_none() && entry.warp != header.first_warp {
                let expected = format!("the frame's first warp, {}", header.first_warp);
                return invalid("chunk warp", index, u64::from(entry.warp), expected);
            }
            events += u64::from(entry.events);
            bytes += CHUNK_ENTRY_BYTES as u64 + u64::from(entry.length);
            before = Some(entry);
        }
        let last = u64::from(header.chunks.saturating_sub(1));
        match before {
            Some(entry) if entry.warp == header.last_warp => {}
            other => {
                let found = other.map_or(0, |entry| u64::from(entry.warp));
                let expected = format!("the frame's last warp, {}", header.last_warp);
                return invalid("chunk warp", last, found, expected);
            }
        }
        if events != header.events {
            return invalid(
                "sum of chunk events",
                0,
                events,
                format!("{}, the frame's events", header.events),
            );
        }
        if bytes != u64::from(header.plain_bytes) {
            let expected = format!("{}, the frame's plain bytes", header.plain_bytes);
            return invalid("table and sum of chunk lengths", 0, bytes, expected);
        }
        Ok(())
    }

    /// The fixed part.
    pub const fn header(&self) -> &FrameHeader {
        &self.header
    }

    fn table_bytes(&self) -> usize {
        self.header.chunks as usize * CHUNK_ENTRY_BYTES
    }

    /// The table, in order of warp and sequence.
    pub fn entries(&self) -> impl Iterator<Item = ChunkEntry> + '_ {
        let table = self.contents.get(..self.table_bytes()).unwrap_or_default();
        table.chunks_exact(CHUNK_ENTRY_BYTES).filter_map(ChunkEntry::peek)
    }

    /// The chunks, in order of warp and sequence.
    pub fn chunks(&self) -> impl Iterator<Item = Chunk<'_>> + '_ {
        let mut rest = self.contents.get(self.table_bytes()..).unwrap_or_default();
        self.entries().map_while(move |entry| {
            let (payload, after) = rest.split_at_checked(entry.length as usize)?;
            rest = after;
            Some(Chunk { entry, payload })
        })
    }
}
