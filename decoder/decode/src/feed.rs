//! The chunks of a warp in sequence, and their events.

use std::sync::Arc;

use warptrace_format::Event;
use warptrace_format::codec::raw::PAYLOAD_EVENT_BYTES;
use warptrace_format::codec::{CodecError, CodecSpec, Decoder};
use warptrace_format::file::{Chunk, ChunkTimes, IndexEntry};

use crate::count::count;
use crate::error::DecodeError;
use crate::file::TraceFile;

/// Maximum number of events that a reader of single events buffers (8 MiB).
const BLOCK_EVENTS: u32 = 1 << 20;
/// Buffered events of `raw`, whose chunks can be decoded in parts. A small buffer stays in the cache.
const RAW_BLOCK_EVENTS: u32 = 1 << 12;

/// Bytes of a chunk in a window, in addition to its payload: allocation, lists, map node, and verification
/// data of its warp. An upper bound for one chunk per warp, the worst case.
pub(crate) const CHUNK_OVERHEAD: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stream {
    pub(crate) launch: u32,
    pub(crate) track: u32,
    pub(crate) warp: u32,
}

#[derive(Debug)]
pub(crate) struct ChunkData {
    pub(crate) sequence: u32,
    pub(crate) events: u32,
    /// Shared by all chunks of a window with the same bytes.
    pub(crate) payload: Arc<[u8]>,
    pub(crate) frame_offset: u64,
    /// Cycles of a unit, and start times of the runs, if requested.
    pub(crate) times: Option<(u32, ChunkTimes)>,
}

impl ChunkData {
    pub(crate) fn new(
        chunk: Chunk<'_>,
        payload: Arc<[u8]>,
        frame_offset: u64,
        times: Option<(u32, ChunkTimes)>,
    ) -> Self {
        Self { sequence: chunk.entry.sequence, events: chunk.entry.events, payload, frame_offset, times }
    }

    /// Returns true only if both chunks have the same events at the same position of their warps.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (self.sequence, self.events) == (other.sequence, other.events)
            && Arc::ptr_eq(&self.payload, &other.payload)
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.payload.len() + CHUNK_OVERHEAD + self.times.as_ref().map_or(0, |(_, times)| times.held_bytes())
    }

    pub(crate) fn error(&self, stream: Stream, source: CodecError) -> DecodeError {
        let Stream { launch, track, warp } = stream;
        let (sequence, frame_offset) = (self.sequence, self.frame_offset);
        DecodeError::Chunk { launch, track, warp, sequence, frame_offset, source }
    }
}

#[derive(Debug)]
pub(crate) struct Sequence {
    stream: Stream,
    next: u64,
}

impl Sequence {
    pub(crate) const fn new(stream: Stream) -> Self {
        Self { stream, next: 0 }
    }

    pub(crate) fn check(&mut self, chunk: &ChunkData) -> Result<(), DecodeError> {
        let expected = self.next;
        self.next = u64::from(chunk.sequence) + 1;
        if u64::from(chunk.sequence) == expected {
            return Ok(());
        }
        let Stream { launch, track, warp } = self.stream;
        let (found, frame_offset) = (chunk.sequence, chunk.frame_offset);
        Err(DecodeError::Sequence { launch, track, warp, found, expected, frame_offset })
    }
}

pub(crate) trait ChunkFeed {
    fn next_chunk(&mut self) -> Result<Option<&ChunkData>, DecodeError>;
    fn current(&self) -> Option<&ChunkData>;
}

#[derive(Debug)]
pub(crate) struct MemoryFeed<'a, I> {
    rest: I,
    current: Option<&'a ChunkData>,
}

impl<'a, I: Iterator<Item = &'a ChunkData>> MemoryFeed<'a, I> {
    pub(crate) fn new(chunks: I) -> Self {
        Self { rest: chunks, current: None }
    }
}

impl<'a, I: Iterator<Item = &'a ChunkData>> ChunkFeed for MemoryFeed<'a, I> {
    fn next_chunk(&mut self) -> Result<Option<&ChunkData>, DecodeError> {
        self.current = self.rest.next();
        Ok(self.current)
    }

    fn current(&self) -> Option<&ChunkData> {
        self.current
    }
}

/// Chunks read from the file, one frame at a time. A warp's chunks are in the order of their numbers.
#[derive(Debug)]
pub(crate) struct FrameFeed<'a> {
    file: &'a TraceFile,
    stream: Stream,
    frames: std::vec::IntoIter<IndexEntry>,
    chunks: std::vec::IntoIter<ChunkData>,
    current: Option<ChunkData>,
    is_timed: bool,
}

impl<'a> FrameFeed<'a> {
    pub(crate) fn new(file: &'a TraceFile, stream: Stream) -> Self {
        let Stream { launch, track, warp } = stream;
        let all = file.frames(launch, track);
        let candidates = &all[..all.partition_point(|frame| frame.first_warp <= warp)];
        let mut frames: Vec<_> = candidates.iter().filter(|frame| frame.last_warp >= warp).copied().collect();
        frames.sort_unstable_by_key(|frame| frame.offset);
        let (frames, chunks) = (frames.into_iter(), Vec::new().into_iter());
        Self { file, stream, frames, chunks, current: None, is_timed: false }
    }

    pub(crate) fn restarted(&self) -> Self {
        Self::new(self.file, self.stream)
    }

    /// Requests the times of the chunks of track 0, if the trace has times.
    pub(crate) fn timed(mut self) -> Self {
        self.is_timed = self.stream.track == 0 && self.file.has_times();
        self
    }
}

impl ChunkFeed for FrameFeed<'_> {
    fn next_chunk(&mut self) -> Result<Option<&ChunkData>, DecodeError> {
        loop {
            self.current = self.chunks.next();
            if self.current.is_some() {
                return Ok(self.current.as_ref());
            }
            let Some(entry) = self.frames.next() else { return Ok(None) };
            let frame = self.file.load_frame(&entry)?;
            let times =
                self.is_timed.then(|| self.file.load_times(&entry, entry.chunks as usize).ok()).flatten();
            let of_warp =
                frame.chunks().enumerate().filter(|(_, chunk)| chunk.entry.warp == self.stream.warp);
            let times_of = |at| times.as_ref().map(|times| (times.step(), times.chunk(at)));
            let chunks: Vec<_> = of_warp
                .map(|(at, chunk)| ChunkData::new(chunk, chunk.payload.into(), entry.offset, times_of(at)))
                .collect();
            self.chunks = chunks.into_iter();
        }
    }

    fn current(&self) -> Option<&ChunkData> {
        self.current.as_ref()
    }
}

/// Reads the events of a feed one by one, from a buffer of at most [`BLOCK_EVENTS`].
#[derive(Debug)]
pub(crate) struct EventReader<F> {
    pub(crate) feed: F,
    pub(crate) stream: Stream,
    sequence: Sequence,
    codec: CodecSpec,
    pub(crate) decoder: Decoder,
    buffer: Vec<Event>,
    position: usize,
    /// Number of events of the current chunk that were decoded into the buffer.
    decoded: u32,
    ended: bool,
}

impl<F: ChunkFeed> EventReader<F> {
    pub(crate) fn new(feed: F, stream: Stream, codec: CodecSpec) -> Self {
        Self {
            feed,
            stream,
            sequence: Sequence::new(stream),
            codec,
            decoder: Decoder::new(codec),
            buffer: Vec::new(),
            position: 0,
            decoded: 0,
            ended: false,
        }
    }

    /// Returns the next event; `None` after the last, and after an error.
    pub(crate) fn next_event(&mut self) -> Option<Result<Event, DecodeError>> {
        loop {
            if let Some(&event) = self.buffer.get(self.position) {
                self.position += 1;
                return Some(Ok(event));
            }
            if self.ended {
                return None;
            }
            match self.refill() {
                Ok(true) => {}
                Ok(false) => self.ended = true,
                Err(error) => {
                    self.ended = true;
                    self.buffer.clear();
                    return Some(Err(error));
                }
            }
        }
    }

    /// Returns the next event and a number of repetitions. The next call may return the same event again.
    pub(crate) fn next_run(&mut self) -> Option<Result<(Event, u32), DecodeError>> {
        let event = match self.next_event()? {
            Ok(event) => event,
            Err(error) => return Some(Err(error)),
        };
        let rest = self.buffer.get(self.position..).unwrap_or(&[]);
        let more = rest.iter().take_while(|next| **next == event).count();
        self.position += more;
        Some(Ok((event, 1 + count(more))))
    }

    /// Refills the buffer. Returns false at the end of the feed.
    fn refill(&mut self) -> Result<bool, DecodeError> {
        self.buffer.clear();
        self.position = 0;
        let open = self.feed.current().is_some_and(|chunk| self.decoded < chunk.events);
        if !open {
            let Some(chunk) = self.feed.next_chunk()? else { return Ok(false) };
            self.sequence.check(chunk)?;
            self.decoded = 0;
        }
        let Some(chunk) = self.feed.current() else { return Ok(false) };
        let from = self.decoded;
        let buffer = &mut self.buffer;
        let event_bytes = PAYLOAD_EVENT_BYTES as usize;
        let sliceable =
            self.codec == CodecSpec::Raw && chunk.payload.len() == chunk.events as usize * event_bytes;
        let block = if sliceable { RAW_BLOCK_EVENTS } else { BLOCK_EVENTS };
        let to = chunk.events.min(from.saturating_add(block));
        let part = if sliceable {
            let bytes = &chunk.payload[from as usize * event_bytes..to as usize * event_bytes];
            self.decoder.decode(bytes, to - from, &mut |event| buffer.push(event))
        } else {
            // Decoding cannot start inside the chunk: a chunk is decoded once for each buffer of its events.
            let mut number = 0;
            self.decoder.decode(&chunk.payload, chunk.events, &mut |event| {
                if (from..to).contains(&number) {
                    buffer.push(event);
                }
                number += 1;
            })
        };
        if let Err(error) = part {
            // A part has event numbers relative to itself; decoding the whole chunk yields the right number.
            let whole = self.decoder.decode(&chunk.payload, chunk.events, &mut |_| {});
            return Err(chunk.error(self.stream, whole.err().unwrap_or(error)));
        }
        self.decoded = to;
        Ok(true)
    }
}
