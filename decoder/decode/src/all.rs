//! The events of many warps, decoded in parallel, delivered in order.

use std::ops::{ControlFlow, Range};

use rayon::prelude::*;
use warptrace_format::Event;
use warptrace_format::codec::{CodecSpec, Decoder};
use warptrace_format::file::{LaunchInfo, RunWalk};

use crate::error::DecodeError;
use crate::feed::{ChunkData, ChunkFeed, FrameFeed, Sequence, Stream};
use crate::file::TraceFile;
use crate::times::Clock;
use crate::window::{Held, Window, Windows};

/// Most events of one decoding job (2 MiB), and of the blocks in which a longer chunk is delivered.
const JOB_EVENTS: usize = 1 << 18;
/// Events of a job of several chunks (256 KiB): they stay in a core's cache until they are delivered, and a
/// small launch has work for many cores.
const SHARED_JOB_EVENTS: usize = 1 << 15;

/// Which warps of a launch to decode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarpFilter {
    warps: Range<u32>,
}

impl WarpFilter {
    /// Every warp.
    pub const fn all() -> Self {
        Self { warps: 0..u32::MAX }
    }

    /// The warps whose linear index lies in `warps`.
    pub const fn warps(warps: Range<u32>) -> Self {
        Self { warps }
    }

    /// One warp. A launch has no warp `u32::MAX`; that filter selects nothing.
    pub const fn warp(warp: u32) -> Self {
        Self { warps: warp..warp.saturating_add(1) }
    }

    /// The selected ones of `warps` warps.
    pub(crate) fn range(&self, warps: u32) -> Range<u32> {
        self.warps.start..self.warps.end.min(warps)
    }

    /// The warps of block (x, y, z); `None` if the launch has no such block.
    pub fn block(launch: &LaunchInfo, block: [u32; 3]) -> Option<Self> {
        let first = launch.warp_index(block, 0)?;
        Some(Self { warps: first..first + launch.warps_per_block() })
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
    /// The events; at most 2^18 of them.
    pub events: &'a [Event],
    /// The runs that begin here: the number of the first event of each among `events`, and when it came, as
    /// [`WarpItem::begin`](crate::WarpItem::begin). Empty if the trace has no times.
    pub begins: &'a [(u32, u64)],
}

/// A chunk, and where its events stand in the warp's stream.
struct Item<'a> {
    warp: u32,
    first_event: u64,
    chunk: &'a ChunkData,
}

impl TraceFile {
    /// Gives the events of all warps that `filter` selects to `sink`, in order of warp and, inside a warp, in
    /// the [crate's order](crate#order). Chunks are decoded in parallel on rayon's current pool; `sink` runs
    /// on the calling thread. `Break` from `sink` ends the decoding early, and comes back.
    ///
    /// Memory is bounded as the [crate's docs](crate#memory) say.
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
    ///
    /// # Errors
    /// The file has no such launch or track; a frame or a chunk cannot be decoded. Events of lower warps may
    /// have been given to `sink` before.
    pub fn decode_all(
        &self,
        launch: u32,
        track: u32,
        filter: &WarpFilter,
        sink: &mut dyn FnMut(EventBlock<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, DecodeError> {
        let (info, codec) = self.resolve(launch, track)?;
        let windows = Windows::new(self, launch, vec![track], filter.range(info.warps())).expanded();
        self.decode_windows(windows, (launch, track), codec, sink)
    }

    pub(crate) fn decode_windows(
        &self,
        mut windows: Windows<'_>,
        (launch, track): (u32, u32),
        codec: CodecSpec,
        sink: &mut dyn FnMut(EventBlock<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, DecodeError> {
        windows = windows.timed();
        let mut sink = Begins { sink, warp: None, clock: Clock::default(), begins: Vec::new() };
        while let Some(window) = windows.next_window(&mut |_, error| Err(error))? {
            if self.decode_window(&window, (launch, track), codec, &mut sink)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn decode_window(
        &self,
        window: &Window,
        (launch, track): (u32, u32),
        codec: CodecSpec,
        sink: &mut Begins<'_>,
    ) -> Result<ControlFlow<()>, DecodeError> {
        let mut items = Vec::new();
        let mut gap = None;
        'warps: for (&warp, held) in &window.held {
            let stream = Stream { launch, track, warp };
            let mut sequence = Sequence::new(stream);
            let Held::Chunks(tracks) = held else {
                // Huge warps end their window, so nothing in it comes later.
                if self.decode_items(&items, (launch, track), codec, sink)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                return self.decode_huge(stream, codec, sink);
            };
            let mut first_event = 0;
            for chunk in tracks.iter().flatten() {
                if let Err(error) = sequence.check(chunk) {
                    gap = Some(error);
                    break 'warps;
                }
                items.push(Item { warp, first_event, chunk });
                first_event += u64::from(chunk.events);
            }
        }
        let flow = self.decode_items(&items, (launch, track), codec, sink)?;
        // What comes before the gap has been delivered, like what comes before any other error.
        match gap {
            Some(error) if flow.is_continue() => Err(error),
            _ => Ok(flow),
        }
    }

    fn decode_items(
        &self,
        items: &[Item<'_>],
        (launch, track): (u32, u32),
        codec: CodecSpec,
        sink: &mut Begins<'_>,
    ) -> Result<ControlFlow<()>, DecodeError> {
        let jobs = cut_into_jobs(items);
        let waves: Vec<_> = jobs.chunks(rayon::current_num_threads()).collect();
        let width = waves.first().map_or(0, |wave| wave.len());
        // Buffers are kept from wave to wave: fresh memory costs more than what is decoded into it.
        let new = || (0..width).map(|_| Worker::new(codec)).collect::<Vec<_>>();
        let decode = |wave: &[&[Item<'_>]], workers: &mut [Worker]| {
            wave.par_iter().zip(workers).for_each(|(job, worker)| worker.decode(job, launch, track));
        };
        let (mut ready, mut next) = (new(), Vec::new());
        if let Some(first) = waves.first() {
            decode(first, &mut ready);
        }
        for (at, wave) in waves.iter().enumerate() {
            // While one wave is delivered, the pool decodes the next.
            let flow = rayon::in_place_scope(|scope| {
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
            if flow.is_break() {
                return Ok(flow);
            }
            std::mem::swap(&mut ready, &mut next);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Decodes a warp from its frames, one chunk in memory at a time.
    fn decode_huge(
        &self,
        stream: Stream,
        codec: CodecSpec,
        sink: &mut Begins<'_>,
    ) -> Result<ControlFlow<()>, DecodeError> {
        let mut feed = FrameFeed::new(self, stream).timed();
        let mut sequence = Sequence::new(stream);
        let mut decoder = Decoder::new(codec);
        let mut first_event = 0;
        while let Some(chunk) = feed.next_chunk()? {
            sequence.check(chunk)?;
            if stream_chunk(&mut decoder, chunk, stream, first_event, sink)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            first_event += u64::from(chunk.events);
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Consecutive chunks with at most [`SHARED_JOB_EVENTS`] events in all, or one chunk with more.
fn cut_into_jobs<'i, 'c>(items: &'i [Item<'c>]) -> Vec<&'i [Item<'c>]> {
    let mut jobs = Vec::new();
    let (mut from, mut events) = (0, 0);
    for (at, item) in items.iter().enumerate() {
        let more = item.chunk.events as usize;
        if at > from && events + more > SHARED_JOB_EVENTS {
            jobs.push(&items[from..at]);
            (from, events) = (at, 0);
        }
        events += more;
    }
    if from < items.len() {
        jobs.push(&items[from..]);
    }
    jobs
}

/// Gives the events of a wave's jobs to `sink`.
fn deliver(
    wave: &[&[Item<'_>]],
    workers: &mut [Worker],
    (launch, track): (u32, u32),
    sink: &mut Begins<'_>,
) -> Result<ControlFlow<()>, DecodeError> {
    for (job, worker) in wave.iter().zip(workers) {
        if worker.too_many {
            let Item { warp, first_event, chunk } = job[0];
            let stream = Stream { launch, track, warp };
            if stream_chunk(&mut worker.decoder, chunk, stream, first_event, sink)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            continue;
        }
        let mut rest = &worker.events[..];
        for item in &job[..worker.items] {
            let (events, after) = rest.split_at(item.chunk.events as usize);
            rest = after;
            let Item { warp, first_event, chunk } = *item;
            if sink.give(warp, &mut walk_of(chunk), first_event, events).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        if let Some(error) = worker.error.take() {
            return Err(error);
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Decodes jobs, one after the other, in memory of its own.
struct Worker {
    decoder: Decoder,
    /// The events of the job's first chunks, up to the first that cannot be decoded.
    events: Vec<Event>,
    /// Chunks that were decoded.
    items: usize,
    error: Option<DecodeError>,
    /// The events are too many to be held; none was decoded.
    too_many: bool,
}

impl Worker {
    fn new(codec: CodecSpec) -> Self {
        Self { decoder: Decoder::new(codec), events: Vec::new(), items: 0, error: None, too_many: false }
    }

    fn decode(&mut self, job: &[Item<'_>], launch: u32, track: u32) {
        let total: usize = job.iter().map(|item| item.chunk.events as usize).sum();
        self.events.clear();
        (self.items, self.error, self.too_many) = (0, None, total > JOB_EVENTS);
        if self.too_many {
            return;
        }
        // The announced number of events is not trusted with memory: `events` grows with what is decoded.
        for item in job {
            let Item { warp, chunk, .. } = *item;
            if let Err(error) = self.decoder.decode_into(&chunk.payload, chunk.events, &mut self.events) {
                self.error = Some(chunk.error(Stream { launch, track, warp }, error));
                return;
            }
            self.items += 1;
        }
    }
}

/// Decodes one chunk and delivers it in blocks of at most [`JOB_EVENTS`].
fn stream_chunk(
    decoder: &mut Decoder,
    chunk: &ChunkData,
    stream: Stream,
    first_event: u64,
    sink: &mut Begins<'_>,
) -> Result<ControlFlow<()>, DecodeError> {
    let mut walk = walk_of(chunk);
    let mut block = Vec::new();
    let mut delivered = first_event;
    let mut flow = ControlFlow::Continue(());
    let result = decoder.decode(&chunk.payload, chunk.events, &mut |event| {
        block.push(event);
        if block.len() == JOB_EVENTS {
            // The decoder cannot be stopped inside a chunk; after a `Break` it runs on unheard.
            if flow.is_continue() {
                flow = sink.give(stream.warp, &mut walk, delivered, &block);
            }
            delivered += block.len() as u64;
            block.clear();
        }
    });
    if flow.is_break() {
        return Ok(flow);
    }
    result.map_err(|error| chunk.error(stream, error))?;
    Ok(sink.give(stream.warp, &mut walk, delivered, &block))
}

/// A walk through the runs of a chunk, if their times are there.
fn walk_of(chunk: &ChunkData) -> Option<(u32, RunWalk<'_>)> {
    chunk.times.as_ref().map(|(step, times)| (*step, times.walk()))
}

/// Gives blocks to a sink, with the times at which their runs began.
struct Begins<'s> {
    sink: &'s mut dyn FnMut(EventBlock<'_>) -> ControlFlow<()>,
    /// The last warp, and its clock.
    warp: Option<u32>,
    clock: Clock,
    begins: Vec<(u32, u64)>,
}

impl Begins<'_> {
    /// Gives the next events of a chunk, of which the first has this number in its warp.
    fn give(
        &mut self,
        warp: u32,
        walk: &mut Option<(u32, RunWalk<'_>)>,
        first_event: u64,
        events: &[Event],
    ) -> ControlFlow<()> {
        if events.is_empty() {
            return ControlFlow::Continue(());
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
        (self.sink)(EventBlock { warp, first_event, events, begins: &self.begins })
    }
}
