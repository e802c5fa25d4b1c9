//! Encoding of chunks as a frame section.

use std::cell::Cell;

use super::SECTION;
use super::compression::{Compression, StoredAs, compress};
use super::header::{CHUNK_ENTRY_BYTES, ChunkEntry, FRAME_HEADER_BYTES, FrameHeader};
use super::table::FrameTable;
use crate::file::error::FormatError;
use crate::file::limits::{MAX_FRAME_BYTES, MAX_FRAME_CHUNKS};
use crate::file::section::{SectionKind, encode_section_version};

/// A chunk to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRef<'a> {
    /// Track: 0 is the trace, 1 the raw twin of a dual recording.
    pub track: u32,
    /// Linear index of the warp in its launch.
    pub warp: u32,
    /// Position of the chunk in the warp's stream, from 0.
    pub sequence: u32,
    /// Events in the payload.
    pub events: u32,
    /// Encoded events.
    pub payload: &'a [u8],
}

impl ChunkRef<'_> {
    /// Returns the share of the frame size limit: [`CHUNK_ENTRY_BYTES`] and the payload, even if repeated.
    #[inline]
    pub const fn frame_bytes(&self) -> u64 {
        (CHUNK_ENTRY_BYTES + self.payload.len()) as u64
    }
}

/// An encoded frame section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedFrame {
    /// Fixed part.
    pub header: FrameHeader,
    /// Size of the payloads of all chunks, in bytes. Equal payloads count each time.
    pub payload_bytes: u64,
    /// Section header and body.
    pub section: Vec<u8>,
}

/// Encodes a frame of `chunks`, which belong to one launch and track and are sorted by (warp, sequence).
/// Fails for other chunks or none, empty chunks, and a payload or a frame over the format's limits.
pub fn encode_frame(
    launch: u32,
    track: u32,
    chunks: &[ChunkRef<'_>],
    compression: Compression,
) -> Result<EncodedFrame, FormatError> {
    encode_frame_of(launch, track, chunks.iter().copied(), compression)
}

/// Chunks in an iterator that can be repeated.
pub trait Chunks<'a>: ExactSizeIterator<Item = ChunkRef<'a>> + Clone {}

impl<'a, I: ExactSizeIterator<Item = ChunkRef<'a>> + Clone> Chunks<'a> for I {}

thread_local! {
    /// Memory for a table and its compressed form. Allocating it costs more than encoding.
    static MEMORY: Cell<(FrameTable, Vec<u8>)> = Cell::default();
}

/// Like [`encode_frame`], for chunks that are not in a slice.
pub fn encode_frame_of<'a>(
    launch: u32,
    track: u32,
    chunks: impl Chunks<'a>,
    compression: Compression,
) -> Result<EncodedFrame, FormatError> {
    let (mut table, mut packed) = MEMORY.take();
    let encoded = encode(launch, track, chunks, compression, &mut table, &mut packed);
    MEMORY.set((table, packed));
    encoded
}

fn encode<'a>(
    launch: u32,
    track: u32,
    chunks: impl Chunks<'a>,
    compression: Compression,
    table: &mut FrameTable,
    packed: &mut Vec<u8>,
) -> Result<EncodedFrame, FormatError> {
    let invalid = |field, value, expected: String| {
        Err(FormatError::Invalid { section: SECTION, field, offset: 0, value, expected: expected.into() })
    };
    let Some(first) = chunks.clone().next() else {
        return invalid("chunks", 0, "at least 1".into());
    };
    let too_large = |field, value: u64, limit: u32| {
        let limit = u64::from(limit);
        Err(FormatError::TooLarge { section: SECTION, field, offset: 0, value, limit })
    };
    if chunks.len() > MAX_FRAME_CHUNKS as usize {
        return too_large("chunks", chunks.len() as u64, MAX_FRAME_CHUNKS);
    }
    let (mut before, mut events, mut bytes) = (None, 0, 0);
    for chunk in chunks.clone() {
        let length = u32::try_from(chunk.payload.len()).unwrap_or(u32::MAX);
        let entry = ChunkEntry { warp: chunk.warp, sequence: chunk.sequence, events: chunk.events, length };
        if let Err((field, value, expected)) = entry.check() {
            return invalid(field, value, expected);
        }
        if chunk.track != track {
            return invalid("chunk track", u64::from(chunk.track), format!("{track}, the frame's track"));
        }
        if before >= Some((chunk.warp, chunk.sequence)) {
            return invalid("chunk warp", u64::from(chunk.warp), "chunks sorted by warp and sequence".into());
        }
        before = Some((chunk.warp, chunk.sequence));
        events += u64::from(chunk.events);
        bytes += chunk.frame_bytes();
    }
    if bytes > u64::from(MAX_FRAME_BYTES) {
        return too_large("plain bytes", bytes, MAX_FRAME_BYTES);
    }
    let (count, last_warp) = (chunks.len(), before.map_or(0, |(warp, _)| warp));
    let header = FrameHeader {
        launch,
        track,
        first_warp: first.warp,
        last_warp,
        chunks: u32::try_from(count).expect("at most MAX_FRAME_CHUNKS, checked above"),
        stored_as: StoredAs::Plain,
        events,
        plain_bytes: 0,
    };
    finish(SectionKind::Frame.version(), header, bytes, table.encode(chunks), compression, packed)
}

/// Encodes a frame's section and completes its header. `frame_bytes` is the chunks' share in the size limit.
pub(super) fn finish(
    version: u16,
    mut header: FrameHeader,
    frame_bytes: u64,
    contents: &[u8],
    compression: Compression,
    packed: &mut Vec<u8>,
) -> Result<EncodedFrame, FormatError> {
    let plain_bytes = contents.len() as u64;
    // A table with extreme numbers can exceed the 16 bytes per chunk in `frame_bytes`.
    header.plain_bytes = u32::try_from(plain_bytes)
        .ok()
        .filter(|&bytes| bytes <= MAX_FRAME_BYTES)
        .ok_or_else(|| FormatError::too_large(SECTION, "plain bytes", 0, plain_bytes, MAX_FRAME_BYTES))?;
    let (stored_as, stored) = compress(SECTION, contents, compression, packed)?;
    header.stored_as = stored_as;
    let fixed = header.encode();
    debug_assert_eq!(fixed.len(), FRAME_HEADER_BYTES);
    let payload_bytes = frame_bytes - u64::from(header.chunks) * CHUNK_ENTRY_BYTES as u64;
    let section = encode_section_version(SectionKind::Frame, version, &[&fixed, stored]);
    Ok(EncodedFrame { header, payload_bytes, section })
}
