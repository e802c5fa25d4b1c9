//! Writes `.wtrc` files while a program runs.
//!
//! ```text
//! create ── preamble, META, ORIG, CODE, WAIT
//! write_message ── MORE, CODE, WAIT | SITE | BUFS | TEXT | LABL | STCK | UNTR | HOST  any number of calls
//! begin_launch ── LNCH
//! write_batch  ── FRAM, TIME, …     any number of calls; flushed after each
//! end_tracks ── ACCT, SPAN, …       once for each launch and track
//! write_data, write_data_batch ── DATA, …  any number of calls; end_data ── DACC, …  once for each launch
//! end_early ── ENDS                 once for a launch that failed or was interrupted
//! finish ── INDX, …, TAIL
//! ```
//!
//! Flushed data stays readable if the program fails later: a file without an end opens up to its last
//! complete section.

mod batch;
mod cut;
mod data;
mod encode;
mod ends;
mod error;
mod layout;
mod message;
mod order;
mod runs;
mod state;

use std::collections::BTreeSet;
use std::io::Write;

use warptrace_format::account::WarpAccount;
pub use warptrace_format::file::data::DataChunk;
pub(crate) use warptrace_format::file::data::Tile;
use warptrace_format::file::limits::{MAX_FRAME_BYTES, MAX_INDEX_ENTRIES, MAX_INDEXED_SECTIONS};
use warptrace_format::file::{
    AccountRun, EncodedFrame, IndexEntry, SectionKind, TRAILER_BYTES, Trailer, WrittenLabels, WrittenStacks,
    encode_index, encode_preamble, encode_section,
};
pub use warptrace_format::file::{
    Additions, ChunkRef, Compression, EarlyEnd, LaunchInfo, Metadata, SiteInfo, SourceText,
};

use batch::TrackChunks;
pub(crate) use batch::{Batch, BatchChunk, Payload};
pub(crate) use data::EncodedData;
pub(crate) use encode::{EncodedBatch, Encoder};
use ends::EndPart;
pub use ends::TrackEnd;
pub use error::WriteError;
pub(crate) use layout::get_ready;
pub use layout::{DEFAULT_FRAME_BYTES, RAW_FRAME_BYTES, WriterOptions};
use message::code_sections;
use state::{Launches, launch_entry};

/// Totals of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// File size in bytes.
    pub bytes: u64,
    /// Number of frames. Sections of addresses and values are not frames.
    pub frames: u64,
    /// Number of chunks in the frames. A chunk stored once for several warps counts for each of them.
    pub chunks: u64,
    /// Number of events in all tracks of events.
    pub events: u64,
    /// Bytes of the payloads of these chunks before compression, without times.
    pub payload_bytes: u64,
}

/// Writes one `.wtrc` file.
///
/// Several launches may be open at once. Memory: the index (48 bytes for each listed section), the
/// description of each launch, the next sequence number of each warp on each track that has not ended (8
/// bytes), the labels and call stacks written so far, and the chunks and frames of the call in progress.
///
/// ```
/// use warptrace_format::codec::CodecSpec;
/// use warptrace_format::file::DeviceInfo;
/// use warptrace_format::account::WarpAccount;
/// use warptrace_host::writer::{ChunkRef, LaunchInfo, Metadata, TraceWriter, WriterOptions};
///
/// let device = DeviceInfo::simulator("sim");
/// let metadata = Metadata::new("example", device, vec![CodecSpec::Raw]).with_kernel("k", "");
/// let mut writer = TraceWriter::create(Vec::new(), &metadata, WriterOptions::default())?;
/// writer.begin_launch(&LaunchInfo::new(0, 0, [1, 1, 1], [32, 1, 1], 0)?)?;
/// let payload = &[1, 0, 255, 255, 255, 255];
/// writer.write_chunks(0, &[ChunkRef { track: 0, warp: 0, sequence: 0, events: 1, payload }])?;
/// writer.end_launch(0, 0, &[WarpAccount { attempted: 1, recorded: 1, lost: 0, chunks: 1, finished: 1 }])?;
/// let (bytes, summary) = writer.finish()?;
/// assert_eq!((summary.events, summary.bytes), (1, bytes.len() as u64));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TraceWriter<W> {
    out: W,
    encoder: Encoder,
    launches: Launches,
    labels: WrittenLabels,
    stacks: WrittenStacks,
    index: Vec<IndexEntry>,
    summary: Summary,
    /// Set during a write and kept if it fails: nothing written after that could be read.
    broken: bool,
}

impl<W: Write + Send> TraceWriter<W> {
    /// Begins a file with preamble and metadata, and flushes it. Fails on metadata that a reader would
    /// refuse, a frame size out of range, or an I/O error.
    pub fn create(out: W, metadata: &Metadata, options: WriterOptions) -> Result<Self, WriteError> {
        if let Some(found) = options.frame_bytes.filter(|bytes| !(1..=MAX_FRAME_BYTES).contains(bytes)) {
            return Err(WriteError::FrameBytes { found });
        }
        let body = metadata.encode()?;
        let launches = Launches::new(metadata)?;
        let encoder = Encoder::new(metadata, &options);
        let (labels, stacks) = (WrittenLabels::default(), WrittenStacks::default());
        let (index, summary) = (Vec::new(), Summary::default());
        let mut writer = Self { out, encoder, launches, labels, stacks, index, summary, broken: false };
        writer.put(&encode_preamble())?;
        writer.put(&encode_section(SectionKind::Metadata, &body))?;
        if let Some(origin) = &metadata.origin {
            writer.put(&origin.encode_section())?;
        }
        code_sections(&metadata.locations).iter().try_for_each(|section| writer.put(section))?;
        writer.flush()?;
        Ok(writer)
    }

    /// Begins a launch, before its chunks. Its number must be new, and its kernel in the metadata.
    pub fn begin_launch(&mut self, launch: &LaunchInfo) -> Result<(), WriteError> {
        self.begin_launches(std::slice::from_ref(launch))
    }

    /// Like [`begin_launch`](Self::begin_launch) with one flush for several launches, up to a refused one.
    pub fn begin_launches(&mut self, launches: &[LaunchInfo]) -> Result<(), WriteError> {
        self.check_usable(launches.len())?;
        for launch in launches {
            self.launches.begin(launch)?;
            let section = launch.encode_section();
            let (number, length) = (launch.number(), section.len() as u64);
            let entry = launch_entry(SectionKind::Launch, number, self.summary.bytes, length);
            self.put(&section)?;
            self.index.push(entry);
        }
        self.flush()
    }

    pub(crate) fn encoder(&self) -> Encoder {
        self.encoder.clone()
    }

    pub(crate) fn has_begun(&self, launch: u32) -> bool {
        self.launches.info(launch).is_some()
    }

    /// Writes chunks of one launch, see [`write_batch`](Self::write_batch).
    pub fn write_chunks(&mut self, launch: u32, chunks: &[ChunkRef<'_>]) -> Result<(), WriteError> {
        if self.launches.info(launch).is_none() {
            return Err(WriteError::UnknownLaunch { launch });
        }
        let batch: Vec<_> = chunks.iter().map(|&chunk| (launch, chunk)).collect();
        self.write_batch(&batch)
    }

    /// Writes chunks of any launches, given in any order. Sorts them by launch, track, warp and sequence,
    /// cuts them into frames, compresses the frames in parallel, writes and flushes them. For each launch,
    /// track and warp, sequence numbers must ascend over all calls: chunks taken from the pool in the order
    /// of their reservation fulfil this.
    ///
    /// # Errors
    /// An unknown launch. A chunk of an undeclared or ended track, of a warp that the launch does not record,
    /// without events or bytes, larger than the metadata's chunks, or with a sequence number that does not
    /// ascend. In these cases nothing is written. An I/O error.
    pub fn write_batch(&mut self, chunks: &[(u32, ChunkRef<'_>)]) -> Result<(), WriteError> {
        let launches: BTreeSet<u32> = chunks.iter().map(|(launch, _)| *launch).collect();
        let find = |batch: &mut Batch| {
            let found = (0..).zip(chunks).map(|(at, (launch, chunk))| batch.check(*launch, chunk, at));
            let found = found.collect::<Result<_, _>>()?;
            batch.add(found);
            Ok(())
        };
        self.write(launches, find, |found| [chunks[found.at as usize].1.payload, &[]], &[])
    }

    /// Like [`write_batch`](Self::write_batch), followed by [`end_tracks`](Self::end_tracks).
    fn write<'p>(
        &mut self,
        launches: impl IntoIterator<Item = u32>,
        find: impl FnOnce(&mut Batch) -> Result<(), WriteError> + Send,
        payload: impl Fn(&BatchChunk) -> Payload<'p> + Sync,
        ends: &[TrackEnd<'_>],
    ) -> Result<(), WriteError> {
        let unknown = |launch| WriteError::UnknownLaunch { launch };
        let info = |launch| self.launches.info(launch).ok_or_else(|| unknown(launch));
        let numbers: BTreeSet<u32> = launches.into_iter().chain(ends.iter().map(|end| end.launch)).collect();
        let infos = numbers.into_iter().map(info).collect::<Result<Vec<_>, _>>()?;
        let mut ordered = Vec::new();
        let encoded = self.encoder.encode(&infos, find, payload, None, ends, &mut ordered)?;
        self.put_batch(encoded, ends)
    }

    /// Writes an encoded batch and flushes it. The tracks in `ends` have no chunks after these. If the batch is
    /// refused, writes nothing.
    pub(crate) fn put_batch(
        &mut self,
        encoded: EncodedBatch<'_>,
        ends: &[TrackEnd<'_>],
    ) -> Result<(), WriteError> {
        let EncodedBatch { tracks, frames, ends: sections } = encoded;
        let parts: Vec<_> = tracks.iter().filter_map(TrackChunks::part).collect();
        let repeated = || tracks.iter().filter_map(|track| track.runs.as_ref());
        parts.iter().try_for_each(|part| self.launches.check_declared(part.launch, part.track))?;
        self.launches.accept(&parts)?;
        repeated().try_for_each(|part| self.launches.accept_runs(part))?;
        self.launches.check_ends(ends)?;
        let (frames, sections) = (frames?, sections?);
        self.check_usable(frames.len() + sections.len())?;
        self.launches.end(ends);
        self.launches.note(&parts);
        repeated().for_each(|part| self.launches.note_runs(part));
        frames.iter().try_for_each(|(frame, length)| self.put_frame(frame, *length))?;
        sections.iter().try_for_each(|(part, section, length)| self.put_accounts(part, section, *length))?;
        self.flush()
    }

    /// Writes a frame of `length` bytes, and the sections that follow it in `frame`.
    fn put_frame(&mut self, frame: &EncodedFrame, length: usize) -> Result<(), WriteError> {
        let header = &frame.header;
        let entry = IndexEntry {
            kind: SectionKind::Frame,
            offset: self.summary.bytes,
            length: length as u64,
            launch: header.launch,
            track: header.track,
            first_warp: header.first_warp,
            last_warp: header.last_warp,
            chunks: header.chunks,
            events: header.events,
        };
        self.put(&frame.section)?;
        self.index.push(entry);
        self.summary.frames += 1;
        self.summary.chunks += u64::from(header.chunks);
        self.summary.events += header.events;
        self.summary.payload_bytes += frame.payload_bytes;
        Ok(())
    }

    /// Writes the accounts of one launch and track, one for each recorded warp of the launch, in order. No
    /// chunk of that track may follow. Without accounts, a recorded launch can be read but not verified.
    ///
    /// # Errors
    /// An unknown launch, a track that is not of events, a second call for the same track, a number of
    /// accounts that is not the number of recorded warps, a `finished` other than 0 or 1, or an I/O error.
    pub fn end_launch(
        &mut self,
        launch: u32,
        track: u32,
        accounts: &[WarpAccount],
    ) -> Result<(), WriteError> {
        self.launches.check_declared(launch, track)?;
        self.end_tracks(&[TrackEnd { launch, track, accounts: AccountRun::of(accounts), spans: &[] }])
    }

    /// Like [`end_launch`](Self::end_launch) for each of `ends`, compressed in parallel and flushed once. If
    /// one is refused, nothing is written.
    pub fn end_tracks(&mut self, ends: &[TrackEnd<'_>]) -> Result<(), WriteError> {
        self.write([], |_| Ok(()), |_| [&[][..]; 2], ends)
    }

    /// Writes why a launch did not complete, and flushes. The file then marks warps without accounts as not
    /// finished. Fails on an unknown launch, a second call for the same launch, more calls than a file can
    /// hold, a message that is too long ([`EarlyEnd::failed`] shortens it), or an I/O error.
    pub fn end_early(&mut self, launch: u32, end: &EarlyEnd) -> Result<(), WriteError> {
        self.check_usable(1)?;
        let section = end.encode_section(launch)?;
        self.launches.end_early(launch)?;
        let (at, length) = (self.summary.bytes, section.len() as u64);
        self.put(&section)?;
        self.index.push(launch_entry(SectionKind::EarlyEnd, launch, at, length));
        self.flush()
    }

    /// Writes an accounts section of `length` bytes, and the sections that follow it in `section`.
    fn put_accounts(&mut self, part: &EndPart<'_>, section: &[u8], length: usize) -> Result<(), WriteError> {
        let entry = IndexEntry {
            kind: SectionKind::Accounts,
            offset: self.summary.bytes,
            length: length as u64,
            launch: part.launch,
            track: part.track,
            first_warp: part.first_warp,
            // At least one warp.
            last_warp: part.first_warp + (part.warps - 1),
            chunks: 0,
            events: 0,
        };
        self.put(section)?;
        if part.track < self.data_track() {
            self.index.push(entry);
        }
        Ok(())
    }

    /// Writes the index and the trailer, and flushes. After an I/O error, the file opens as unfinished.
    pub fn finish(mut self) -> Result<(W, Summary), WriteError> {
        self.check_usable(0)?;
        let index_offset = self.summary.bytes;
        let entries = std::mem::take(&mut self.index);
        let (mut first, mut index_sections) = (0u32, 0u32);
        for part in entries.chunks(MAX_INDEX_ENTRIES as usize) {
            self.put(&encode_section(
                SectionKind::Index,
                &encode_index(first, part, self.encoder.compression)?,
            ))?;
            first += part.len() as u32;
            index_sections += 1;
        }
        let file_length = self.summary.bytes + TRAILER_BYTES as u64;
        let trailer = Trailer { index_offset, file_length, entries: first, index_sections };
        self.put(&trailer.encode())?;
        self.flush()?;
        Ok((self.out, self.summary))
    }

    /// Returns the totals written so far.
    pub const fn summary(&self) -> Summary {
        self.summary
    }

    /// Returns an error if an earlier write failed, or the index has no room for `more` entries.
    fn check_usable(&self, more: usize) -> Result<(), WriteError> {
        if self.broken {
            return Err(WriteError::Broken);
        }
        if self.index.len() + more > MAX_INDEXED_SECTIONS as usize {
            return Err(WriteError::TooManySections { limit: MAX_INDEXED_SECTIONS });
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.broken = true;
        self.out.write_all(bytes).map_err(|source| WriteError::Io { offset: self.summary.bytes, source })?;
        self.summary.bytes += bytes.len() as u64;
        self.broken = false;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        self.out.flush().map_err(|source| {
            self.broken = true;
            WriteError::Io { offset: self.summary.bytes, source }
        })
    }
}

#[cfg(test)]
mod tests;
