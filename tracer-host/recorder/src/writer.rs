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
mod ends;
mod error;
mod layout;
mod message;
mod order;
mod runs;
mod state;

use std::collections::BTreeSet;
use std::io::Write;

use rayon::prelude::*;
use warptrace_abi::log::TIME_SHIFT;
use warptrace_format::account::WarpAccount;
pub use warptrace_format::file::data::DataChunk;
use warptrace_format::file::limits::{
    MAX_FRAME_BYTES, MAX_FRAME_CHUNKS, MAX_INDEX_ENTRIES, MAX_INDEXED_SECTIONS,
};
use warptrace_format::file::{
    AccountRun, DeviceKind, EncodedFrame, FormatError, FrameTimes, IndexEntry, SectionKind, TRAILER_BYTES,
    Tie, Trailer, WrittenLabels, WrittenStacks, encode_frame_of, encode_index, encode_preamble,
    encode_section,
};
pub use warptrace_format::file::{
    Additions, ChunkRef, Compression, EarlyEnd, LaunchInfo, Metadata, SiteInfo, SourceText,
};

use crate::session::Classes;
pub(crate) use batch::{Batch, BatchChunk, Payload};
use batch::{Part, TrackChunks};
pub use ends::TrackEnd;
use ends::{EndPart, cut_ends, encode_ends};
pub use error::WriteError;
use layout::Layout;
pub(crate) use layout::get_ready;
pub use layout::{DEFAULT_FRAME_BYTES, RAW_FRAME_BYTES, WriterOptions};
use message::code_sections;
use runs::Repeated;
use state::{Launches, launch_entry};

/// Frame bytes that are compressed before they are written. Bounds the writer's memory.
const BYTES_AT_ONCE: u64 = 64 << 20;

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
    options: WriterOptions,
    layouts: Vec<Layout>,
    launches: Launches,
    labels: WrittenLabels,
    stacks: WrittenStacks,
    index: Vec<IndexEntry>,
    summary: Summary,
    /// Clock cycles per unit of time.
    step: u32,
    /// Memory for the ordered chunks of a batch, reused because new allocations are slow.
    ordered: Vec<BatchChunk>,
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
        let layouts = metadata.tracks.iter().map(|codec| Layout::new(*codec, &options)).collect();
        let (labels, stacks) = (WrittenLabels::default(), WrittenStacks::default());
        let (index, ordered) = (Vec::new(), Vec::new());
        let summary = Summary::default();
        let step = match metadata.device.kind {
            DeviceKind::Simulator => 1,
            _ => 1 << TIME_SHIFT,
        };
        let mut writer = Self {
            out,
            options,
            layouts,
            launches,
            labels,
            stacks,
            index,
            summary,
            step,
            ordered,
            broken: false,
        };
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

    pub(crate) fn launch(&self, launch: u32) -> Option<LaunchInfo> {
        self.launches.info(launch)
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
        self.write(launches, find, |found| [chunks[found.at as usize].1.payload, &[]], None, &[])
    }

    /// Like [`write_batch`](Self::write_batch), followed by [`end_tracks`](Self::end_tracks). The accounts
    /// are compressed while the chunks are written. `launches` ascend. `find` finds their chunks, and
    /// `payload` returns the payload of a chunk. With `classes`, each stream gets the chunks of its class.
    pub(crate) fn write<'p, E: From<WriteError> + Send>(
        &mut self,
        launches: impl IntoIterator<Item = u32>,
        find: impl FnOnce(&mut Batch) -> Result<(), E> + Send,
        payload: impl Fn(&BatchChunk) -> Payload<'p> + Sync,
        classes: Option<&Classes>,
        ends: &[TrackEnd<'_>],
    ) -> Result<(), E> {
        let mut batch = Batch::new(launches.into_iter(), &self.launches)?;
        let cut = cut_ends(ends, &self.launches);
        let compression = self.options.compression;
        let chunks = || -> Result<(), E> {
            find(&mut batch)?;
            let mut ordered = std::mem::take(&mut self.ordered);
            batch.order(&mut ordered);
            let tracks = batch.tracks(&ordered, classes);
            let parts: Vec<_> = tracks.iter().filter_map(TrackChunks::part).collect();
            let repeated: Vec<_> = tracks.iter().filter_map(|track| track.runs.as_ref()).collect();
            self.write_parts(&parts, &repeated, &payload, ends, cut.len())?;
            self.ordered = ordered;
            Ok(())
        };
        let (chunks, sections) = rayon::join(chunks, || encode_ends(&cut, compression));
        chunks?;
        for (part, (section, length)) in cut.iter().zip(&sections.map_err(WriteError::from)?) {
            self.put_accounts(part, section, *length)?;
        }
        Ok(self.flush()?)
    }

    /// Writes the chunks of `parts` and `repeated`. The tracks in `ends` have no chunks after these. The
    /// index needs room for `more` sections after the frames.
    fn write_parts<'p>(
        &mut self,
        parts: &[Part<'_>],
        repeated: &[&Repeated<'_>],
        payload: &(impl Fn(&BatchChunk) -> Payload<'p> + Sync),
        ends: &[TrackEnd<'_>],
        more: usize,
    ) -> Result<(), WriteError> {
        parts.iter().try_for_each(|part| self.launches.check_declared(part.launch, part.track))?;
        self.launches.accept(parts)?;
        repeated.iter().try_for_each(|part| self.launches.accept_runs(part))?;
        let frames: Vec<_> = parts.iter().flat_map(|part| self.cut(part)).collect();
        let layout = |part: &Repeated<'_>| self.layouts[part.track as usize];
        let of_runs: Vec<_> = repeated
            .par_iter()
            .flat_map_iter(|part| part.cut(|bytes| layout(part).frame_bytes(bytes)))
            .collect();
        self.check_usable(frames.len() + of_runs.len() + more)?;
        self.launches.end(ends)?;
        self.launches.note(parts);
        repeated.iter().for_each(|part| self.launches.note_runs(part));

        let (layouts, step) = (self.layouts.clone(), self.step);
        let encode = |part: &Repeated<'_>| part.encode(payload, layouts[part.track as usize].compression);
        let encoded: Result<Vec<_>, FormatError> = of_runs.par_iter().with_max_len(1).map(encode).collect();
        encoded?.iter().try_for_each(|frame| self.put_frame(frame, frame.section.len()))?;
        let encode = |(part, _): &(Part<'_>, u64)| {
            let compression = layouts[part.track as usize].compression;
            let chunks = part.chunks.iter().map(|found| part.chunk(found, payload(found)[0]));
            let mut frame = encode_frame_of(part.launch, part.track, chunks, compression)?;
            let index_length = frame.section.len();
            if part.chunks.iter().any(|found| found.times[0] != 0) {
                let times = part.chunks.iter().map(|found| payload(found)[1]);
                let tie = Tie::to_encoded(&frame.section);
                frame.section.extend(FrameTimes::encode_section(tie, times, step, compression)?);
            }
            Ok((frame, index_length))
        };
        let mut rest = &frames[..];
        while !rest.is_empty() {
            let (now, after) = rest.split_at(at_once(rest));
            rest = after;
            // Frames take long, so each is a separate task.
            let encoded: Result<Vec<_>, FormatError> = now.par_iter().with_max_len(1).map(&encode).collect();
            encoded?.iter().try_for_each(|(frame, length)| self.put_frame(frame, *length))?;
        }
        Ok(())
    }

    /// Cuts chunks into frames, each with its size in bytes.
    fn cut<'b>(&self, part: &Part<'b>) -> Vec<(Part<'b>, u64)> {
        let layout = self.layouts[part.track as usize];
        let frames = cut::cut(part.chunks, |bytes| layout.frame_bytes(bytes), MAX_FRAME_CHUNKS as usize);
        frames.into_iter().map(|(chunks, bytes)| (part.with_chunks(chunks), bytes)).collect()
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
        self.write([], |_| Ok(()), |_| [&[][..]; 2], None, ends)
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
                &encode_index(first, part, self.options.compression)?,
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

/// Returns how many of the frames to compress before they are written; at least one if `frames` is not empty.
fn at_once(frames: &[(Part<'_>, u64)]) -> usize {
    let mut sum = 0;
    let fits = |(_, bytes): &&(Part<'_>, u64)| {
        let fits = sum < BYTES_AT_ONCE;
        sum += *bytes;
        fits
    };
    frames.iter().take_while(fits).count()
}

#[cfg(test)]
mod tests;
