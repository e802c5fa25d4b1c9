//! Addresses and values of warps: the `DATA` section.
//!
//! ```text
//! offset  size  field
//!      0     4  launch
//!      4     4  first warp       lowest warp in the section
//!      8     4  last warp        highest warp in the section
//!     12     4  pieces           1 to 65,536: parts of warps' streams
//!     16     4  entries          headers and runs of all pieces, at most 2^19
//!     20     8  accesses         of all runs
//!     28     4  checksum         CRC-32 of the 28 bytes before
//!     32     4  plain bytes      of the contents before compression, at most 16 MiB
//!     36     1  compression      0 none, 1 zstd
//!     37     3  zero
//!     40     …  contents, compressed or not: consecutive columns
//! ```
//!
//! A *piece* is consecutive chunks of a warp's stream. Column elements have 32 bits unless noted otherwise:
//! ```text
//! warp, sequence, chunks, damaged   for each piece
//! cut                               for each piece: 0, or 1 if accesses were lost
//! cut time                          for each piece with losses
//! site, pieces of it                for each site
//! ```
//!
//! The columns of each site's groups follow, site by site. `docs/reference/format.md` describes them.

mod columns;
mod groups;
mod predict;

use std::collections::BTreeMap;

use super::contents::{Contents, encode_contents, put};
use super::error::FormatError;
use super::fields::{Fields, push_crc};
use super::frame::Compression;
use super::limits::{MAX_DATA_ENTRIES, MAX_FRAME_BYTES, MAX_PIECES};
use super::section::SectionKind;
use crate::data::MAX_SITE;
use columns::{Left, count, next_site, put_site};
use groups::{EntryReader, OfPiece};
pub use groups::{Group, PieceGroups, SiteGroups, lanes};

const SECTION: &str = "DATA";
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
    /// Number of pieces.
    pub pieces: u32,
    /// Number of headers and runs.
    pub entries: u32,
    /// Number of accesses.
    pub accesses: u64,
}

impl DataHeader {
    /// Decodes the fixed part of the body at file offset `at`. `body` may be longer. Rejects 0 pieces.
    pub fn parse(body: &[u8], at: u64) -> Result<Self, FormatError> {
        let mut fields = Fields::new(SECTION, &body[..body.len().min(DATA_HEADER_BYTES)], at);
        let [launch, first_warp, last_warp, pieces, entries] = [
            fields.u32("launch")?,
            fields.u32("first warp")?,
            fields.u32("last warp")?,
            fields.u32("pieces")?,
            fields.u32("entries")?,
        ];
        let accesses = fields.u64("accesses")?;
        fields.crc("header")?;
        if first_warp > last_warp {
            let expected = format!("at least the first warp, {first_warp}");
            return Err(fields.invalid("last warp", at.saturating_add(8), last_warp.into(), expected));
        }
        let limits = [("pieces", 12, pieces, 1..=MAX_PIECES), ("entries", 16, entries, 0..=MAX_DATA_ENTRIES)];
        for (field, offset, value, limits) in limits {
            if !limits.contains(&value) {
                let expected = format!("{} to {}", limits.start(), limits.end());
                return Err(fields.invalid(field, at.saturating_add(offset), value.into(), expected));
            }
        }
        Ok(Self { launch, first_warp, last_warp, pieces, entries, accesses })
    }

    fn encode(&self) -> Vec<u8> {
        let Self { launch, first_warp, last_warp, pieces, entries, accesses } = *self;
        let mut bytes = Vec::with_capacity(DATA_HEADER_BYTES);
        for word in [launch, first_warp, last_warp, pieces, entries] {
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

impl Piece {
    /// Decodes chunks, in the order of warp and sequence, as pieces.
    pub fn of_chunks(chunks: &[DataChunk<'_>]) -> Vec<Self> {
        let mut reader = EntryReader::default();
        let heads = Head::of_chunks(chunks, &mut reader);
        let piece = |Head { warp, sequence, chunks, cut, damaged }| Self {
            warp,
            sequence,
            chunks,
            groups: PieceGroups { sites: Vec::new(), cut, damaged },
        };
        let mut pieces: Vec<_> = heads.into_iter().map(piece).collect();
        for OfPiece { piece, site, groups, runs, loose } in reader.entries.sites() {
            let (groups, runs, loose) = (groups.to_vec(), runs.to_vec(), loose.to_vec());
            pieces[piece].groups.sites.push(SiteGroups { site, groups, runs, loose });
        }
        pieces
    }
}

/// A piece without its groups.
#[derive(Clone, Copy, Debug)]
struct Head {
    warp: u32,
    sequence: u32,
    chunks: u32,
    cut: Option<u32>,
    damaged: u32,
}

impl Head {
    /// Reads chunks, in the order of warp and sequence. The reader then has their entries.
    fn of_chunks(chunks: &[DataChunk<'_>], reader: &mut EntryReader) -> Vec<Self> {
        let follows = |a: &DataChunk<'_>, b: &DataChunk<'_>| {
            a.warp == b.warp && a.sequence.checked_add(1) == Some(b.sequence)
        };
        let mut heads = Vec::new();
        for chunks in chunks.chunk_by(follows) {
            let DataChunk { warp, sequence, .. } = chunks[0];
            let (cut, damaged) = reader.read(heads.len(), chunks.iter().map(|chunk| chunk.entries));
            heads.push(Self { warp, sequence, chunks: count(chunks.len()), cut, damaged });
        }
        heads
    }
}

/// The sites of a section, each with its pieces in order.
#[derive(Debug, Default)]
struct BySite<'a>(BTreeMap<u16, Vec<OfPiece<'a>>>);

impl<'a> BySite<'a> {
    fn push(&mut self, of_piece: OfPiece<'a>) {
        self.0.entry(of_piece.site).or_default().push(of_piece);
    }
}

/// Encodes the section, header and body, from pieces in the order of warp and sequence. Fails without pieces,
/// and for more than [`MAX_PIECES`] or [`MAX_DATA_ENTRIES`] entries.
pub fn encode_data(
    launch: u32,
    pieces: &[Piece],
    compression: Compression,
) -> Result<(Vec<u8>, DataHeader), FormatError> {
    let head = |piece: &Piece| Head {
        warp: piece.warp,
        sequence: piece.sequence,
        chunks: piece.chunks,
        cut: piece.groups.cut,
        damaged: piece.groups.damaged,
    };
    let mut sites = BySite::default();
    for (at, piece) in pieces.iter().enumerate() {
        piece.groups.sites.iter().for_each(|site| sites.push(site.of_piece(at)));
    }
    encode(launch, &pieces.iter().map(head).collect::<Vec<_>>(), &sites, compression)
}

/// Like [`encode_data`], from chunks in the order of warp and sequence.
pub fn encode_chunks(
    launch: u32,
    chunks: &[DataChunk<'_>],
    compression: Compression,
) -> Result<(Vec<u8>, DataHeader), FormatError> {
    let mut reader = EntryReader::default();
    let heads = Head::of_chunks(chunks, &mut reader);
    let mut sites = BySite::default();
    reader.entries.sites().for_each(|site| sites.push(site));
    encode(launch, &heads, &sites, compression)
}

fn encode(
    launch: u32,
    pieces: &[Head],
    sites: &BySite<'_>,
    compression: Compression,
) -> Result<(Vec<u8>, DataHeader), FormatError> {
    let of_pieces = || sites.0.values().flatten();
    let header = DataHeader {
        launch,
        first_warp: pieces.first().map_or(1, |piece| piece.warp),
        last_warp: pieces.last().map_or(0, |piece| piece.warp),
        pieces: count(pieces.len()),
        entries: count(of_pieces().map(OfPiece::entries).sum()),
        accesses: of_pieces().map(OfPiece::accesses).sum(),
    };
    let fixed = header.encode();
    DataHeader::parse(&fixed, 0)?;

    let mut plain = Vec::new();
    put_pieces(pieces, header.first_warp, compression, &mut plain);
    let (mut numbers, mut of_pieces, mut before) = (Vec::new(), Vec::new(), 0);
    for (site, pieces) in &sites.0 {
        numbers.push(u32::from(site - before));
        of_pieces.push(count(pieces.len()));
        before = *site;
    }
    put(&numbers, 0, compression, &mut plain);
    put(&of_pieces, 0, compression, &mut plain);
    let mut first_times = vec![None; pieces.len()];
    sites.0.values().for_each(|pieces| put_site(pieces, &mut first_times, compression, &mut plain));

    Ok((encode_contents(SectionKind::Data, &fixed, &plain, compression)?, header))
}

fn put_pieces(pieces: &[Head], first_warp: u32, compression: Compression, plain: &mut Vec<u8>) {
    let mut columns = [const { Vec::new() }; 5];
    let (mut cuts, mut warp) = (Vec::new(), first_warp);
    for piece in pieces {
        let Head { cut, damaged, .. } = *piece;
        let values = [piece.warp - warp, piece.sequence, piece.chunks, damaged, u32::from(cut.is_some())];
        columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
        cuts.extend(cut);
        warp = piece.warp;
    }
    for column in columns.iter().chain([&cuts]) {
        put(column, 0, compression, plain);
    }
}

/// Decodes the body of a section at file offset `at`. Memory is bounded by twice the size of [`MAX_PIECES`]
/// pieces and [`MAX_DATA_ENTRIES`] entries of 24 bytes. Rejects headers like [`DataHeader::parse`], contents
/// that do not decompress as announced, and columns that are invalid or contradict each other or the header.
pub fn decode_data(body: &[u8], at: u64) -> Result<(DataHeader, Vec<Piece>), FormatError> {
    let header = DataHeader::parse(body, at)?;
    let packing_at = at.saturating_add(DATA_HEADER_BYTES as u64);
    let fields = Fields::new(SECTION, body.get(DATA_HEADER_BYTES..).unwrap_or_default(), packing_at);
    let contents = Contents::read(SECTION, fields, MAX_FRAME_BYTES)?;
    let wrong = |message: String| contents.wrong(message);
    let mut columns = contents.columns();
    let count = header.pieces as usize;
    let mut of_pieces = |name| columns.next::<u32>(name, count..=count);
    let warps = of_pieces("warp")?;
    let sequences = of_pieces("sequence")?;
    let chunks = of_pieces("chunks")?;
    let damaged = of_pieces("damaged")?;
    let cut = of_pieces("cut")?;
    let with_cut = cut.iter().filter(|cut| **cut == 1).count();
    let mut cuts = columns.next::<u32>("cut time", with_cut..=with_cut)?.into_iter();
    let (mut pieces, mut warp) = (Vec::with_capacity(count), u64::from(header.first_warp));
    for (at, more) in warps.into_iter().enumerate() {
        warp = warp.saturating_add(more.into());
        let (sequence, chunks, cut) = (sequences[at], chunks[at], cut[at]);
        let is_first = at > 0 || more == 0;
        let number = u32::try_from(warp).ok().filter(|warp| is_first && *warp <= header.last_warp);
        let (Some(warp), 1.., 0..=1) = (number, chunks, cut) else {
            return Err(wrong(format!("piece {at} is of warp {warp}, {chunks} chunks, cut {cut}")));
        };
        if sequence.checked_add(chunks).is_none() {
            return Err(wrong(format!("warp {warp} has chunks beyond 2^32")));
        }
        let cut = if cut == 1 { cuts.next() } else { None };
        let groups = PieceGroups { sites: Vec::new(), cut, damaged: damaged[at] };
        pieces.push(Piece { warp, sequence, chunks, groups });
    }
    if warp != u64::from(header.last_warp) {
        return Err(wrong(format!("the last warp is {warp}, the header says {}", header.last_warp)));
    }
    let sites: Vec<u32> = columns.next("site", 0..=usize::from(MAX_SITE))?;
    let of_sites: Vec<u32> = columns.next("pieces of site", sites.len()..=sites.len())?;
    let (mut site, mut left) = (0u32, Left { entries: header.entries as usize });
    let mut first_times = vec![None; count];
    for (more, of_pieces) in sites.into_iter().zip(of_sites) {
        site = site.saturating_add(more);
        let number = u16::try_from(site).ok().filter(|site| *site <= MAX_SITE && more > 0);
        let (Some(number), true) = (number, (1..=header.pieces).contains(&of_pieces)) else {
            return Err(wrong(format!("site {site} in {of_pieces} pieces of {count}")));
        };
        let site = (number, of_pieces as usize);
        for (piece, site) in next_site(site, &mut first_times, &mut left, &contents, &mut columns)? {
            pieces[piece].groups.sites.push(site);
        }
    }
    columns.end()?;
    let accesses: u64 = pieces.iter().flat_map(|piece| &piece.groups.sites).map(SiteGroups::accesses).sum();
    if left.entries != 0 || accesses != header.accesses {
        let (lacks, expected) = (left.entries, header.accesses);
        return Err(wrong(format!(
            "{lacks} entries are not there; {accesses} accesses, the header says {expected}"
        )));
    }
    Ok((header, pieces))
}

#[cfg(test)]
mod tests;
