//! A warp's stream on one track: events into the current chunk, a new chunk when it is full.
//!
//! A track in the warp's state:
//!
//! ```text
//! offset  size  field
//!      0     8  address of the current chunk's payload; NONE between chunks, STOPPED after the last
//!      8     4  events in the current chunk
//!     12     4  1 while the current chunk has room for one more event
//!     16     8  events in closed chunks
//!     24     8  lost events
//!     32     4  sequence number of the current (or next) chunk
//!     36     4  payload bytes of a chunk
//!     40     8  address of the last chunk's payload
//!     48     …  the codec's words
//! ```
//!
//! A track that needs a chunk is served in three steps, because the claim, which needs an atomic, must not happen inside
//! the lock (see `lock`): [`Track::close`] inside, [`claim`] outside, [`Track::install`] inside again.

use warptrace_format::chunk::CHUNK_HEADER_BYTES;
use warptrace_format::pool::PoolDescriptor;
use warptrace_format::{Event, Memory};

use crate::pool;
use crate::recorder::{Recorder, TRACK_HEADER_BYTES, Tables, track_at};
use crate::space::GlobalMemory;

const PAYLOAD: u32 = 0;
const EVENTS: u32 = 8;
const READY: u32 = 12;
const RECORDED: u32 = 16;
const LOST: u32 = 24;
const SEQUENCE: u32 = 32;
const CAPACITY: u32 = 36;
const LAST: u32 = 40;

/// No chunk at the moment.
const NONE: u64 = 0;
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
    u64::from(memory.get32(at)) | u64::from(memory.get32(at + 4)) << 32
}

pub(crate) fn set64(memory: &mut impl Memory, at: u32, value: u64) {
    memory.set32(at, value as u32);
    memory.set32(at + 4, (value >> 32) as u32);
}

impl<S: Memory + Copy> Track<S> {
    #[inline(always)]
    pub(crate) fn new(state: S, number: u32, warp: u32) -> Self {
        Self { state, at: track_at(number), number, warp }
    }

    /// Makes the track empty. `stopped`: it starts without a right to chunks and counts every event as lost.
    pub(crate) fn open<R: Recorder>(mut self, fresh: &R, pool: &PoolDescriptor, stopped: bool) {
        set64(&mut self.state, self.at + PAYLOAD, if stopped { STOPPED } else { NONE });
        set64(&mut self.state, self.at + EVENTS, 0);
        set64(&mut self.state, self.at + RECORDED, 0);
        set64(&mut self.state, self.at + LOST, 0);
        self.state.set32(self.at + SEQUENCE, 0);
        set64(&mut self.state, self.at + LAST, NONE);
        self.state.set32(self.at + CAPACITY, pool.chunk_bytes - CHUNK_HEADER_BYTES);
        fresh.store(&mut self.state, self.at + TRACK_HEADER_BYTES);
    }

    /// Whether the next event needs a new chunk first.
    #[inline(always)]
    pub(crate) fn needs_chunk(self) -> bool {
        let [low, _, _, ready] = self.state.get128(self.at);
        ready == 0 && low != STOPPED as u32
    }

    /// Records one event, or counts it as lost if there is no room: the pool is full, or another group of the warp took
    /// the room between [`install`](Self::install) and now.
    #[inline(always)]
    pub(crate) fn append<R: Recorder>(mut self, tables: Tables, event: Event) {
        let [low, high, events, ready] = self.state.get128(self.at);
        if ready == 0 {
            let lost = get64(&self.state, self.at + LOST) + 1;
            set64(&mut self.state, self.at + LOST, lost);
            return;
        }
        let payload = u64::from(low) | u64::from(high) << 32;
        let mut codec = R::load(&self.state, self.at + TRACK_HEADER_BYTES);
        codec.push(tables, &mut GlobalMemory::new(payload, tables.leader), event);
        let ready = codec.has_room(self.state.get32(self.at + CAPACITY));
        set64(&mut self.state, self.at + EVENTS, u64::from(events + 1) | u64::from(ready) << 32);
        codec.store(&mut self.state, self.at + TRACK_HEADER_BYTES);
    }

    /// Closes the current chunk, if there is one.
    #[inline(always)]
    pub(crate) fn close<R: Recorder>(mut self, tables: Tables) {
        let payload = get64(&self.state, self.at + PAYLOAD);
        if payload == NONE || payload == STOPPED {
            return;
        }
        let mut codec = R::load(&self.state, self.at + TRACK_HEADER_BYTES);
        let events = self.state.get32(self.at + EVENTS);
        let length = codec.finish(tables, &mut GlobalMemory::new(payload, tables.leader));
        pool::close_chunk(payload, events, length, tables.leader);
        let recorded = get64(&self.state, self.at + RECORDED) + u64::from(events);
        set64(&mut self.state, self.at + RECORDED, recorded);
        let sequence = self.state.get32(self.at + SEQUENCE);
        self.state.set32(self.at + SEQUENCE, sequence + 1);
        set64(&mut self.state, self.at + PAYLOAD, NONE);
        set64(&mut self.state, self.at + EVENTS, 0);
    }

    /// Makes `claimed` (the leader's answer of [`claim`]) the current chunk, unless another group has put one there
    /// meanwhile, or has used up later ones: a warp's chunks lie in the pool in the order of their sequence. A claimed
    /// chunk that is not used stays empty.
    #[inline(always)]
    pub(crate) fn install<R: Recorder>(mut self, tables: Tables, claimed: u64) {
        if self.state.get32(self.at + READY) != 0 {
            return;
        }
        // Another group may even have filled one meanwhile.
        self.close::<R>(tables);
        if get64(&self.state, self.at + PAYLOAD) == STOPPED {
            return;
        }
        let in_order = claimed == STOPPED || claimed > get64(&self.state, self.at + LAST);
        set64(&mut self.state, self.at + PAYLOAD, if in_order { claimed } else { NONE });
        // Only the leader knows what it claimed: the others read what it wrote, so that all go the same way.
        let payload = get64(&self.state, self.at + PAYLOAD);
        if payload == STOPPED || payload == NONE {
            return;
        }
        set64(&mut self.state, self.at + LAST, payload);
        pool::name_chunk(payload, self.state.get32(self.at + SEQUENCE), tables.leader);
        let mut codec = R::load(&self.state, self.at + TRACK_HEADER_BYTES);
        codec.begin(tables);
        codec.store(&mut self.state, self.at + TRACK_HEADER_BYTES);
        self.state.set32(self.at + READY, 1);
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
        set64(&mut account, 0, attempted + skipped);
        set64(&mut account, 8, get64(&self.state, self.at + RECORDED));
        set64(&mut account, 16, get64(&self.state, self.at + LOST) + skipped);
        account.set32(24, self.state.get32(self.at + SEQUENCE));
        account.set32(28, 1);
    }
}

/// Claims a chunk; answers its payload's address to the leader, or [`STOPPED`] when there is none.
#[cold]
#[inline(never)]
pub(crate) fn claim(warp: u32, number: u32, leader: bool) -> u64 {
    match pool::claim_chunk(&pool::descriptor(), warp, number, leader) {
        0 => STOPPED,
        payload => payload,
    }
}

#[cold]
#[inline(never)]
pub(crate) fn close_apart<R: Recorder, S: Memory + Copy>(state: S, number: u32, warp: u32, tables: Tables) {
    Track::new(state, number, warp).close::<R>(tables);
}

#[cold]
#[inline(never)]
pub(crate) fn install_apart<R: Recorder, S: Memory + Copy>(
    state: S,
    number: u32,
    warp: u32,
    tables: Tables,
    claimed: u64,
) {
    Track::new(state, number, warp).install::<R>(tables, claimed);
}
