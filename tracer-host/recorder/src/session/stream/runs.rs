//! One stream: its runs in order, and encoded into chunks.

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
                self.order.take(entry, is_sole(words));
            }
        }
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
