//! A launch whose runs are not all encoded yet.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use warptrace_format::account::WarpAccount;
use warptrace_format::file::LaunchInfo;
use warptrace_format::span::WarpSpan;

use super::runs::{Name, Stream};
use crate::session::worker::Account;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Consumer {
    /// No runs were taken yet.
    Undecided,
    /// The host takes all further runs of the warp.
    Host,
    /// A round. It takes all runs of the warp at one time, after the warp has left its kernel.
    Round,
}

#[derive(Debug)]
pub(super) struct Launch {
    pub(super) info: LaunchInfo,
    /// Number of recorded warps. In this type, a warp is an index among them.
    pub(super) warps: u32,
    /// Offset of its tables in the session's memory.
    pub(super) tables: u64,
    /// For each warp, the lanes that had left the kernel before the last scan.
    pub(super) ended: Vec<u32>,
    pub(super) is_over: bool,
    consumers: Vec<AtomicU8>,
    /// [Undecided](Consumer::Undecided) warps that had left the kernel before the last scan.
    pub(super) left: Vec<u32>,
    /// Events and chunks of each stream encoded by rounds; empty without rounds.
    encoded: Vec<(u64, u32)>,
    /// Streams with runs. Boxed, because most streams of a large launch are empty at any time.
    streams: Vec<OnceLock<Box<Mutex<Stream>>>>,
}

impl Launch {
    pub(super) fn new(info: LaunchInfo, tracks: u32, tables: u64) -> Self {
        let warps = info.chosen().count();
        let mut streams = Vec::new();
        streams.resize_with(tracks as usize * warps as usize, OnceLock::new);
        let mut consumers = Vec::new();
        consumers.resize_with(warps as usize, || AtomicU8::new(Consumer::Undecided as u8));
        let ended = vec![0; warps as usize];
        Self {
            info,
            warps,
            tables,
            ended,
            is_over: false,
            consumers,
            left: Vec::new(),
            encoded: Vec::new(),
            streams,
        }
    }

    pub(super) fn consumer(&self, warp: u32) -> Consumer {
        match self.consumers[warp as usize].load(Relaxed) {
            0 => Consumer::Undecided,
            1 => Consumer::Host,
            _ => Consumer::Round,
        }
    }

    pub(super) fn set_consumer(&self, warp: u32, consumer: Consumer) {
        self.consumers[warp as usize].store(consumer as u8, Relaxed);
    }

    /// Returns true if the host takes the runs of a stream's warp. An undecided warp becomes the host's if
    /// `take_over` returns true for it.
    pub(super) fn is_hosts(&self, stream: u32, take_over: impl Fn(u32) -> bool) -> bool {
        let warp = stream % self.warps;
        match self.consumer(warp) {
            Consumer::Host => true,
            Consumer::Round => false,
            Consumer::Undecided if take_over(warp) => {
                self.set_consumer(warp, Consumer::Host);
                true
            }
            Consumer::Undecided => false,
        }
    }

    /// Registers the lanes that had left before a completed scan.
    pub(super) fn note_ended(&mut self, ended: Vec<u32>) {
        for (warp, (&now, &before)) in (0..).zip(ended.iter().zip(&self.ended)) {
            if now != before && now == self.lanes(warp) && self.consumer(warp) == Consumer::Undecided {
                self.left.push(warp);
            }
        }
        self.ended = ended;
    }

    /// Registers the events and chunks that a round has encoded for a stream.
    pub(super) fn note_encoded(&mut self, track: u32, warp: u32, events: u64, chunks: u32) {
        if self.encoded.is_empty() {
            self.encoded.resize(self.streams.len(), (0, 0));
        }
        self.encoded[(track * self.warps + warp) as usize] = (events, chunks);
    }

    /// Returns the offset of its warps' spans in the session's memory, after the lost events of streams.
    pub(super) fn spans_at(&self) -> u64 {
        self.tables + 8 * self.streams.len() as u64
    }

    /// Returns the offset of the masks of left lanes, one per warp, after the spans of `span_bytes` each.
    pub(super) fn ended_at(&self, span_bytes: u64) -> u64 {
        self.spans_at() + u64::from(self.warps) * span_bytes
    }

    /// Returns the number of streams. A stream's number is `track * warps + warp`.
    pub(super) fn stream_count(&self) -> usize {
        self.streams.len()
    }

    /// Returns a stream, which may be empty; `None` if the launch has no such stream.
    pub(super) fn stream(&self, number: u32) -> Option<MutexGuard<'_, Stream>> {
        let stream = self.streams.get(number as usize)?;
        Some(lock(stream.get_or_init(Box::default)))
    }

    /// Returns a stream and its name; `None` if it has no runs to order or encode.
    pub(super) fn waiting(&self, number: usize) -> Option<(Name, MutexGuard<'_, Stream>)> {
        let stream = lock(self.streams[number].get()?);
        let (warps, number) = (self.warps, number as u32);
        let name = Name { launch: self.info.number(), track: number / warps, warp: number % warps };
        (!stream.is_empty()).then_some((name, stream))
    }

    /// Returns true if a lane of a stream's warp had left before the last scan.
    pub(super) fn has_left(&self, stream: u32, lane: u32) -> bool {
        self.is_over || self.ended[(stream % self.warps) as usize] >> (lane % 32) & 1 != 0
    }

    /// Returns true if all lanes of a stream's warp had left before the last scan.
    pub(super) fn has_ended(&self, stream: u32) -> bool {
        let warp = stream % self.warps;
        self.is_over || self.ended[warp as usize] == self.lanes(warp)
    }

    /// Removes the uncertain parts of spans of a launch that did not complete. Warps that had not ended
    /// before the last scan keep only their start: the end may be from a lane that left before others.
    pub(super) fn keep_known(&self, spans: &mut [WarpSpan]) {
        for (warp, span) in (0..).zip(spans) {
            // The timer is never 0. If the time was copied, the multiprocessor was, too.
            if span.begin_timer == 0 {
                *span = WarpSpan::default();
            } else if !self.has_ended(warp) {
                (span.end_clock, span.end_timer, span.end_sm) = (0, 0, 0);
            }
        }
    }

    pub(super) fn lanes(&self, warp: u32) -> u32 {
        let threads = self.info.chosen().block_threads(self.info.threads_per_block());
        let before = 32 * (warp % threads.div_ceil(32));
        u32::MAX >> (32 - (threads - before).min(32))
    }

    /// Returns the accounts of all streams; `lost` has the lost original events of each stream.
    pub(super) fn accounts(&self, lost: impl Iterator<Item = u64>) -> Vec<Account> {
        let account = |number: u32, stream: &OnceLock<Box<Mutex<Stream>>>, lost: u64| {
            let counts = |stream: &Mutex<Stream>| {
                let stream = lock(stream);
                (stream.originals, stream.recorded, stream.chunks)
            };
            let (mut originals, mut recorded, mut chunks) =
                stream.get().map_or((0, 0, 0), |stream| counts(stream));
            if let Some(&(events, made)) = self.encoded.get(number as usize) {
                originals += events;
                recorded += events;
                chunks += made;
            }
            // If originals are missing, for instance because the kernel was ended early, the sum is too low.
            let attempted = (originals + lost).max(recorded);
            let lost = attempted - recorded;
            let finished = u32::from(self.has_ended(number));
            Account::new(WarpAccount { attempted, recorded, lost, chunks, finished })
        };
        let streams = (0..).zip(self.streams.iter().zip(lost));
        streams.map(|(number, (stream, lost))| account(number, stream, lost)).collect()
    }
}

/// Locks a stream. No code panics while it is locked.
fn lock(stream: &Mutex<Stream>) -> MutexGuard<'_, Stream> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}
