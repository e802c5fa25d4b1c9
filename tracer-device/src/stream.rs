//! A warp's stream on one track: events into the current chunk, a new chunk when it is full.
//!
//! A track in the warp's state:
//!
//! ```text
//! offset  size  field
//!      0     8  address of the current chunk's payload; STOPPED after the last
//!      8     4  events in the current chunk
//!     12     4  unused
//!     16     8  events in closed chunks
//!     24     8  lost events
//!     32     4  sequence number of the current (or next) chunk
//!     36     4  payload bytes of a chunk
//!     40     4  1 if the encoder stopped because the chunk was full
//!     44     4  unused
//!     48     …  the codec's words
//! ```
//!
//! All of it happens inside the warp's lock (or alone), the claim of a chunk too. So a warp's chunks lie in the pool in the order of their
//! sequence.
//!
//! All lanes of a group go the same way, and what the leader writes counts: were they to part here, other groups of the warp would run while
//! this one is inside. Where a chunk is full they claim another together.

use warptrace_format::chunk::CHUNK_HEADER_BYTES;
use warptrace_format::pool::PoolDescriptor;
use warptrace_format::{Event, Memory};

use crate::pool;
use crate::queue::{Queue, Waiting};
use crate::recorder::{Recorder, TRACK_HEADER_BYTES, Tables, track_at};
use crate::space::GlobalMemory;

const PAYLOAD: u32 = 0;
const EVENTS: u32 = 8;
const RECORDED: u32 = 16;
const LOST: u32 = 24;
const SEQUENCE: u32 = 32;
const CAPACITY: u32 = 36;
const WANTS: u32 = 40;

/// The pool was full when this track asked: it asks no more, and counts what it loses.
const STOPPED: u64 = 1;

/// One track of one warp, in the warp's state.
///
/// Calls that are not inlined take its parts one by one: a struct of three words would go through local memory.
#[derive(Clone, Copy)]
pub(crate) struct Track<S> {
    state: S,
    /// Where the track's words start.
    at: u32,
    number: u32,
    warp: u32,
}

pub(crate) fn get64(memory: &impl Memory, at: u32) -> u64 {
    let [low, high] = memory.get64(at);
    u64::from(low) | u64::from(high) << 32
}

pub(crate) fn set64(memory: &mut impl Memory, at: u32, value: u64) {
    memory.set64(at, [value as u32, (value >> 32) as u32]);
}

impl<S: Memory + Copy> Track<S> {
    #[inline(always)]
    pub(crate) fn new(state: S, number: u32, warp: u32) -> Self {
        Self { state, at: track_at(number), number, warp }
    }

    /// Makes the track empty and claims its first chunk. `stopped`: it starts without a right to chunks and counts
    /// every event as lost. `zeroed`: the tables are all zero.
    #[inline(always)]
    pub(crate) fn open<R: Recorder>(
        mut self,
        tables: Tables,
        pool: &PoolDescriptor,
        stopped: bool,
        zeroed: bool,
    ) {
        let payload =
            if stopped { 0 } else { pool::first_chunk(pool, self.warp, self.number, tables.leader) };
        let payload = if payload == 0 { STOPPED } else { payload };
        self.state.set128(self.at + PAYLOAD, [payload as u32, (payload >> 32) as u32, 0, 0]);
        self.state.set128(self.at + RECORDED, [0; 4]);
        self.state.set128(self.at + SEQUENCE, [0, pool.chunk_bytes - CHUNK_HEADER_BYTES, 0, 0]);
        let mut codec = R::FRESH;
        codec.begin(tables, zeroed);
        codec.store(&mut self.state, self.at + TRACK_HEADER_BYTES);
    }

    /// Records the runs that wait in a queue, or as many as the chunk has room for; then [`wants_chunk`](Self::wants_chunk) says so,
    /// and what is left of the run stays in the queue. Answers what still waits, and how many events have left the queue. Where the pool is
    /// full, they are counted as lost. All lanes of a group do the same; what the leader writes counts. Those that are not `here` encode nothing.
    #[inline(always)]
    pub(crate) fn drain<R: Recorder>(
        mut self,
        tables: Tables,
        queue: Queue,
        waiting: Waiting,
        here: bool,
    ) -> (Waiting, u64) {
        let [low, high, events, _] = self.state.get128(self.at + PAYLOAD);
        let payload = u64::from(low) | u64::from(high) << 32;
        let stopped = payload == STOPPED;
        let mut payload = GlobalMemory::new(payload, tables.leader);
        let capacity = self.state.get32(self.at + CAPACITY);
        let mut codec = R::load(&self.state, self.at + TRACK_HEADER_BYTES);
        let (mut taken, mut recorded, mut lost) = (waiting.taken, 0, 0);
        // Loops behind each other, and as few branches around and in them as can be: see `apart` for why the nesting counts.
        let mut end = if here & !stopped { waiting.put } else { taken };
        while taken != end && codec.has_room(capacity) {
            let [mask, location, count] = queue.get(taken);
            let event = Event { location: location as u16, mask };
            let pushed = codec.push_run(tables, &mut payload, event, count, capacity);
            recorded += pushed;
            queue.put(taken, mask, location, count - pushed);
            taken += u32::from(pushed == count);
            end = if pushed == count { end } else { taken };
        }
        while here & stopped & (taken != waiting.put) {
            let [_, _, count] = queue.get(taken);
            lost += u64::from(count);
            taken += 1;
        }
        let full = taken != waiting.put;
        self.state.set32(self.at + EVENTS, events.wrapping_add(recorded));
        codec.store(&mut self.state, self.at + TRACK_HEADER_BYTES);
        self.state.set32(self.at + WANTS, u32::from(full));
        let before = get64(&self.state, self.at + LOST);
        set64(&mut self.state, self.at + LOST, before + lost);
        let left = if full { Waiting { taken, put: waiting.put } } else { Waiting::NONE };
        (left, u64::from(recorded) + lost)
    }

    /// Whether the chunk is full, and another is due before the rest of the queue can be recorded.
    ///
    /// Only [`drain`](Self::drain) changes the answer, not the claim of the chunk.
    #[inline(always)]
    pub(crate) fn wants_chunk(&self) -> bool {
        self.state.get32(self.at + WANTS) != 0
    }

    /// Closes the chunk and claims another. The lanes of a group do it together; what the leader writes counts.
    #[inline(always)]
    pub(crate) fn renew<R: Recorder>(mut self, tables: Tables) {
        self.close::<R>(tables);
        let claimed = pool::claim_chunk(&pool::descriptor(), self.warp, self.number, tables.leader);
        pool::name_chunk(claimed, self.state.get32(self.at + SEQUENCE), tables.leader);
        let payload = if claimed == 0 { STOPPED } else { claimed };
        self.state.set128(self.at + PAYLOAD, [payload as u32, (payload >> 32) as u32, 0, 0]);
        let mut codec = R::FRESH;
        codec.begin(tables, false);
        codec.store(&mut self.state, self.at + TRACK_HEADER_BYTES);
    }

    /// Closes the current chunk, if there is one.
    #[inline(always)]
    pub(crate) fn close<R: Recorder>(mut self, tables: Tables) {
        let payload = get64(&self.state, self.at + PAYLOAD);
        if payload == STOPPED {
            return;
        }
        let mut codec = R::load(&self.state, self.at + TRACK_HEADER_BYTES);
        let events = self.state.get32(self.at + EVENTS);
        // A chunk in which nothing came to lie stays as it was claimed, and the host passes it over.
        if events == 0 {
            return;
        }
        let length = codec.finish(tables, &mut GlobalMemory::new(payload, tables.leader));
        pool::close_chunk(payload, events, length, tables.leader);
        let recorded = get64(&self.state, self.at + RECORDED) + u64::from(events);
        set64(&mut self.state, self.at + RECORDED, recorded);
        let sequence = self.state.get32(self.at + SEQUENCE);
        self.state.set32(self.at + SEQUENCE, sequence + 1);
    }

    /// Flushes the stream and writes the warp's account for this track. `skipped` events never got as far as the track.
    #[inline(always)]
    pub(crate) fn finish<R: Recorder>(
        self,
        tables: Tables,
        pool: &PoolDescriptor,
        attempted: u64,
        skipped: u64,
    ) {
        self.close::<R>(tables);
        let index = u64::from(self.number) * u64::from(pool.warps) + u64::from(self.warp);
        let mut account = GlobalMemory::new(pool.accounts + 32 * index, tables.leader);
        let attempted = attempted + skipped;
        let recorded = get64(&self.state, self.at + RECORDED);
        let lost = get64(&self.state, self.at + LOST) + skipped;
        account.set128(
            0,
            [attempted as u32, (attempted >> 32) as u32, recorded as u32, (recorded >> 32) as u32],
        );
        let chunks = self.state.get32(self.at + SEQUENCE);
        account.set128(16, [lost as u32, (lost >> 32) as u32, chunks, 1]);
    }
}
