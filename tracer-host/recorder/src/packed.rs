//! Chunks copied from the device, packed without their unused space.
//!
//! ```text
//! ┌──────────────────────┬─────────────────────────┬───────────────────────┐
//! │ header, as in a pool │ payload, header.length  │ to a multiple of 16   │  and the next
//! └──────────────────────┴─────────────────────────┴───────────────────────┘
//!   32 bytes
//! ```
//!
//! Unused chunks are left out. The padding is whatever followed the payload in the pool. Chunks of the data
//! track become tiles ([`warptrace_format::data::tile`]), which may be longer than chunks of the pool.

use std::ops::Range;

use warptrace_format::chunk::{CHUNK_HEADER_BYTES, ChunkHeader};
use warptrace_format::data::ENTRY_BYTES;
use warptrace_format::data::tile::MAX_TILE_BYTES;
use warptrace_format::file::data::{DataChunk, Tile, cut_into_tiles};

/// Alignment of packed chunks in bytes, so that a GPU can copy 16 bytes at a time.
const ALIGN: usize = 16;
const HEADER: usize = CHUNK_HEADER_BYTES as usize;
/// Number of pieces to split packed chunks into, for several cores, and the smallest useful piece.
const PIECES: usize = 64;
const LEAST_PIECE_BYTES: usize = 32 << 10;
/// Offset of the payload length in a header.
const LENGTH_AT: usize = 12;

/// Maximum bytes of an entry in a tile, and of everything but entries in a tile with one chunk.
const TILE_ENTRY_BYTES: u64 = 22;
const TILE_COLUMNS_BYTES: u64 = 320;
/// Size of the longest tile, its header included.
pub(crate) const MAX_TILE: usize = HEADER + MAX_TILE_BYTES as usize;

/// Returns the maximum bytes that a chunk of `chunk_bytes` bytes takes after packing, also as a tile.
pub(crate) fn most_bytes(chunk_bytes: u32) -> u32 {
    let alone = u64::from(chunk_bytes) * TILE_ENTRY_BYTES / ENTRY_BYTES as u64 + TILE_COLUMNS_BYTES;
    chunk_bytes.max(alone.min(MAX_TILE as u64) as u32)
}

/// Returns the packed bytes of a used chunk. Clamps the header's length to the chunk.
fn size(header: &ChunkHeader, chunk_bytes: usize) -> usize {
    (HEADER + (header.length as usize).min(chunk_bytes - HEADER)).next_multiple_of(ALIGN)
}

/// Appends a chunk of the pool if it was used. `chunk` is the whole chunk and holds at least a header.
pub(crate) fn push(to: &mut Vec<u8>, chunk: &[u8]) {
    if let Some(header) = ChunkHeader::read(chunk)
        && (header.length, header.events) != (0, 0)
    {
        to.extend_from_slice(&chunk[..size(&header, chunk.len()).min(chunk.len())]);
    }
}

/// Returns the header and the entries of a used chunk of the data track; `None` for other chunks. `data_track`
/// is 0 without such a track.
pub(crate) fn of_data(chunk: &[u8], data_track: u32) -> Option<(ChunkHeader, &[u8])> {
    let header = ChunkHeader::read(chunk)?;
    let length = (header.length as usize).min(chunk.len() - HEADER);
    let is_data = data_track != 0 && header.track == data_track && length != 0;
    is_data.then(|| (header, &chunk[HEADER..HEADER + length]))
}

/// Appends chunks of the data track, each with its header, as tiles.
pub(crate) fn push_tiles<'c>(to: &mut Vec<u8>, mut chunks: Vec<(ChunkHeader, &'c [u8])>) {
    chunks.sort_by_key(|(header, _)| (header.launch, header.warp, header.sequence));
    for chunks in chunks.chunk_by(|(a, _), (b, _)| a.launch == b.launch) {
        let ChunkHeader { launch, track, .. } = chunks[0].0;
        let data = |(ChunkHeader { warp, sequence, .. }, entries): &(ChunkHeader, &'c [u8])| DataChunk {
            warp: *warp,
            sequence: *sequence,
            entries,
        };
        for chunks in cut_into_tiles(&chunks.iter().map(data).collect::<Vec<_>>()) {
            let (tile, mut payload) = (Tile::encode(chunks), Vec::new());
            tile.write(&mut payload);
            let words =
                [chunks.len() as u32, 0, tile.accesses as u32, payload.len() as u32, launch, track, 0, 0];
            to.extend(words.into_iter().flat_map(u32::to_le_bytes));
            to.extend_from_slice(&payload);
            to.resize(to.len().next_multiple_of(ALIGN), 0);
        }
    }
}

/// Renumbers the warps of packed chunks: `names[warp]` replaces `warp`, where that entry exists.
pub(crate) fn rename(packed: &mut [u8], chunk_bytes: usize, names: &[u32]) {
    let mut at = 0;
    while let Some(header) = packed.get(at..).and_then(ChunkHeader::read) {
        if let Some(name) = names.get(header.warp as usize) {
            packed[at..at + 4].copy_from_slice(&name.to_le_bytes());
        }
        if header.length as usize > chunk_bytes - HEADER {
            // The start of the next chunk is unknown.
            return;
        }
        at += size(&header, chunk_bytes);
    }
}

pub(crate) struct Unpacked<'a> {
    pub(crate) header: ChunkHeader,
    /// The payload, times included; `None` if longer than a chunk. The iteration then ends.
    pub(crate) payload: Option<&'a [u8]>,
    /// Position of the chunk, for [`payload`].
    pub(crate) at: u32,
}

/// Returns a range of the payload of the chunk at `at`, a position from [`chunks`]. Empty if out of range.
pub(crate) fn payload(packed: &[u8], at: u32, bytes: Range<u32>) -> &[u8] {
    packed
        .get(at as usize * ALIGN + HEADER..)
        .and_then(|rest| rest.get(bytes.start as usize..bytes.end as usize))
        .unwrap_or_default()
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    packed: &'a [u8],
    /// Byte offset in the packed chunks.
    start: usize,
    pub(crate) chunks: usize,
}

/// Returns the recommended piece size in bytes for [`pieces`].
pub(crate) fn piece_bytes(packed: &[u8]) -> usize {
    (packed.len() / PIECES).max(LEAST_PIECE_BYTES)
}

/// Splits packed chunks into pieces of about `piece_bytes`, for several cores. A chunk's start follows from
/// the chunk before it, so that the search itself is sequential.
pub(crate) fn pieces(
    packed: &[u8],
    chunk_bytes: usize,
    piece_bytes: usize,
) -> impl Iterator<Item = Piece<'_>> + Send {
    let length_of = move |at: usize| -> Option<usize> {
        let length = packed.get(at + LENGTH_AT..at + LENGTH_AT + 4)?;
        Some(u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize)
    };
    let mut at = 0;
    std::iter::from_fn(move || {
        let (start, mut chunks) = (at, 0);
        while at - start < piece_bytes
            && let Some(length) = length_of(at)
        {
            chunks += 1;
            at = if length > chunk_bytes - HEADER {
                // The start of the next chunk is unknown.
                packed.len()
            } else {
                (at + (HEADER + length).next_multiple_of(ALIGN)).min(packed.len())
            };
        }
        (chunks > 0).then(|| Piece { packed: &packed[start..at], start, chunks })
    })
}

/// Iterates over the chunks of a piece. `chunk_bytes` is the size of a chunk in the pool.
pub(crate) fn chunks(piece: Piece<'_>, chunk_bytes: usize) -> impl Iterator<Item = Unpacked<'_>> {
    let Piece { packed, start, .. } = piece;
    let mut rest = packed;
    std::iter::from_fn(move || {
        let header = ChunkHeader::read(rest)?;
        // Batches are far smaller than 2^32 times the alignment.
        let at = ((start + packed.len() - rest.len()) / ALIGN) as u32;
        let payload = rest.get(HEADER..).and_then(|payload| payload.get(..header.length as usize));
        let payload = payload.filter(|payload| payload.len() <= chunk_bytes - HEADER);
        rest = match payload {
            Some(_) => rest.get(size(&header, chunk_bytes)..).unwrap_or_default(),
            None => &[],
        };
        Some(Unpacked { header, payload, at })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(warp: u32, events: u32, length: u32) -> [u8; 64] {
        let mut bytes = [0xaa; 64];
        for (at, word) in [(0, warp), (4, 0), (8, events), (12, length), (16, 3), (20, 0)] {
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn warps(packed: &[u8]) -> Vec<(u32, Option<usize>)> {
        let found = |piece_bytes| -> Vec<_> {
            let pieces: Vec<_> = pieces(packed, 64, piece_bytes).collect();
            let count: usize = pieces.iter().map(|piece| piece.chunks).sum();
            let found: Vec<_> = pieces.into_iter().flat_map(|piece| chunks(piece, 64)).collect();
            assert_eq!(found.len(), count);
            let length = |chunk: Unpacked<'_>| {
                if let Some(found) = chunk.payload {
                    assert_eq!(payload(packed, chunk.at, 0..chunk.header.length), found);
                }
                (chunk.header.warp, chunk.payload.map(<[u8]>::len))
            };
            found.into_iter().map(length).collect()
        };
        let whole = found(1 << 20);
        for piece_bytes in [1, 48, 64, 100] {
            assert_eq!(found(piece_bytes), whole);
        }
        whole
    }

    #[test]
    fn used_chunks_come_back_and_unused_ones_take_nothing() {
        let mut packed = Vec::new();
        for chunk in [chunk(1, 2, 1), chunk(2, 0, 0), chunk(3, 1, 32), chunk(4, 1, 16), chunk(5, 1, 0)] {
            push(&mut packed, &chunk);
        }
        assert_eq!(packed.len(), 48 + 64 + 48 + 32);
        assert_eq!(warps(&packed), [(1, Some(1)), (3, Some(32)), (4, Some(16)), (5, Some(0))]);
    }

    #[test]
    fn chunks_are_given_other_names() {
        let mut packed = Vec::new();
        for chunk in [chunk(1, 2, 1), chunk(0, 1, 32), chunk(7, 1, 4)] {
            push(&mut packed, &chunk);
        }
        rename(&mut packed, 64, &[10, 30]);
        assert_eq!(warps(&packed), [(30, Some(1)), (10, Some(32)), (7, Some(4))]);
    }

    #[test]
    fn a_length_beyond_the_chunk_is_told_and_ends_it() {
        for length in [33, u32::MAX] {
            let mut packed = Vec::new();
            push(&mut packed, &chunk(1, 1, 4));
            push(&mut packed, &chunk(2, 1, length));
            push(&mut packed, &chunk(3, 1, 4));
            assert_eq!(packed.len(), 48 + 64 + 48);
            assert_eq!(warps(&packed), [(1, Some(4)), (2, None)]);
        }
    }
}
