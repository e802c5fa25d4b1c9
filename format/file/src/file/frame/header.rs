//! Fixed part of a frame, and the entries of its table.

use super::SECTION;
use super::compression::StoredAs;
use super::runs::RUNS_VERSION;
use crate::file::error::FormatError;
use crate::file::fields::{Fields, push_crc};
use crate::file::limits::{MAX_FRAME_BYTES, MAX_FRAME_CHUNKS, MAX_PAYLOAD_BYTES};

/// Size of the fixed part of a frame's body, in bytes.
pub const FRAME_HEADER_BYTES: usize = 40;
/// Bytes of each chunk that count towards the frame size limit, in addition to its payload.
pub const CHUNK_ENTRY_BYTES: usize = 16;
/// Minimum bytes of a chunk in the table of version 1: four numbers.
const MIN_DESCRIPTION_BYTES: u64 = 4;
/// Minimum bytes of a frame's payloads: one length and one byte.
const MIN_PAYLOAD_BYTES: u64 = 2;

/// Fixed part of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Launch number.
    pub launch: u32,
    /// Track.
    pub track: u32,
    /// Lowest warp in the frame.
    pub first_warp: u32,
    /// Highest warp in the frame.
    pub last_warp: u32,
    /// Number of chunks, 1..=[`MAX_FRAME_CHUNKS`].
    pub chunks: u32,
    /// Storage form of the contents.
    pub stored_as: StoredAs,
    /// Number of events in all chunks.
    pub events: u64,
    /// Size of the contents before compression, at most [`MAX_FRAME_BYTES`].
    pub plain_bytes: u32,
}

impl FrameHeader {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FRAME_HEADER_BYTES);
        for word in [self.launch, self.track, self.first_warp, self.last_warp, self.chunks] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&[self.stored_as.to_byte(), 0, 0, 0]);
        bytes.extend_from_slice(&self.events.to_le_bytes());
        bytes.extend_from_slice(&self.plain_bytes.to_le_bytes());
        push_crc(&mut bytes, 0);
        bytes
    }

    /// Decodes the fixed part of a frame body of this version at file offset `at`. `body` may be longer.
    /// Rejects contents over [`MAX_FRAME_BYTES`], and fields that contradict each other.
    pub fn parse(version: u16, body: &[u8], at: u64) -> Result<Self, FormatError> {
        let body = &body[..body.len().min(FRAME_HEADER_BYTES)];
        let mut fields = Fields::new(SECTION, body, at);
        let launch = fields.u32("launch")?;
        let track = fields.u32("track")?;
        let first_warp = fields.u32("first warp")?;
        let last_warp = fields.u32("last warp")?;
        let chunks = fields.u32("chunks")?;
        let compression = fields.u8("compression")?;
        fields.zero::<3>("reserved")?;
        let events = fields.u64("events")?;
        let plain_bytes = fields.u32("plain bytes")?;
        fields.limit("plain bytes", 4, u64::from(plain_bytes), u64::from(MAX_FRAME_BYTES))?;
        fields.crc("header")?;
        let invalid = |field, relative: u64, value, expected: String| {
            Err(fields.invalid(field, at.saturating_add(relative), value, expected))
        };
        if last_warp < first_warp {
            let expected = format!("at least the first warp, {first_warp}");
            return invalid("last warp", 12, u64::from(last_warp), expected);
        }
        let most = match version {
            RUNS_VERSION => u64::MAX,
            _ => u64::from(plain_bytes).saturating_sub(MIN_PAYLOAD_BYTES) / MIN_DESCRIPTION_BYTES,
        };
        let most = most.min(u64::from(MAX_FRAME_CHUNKS));
        if chunks == 0 || u64::from(chunks) > most {
            let expected = format!("1..={most}, what {plain_bytes} plain bytes can hold");
            return invalid("chunks", 16, u64::from(chunks), expected);
        }
        let Some(stored_as) = StoredAs::from_byte(compression) else {
            return invalid("compression", 20, u64::from(compression), "0 or 1".into());
        };
        if events < u64::from(chunks) {
            return invalid("events", 24, events, format!("at least one for each of {chunks} chunks"));
        }
        Ok(Self { launch, track, first_warp, last_warp, chunks, stored_as, events, plain_bytes })
    }
}

/// One entry of a frame's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkEntry {
    /// Linear index of the warp in its launch.
    pub warp: u32,
    /// Position of the chunk in the warp's stream, from 0.
    pub sequence: u32,
    /// Events in the payload, at least 1.
    pub events: u32,
    /// Size of the payload, at least 1 byte.
    pub length: u32,
}

impl ChunkEntry {
    /// Checks events and length. Returns the invalid field, its value, and the expected values.
    #[inline]
    pub(super) fn check(&self) -> Result<(), (&'static str, u64, String)> {
        if self.events == 0 {
            return Err(("chunk events", 0, "at least 1".into()));
        }
        if self.length == 0 || self.length > MAX_PAYLOAD_BYTES {
            return Err(("chunk length", u64::from(self.length), format!("1..={MAX_PAYLOAD_BYTES}")));
        }
        Ok(())
    }
}
