//! Sections of addresses and values. The index does not list them.

use std::collections::BTreeMap;
use std::io::Write;

use rayon::prelude::*;
use warptrace_format::account::WarpAccount;
use warptrace_format::data::ENTRY_BYTES;
use warptrace_format::file::data::{DataChunk, DataHeader, Piece, encode_data};
use warptrace_format::file::limits::{MAX_DATA_ENTRIES, MAX_PIECES};
use warptrace_format::file::{AccountRun, FormatError, LaunchInfo};

use super::batch::{BatchChunk, Part};
use super::error::WriteError;
use super::{TraceWriter, TrackEnd};

/// Minimum entries of a full section, which ends after a complete warp: 2 MiB as the device writes them.
const SECTION_ENTRIES: usize = 1 << 17;
/// Sections encoded at once, or one per thread if that is more, while as many are written. Bounds memory.
const SECTIONS_AT_ONCE: usize = 16;
/// Minimum chunks that are worth a separate task.
const CHUNKS_AT_ONCE: usize = 1 << 13;

impl<W: Write + Send> TraceWriter<W> {
    /// Returns the number of the data track, with addresses and values. It follows the tracks of events.
    #[must_use]
    pub fn data_track(&self) -> u32 {
        // One or two event tracks.
        self.layouts.len() as u32
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
        self.check_usable(0)?;
        let mut launches: Vec<_> = launches.into_iter().collect();
        let track = self.data_track();
        let infos = launches
            .iter()
            .map(|&(launch, _)| self.launches.info(launch).ok_or(WriteError::UnknownLaunch { launch }));
        let infos = infos.collect::<Result<Vec<_>, _>>()?;
        let order = |(info, (_, chunks)): (&LaunchInfo, &mut (u32, Vec<DataChunk<'_>>))| {
            chunks.par_sort_unstable_by_key(|chunk| (chunk.warp, chunk.sequence));
            let checked = chunks
                .par_iter()
                .with_min_len(CHUNKS_AT_ONCE)
                .find_map_first(|chunk| check(info, track, chunk).err());
            let found = chunks.iter().map(|chunk| BatchChunk::of_warp(chunk.warp, chunk.sequence));
            checked.map_or_else(|| Ok(found.collect::<Vec<BatchChunk>>()), Err)
        };
        let ordered: Vec<_> = infos.par_iter().zip(&mut launches).map(order).collect();
        let ordered = ordered.into_iter().collect::<Result<Vec<_>, _>>()?;
        let parts = launches.iter().zip(&ordered).filter(|(_, found)| !found.is_empty());
        let parts: Vec<_> =
            parts.map(|((launch, _), found)| Part::of_launch(*launch, track, found)).collect();
        self.launches.accept(&parts)?;
        self.launches.note(&parts);

        let mut sections = Vec::new();
        for (launch, chunks) in &launches {
            sections.extend(cut(chunks).into_iter().map(|chunks| (*launch, chunks)));
        }
        let compression = self.options.compression;
        let encode = |sections: &[(u32, &[DataChunk<'_>])]| -> Result<Vec<_>, FormatError> {
            let encode = |(launch, chunks): &(u32, &[DataChunk<'_>])| {
                encode_data(*launch, &Piece::of_chunks(chunks), compression)
            };
            sections.par_iter().with_max_len(1).map(encode).collect()
        };
        let mut made = Vec::new();
        for sections in sections.chunks(SECTIONS_AT_ONCE.max(rayon::current_num_threads())) {
            // Writes the previous sections meanwhile.
            let (next, written) = rayon::join(|| encode(sections), || self.put_all(&made));
            written?;
            made = next?;
        }
        self.put_all(&made)?;
        self.flush()
    }

    fn put_all(&mut self, sections: &[(Vec<u8>, DataHeader)]) -> Result<(), WriteError> {
        sections.iter().try_for_each(|(section, _)| self.put(section))
    }

    /// Writes the accounts of a launch's data track, like [`end_launch`](Self::end_launch), but of accesses.
    pub fn end_data(&mut self, launch: u32, accounts: &[WarpAccount]) -> Result<(), WriteError> {
        let accounts = AccountRun::of(accounts);
        self.end_tracks(&[TrackEnd { launch, track: self.data_track(), accounts, spans: &[] }])
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
    for (at, chunk) in chunks.iter().enumerate() {
        let more = chunk.entries.len() / ENTRY_BYTES;
        let before = at.checked_sub(1).map(|at| &chunks[at]);
        let is_next = before.is_none_or(|before| before.warp != chunk.warp);
        let is_gap = before.is_none_or(|before| before.sequence.checked_add(1) != Some(chunk.sequence));
        let is_full = entries + more > MAX_DATA_ENTRIES as usize || warps == MAX_PIECES;
        if at > from && (is_full || (is_next && entries >= SECTION_ENTRIES)) {
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
