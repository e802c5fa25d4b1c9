//! Tiles of a section: entries of chunks, sorted by site, as columns ([`crate::data::tile`]).

use std::borrow::Cow;

use warptrace_columns::{Element, Layout, Packing, Shape, bits, stream_vbyte};

use super::super::contents::{Columns, Contents};
use super::super::error::FormatError;
use super::DataChunk;
use crate::data::tile::{
    Column, MAX_TILE_CHUNKS, MAX_TILE_ENTRIES, PARAMETER_BYTES, Part, Placed, TABLE_BYTES, TileChunk,
    restore, shift_of,
};
use crate::data::{DataEntry, ENTRY_BYTES};

/// A tile: entries of chunks as columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile<'a> {
    /// The chunks.
    pub chunks: Vec<TileChunk>,
    /// Accesses of the entries.
    pub accesses: u64,
    pub(super) columns: Cow<'a, [u8]>,
}

/// Cuts chunks of a launch into the chunks of tiles. A chunk with more than [`MAX_TILE_ENTRIES`] entries is
/// alone in a tile, which [`Tile::encode`] refuses.
pub fn cut_into_tiles<'c, 'e>(chunks: &'c [DataChunk<'e>]) -> impl Iterator<Item = &'c [DataChunk<'e>]> {
    let mut rest = chunks;
    std::iter::from_fn(move || {
        let mut entries = 0;
        let fits = |chunk: &&DataChunk<'_>| {
            entries += chunk.entries.len() / ENTRY_BYTES;
            entries <= MAX_TILE_ENTRIES as usize
        };
        let most = rest.iter().take(MAX_TILE_CHUNKS as usize).take_while(fits).count().max(1);
        let (tile, behind) = rest.split_at_checked(most)?;
        rest = behind;
        Some(tile)
    })
}

impl<'a> Tile<'a> {
    /// Encodes the entries of chunks. Panics for more than [`MAX_TILE_CHUNKS`] chunks or [`MAX_TILE_ENTRIES`]
    /// entries.
    #[must_use]
    pub fn encode(chunks: &[DataChunk<'_>]) -> Self {
        let (mut table, mut placed) = (Vec::with_capacity(chunks.len()), Vec::new());
        for (number, &DataChunk { warp, sequence, entries }) in (0..).zip(chunks) {
            let mut found = TileChunk { warp, sequence, ..TileChunk::default() };
            for entry in entries.as_chunks::<ENTRY_BYTES>().0 {
                let words = entry.as_chunks().0;
                let words = std::array::from_fn(|at| u32::from_le_bytes(words[at]));
                match DataEntry::from_words(words) {
                    None => found.damaged += 1,
                    Some(DataEntry::Cut { time }) => found.cut = Some(time),
                    Some(_) => {
                        found.entries += 1;
                        placed.push(Placed { chunk: number, words });
                    }
                }
            }
            table.push(found);
        }
        let entries: usize = chunks.iter().map(|chunk| chunk.entries.len() / ENTRY_BYTES).sum();
        assert!(table.len() <= MAX_TILE_CHUNKS as usize && entries <= MAX_TILE_ENTRIES as usize, "a tile");
        placed.sort_by_key(Placed::site);
        let accesses = placed.iter().map(|entry| u64::from(entry.accesses())).sum();
        Self { chunks: table, accesses, columns: encode(&placed).into() }
    }

    /// Reads the payload of a tile of `chunks` chunks from a device. `None` if it is shorter than its table, or if
    /// the tile would have too many chunks or entries.
    #[must_use]
    pub fn read(chunks: u32, accesses: u32, payload: &'a [u8]) -> Option<Self> {
        let table = (chunks as usize).checked_mul(TABLE_BYTES as usize)?;
        let (table, columns) = payload.split_at_checked(table)?;
        let chunk = |words: &[[u8; 4]; 4]| TileChunk::from_words(words.map(u32::from_le_bytes));
        let chunks: Vec<TileChunk> = table.as_chunks().0.as_chunks().0.iter().map(chunk).collect();
        let entries: u32 = chunks.iter().map(|chunk| chunk.entries).sum();
        let fits = (1..=MAX_TILE_CHUNKS as usize).contains(&chunks.len()) && entries <= MAX_TILE_ENTRIES;
        if !fits || columns.len() < PARAMETER_BYTES as usize {
            return None;
        }
        Some(Self { chunks, accesses: accesses.into(), columns: columns.into() })
    }

    /// Appends the payload that [`read`](Self::read) reads.
    pub fn write(&self, payload: &mut Vec<u8>) {
        let words = self.chunks.iter().flat_map(|chunk| chunk.to_words());
        payload.extend(words.flat_map(u32::to_le_bytes));
        payload.extend_from_slice(&self.columns);
    }
}

fn encode(entries: &[Placed]) -> Vec<u8> {
    let (values, headers): (Vec<Placed>, Vec<Placed>) = entries.iter().partition(|entry| entry.is_values());
    let shift =
        shift_of(each(&values, |before, entry| entry.alignment(before)).fold(0, |all, bits| all | bits));
    let (mut columns, mut predictions) = (Vec::new(), 0);
    for column in Column::ALL {
        let part = match column.part() {
            Part::All => entries,
            Part::Headers => &headers,
            Part::Values => &values,
        };
        let residuals = |by| each(part, move |before, entry| column.residual(by, shift, before, entry));
        let by = if column.is_wide() {
            smallest(column, |by| residuals(by).collect::<Vec<u64>>(), &mut columns)
        } else {
            smallest(column, |by| residuals(by).map(u32::truncate).collect(), &mut columns)
        };
        predictions = predictions << 4 | by;
    }
    [&[shift, predictions].map(|number| number.to_le_bytes()[0]), &columns[..]].concat()
}

/// Maps each entry of a column, with the entry before it.
fn each<T>(entries: &[Placed], value: impl Fn(&Placed, &Placed) -> T) -> impl Iterator<Item = T> {
    let mut before = Placed::default();
    entries.iter().map(move |entry| value(&std::mem::replace(&mut before, *entry), entry))
}

/// Appends the smallest column of all predictions and packings; of equal ones, the first. Returns the prediction.
fn smallest<T: Element>(column: Column, values: impl Fn(u32) -> Vec<T>, to: &mut Vec<u8>) -> u32 {
    let sized = (0..column.predictions()).flat_map(|by| {
        let values = values(by);
        let sizes = [
            (Packing::Bits, bits::encoded_len(&values)),
            (Packing::StreamVByte, stream_vbyte::encoded_len(&values)),
        ];
        sizes.map(|(packing, size)| (size, by, packing))
    });
    let (_, by, packing) = sized.min_by_key(|(size, ..)| *size).expect("a column has a prediction");
    let shape = Shape::new(0, 1).expect("the values themselves");
    Layout { shape, zero_runs: false, packing }.encode(&values(by), to);
    by
}

/// Appends the entries of a tile, chunk by chunk, and in a chunk by site.
pub(super) fn decode_tile(
    chunks: &[TileChunk],
    contents: &Contents,
    columns: &mut Columns<'_>,
    to: &mut Vec<[u32; 4]>,
) -> Result<(), FormatError> {
    let wrong = |message: String| contents.wrong(message);
    let &[shift, predictions] = columns.bytes("shift and predictions", PARAMETER_BYTES as usize)? else {
        return Err(wrong("a tile has no shift".to_owned()));
    };
    let by = (u32::from(predictions >> 4), u32::from(predictions & 0xf));
    if shift > 63 || by.0 >= Column::Step.predictions() || by.1 >= Column::Base.predictions() {
        return Err(wrong(format!("a tile has the shift {shift} and the predictions {predictions:#x}")));
    }
    let all: usize = chunks.iter().map(|chunk| chunk.entries as usize).sum();
    if chunks.len() > MAX_TILE_CHUNKS as usize || all > MAX_TILE_ENTRIES as usize {
        return Err(wrong(format!("a tile has {} chunks and {all} entries", chunks.len())));
    }
    let mut narrow = |name, values: usize| columns.next::<u32>(name, values..=values);
    let (sites, of_chunks, kinds) = (narrow("site", all)?, narrow("chunk", all)?, narrow("kind", all)?);
    let headers = kinds.iter().filter(|kind| **kind < 2).count();
    let mut of_headers =
        [narrow("mask", headers)?, narrow("time", headers)?, narrow("spread", headers)?].map(Vec::into_iter);
    let mut of_values =
        [narrow("owner", all - headers)?, narrow("count", all - headers)?].map(Vec::into_iter);
    let mut wide = |name| columns.next::<u64>(name, all - headers..=all - headers);
    let (mut steps, mut bases) = (wide("step")?.into_iter(), wide("base")?.into_iter());

    let (mut next, mut ends) = (Vec::with_capacity(chunks.len()), to.len());
    for chunk in chunks {
        next.push(ends);
        ends += chunk.entries as usize;
    }
    let ends: Vec<usize> = next.iter().skip(1).copied().chain([ends]).collect();
    to.resize(to.len() + all, [0; 4]);
    let [mut before, mut header, mut values] = [Placed::default(); 3];
    for ((site, chunk), kind) in sites.into_iter().zip(of_chunks).zip(kinds) {
        let mut residuals = [site.into(), chunk.into(), kind.into(), 0, 0, 0, 0, 0, 0, 0];
        if kind < 2 {
            let found = of_headers.each_mut().map(|column| column.next().unwrap_or(0).into());
            residuals[3..6].copy_from_slice(&found);
        } else {
            let [owner, count] = of_values.each_mut().map(|column| column.next().unwrap_or(0).into());
            residuals[6..].copy_from_slice(&[
                owner,
                count,
                steps.next().unwrap_or(0),
                bases.next().unwrap_or(0),
            ]);
        }
        let entry = restore(residuals, by, shift.into(), [&before, &header, &values]);
        let Some(entry) =
            entry.filter(|entry| next.get(entry.chunk as usize) < ends.get(entry.chunk as usize))
        else {
            return Err(wrong(format!(
                "an entry is none that a kernel writes: {residuals:x?} behind {before:x?}"
            )));
        };
        let place = &mut next[entry.chunk as usize];
        to[*place] = entry.words;
        *place += 1;
        before = entry;
        *(if entry.is_values() { &mut values } else { &mut header }) = entry;
    }
    Ok(())
}
