//! A stream: its runs in order, encoded into chunks.

use warptrace_abi::stream::{is_original, is_sole, untagged};
use warptrace_encode::native::{ChunkEncoder, Filled, RunWords};
use warptrace_format::chunk::CHUNK_HEADER_BYTES;

use super::order::Order;
use crate::packed;

/// Minimum number of ordered runs for encoding a chunk: usually more than it holds, so that chunks are full.
const BATCH: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) launch: u32,
    pub(super) track: u32,
    pub(super) warp: u32,
}

#[derive(Debug, Default)]
pub(super) struct Stream {
    order: Order,
    /// Ordered runs that are not encoded yet.
    ready: Vec<RunWords>,
    pub(super) chunks: u32,
    /// Number of encoded events.
    pub(super) recorded: u64,
    /// Number of events in original runs so far.
    pub(super) originals: u64,
}

/// Encoder state that a thread reuses for several streams.
pub(super) struct Encoding {
    pub(super) encoder: ChunkEncoder,
    pub(super) chunk: Vec<u8>,
}

impl Stream {
    /// Adds new entries of a segment that a lane has written.
    pub(super) fn take(&mut self, lane: u32, entries: impl Iterator<Item = [u32; 4]>) {
        for words in entries {
            let entry = untagged(words);
            if entry.is_run() {
                self.originals += if is_original(words, lane) { u64::from(entry.count) } else { 0 };
                self.order.take(entry, is_sole(words));
            }
        }
    }

    /// Orders the runs after a scan. Encodes chunks while at least [`BATCH`] runs are ordered, and appends
    /// them to `packed`. With `is_last`, encodes all runs.
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
            // No further runs arrive.
            (self.order, self.ready) = (Order::default(), Vec::new());
        }
    }

    /// Encodes a chunk of runs from `first` on; returns the number of complete runs in it.
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

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty() && self.ready.is_empty()
    }
}
