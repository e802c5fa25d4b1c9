//! One stream: its runs in order, and encoded into chunks.

use warptrace_encode::native::{ChunkEncoder, Filled, Run};
use warptrace_format::chunk::CHUNK_HEADER_BYTES;

use super::order::{Found, Order};
use crate::packed;

/// So many runs are encoded at once: mostly more than a chunk takes, so that chunks are full.
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
    ready: Vec<Run>,
    /// Chunks that were made.
    pub(super) chunks: u32,
    /// Events in them.
    pub(super) recorded: u64,
}

impl Stream {
    /// Takes the runs that a look has found, and appends to `packed` the chunks that are full; with `is_last` all that is left.
    pub(super) fn look(
        &mut self,
        name: Name,
        found: &[Found],
        is_last: bool,
        encoder: &mut ChunkEncoder,
        chunk: &mut [u8],
        packed: &mut Vec<u8>,
    ) {
        self.order.look(found, is_last, &mut self.ready);
        let mut done = 0;
        while done + BATCH <= self.ready.len() || is_last && done < self.ready.len() {
            done += self.encode(name, done, encoder, chunk, packed);
        }
        self.ready.drain(..done);
    }

    /// Makes a chunk of runs from `first` on: answers how many are in it whole.
    fn encode(
        &mut self,
        name: Name,
        first: usize,
        encoder: &mut ChunkEncoder,
        chunk: &mut [u8],
        to: &mut Vec<u8>,
    ) -> usize {
        let (header, payload) = chunk.split_at_mut(CHUNK_HEADER_BYTES as usize);
        let Filled { runs, events, length } = encoder.fill(name.track, &mut self.ready[first..], payload);
        let words = [name.warp, self.chunks, events, length, name.launch, name.track, 0, 0];
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

    /// Events of the originals that have come.
    pub(super) fn originals(&self) -> u64 {
        self.order.originals
    }

    /// Whether nothing waits to be ordered or encoded.
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty() && self.ready.is_empty()
    }
}
