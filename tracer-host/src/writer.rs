//! Writes `.wtrc` files while a program runs.
//!
//! ```text
//! create ── preamble, META
//! begin_launch ── LNCH
//! write_batch  ── FRAM, FRAM, …     any number of calls; flushed after each
//! end_tracks ── ACCT, …             once for each launch and track
//! finish ── INDX, …, TAIL
//! ```
//!
//! Everything that has been flushed can be read again, whatever happens to the program afterwards: a file without
//! its end opens up to its last whole frame.

mod error;
mod state;

use std::io::Write;

use rayon::prelude::*;
use warptrace_format::file::limits::{
    MAX_ACCOUNTS, MAX_FRAME_BYTES, MAX_FRAME_CHUNKS, MAX_INDEX_ENTRIES, MAX_INDEXED_SECTIONS,
};
use warptrace_format::file::{
    AccountsHeader, EncodedFrame, IndexEntry, SectionKind, TRAILER_BYTES, Trailer, encode_accounts,
    encode_frame, encode_index, encode_preamble, encode_section,
};
pub use warptrace_format::file::{ChunkRef, Compression, LaunchInfo, Metadata};
use warptrace_format::pool::WarpAccount;

pub use error::WriteError;
use state::{Launches, launch_entry};

/// Size of a frame before compression when nothing else is asked for: 1 MiB.
pub const DEFAULT_FRAME_BYTES: u32 = 1 << 20;
/// Frames that are compressed before they are written, which bounds the writer's memory: twice this many frames.
const FRAMES_AT_ONCE: usize = 32;

/// How a [`TraceWriter`] lays out its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterOptions {
    /// Compression of frames and accounting.
    pub compression: Compression,
    /// Bytes of table and payloads after which a frame is closed, 1..=[`MAX_FRAME_BYTES`]. A frame holds at least
    /// one chunk, so it may be larger than this by less than a chunk.
    pub frame_bytes: u32,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self { compression: Compression::default(), frame_bytes: DEFAULT_FRAME_BYTES }
    }
}

impl WriterOptions {
    /// The same with another compression.
    #[must_use]
    pub const fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// The same with another size of frames, in bytes.
    #[must_use]
    pub const fn with_frame_bytes(mut self, frame_bytes: u32) -> Self {
        self.frame_bytes = frame_bytes;
        self
    }
}

/// What a finished file holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Bytes of the file.
    pub bytes: u64,
    /// Frames.
    pub frames: u64,
    /// Chunks.
    pub chunks: u64,
    /// Events, in all tracks.
    pub events: u64,
    /// Bytes of all payloads, as the device wrote them.
    pub payload_bytes: u64,
}

/// The accounting that ends one track of a launch.
#[derive(Clone, Copy, Debug)]
pub struct TrackEnd<'a> {
    /// The launch.
    pub launch: u32,
    /// The track.
    pub track: u32,
    /// One account for each warp of the launch, in order.
    pub accounts: &'a [WarpAccount],
}

/// Writes one `.wtrc` file.
///
/// Several launches may be open at once. Memory: the index (56 bytes a section), the next sequence number of each
/// warp of an open launch (8 bytes), and the frames of the call in progress.
///
/// ```
/// use warptrace_format::codec::CodecSpec;
/// use warptrace_format::file::DeviceInfo;
/// use warptrace_format::pool::WarpAccount;
/// use warptrace_host::writer::{ChunkRef, LaunchInfo, Metadata, TraceWriter, WriterOptions};
///
/// let metadata = Metadata::new("example", DeviceInfo::simulator("sim"), vec![CodecSpec::Raw]).with_kernel("k", "");
/// let mut writer = TraceWriter::create(Vec::new(), &metadata, WriterOptions::default())?;
/// writer.begin_launch(&LaunchInfo::new(0, 0, [1, 1, 1], [32, 1, 1], 0)?)?;
/// writer.write_chunks(0, &[ChunkRef { track: 0, warp: 0, sequence: 0, events: 1, payload: &[1, 255, 255, 255, 255] }])?;
/// writer.end_launch(0, 0, &[WarpAccount { attempted: 1, recorded: 1, lost: 0, chunks: 1, finished: 1 }])?;
/// let (bytes, summary) = writer.finish()?;
/// assert_eq!((summary.events, summary.bytes), (1, bytes.len() as u64));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TraceWriter<W> {
    out: W,
    options: WriterOptions,
    launches: Launches,
    index: Vec<IndexEntry>,
    summary: Summary,
    /// Set while bytes are on their way out: what follows a write that failed could not be read.
    broken: bool,
}

impl<W: Write> TraceWriter<W> {
    /// Begins a file with its preamble and metadata, and flushes it.
    ///
    /// # Errors
    /// Metadata that a reader would refuse, a frame size out of range, an I/O error.
    pub fn create(out: W, metadata: &Metadata, options: WriterOptions) -> Result<Self, WriteError> {
        if !(1..=MAX_FRAME_BYTES).contains(&options.frame_bytes) {
            return Err(WriteError::FrameBytes { found: options.frame_bytes });
        }
        let body = metadata.encode()?;
        let launches = Launches::new(metadata);
        let (index, summary) = (Vec::new(), Summary::default());
        let mut writer = Self { out, options, launches, index, summary, broken: false };
        writer.put(&encode_preamble())?;
        writer.put(&encode_section(SectionKind::Metadata, &body))?;
        writer.flush()?;
        Ok(writer)
    }

    /// Announces a launch, before its chunks.
    ///
    /// # Errors
    /// A number that was used before, a kernel that the metadata does not name, an I/O error.
    pub fn begin_launch(&mut self, launch: &LaunchInfo) -> Result<(), WriteError> {
        self.begin_launches(std::slice::from_ref(launch))
    }

    /// As [`begin_launch`](Self::begin_launch) for each of `launches`, flushed once. A launch that is refused keeps
    /// those after it out.
    ///
    /// # Errors
    /// As [`begin_launch`](Self::begin_launch).
    pub fn begin_launches(&mut self, launches: &[LaunchInfo]) -> Result<(), WriteError> {
        self.check_usable(launches.len())?;
        for launch in launches {
            self.launches.begin(launch)?;
            let section = encode_section(SectionKind::Launch, &launch.encode());
            let entry = launch_entry(launch, self.summary.bytes, section.len() as u64);
            self.put(&section)?;
            self.index.push(entry);
        }
        self.flush()
    }

    /// Writes chunks of launch `launch`; see [`write_batch`](Self::write_batch).
    ///
    /// # Errors
    /// As [`write_batch`](Self::write_batch).
    pub fn write_chunks(&mut self, launch: u32, chunks: &[ChunkRef<'_>]) -> Result<(), WriteError> {
        if !self.launches.contains(launch) {
            return Err(WriteError::UnknownLaunch { launch });
        }
        let mut batch: Vec<_> = chunks.iter().map(|&chunk| (launch, chunk)).collect();
        self.write_batch(&mut batch)
    }

    /// Writes chunks with their launches, given in any order: they are sorted by launch, track, warp and sequence, cut
    /// into frames, compressed in parallel, written and flushed.
    ///
    /// A later call must not bring an earlier chunk: for each launch, track and warp, sequence numbers ascend over all
    /// calls. (Chunks taken from the pool in the order in which they were claimed fulfil that.)
    ///
    /// # Errors
    /// An unknown launch; a chunk of an undeclared track, of a track that was ended, of a warp that the launch
    /// does not have, without events or bytes, larger than the metadata's chunks, or with a sequence number that
    /// does not ascend: nothing is written then. An I/O error.
    pub fn write_batch(&mut self, chunks: &mut [(u32, ChunkRef<'_>)]) -> Result<(), WriteError> {
        chunks.par_sort_unstable_by_key(|(launch, chunk)| (*launch, chunk.track, chunk.warp, chunk.sequence));
        let (launches, sorted): (Vec<u32>, Vec<ChunkRef<'_>>) = chunks.iter().copied().unzip();
        let mut of_launch = Vec::new();
        let mut from = 0;
        for same in launches.chunk_by(|a, b| a == b) {
            of_launch.push((same[0], &sorted[from..from + same.len()]));
            from += same.len();
        }
        self.launches.accept(&of_launch)?;
        let frames: Vec<_> = of_launch
            .iter()
            .flat_map(|&(launch, sorted)| self.cut(sorted).into_iter().map(move |frame| (launch, frame)))
            .collect();
        self.check_usable(frames.len())?;
        self.launches.note(&of_launch);
        let compression = self.options.compression;
        for batch in frames.chunks(FRAMES_AT_ONCE) {
            let encoded: Vec<_> = batch
                .par_iter()
                .map(|(launch, chunks)| encode_frame(*launch, chunks[0].track, chunks, compression))
                .collect::<Result<_, _>>()?;
            for frame in encoded {
                self.put_frame(&frame)?;
            }
        }
        self.flush()
    }

    /// Cuts sorted chunks into frames of one track each.
    fn cut<'c, 'p>(&self, sorted: &'c [ChunkRef<'p>]) -> Vec<&'c [ChunkRef<'p>]> {
        let mut frames = Vec::new();
        for track in sorted.chunk_by(|a, b| a.track == b.track) {
            let (mut from, mut bytes) = (0, 0);
            for (at, chunk) in track.iter().enumerate() {
                let more = chunk.frame_bytes();
                let full = bytes + more > u64::from(self.options.frame_bytes)
                    || at - from == MAX_FRAME_CHUNKS as usize;
                if at > from && full {
                    frames.push(&track[from..at]);
                    (from, bytes) = (at, 0);
                }
                bytes += more;
            }
            frames.push(&track[from..]);
        }
        frames
    }

    fn put_frame(&mut self, frame: &EncodedFrame) -> Result<(), WriteError> {
        let header = &frame.header;
        let entry = IndexEntry {
            kind: SectionKind::Frame,
            offset: self.summary.bytes,
            length: frame.section.len() as u64,
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

    /// Writes the accounting of one launch and track, one account for each warp of the launch in order. No chunk
    /// of that track may follow. A launch whose accounting is never written can be read, but not verified.
    ///
    /// # Errors
    /// An unknown launch or track, a second call for the same, a number of accounts that is not the launch's
    /// number of warps, `finished` neither 0 nor 1, an I/O error.
    pub fn end_launch(
        &mut self,
        launch: u32,
        track: u32,
        accounts: &[WarpAccount],
    ) -> Result<(), WriteError> {
        self.end_tracks(&[TrackEnd { launch, track, accounts }])
    }

    /// As [`end_launch`](Self::end_launch) for each of `ends`, compressed in parallel and flushed once. One that is
    /// refused keeps all out.
    ///
    /// # Errors
    /// As [`end_launch`](Self::end_launch).
    pub fn end_tracks(&mut self, ends: &[TrackEnd<'_>]) -> Result<(), WriteError> {
        let mut parts = Vec::new();
        for &TrackEnd { launch, track, accounts } in ends {
            let mut first_warp = 0;
            for accounts in accounts.chunks(MAX_ACCOUNTS as usize) {
                parts.push((first_warp, TrackEnd { launch, track, accounts }));
                first_warp += accounts.len() as u32;
            }
        }
        self.check_usable(parts.len())?;
        self.launches.end(ends)?;
        let compression = self.options.compression;
        let bodies: Vec<_> = parts
            .par_iter()
            .map(|&(first_warp, TrackEnd { launch, track, accounts })| {
                encode_accounts(launch, track, first_warp, accounts, compression)
            })
            .collect::<Result<_, _>>()?;
        for ((first_warp, end), body) in parts.iter().zip(bodies) {
            let header = AccountsHeader::parse(&body, 0)?;
            let section = encode_section(SectionKind::Accounts, &body);
            let entry = IndexEntry {
                kind: SectionKind::Accounts,
                offset: self.summary.bytes,
                length: section.len() as u64,
                launch: end.launch,
                track: end.track,
                first_warp: *first_warp,
                last_warp: header.last_warp(),
                chunks: 0,
                events: 0,
            };
            self.put(&section)?;
            self.index.push(entry);
        }
        self.flush()
    }

    /// Writes the index and the trailer, flushes, and gives back what was written to, with the totals.
    ///
    /// # Errors
    /// An I/O error. The file then opens as one that was not finished.
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

    /// Totals of what has been written so far.
    pub const fn summary(&self) -> Summary {
        self.summary
    }

    /// Fails if an earlier write failed, or if the index cannot take `more` entries.
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
