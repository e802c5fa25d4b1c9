//! A warp's stream on one track: events into the current chunk, a new chunk when it is full.
//!
//! A track in the warp's state:
//!
//! ```text
//! offset  size  field
//!      0     8  address of the current chunk's payload; NONE before the first chunk, STOPPED after the last
//!      8     4  events in the current chunk
//!     12     4  payload bytes of a chunk
//!     16     8  events in closed chunks
//!     24     8  lost events
//!     32     4  sequence number of the current (or next) chunk
//!     36    12  unused
//!     48     …  the codec's words
//! ```

use warptrace_format::chunk::CHUNK_HEADER_BYTES;
use warptrace_format::pool::PoolDescriptor;
use warptrace_format::{Event, Memory};

use crate::pool;
use crate::recorder::{Recorder, TRACK_HEADER_BYTES, Tables, track_at};
use crate::space::GlobalMemory;

const PAYLOAD: u32 = 0;
const EVENTS: u32 = 8;
const CAPACITY: u32 = 12;
const RECORDED: u32 = 16;
const LOST: u32 = 24;
const SEQUENCE: u32 = 32;

/// No chunk yet.
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
        self.state.set32(self.at + EVENTS, 0);
        self.state.set32(self.at + CAPACITY, pool.chunk_bytes - CHUNK_HEADER_BYTES);
        set64(&mut self.state, self.at + RECORDED, 0);
        set64(&mut self.state, self.at + LOST, 0);
        self.state.set32(self.at + SEQUENCE, 0);
        fresh.store(&mut self.state, self.at + TRACK_HEADER_BYTES);
    }

    /// Records one event, or counts it as lost.
    #[inline(always)]
    pub(crate) fn append<R: Recorder>(mut self, tables: Tables, event: Event) {
        let [low, high, mut events, capacity] = self.state.get128(self.at);
        let mut payload = u64::from(low) | u64::from(high) << 32;
        let mut codec = R::load(&self.state, self.at + TRACK_HEADER_BYTES);
        // `events` is 0 in a track without a chunk, so one test finds every reason to leave the fast path.
        if events == 0 || !codec.has_room(capacity) {
            // Not asking again for what is not there keeps a stopped track out of `change_chunk`, whose atomic costs
            // more than time (see `lock`).
            if payload != STOPPED {
                payload = change_chunk::<R, S>(self.state, self.number, self.warp, tables);
            }
            if payload == STOPPED {
                let lost = get64(&self.state, self.at + LOST) + 1;
                set64(&mut self.state, self.at + LOST, lost);
                return;
            }
            events = 0;
            codec = R::load(&self.state, self.at + TRACK_HEADER_BYTES);
        }
        codec.push(tables, &mut GlobalMemory::new(payload, tables.leader), event);
        self.state.set32(self.at + EVENTS, events + 1);
        codec.store(&mut self.state, self.at + TRACK_HEADER_BYTES);
    }

    /// Closes the current chunk, if there is one; answers the codec, ready for the next.
    #[inline(always)]
    fn close<R: Recorder>(&mut self, tables: Tables) -> R {
        let mut codec = R::load(&self.state, self.at + TRACK_HEADER_BYTES);
        let payload = get64(&self.state, self.at + PAYLOAD);
        if payload != NONE && payload != STOPPED {
            let events = self.state.get32(self.at + EVENTS);
            let length = codec.finish(tables, &mut GlobalMemory::new(payload, tables.leader));
            pool::close_chunk(payload, events, length, tables.leader);
            let recorded = get64(&self.state, self.at + RECORDED) + u64::from(events);
            set64(&mut self.state, self.at + RECORDED, recorded);
            let sequence = self.state.get32(self.at + SEQUENCE);
            self.state.set32(self.at + SEQUENCE, sequence + 1);
        }
        codec
    }

    /// Flushes the stream and writes the warp's account for this track.
    #[inline(always)]
    pub(crate) fn finish<R: Recorder>(mut self, tables: Tables, pool: &PoolDescriptor, attempted: u64) {
        self.close::<R>(tables);
        let index = u64::from(self.number) * u64::from(pool.warps) + u64::from(self.warp);
        let mut account = GlobalMemory::new(pool.accounts + 32 * index, tables.leader);
        set64(&mut account, 0, attempted);
        set64(&mut account, 8, get64(&self.state, self.at + RECORDED));
        set64(&mut account, 16, get64(&self.state, self.at + LOST));
        account.set32(24, self.state.get32(self.at + SEQUENCE));
        account.set32(28, 1);
    }
}

/// Closes the current chunk, if there is one, and claims the next; answers its payload, or [`STOPPED`].
///
/// The codec's words go through the warp's state, not through a reference, so that the fast path keeps them in
/// registers.
#[cold]
#[inline(never)]
fn change_chunk<R: Recorder, S: Memory + Copy>(state: S, number: u32, warp: u32, tables: Tables) -> u64 {
    let mut track = Track::new(state, number, warp);
    let mut codec = track.close::<R>(tables);
    let sequence = track.state.get32(track.at + SEQUENCE);
    let claimed = pool::claim_chunk(&pool::descriptor(), warp, sequence, number, tables.leader);
    set64(&mut track.state, track.at + PAYLOAD, if claimed == 0 { STOPPED } else { claimed });
    track.state.set32(track.at + EVENTS, 0);
    // Only the leader knows what it claimed: the others read what it wrote, so that all go the same way.
    let payload = get64(&track.state, track.at + PAYLOAD);
    if payload != STOPPED {
        codec.begin(tables);
        codec.store(&mut track.state, track.at + TRACK_HEADER_BYTES);
    }
    payload
}
