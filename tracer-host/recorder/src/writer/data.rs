//! Sections of addresses and values. The index does not list them.

use std::collections::BTreeMap;
use std::io::Write;

use rayon::prelude::*;
use warptrace_format::account::WarpAccount;
use warptrace_format::data::ENTRY_BYTES;
use warptrace_format::data::tile::{MAX_TILE_ENTRIES, TileChunk};
use warptrace_format::file::data::{DataChunk, Tile, cut_into_tiles, encode_data};
use warptrace_format::file::limits::{MAX_DATA_CHUNKS, MAX_DATA_ENTRIES};
use warptrace_format::file::{AccountRun, FormatError, LaunchInfo};

use super::batch::{BatchChunk, Part};
use super::error::WriteError;
use super::{Encoder, TraceWriter, TrackEnd};

/// Minimum entries of a full section: as many as give all cores work, within limits for the cost of sections
/// and for readers of single warps.
const SECTIONS: usize = 32;
const LEAST_SECTION_ENTRIES: usize = 1 << 13;
const MOST_SECTION_ENTRIES: usize = 1 << 17;

impl<W: Write + Send> TraceWriter<W> {
    /// Returns the number of the data track, with addresses and values. It follows the tracks of events.
    #[must_use]
    pub fn data_track(&self) -> u32 {
        self.encoder.tracks()
    }

    /// Writes chunks of a launch's data track, in any order, and flushes. For each warp, sequence numbers
    /// ascend over all calls. Entries that no kernel can write are left out and counted in the file.
    ///
    /// # Errors
    /// An unknown launch, or one whose data accounts were written. A chunk of a warp that the launch does not
    /// record, without entries, with a partial entry, or with a sequence number that does not ascend. In
    /// these cases nothing is written. An I/O error.
    pub fn write_data(&mut self, launch: u32, chunks: &[DataChunk<'_>]) -> Result<(), WriteError> {
        self.write_data_batch(BTreeMap::from([(launch, chunks.to_vec())]))
    }

    /// Like [`write_data`](Self::write_data) for several launches. Encodes their sections in rayon's current
    /// pool, and writes them in the order of launches. If a chunk is refused, writes nothing.
    pub fn write_data_batch(
        &mut self,
        launches: BTreeMap<u32, Vec<DataChunk<'_>>>,
    ) -> Result<(), WriteError> {
        let track = self.data_track();
        let mut tiles = BTreeMap::new();
        for (launch, mut chunks) in launches {
            chunks.sort_unstable_by_key(|chunk| (chunk.warp, chunk.sequence));
            chunks.iter().try_for_each(|chunk| check_entries(launch, track, chunk))?;
            let of_tiles: Vec<_> = cut_into_tiles(&chunks).collect();
            tiles.insert(launch, of_tiles.into_par_iter().map(Tile::encode).collect());
        }
        let encoded = self.encoder.encode_data(tiles, |launch| self.launches.info(launch))?;
        self.put_data(&encoded)
    }

    /// Writes encoded sections and flushes. If a chunk is refused, writes nothing.
    pub(crate) fn put_data(&mut self, encoded: &EncodedData) -> Result<(), WriteError> {
        let EncodedData { ordered, sections } = encoded;
        self.check_usable(0)?;
        let track = self.data_track();
        let parts: Vec<_> =
            ordered.iter().map(|(launch, found)| Part::of_launch(*launch, track, found)).collect();
        self.launches.accept(&parts)?;
        self.launches.note(&parts);
        sections.iter().try_for_each(|section| self.put(section))?;
        self.flush()
    }

    /// Writes the accounts of a launch's data track, like [`end_launch`](Self::end_launch), but of accesses.
    pub fn end_data(&mut self, launch: u32, accounts: &[WarpAccount]) -> Result<(), WriteError> {
        let accounts = AccountRun::of(accounts);
        self.end_tracks(&[TrackEnd { launch, track: self.data_track(), accounts, spans: &[] }])
    }
}

/// Sections of addresses and values before they are checked against the file and written.
#[derive(Debug, Default)]
pub(crate) struct EncodedData {
    /// The chunks of each launch.
    ordered: Vec<(u32, Vec<BatchChunk>)>,
    sections: Vec<Vec<u8>>,
}

impl Encoder {
    /// Encodes the tiles of launches in rayon's current pool.
    pub(crate) fn encode_data(
        &self,
        launches: BTreeMap<u32, Vec<Tile<'_>>>,
        info: impl Fn(u32) -> Option<LaunchInfo>,
    ) -> Result<EncodedData, WriteError> {
        let mut launches: Vec<_> = launches.into_iter().filter(|(_, tiles)| !tiles.is_empty()).collect();
        let infos =
            launches.iter().map(|&(launch, _)| info(launch).ok_or(WriteError::UnknownLaunch { launch }));
        let infos = infos.collect::<Result<Vec<_>, _>>()?;
        let order = |(info, (launch, tiles)): (&LaunchInfo, &mut (u32, Vec<Tile<'_>>))| {
            tiles.sort_by_key(|tile| tile.chunks.first().map(|chunk| (chunk.warp, chunk.sequence)));
            let chunks = || tiles.iter().flat_map(|tile| &tile.chunks);
            chunks().try_for_each(|chunk| check_warp(info, self.tracks(), chunk.warp))?;
            let mut found: Vec<_> = chunks().map(|chunk| (chunk.warp, chunk.sequence)).collect();
            found.sort_unstable();
            let found = found.into_iter().map(|(warp, sequence)| BatchChunk::of_warp(warp, sequence));
            Ok((*launch, found.collect()))
        };
        let ordered: Result<Vec<_>, WriteError> = infos.par_iter().zip(&mut launches).map(order).collect();
        let mut sections = Vec::new();
        for (launch, tiles) in &launches {
            sections.extend(cut(tiles).into_iter().map(|tiles| (*launch, tiles)));
        }
        let encode = |(launch, tiles): &(u32, &[Tile<'_>])| -> Result<_, FormatError> {
            Ok(encode_data(*launch, tiles, self.compression)?.0)
        };
        let ordered = ordered?;
        let sections: Result<Vec<_>, _> = sections.par_iter().with_max_len(1).map(encode).collect();
        Ok(EncodedData { ordered, sections: sections? })
    }
}

fn check_warp(info: &LaunchInfo, track: u32, warp: u32) -> Result<(), WriteError> {
    let launch = info.number();
    if warp >= info.warps() {
        return Err(WriteError::UnknownWarp { launch, track, warp, warps: info.warps() });
    }
    if !info.is_chosen(warp) {
        return Err(WriteError::NotChosen { launch, track, warp });
    }
    Ok(())
}

fn check_entries(launch: u32, track: u32, chunk: &DataChunk<'_>) -> Result<(), WriteError> {
    let &DataChunk { warp, sequence, entries } = chunk;
    let (bytes, capacity) = (entries.len(), MAX_TILE_ENTRIES * ENTRY_BYTES as u32);
    if bytes == 0 || !bytes.is_multiple_of(ENTRY_BYTES) {
        return Err(WriteError::EmptyChunk { launch, track, warp, sequence });
    }
    if bytes > capacity as usize {
        return Err(WriteError::PayloadTooLarge { launch, track, warp, sequence, bytes, capacity });
    }
    Ok(())
}

fn cut<'c, 'e>(tiles: &'c [Tile<'e>]) -> Vec<&'c [Tile<'e>]> {
    let count = |tile: &Tile<'_>| {
        tile.chunks.iter().map(|TileChunk { entries, .. }| *entries as usize).sum::<usize>()
    };
    let all: usize = tiles.iter().map(count).sum();
    let least = (all / SECTIONS).clamp(LEAST_SECTION_ENTRIES, MOST_SECTION_ENTRIES);
    let (mut sections, mut from, mut entries, mut chunks) = (Vec::new(), 0, 0, 0);
    for (at, tile) in tiles.iter().enumerate() {
        let (more, more_chunks) = (count(tile), tile.chunks.len());
        let is_over =
            entries + more > MAX_DATA_ENTRIES as usize || chunks + more_chunks > MAX_DATA_CHUNKS as usize;
        if at > from && (is_over || entries >= least) {
            sections.push(&tiles[from..at]);
            (from, entries, chunks) = (at, 0, 0);
        }
        entries += more;
        chunks += more_chunks;
    }
    if from < tiles.len() {
        sections.push(&tiles[from..]);
    }
    sections
}
