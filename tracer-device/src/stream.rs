//! A warp's stream on one track: events into the current chunk, a new chunk when it is full.
//!
//! A track, in memory of whoever encodes:
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
//!     40     8  unused
//!     48     …  the codec's words
//! ```
//!
//! All of a warp's chunks but those of stretches (see `after`) are claimed by whoever encodes them, one after the other. So they lie in the pool in
//! the order of their sequence.

use warptrace_format::Memory;
use warptrace_format::chunk::CHUNK_HEADER_BYTES;

use crate::merge::RUN_BYTES;
use crate::pool;
use crate::recorder::{Recorder, TRACK_HEADER_BYTES, Tables};
use crate::space::GlobalMemory;

const PAYLOAD: u32 = 0;
const EVENTS: u32 = 8;
const RECORDED: u32 = 16;
const LOST: u32 = 24;
const SEQUENCE: u32 = 32;
const CAPACITY: u32 = 36;

/// The pool was full when this track asked: it asks no more, and counts what it loses.
const STOPPED: u64 = 1;

/// Runs, one behind the other.
#[derive(Clone, Copy)]
pub(crate) struct Stretch {
    /// Address of the first.
    pub(crate) address: u64,
    pub(crate) runs: u32,
}

/// One track of one warp, in memory of whoever encodes.
///
/// Calls that are not inlined take its parts one by one: a struct of three words would go through local memory.
#[derive(Clone, Copy)]
pub(crate) struct Track<S> {
    state: S,
    number: u32,
    warp: u32,
    launch: u32,
}

pub(crate) fn get64(memory: &impl Memory, at: u32) -> u64 {
    let [low, high] = memory.get64(at);
    u64::from(low) | u64::from(high) << 32
}

pub(crate) fn set64(memory: &mut impl Memory, at: u32, value: u64) {
    memory.set64(at, [value as u32, (value >> 32) as u32]);
}

impl<S: Memory + Copy> Track<S> {
    /// The track with this number, of a warp of a launch, whose words are in `state`.
    #[inline(always)]
    pub(crate) fn new(state: S, number: u32, warp: u32, launch: u32) -> Self {
        Self { state, number, warp, launch }
    }

    /// Makes the track empty, with `payload` as that of its first chunk, whose place in the stream is `sequence`; if that is 0, it has no right to chunks and counts every event as lost.
    #[inline(always)]
    pub(crate) fn open<R: Recorder, M: Memory + Copy>(
        mut self,
        tables: Tables<M>,
        payload: u64,
        sequence: u32,
        chunk_bytes: u32,
    ) {
        pool::name_chunk(payload, sequence);
        let payload = if payload == 0 { STOPPED } else { payload };
        self.state.set128(PAYLOAD, [payload as u32, (payload >> 32) as u32, 0, 0]);
        self.state.set128(RECORDED, [0; 4]);
        self.state.set128(SEQUENCE, [sequence, chunk_bytes - CHUNK_HEADER_BYTES, 0, 0]);
        let mut codec = R::FRESH;
        codec.begin(tables);
        codec.store(&mut self.state, TRACK_HEADER_BYTES);
    }

    /// Records a stretch of runs. Where the pool is full, their events are counted as lost.
    #[inline(always)]
    pub(crate) fn record<R: Recorder, M: Memory + Copy>(mut self, tables: Tables<M>, stretch: Stretch) {
        let mut done = 0;
        while done < stretch.runs {
            let payload = get64(&self.state, PAYLOAD);
            let address = stretch.address + u64::from(RUN_BYTES) * u64::from(done);
            if payload == STOPPED {
                return self.lose(address, stretch.runs - done);
            }
            let capacity = self.state.get32(CAPACITY);
            let mut codec = R::load(&self.state, TRACK_HEADER_BYTES);
            let payload = GlobalMemory::new(payload, true);
            let log = GlobalMemory::new(address, true);
            let pushed = codec.push_runs(tables, payload, log, stretch.runs - done, capacity);
            codec.store(&mut self.state, TRACK_HEADER_BYTES);
            let events = self.state.get32(EVENTS).wrapping_add(pushed.events as u32);
            self.state.set32(EVENTS, events);
            done += pushed.runs;
            if done < stretch.runs {
                self.renew::<R, M>(tables);
            }
        }
    }

    /// Counts the events of `runs` runs as lost.
    #[inline(always)]
    fn lose(mut self, address: u64, runs: u32) {
        let (mut number, mut lost) = (0, get64(&self.state, LOST));
        while number < runs {
            let run = GlobalMemory::new(address + u64::from(RUN_BYTES) * u64::from(number), false);
            lost += u64::from(run.get32(8));
            number += 1;
        }
        set64(&mut self.state, LOST, lost);
    }

    /// Closes the chunk and claims another.
    #[inline(always)]
    fn renew<R: Recorder, M: Memory + Copy>(mut self, tables: Tables<M>) {
        self.close::<R, M>(tables);
        let claimed = pool::claim_chunk(&pool::descriptor(), self.launch, self.warp, self.number);
        pool::name_chunk(claimed, self.state.get32(SEQUENCE));
        let payload = if claimed == 0 { STOPPED } else { claimed };
        self.state.set128(PAYLOAD, [payload as u32, (payload >> 32) as u32, 0, 0]);
        let mut codec = R::FRESH;
        codec.begin(tables);
        codec.store(&mut self.state, TRACK_HEADER_BYTES);
    }

    /// Closes the current chunk, if there is one.
    #[inline(always)]
    fn close<R: Recorder, M: Memory + Copy>(mut self, tables: Tables<M>) {
        let payload = get64(&self.state, PAYLOAD);
        if payload == STOPPED {
            return;
        }
        let mut codec = R::load(&self.state, TRACK_HEADER_BYTES);
        let events = self.state.get32(EVENTS);
        // A chunk in which nothing came to lie stays as it was claimed, and the host passes it over.
        if events == 0 {
            return;
        }
        let length = codec.finish(tables, &mut GlobalMemory::new(payload, true));
        pool::close_chunk(payload, events, length);
        let recorded = get64(&self.state, RECORDED) + u64::from(events);
        set64(&mut self.state, RECORDED, recorded);
        let sequence = self.state.get32(SEQUENCE);
        self.state.set32(SEQUENCE, sequence + 1);
    }

    /// Flushes the stream, which began at `sequence`, and adds what it has recorded and lost to the warp's account for this track at the address
    /// `account`.
    #[inline(always)]
    pub(crate) fn finish<R: Recorder, M: Memory + Copy>(
        self,
        tables: Tables<M>,
        account: u64,
        sequence: u32,
    ) {
        self.close::<R, M>(tables);
        let recorded = get64(&self.state, RECORDED);
        let lost = get64(&self.state, LOST);
        let chunks = self.state.get32(SEQUENCE) - sequence;
        pool::add_to_account(account, [0, recorded, lost], chunks);
    }
}
