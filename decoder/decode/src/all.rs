//! The events of many warps, decoded in parallel and delivered in order.

use std::ops::{ControlFlow, Range};

use rayon::prelude::*;
use warptrace_format::Event;
use warptrace_format::codec::{CodecSpec, Decoder};
use warptrace_format::file::{LaunchInfo, RunWalk};

use crate::error::DecodeError;
use crate::feed::{ChunkData, ChunkFeed, FrameFeed, Sequence, Stream};
use crate::file::TraceFile;
use crate::losses::LossyWarps;
use crate::marks::Marks;
use crate::times::Clock;
use crate::window::{Held, HeldRun, Window, Windows};

/// Maximum number of events of one decoding job (2 MiB), and of one block of a longer chunk.
const JOB_EVENTS: usize = 1 << 18;
/// Maximum number of events of a job of several chunks (256 KiB). They stay in a core's cache until delivery,
/// and small launches give work to many cores.
const SHARED_JOB_EVENTS: usize = 1 << 15;

/// Maximum number of chunks in one batch of jobs. The last warp may exceed it.
const CHUNKS_AT_ONCE: usize = 1 << 16;

/// A selection of warps of a launch, optionally with marks at missing events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarpFilter {
    warps: Range<u32>,
    pub(crate) has_marks: bool,
}

impl WarpFilter {
    /// Selects every warp.
    pub const fn all() -> Self {
        Self::warps(0..u32::MAX)
    }

    /// Selects the warps with a linear index in `warps`.
    pub const fn warps(warps: Range<u32>) -> Self {
        Self { warps, has_marks: false }
    }

    /// Selects one warp. `u32::MAX` selects nothing, because no launch has that warp.
    pub const fn warp(warp: u32) -> Self {
        Self::warps(warp..warp.saturating_add(1))
    }

    /// Selects the warps of block (x, y, z); `None` if the launch has no such block.
    pub fn block(launch: &LaunchInfo, block: [u32; 3]) -> Option<Self> {
        let first = launch.warp_index(block, 0)?;
        Some(Self::warps(first..first + launch.warps_per_block()))
    }

    /// Adds [marks](crate#losses) at missing events.
    #[must_use]
    pub const fn with_marks(mut self) -> Self {
        self.has_marks = true;
        self
    }

    pub(crate) fn range(&self, warps: u32) -> Range<u32> {
        self.warps.start..self.warps.end.min(warps)
    }
}

#[derive(Debug)]
pub(crate) enum Stop {
    Asked,
    Failed(DecodeError),
}

impl Stop {
    pub(crate) fn flow(walked: Result<(), Self>) -> Result<ControlFlow<()>, DecodeError> {
        match walked {
            Ok(()) => Ok(ControlFlow::Continue(())),
            Err(Self::Asked) => Ok(ControlFlow::Break(())),
            Err(Self::Failed(error)) => Err(error),
        }
    }

    pub(crate) const fn asked(flow: ControlFlow<()>) -> Result<(), Self> {
        match flow {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Self::Asked),
        }
    }
}

impl From<DecodeError> for Stop {
    fn from(error: DecodeError) -> Self {
        Self::Failed(error)
    }
}

/// Consecutive events of one warp.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct EventBlock<'a> {
    /// Linear index of the warp in the launch.
    pub warp: u32,
    /// Number of the first of these events among the warp's events, from 0.
    pub first_event: u64,
    /// The events, at most 2^18.
    pub events: &'a [Event],
    /// The runs that begin in this block: index of the first event in `events`, and its time as in
    /// [`WarpItem::begin`](crate::WarpItem::begin). Empty if the trace has no times.
    pub begins: &'a [(u32, u64)],
    /// Events missing before `first_event`, if the filter asks for [marks](crate#losses). No events then.
    pub missing: Option<LossyWarps>,
}

struct PlacedChunk<'a> {
    warp: u32,
    first_event: u64,
    chunk: &'a ChunkData,
}

impl TraceFile {
    /// Passes the events of all warps that `filter` selects to `sink`, in the [crate's order](crate#order).
    /// Decodes chunks in parallel on rayon's current pool; `sink` runs on the calling thread. If `sink`
    /// returns `Break`, decoding ends and returns it. Memory: see the [crate's docs](crate#memory). Fails
    /// without the launch or track, at a frame or chunk that cannot be decoded, or above the work limit,
    /// possibly after events of lower warps. Damaged accounts count as missing.
    ///
    /// ```no_run
    /// use std::ops::ControlFlow;
    /// use warptrace_decoder::{TraceFile, WarpFilter};
    /// let trace = TraceFile::open("run.wtrc")?;
    /// let mut events = 0;
    /// let _ = trace.decode_all(0, 0, &WarpFilter::all(), &mut |block| {
    ///     events += block.events.len();
    ///     ControlFlow::Continue(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decode_all(
        &self,
        launch: u32,
        track: u32,
        filter: &WarpFilter,
        sink: &mut dyn FnMut(EventBlock<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, DecodeError> {
        let (info, codec) = self.resolve(launch, track)?;
        let windows = Windows::new(self, launch, vec![track], filter.range(info.warps())).expanded();
        let marks = Marks::new(self, info, track, filter);
        Stop::flow(self.decode_windows(windows, (launch, track), codec, BlockSink::new(marks, sink)))
    }

    pub(crate) fn decode_windows(
        &self,
        mut windows: Windows<'_>,
        (launch, track): (u32, u32),
        codec: CodecSpec,
        mut sink: BlockSink<'_>,
    ) -> Result<(), Stop> {
        windows = windows.timed();
        while let Some(window) = windows.next_window(&mut |_, error| Err(error))? {
            self.decode_window(&window, (launch, track), codec, &mut sink)?;
        }
        sink.finish()
    }

    fn decode_window(
        &self,
        window: &Window,
        (launch, track): (u32, u32),
        codec: CodecSpec,
        sink: &mut BlockSink<'_>,
    ) -> Result<(), Stop> {
        let mut chunks = Vec::new();
        let mut gap = None;
        'warps: for (warp, held) in window.held.iter().flat_map(HeldRun::each) {
            let stream = Stream { launch, track, warp };
            let mut sequence = Sequence::new(stream);
            if matches!(held, Held::Huge) {
                // A huge warp is the last of its window.
                self.decode_chunks(&chunks, (launch, track), codec, sink)?;
                return self.decode_huge(stream, codec, sink);
            }
            // A few runs may stand for any number of warps.
            if chunks.len() >= CHUNKS_AT_ONCE {
                self.decode_chunks(&chunks, (launch, track), codec, sink)?;
                chunks.clear();
            }
            let mut first_event = 0;
            for chunk in held.chunks(0) {
                if let Err(error) = sequence.check(chunk) {
                    gap = Some(error);
                    break 'warps;
                }
                chunks.push(PlacedChunk { warp, first_event, chunk });
                first_event += u64::from(chunk.events);
            }
        }
        self.decode_chunks(&chunks, (launch, track), codec, sink)?;
        // Events before the gap have been delivered, as for any other error.
        gap.map_or(Ok(()), |error| Err(error.into()))
    }

    fn decode_chunks(
        &self,
        chunks: &[PlacedChunk<'_>],
        (launch, track): (u32, u32),
        codec: CodecSpec,
        sink: &mut BlockSink<'_>,
    ) -> Result<(), Stop> {
        let jobs = cut_into_jobs(chunks);
        let waves: Vec<_> = jobs.chunks(rayon::current_num_threads()).collect();
        let width = waves.first().map_or(0, |wave| wave.len());
        // Reuses buffers from wave to wave: allocating fresh memory costs more than decoding into it.
        let new = || (0..width).map(|_| Worker::new(codec)).collect::<Vec<_>>();
        let decode = |wave: &[&[PlacedChunk<'_>]], workers: &mut [Worker]| {
            wave.par_iter().zip(workers).for_each(|(job, worker)| worker.decode(job, launch, track));
        };
        let (mut ready, mut next) = (new(), Vec::new());
        if let Some(first) = waves.first() {
            decode(first, &mut ready);
        }
        for (at, wave) in waves.iter().enumerate() {
            // The pool decodes the next wave while this one is delivered.
            rayon::in_place_scope(|scope| {
                if let Some(following) = waves.get(at + 1) {
                    let next = &mut next;
                    scope.spawn(move |_| {
                        if next.is_empty() {
                            *next = new();
                        }
                        decode(following, next);
                    });
                }
                deliver(wave, &mut ready, (launch, track), sink)
            })?;
            std::mem::swap(&mut ready, &mut next);
        }
        Ok(())
    }

    /// Decodes a warp from its frames, with one chunk in memory at a time.
    fn decode_huge(&self, stream: Stream, codec: CodecSpec, sink: &mut BlockSink<'_>) -> Result<(), Stop> {
        let mut feed = FrameFeed::new(self, stream).timed();
        let mut sequence = Sequence::new(stream);
        let mut decoder = Decoder::new(codec);
        let mut first_event = 0;
        while let Some(chunk) = feed.next_chunk()? {
            sequence.check(chunk)?;
            stream_chunk(&mut decoder, chunk, stream, first_event, sink)?;
            first_event += u64::from(chunk.events);
        }
        Ok(())
    }
}

fn cut_into_jobs<'i, 'c>(chunks: &'i [PlacedChunk<'c>]) -> Vec<&'i [PlacedChunk<'c>]> {
    let mut jobs = Vec::new();
    let (mut from, mut events) = (0, 0);
    for (at, placed) in chunks.iter().enumerate() {
        let more = placed.chunk.events as usize;
        if at > from && events + more > SHARED_JOB_EVENTS {
            jobs.push(&chunks[from..at]);
            (from, events) = (at, 0);
        }
        events += more;
    }
    if from < chunks.len() {
        jobs.push(&chunks[from..]);
    }
    jobs
}

fn deliver(
    wave: &[&[PlacedChunk<'_>]],
    workers: &mut [Worker],
    (launch, track): (u32, u32),
    sink: &mut BlockSink<'_>,
) -> Result<(), Stop> {
    for (job, worker) in wave.iter().zip(workers) {
        if worker.too_many {
            let PlacedChunk { warp, first_event, chunk } = job[0];
            let stream = Stream { launch, track, warp };
            stream_chunk(&mut worker.decoder, chunk, stream, first_event, sink)?;
            continue;
        }
        let mut rest = &worker.events[..];
        for &PlacedChunk { warp, first_event, chunk } in &job[..worker.chunks] {
            let (events, after) = rest.split_at(chunk.events as usize);
            rest = after;
            sink.give(warp, &mut walk_of(chunk), first_event, events)?;
        }
        if let Some(error) = worker.error.take() {
            return Err(error.into());
        }
    }
    Ok(())
}

struct Worker {
    decoder: Decoder,
    /// The events of the job's first chunks, up to the first that cannot be decoded.
    events: Vec<Event>,
    chunks: usize,
    error: Option<DecodeError>,
    /// Whether the job has too many events to hold. Then none was decoded.
    too_many: bool,
}

impl Worker {
    fn new(codec: CodecSpec) -> Self {
        Self { decoder: Decoder::new(codec), events: Vec::new(), chunks: 0, error: None, too_many: false }
    }

    fn decode(&mut self, job: &[PlacedChunk<'_>], launch: u32, track: u32) {
        let total: usize = job.iter().map(|placed| placed.chunk.events as usize).sum();
        self.events.clear();
        (self.chunks, self.error, self.too_many) = (0, None, total > JOB_EVENTS);
        if self.too_many {
            return;
        }
        // The announced number of events is not trusted: `events` grows as events are decoded.
        for &PlacedChunk { warp, chunk, .. } in job {
            if let Err(error) = self.decoder.decode_into(&chunk.payload, chunk.events, &mut self.events) {
                self.error = Some(chunk.error(Stream { launch, track, warp }, error));
                return;
            }
            self.chunks += 1;
        }
    }
}

fn stream_chunk(
    decoder: &mut Decoder,
    chunk: &ChunkData,
    stream: Stream,
    first_event: u64,
    sink: &mut BlockSink<'_>,
) -> Result<(), Stop> {
    let mut walk = walk_of(chunk);
    let mut block = Vec::new();
    let mut delivered = first_event;
    let mut given = Ok(());
    let result = decoder.decode(&chunk.payload, chunk.events, &mut |event| {
        block.push(event);
        if block.len() == JOB_EVENTS {
            // The decoder cannot stop inside a chunk; after `Break`, the remaining events are dropped.
            if given.is_ok() {
                given = sink.give(stream.warp, &mut walk, delivered, &block);
            }
            delivered += block.len() as u64;
            block.clear();
        }
    });
    given?;
    result.map_err(|error| chunk.error(stream, error))?;
    sink.give(stream.warp, &mut walk, delivered, &block)
}

fn walk_of(chunk: &ChunkData) -> Option<(u32, RunWalk<'_>)> {
    chunk.times.as_ref().map(|(step, times)| (*step, times.walk()))
}

pub(crate) struct BlockSink<'a> {
    sink: &'a mut dyn FnMut(EventBlock<'_>) -> ControlFlow<()>,
    marks: Option<Marks<'a>>,
    warp: Option<u32>,
    clock: Clock,
    begins: Vec<(u32, u64)>,
}

impl<'a> BlockSink<'a> {
    pub(crate) fn new(
        marks: Option<Marks<'a>>,
        sink: &'a mut dyn FnMut(EventBlock<'_>) -> ControlFlow<()>,
    ) -> Self {
        Self { sink, marks, warp: None, clock: Clock::default(), begins: Vec::new() }
    }

    fn give(
        &mut self,
        warp: u32,
        walk: &mut Option<(u32, RunWalk<'_>)>,
        first_event: u64,
        events: &[Event],
    ) -> Result<(), Stop> {
        if events.is_empty() {
            return Ok(());
        }
        if let Some(marks) = &mut self.marks {
            marks.go_to(warp, first_event + events.len() as u64, &mut mark_blocks(self.sink))?;
        }
        self.begins.clear();
        if let Some((step, walk)) = walk {
            if self.warp.replace(warp) != Some(warp) {
                self.clock = Clock::default();
            }
            for (number, &event) in (0..).zip(events) {
                let fits = walk.take(event, 1, |_, time| {
                    let begin = time.map(|time| self.clock.at(time).wrapping_mul(u64::from(*step)));
                    self.begins.extend(begin.map(|begin| (number, begin)));
                });
                if !fits {
                    break;
                }
            }
        }
        Stop::asked((self.sink)(EventBlock {
            warp,
            first_event,
            events,
            begins: &self.begins,
            missing: None,
        }))
    }

    fn finish(self) -> Result<(), Stop> {
        self.marks.map_or(Ok(()), |marks| marks.finish(&mut mark_blocks(self.sink)))
    }
}

fn mark_blocks(
    sink: &mut dyn FnMut(EventBlock<'_>) -> ControlFlow<()>,
) -> impl FnMut(LossyWarps, u64) -> ControlFlow<()> {
    move |missing, first_event| {
        let (warp, events, begins) = (missing.first, &[], &[]);
        sink(EventBlock { warp, first_event, events, begins, missing: Some(missing) })
    }
}
