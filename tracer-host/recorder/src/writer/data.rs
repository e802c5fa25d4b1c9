//! Sections of addresses and values. The index does not list them.

use std::collections::BTreeMap;
use std::io::Write;

use rayon::prelude::*;
use warptrace_format::account::WarpAccount;
use warptrace_format::data::ENTRY_BYTES;
use warptrace_format::file::data::{DataChunk, encode_chunks};
use warptrace_format::file::limits::{MAX_DATA_ENTRIES, MAX_PIECES};
use warptrace_format::file::{AccountRun, FormatError, LaunchInfo};

use super::batch::{BatchChunk, Part};
use super::error::WriteError;
use super::{Encoder, TraceWriter, TrackEnd};

/// Minimum entries of a full section, which ends after a complete warp: as many as give all cores work, within
/// limits for the cost of columns and for readers of single warps.
const SECTIONS: usize = 32;
const LEAST_SECTION_ENTRIES: usize = 1 << 13;
const MOST_SECTION_ENTRIES: usize = 1 << 17;
/// Minimum chunks that are worth a separate task.
const CHUNKS_AT_ONCE: usize = 1 << 13;

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
        let encoded = self.encoder.encode_data(launches, |launch| self.launches.info(launch))?;
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
    /// Encodes the chunks of launches in rayon's current pool.
    pub(crate) fn encode_data(
        &self,
        launches: BTreeMap<u32, Vec<DataChunk<'_>>>,
        info: impl Fn(u32) -> Option<LaunchInfo>,
    ) -> Result<EncodedData, WriteError> {
        let mut launches: Vec<_> = launches.into_iter().filter(|(_, chunks)| !chunks.is_empty()).collect();
        let infos =
            launches.iter().map(|&(launch, _)| info(launch).ok_or(WriteError::UnknownLaunch { launch }));
        let infos = infos.collect::<Result<Vec<_>, _>>()?;
        let order = |(info, (launch, chunks)): (&LaunchInfo, &mut (u32, Vec<DataChunk<'_>>))| {
            chunks.par_sort_unstable_by_key(|chunk| (chunk.warp, chunk.sequence));
            let checked = chunks
                .par_iter()
                .with_min_len(CHUNKS_AT_ONCE)
                .find_map_first(|chunk| check(info, self.tracks(), chunk).err());
            let found = chunks.iter().map(|chunk| BatchChunk::of_warp(chunk.warp, chunk.sequence));
            checked.map_or_else(|| Ok((*launch, found.collect())), Err)
        };
        let ordered: Result<Vec<_>, _> = infos.par_iter().zip(&mut launches).map(order).collect();
        let mut sections = Vec::new();
        for (launch, chunks) in &launches {
            sections.extend(cut(chunks).into_iter().map(|chunks| (*launch, chunks)));
        }
        let encode = |(launch, chunks): &(u32, &[DataChunk<'_>])| -> Result<_, FormatError> {
            Ok(encode_chunks(*launch, chunks, self.compression)?.0)
        };
        let ordered = ordered?;
        let sections: Result<Vec<_>, _> = sections.par_iter().with_max_len(1).map(encode).collect();
        Ok(EncodedData { ordered, sections: sections? })
    }
}

fn check(info: &LaunchInfo, track: u32, chunk: &DataChunk<'_>) -> Result<(), WriteError> {
    let (launch, &DataChunk { warp, sequence, entries }) = (info.number(), chunk);
    if warp >= info.warps() {
        return Err(WriteError::UnknownWarp { launch, track, warp, warps: info.warps() });
    }
    if !info.is_chosen(warp) {
        return Err(WriteError::NotChosen { launch, track, warp });
    }
    let (bytes, capacity) = (entries.len(), MAX_DATA_ENTRIES * ENTRY_BYTES as u32);
    if bytes == 0 || !bytes.is_multiple_of(ENTRY_BYTES) {
        return Err(WriteError::EmptyChunk { launch, track, warp, sequence });
    }
    if bytes > capacity as usize {
        return Err(WriteError::PayloadTooLarge { launch, track, warp, sequence, bytes, capacity });
    }
    Ok(())
}

fn cut<'c, 'e>(chunks: &'c [DataChunk<'e>]) -> Vec<&'c [DataChunk<'e>]> {
    let (mut sections, mut from, mut entries, mut warps) = (Vec::new(), 0, 0, 0);
    let all: usize = chunks.iter().map(|chunk| chunk.entries.len() / ENTRY_BYTES).sum();
    let least = (all / SECTIONS).clamp(LEAST_SECTION_ENTRIES, MOST_SECTION_ENTRIES);
    for (at, chunk) in chunks.iter().enumerate() {
        let more = chunk.entries.len() / ENTRY_BYTES;
        let before = at.checked_sub(1).map(|at| &chunks[at]);
        let is_next = before.is_none_or(|before| before.warp != chunk.warp);
        let is_gap = before.is_none_or(|before| before.sequence.checked_add(1) != Some(chunk.sequence));
        let is_full = entries + more > MAX_DATA_ENTRIES as usize || warps == MAX_PIECES;
        if at > from && (is_full || (is_next && entries >= least)) {
            sections.push(&chunks[from..at]);
            (from, entries, warps) = (at, 0, 0);
        }
        entries += more;
        warps += u32::from(is_next || is_gap);
    }
    if from < chunks.len() {
        sections.push(&chunks[from..]);
    }
    sections
}
