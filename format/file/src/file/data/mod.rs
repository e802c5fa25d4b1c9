//! Addresses and values of warps: the `DATA` section.
//!
//! ```text
//! offset  size  field
//!      0     4  launch
//!      4     4  first warp       lowest warp in the section
//!      8     4  last warp        highest warp in the section
//!     12     4  chunks           1 to 65,536
//!     16     4  entries          headers and values of all chunks, at most 2^19
//!     20     8  accesses         of all runs
//!     28     4  checksum         CRC-32 of the 28 bytes before
//!     32     4  plain bytes      of the contents before compression, at most 16 MiB
//!     36     1  compression      0 none, 1 zstd
//!     37     3  zero
//!     40     …  contents, compressed or not: consecutive columns
//! ```
//!
//! Columns of 32 bits come first:
//! ```text
//! tiles                              chunks of each tile
//! warp, sequence, entries, damaged   for each chunk
//! cut                                for each chunk: 0, or 1 if accesses were lost
//! cut time                           for each chunk with losses
//! ```
//!
//! The columns of each tile follow ([`crate::data::tile`]). `docs/reference/format/data.md` describes them.

mod groups;
mod tiles;

use warptrace_columns::Element;

use super::contents::{Columns, Contents, encode_contents, put};
use super::error::FormatError;
use super::fields::{Fields, push_crc};
use super::frame::Compression;
use super::limits::{MAX_DATA_CHUNKS, MAX_DATA_ENTRIES, MAX_FRAME_BYTES};
use super::section::SectionKind;
use crate::data::accesses;
use crate::data::tile::TileChunk;
use groups::{EntryReader, earlier};
pub use groups::{Group, PieceGroups, SiteGroups, lanes};
use tiles::decode_tile;
pub use tiles::{Tile, cut_into_tiles};

const SECTION: &str = "DATA";
/// Version 1 had other columns, and is not read any more.
pub(super) const TILES_VERSION: u16 = 2;
/// Size of the fixed part before the contents, in bytes.
pub const DATA_HEADER_BYTES: usize = 32;

/// A chunk of a warp's stream of the data track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataChunk<'a> {
    /// Linear index of the warp in its launch.
    pub warp: u32,
    /// Number of the chunk in the warp's stream, from 0.
    pub sequence: u32,
    /// Entries of [`ENTRY_BYTES`](crate::data::ENTRY_BYTES), in the device's form.
    pub entries: &'a [u8],
}

/// Fixed part of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHeader {
    /// Launch number.
    pub launch: u32,
    /// Lowest warp.
    pub first_warp: u32,
    /// Highest warp.
    pub last_warp: u32,
    /// Number of chunks.
    pub chunks: u32,
    /// Number of headers and runs.
    pub entries: u32,
    /// Number of accesses.
    pub accesses: u64,
}

impl DataHeader {
    /// Decodes the fixed part of the body at file offset `at`. `body` may be longer. Rejects 0 chunks.
    pub fn parse(body: &[u8], at: u64) -> Result<Self, FormatError> {
        let mut fields = Fields::new(SECTION, &body[..body.len().min(DATA_HEADER_BYTES)], at);
        let [launch, first_warp, last_warp, chunks, entries] = [
            fields.u32("launch")?,
            fields.u32("first warp")?,
            fields.u32("last warp")?,
            fields.u32("chunks")?,
            fields.u32("entries")?,
        ];
        let accesses = fields.u64("accesses")?;
        fields.crc("header")?;
        if first_warp > last_warp {
            let expected = format!("at least the first warp, {first_warp}");
            return Err(fields.invalid("last warp", at.saturating_add(8), last_warp.into(), expected));
        }
        let limits =
            [("chunks", 12, chunks, 1..=MAX_DATA_CHUNKS), ("entries", 16, entries, 0..=MAX_DATA_ENTRIES)];
        for (field, offset, value, limits) in limits {
            if !limits.contains(&value) {
                let expected = format!("{} to {}", limits.start(), limits.end());
                return Err(fields.invalid(field, at.saturating_add(offset), value.into(), expected));
            }
        }
        Ok(Self { launch, first_warp, last_warp, chunks, entries, accesses })
    }

    fn encode(&self) -> Vec<u8> {
        let Self { launch, first_warp, last_warp, chunks, entries, accesses } = *self;
        let mut bytes = Vec::with_capacity(DATA_HEADER_BYTES);
        for word in [launch, first_warp, last_warp, chunks, entries] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&accesses.to_le_bytes());
        push_crc(&mut bytes, 0);
        bytes
    }
}

/// Consecutive chunks of a warp's stream, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Linear index of the warp in its launch.
    pub warp: u32,
    /// Number of the first chunk.
    pub sequence: u32,
    /// Number of chunks, at least 1.
    pub chunks: u32,
    /// Decoded entries.
    pub groups: PieceGroups,
}

/// Encodes the section, header and body. Fails without chunks, and for more than [`MAX_DATA_CHUNKS`] chunks or
/// [`MAX_DATA_ENTRIES`] entries.
pub fn encode_data(
    launch: u32,
    tiles: &[Tile<'_>],
    compression: Compression,
) -> Result<(Vec<u8>, DataHeader), FormatError> {
    let chunks = || tiles.iter().flat_map(|tile| &tile.chunks);
    let warps = || chunks().map(|chunk| chunk.warp);
    let header = DataHeader {
        launch,
        first_warp: warps().min().unwrap_or(1),
        last_warp: warps().max().unwrap_or(0),
        chunks: count(chunks().count()),
        entries: chunks().fold(0, |sum: u32, chunk| sum.saturating_add(chunk.entries)),
        accesses: tiles.iter().map(|tile| tile.accesses).sum(),
    };
    let fixed = header.encode();
    DataHeader::parse(&fixed, 0)?;

    let mut plain = Vec::new();
    let of_tiles: Vec<u32> = tiles.iter().map(|tile| count(tile.chunks.len())).collect();
    put(&of_tiles, 0, compression, &mut plain);
    let mut before = header.first_warp;
    let warp =
        |chunk: &TileChunk| chunk.warp.wrapping_sub(std::mem::replace(&mut before, chunk.warp)).zigzag();
    put(&chunks().map(warp).collect::<Vec<_>>(), 0, compression, &mut plain);
    let columns: [fn(&TileChunk) -> u32; 4] = [
        |chunk| chunk.sequence,
        |chunk| chunk.entries,
        |chunk| chunk.damaged,
        |chunk| u32::from(chunk.cut.is_some()),
    ];
    for column in columns {
        put(&chunks().map(column).collect::<Vec<_>>(), 0, compression, &mut plain);
    }
    put(&chunks().filter_map(|chunk| chunk.cut).collect::<Vec<_>>(), 0, compression, &mut plain);
    tiles.iter().for_each(|tile| plain.extend_from_slice(&tile.columns));
    Ok((encode_contents(SectionKind::Data, &fixed, &plain, compression)?, header))
}

/// Decodes the body of a section at file offset `at`. The pieces are in the order of warp and sequence. Memory
/// is bounded by the sizes of [`MAX_DATA_CHUNKS`] pieces and [`MAX_DATA_ENTRIES`] entries. Rejects headers
/// like [`DataHeader::parse`], contents that do not decompress as announced, and columns that are invalid or
/// contradict each other or the header.
pub fn decode_data(body: &[u8], at: u64) -> Result<(DataHeader, Vec<Piece>), FormatError> {
    let header = DataHeader::parse(body, at)?;
    let packing_at = at.saturating_add(DATA_HEADER_BYTES as u64);
    let fields = Fields::new(SECTION, body.get(DATA_HEADER_BYTES..).unwrap_or_default(), packing_at);
    let contents = Contents::read(SECTION, fields, MAX_FRAME_BYTES)?;
    let mut columns = contents.columns();
    let tiles: Vec<u32> = columns.next("tiles", 1..=header.chunks as usize)?;
    let chunks = chunks(&header, &contents, &mut columns)?;
    let (mut entries, mut left) = (Vec::with_capacity(header.entries as usize), &chunks[..]);
    for of_tile in tiles {
        let Some((tile, rest)) = left.split_at_checked(of_tile as usize).filter(|_| of_tile > 0) else {
            return Err(contents.wrong("the tiles have other chunks than the section".to_owned()));
        };
        left = rest;
        decode_tile(tile, &contents, &mut columns, &mut entries)?;
    }
    columns.end()?;
    let accesses: u64 = entries.iter().map(|words: &[u32; 4]| u64::from(accesses(words[1]))).sum();
    if !left.is_empty() || accesses != header.accesses {
        let (lacks, expected) = (left.len(), header.accesses);
        return Err(contents.wrong(format!(
            "{lacks} chunks are in no tile; {accesses} accesses, the header says {expected}"
        )));
    }
    Ok((header, pieces(&chunks, &entries)))
}

fn chunks(
    header: &DataHeader,
    contents: &Contents,
    columns: &mut Columns<'_>,
) -> Result<Vec<TileChunk>, FormatError> {
    let count = header.chunks as usize;
    let mut of_chunks = |name| columns.next::<u32>(name, count..=count);
    let warps = of_chunks("warp")?;
    let sequences = of_chunks("sequence")?;
    let entries = of_chunks("entries")?;
    let damaged = of_chunks("damaged")?;
    let cut = of_chunks("cut")?;
    let with_cut = cut.iter().filter(|cut| **cut == 1).count();
    let mut cuts = columns.next::<u32>("cut time", with_cut..=with_cut)?.into_iter();
    let (mut chunks, mut warp, mut left) = (Vec::with_capacity(count), header.first_warp, header.entries);
    for (at, more) in warps.into_iter().enumerate() {
        warp = warp.wrapping_add(more.unzigzag());
        let is_there = (header.first_warp..=header.last_warp).contains(&warp) && cut[at] <= 1;
        let (true, Some(rest)) = (is_there, left.checked_sub(entries[at])) else {
            return Err(contents.wrong(format!(
                "chunk {at} is of warp {warp}, with {} entries, cut {}",
                entries[at], cut[at]
            )));
        };
        left = rest;
        let cut = if cut[at] == 1 { cuts.next() } else { None };
        let (sequence, entries, damaged) = (sequences[at], entries[at], damaged[at]);
        chunks.push(TileChunk { warp, sequence, entries, damaged, cut });
    }
    if left != 0 {
        return Err(contents.wrong(format!("the chunks have {left} entries less than the section")));
    }
    Ok(chunks)
}

/// Returns the pieces of chunks, whose entries follow each other in `entries`.
fn pieces(chunks: &[TileChunk], entries: &[[u32; 4]]) -> Vec<Piece> {
    let mut rest = entries;
    let mut placed: Vec<(&TileChunk, &[[u32; 4]])> = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let (own, behind) = rest.split_at(chunk.entries as usize);
        placed.push((chunk, own));
        rest = behind;
    }
    placed.sort_by_key(|(chunk, _)| (chunk.warp, chunk.sequence));
    let follows = |(a, _): &(&TileChunk, _), (b, _): &(&TileChunk, _)| {
        a.warp == b.warp && a.sequence.checked_add(1) == Some(b.sequence)
    };
    let mut reader = EntryReader::default();
    let mut pieces = Vec::new();
    for chunks in placed.chunk_by(follows) {
        let mut groups = PieceGroups {
            sites: reader.read(chunks.iter().flat_map(|(_, own)| *own)),
            ..PieceGroups::default()
        };
        for (chunk, _) in chunks {
            groups.cut = groups.cut.into_iter().chain(chunk.cut).reduce(earlier);
            groups.damaged = groups.damaged.saturating_add(chunk.damaged);
        }
        let TileChunk { warp, sequence, .. } = *chunks[0].0;
        pieces.push(Piece { warp, sequence, chunks: count(chunks.len()), groups });
    }
    pieces
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
