//! One stream: its runs in order, and encoded into chunks.

use warptrace_abi::log::Entry;
use warptrace_abi::stream::{is_original, is_sole, untagged};
use warptrace_encode::native::{ChunkEncoder, Filled, RunWords};
use warptrace_format::chunk::CHUNK_HEADER_BYTES;

use super::order::Order;
use crate::packed;

/// This many runs are encoded at once: mostly more than a chunk takes, so that chunks are full.
const BATCH: usize = 4096;

/// A stream's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) launch: u32,
    pub(super) track: u32,
    pub(super) warp: u32,
}

/// What has come of a stream.
#[derive(Debug, Default)]
pub(super) struct Stream {
    order: Order,
    /// Runs in their order that are not encoded yet.
    ready: Vec<RunWords>,
    /// Chunks that were made.
    pub(super) chunks: u32,
    /// Events in them.
    pub(super) recorded: u64,
    /// Events of the originals that have come.
    pub(super) originals: u64,
    /// The run that began last of those that have come.
    latest: Option<Entry>,
    /// Runs that had not ended when they were read last.
    open: Vec<Open>,
}

/// A run that had not ended.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Its leader.
    lane: u32,
    /// The scan that read it.
    scan: u32,
    entry: Entry,
}

/// What a thread keeps from stream to stream.
pub(super) struct Encoding {
    pub(super) encoder: ChunkEncoder,
    /// A chunk.
    pub(super) chunk: Vec<u8>,
}

impl Stream {
    /// Takes new entries of a segment that a lane has written.
    pub(super) fn take(&mut self, lane: u32, entries: impl Iterator<Item = [u32; 4]>) {
        for words in entries {
            let entry = untagged(words);
            if entry.is_run() {
                self.originals += if is_original(words, lane) { u64::from(entry.count) } else { 0 };
                let is_later = |last: Entry| (entry.time.wrapping_sub(last.time) as i32) >= 0;
                if self.latest.is_none_or(is_later) {
                    self.latest = Some(entry);
                }
                self.order.take(entry, is_sole(words));
            }
        }
    }

    /// Notes what a scan has read of the run that a lane keeps and is in. Of two that one scan has
    /// read, in two segments, the one that began later is of later.
    pub(super) fn stand(&mut self, lane: u32, scan: u32, words: [u32; 4]) {
        let entry = untagged(words);
        if !entry.is_run() || !is_original(words, lane) {
            return;
        }
        let new = Open { lane, scan, entry };
        match self.open.iter_mut().find(|open| open.lane == lane) {
            Some(open) => {
                let is_later = (entry.time.wrapping_sub(open.entry.time) as i32) >= 0;
                *open = if open.scan != scan || is_later { new } else { *open };
            }
            None => self.open.push(new),
        }
    }

    /// The runs that had not ended at the last scan, by their beginnings. Those that another lane has left
    /// have come as copies.
    pub(super) fn open(&self, scan: u32) -> Vec<Entry> {
        let open = self.open.iter().filter(|open| open.scan == scan).map(|open| open.entry);
        let mut open: Vec<Entry> = open.filter(|entry| !self.order.has_come(*entry)).collect();
        if let Some(&Entry { time: first, .. }) = open.first() {
            open.sort_by_key(|entry| entry.time.wrapping_sub(first) as i32);
        }
        open
    }

    /// Takes the runs that had not ended at the last scan, as far as they are known: nothing comes any more.
    pub(super) fn end_open(&mut self, scan: u32) {
        for entry in self.open(scan) {
            self.originals += u64::from(entry.count);
            self.order.take(entry, false);
        }
        self.open.clear();
    }

    /// Location and mask of the run that began last of those that have come.
    pub(super) fn latest(&self) -> Option<(u16, u32)> {
        self.latest.map(|entry| (entry.location, entry.mask))
    }

    /// Appends to `packed` the chunks that are full after a scan; with `is_last` all that is left.
    pub(super) fn go_on(
        &mut self,
        name: Name,
        is_last: bool,
        Encoding { encoder, chunk }: &mut Encoding,
        packed: &mut Vec<u8>,
    ) {
        self.order.go_on(is_last, &mut self.ready);
        let mut done = 0;
        while done + BATCH <= self.ready.len() || is_last && done < self.ready.len() {
            done += self.encode(name, done, encoder, chunk, packed);
        }
        self.ready.drain(..done);
        if is_last {
            // Nothing more comes.
            (self.order, self.ready) = (Order::default(), Vec::new());
        }
    }

    /// Makes a chunk of runs from `first` on: returns how many are in it whole.
    fn encode(
        &mut self,
        name: Name,
        first: usize,
        encoder: &mut ChunkEncoder,
        chunk: &mut [u8],
        to: &mut Vec<u8>,
    ) -> usize {
        let (header, payload) = chunk.split_at_mut(CHUNK_HEADER_BYTES as usize);
        let Filled { runs, events, length, times: [timed, padding] } =
            encoder.fill(name.track, &mut self.ready[first..], payload);
        let words = [name.warp, self.chunks, events, length, name.launch, name.track, timed, padding];
        for (bytes, word) in header.chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        packed::push(to, chunk);
        if events != 0 {
            self.chunks += 1;
            self.recorded += u64::from(events);
        }
        runs
    }

    /// Whether nothing waits to be ordered or encoded.
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty() && self.ready.is_empty()
    }
}
