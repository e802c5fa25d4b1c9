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
//!     40     8  unused
//!     48     …  the codec's words
//! ```
//!
//! All of it happens where the live lanes of the warp are together (see `drain`), the claim of a chunk too. So a warp's chunks lie in the pool in
//! the order of their sequence.

use warptrace_format::Memory;
use warptrace_format::chunk::CHUNK_HEADER_BYTES;

use crate::log::{RUN_BYTES, Stretch};
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
    /// The track with this number, of a warp of a launch, whose words start at `at`.
    #[inline(always)]
    pub(crate) fn new(state: S, at: u32, number: u32, warp: u32, launch: u32) -> Self {
        Self { state, at, number, warp, launch }
    }

    /// Whether the track has been opened. Where it starts, memory is zero before.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        get64(&self.state, self.at + PAYLOAD) != 0
    }

    /// Makes the track empty, with `payload` as that of its first chunk, whose place in the stream is `sequence`; if that is 0, it has no right to chunks and counts every event as lost.
    #[inline(always)]
    pub(crate) fn open<R: Recorder>(mut self, tables: Tables, payload: u64, sequence: u32, chunk_bytes: u32) {
        pool::name_chunk(payload, sequence);
        let payload = if payload == 0 { STOPPED } else { payload };
        self.state.set128(self.at + PAYLOAD, [payload as u32, (payload >> 32) as u32, 0, 0]);
        self.state.set128(self.at + RECORDED, [0; 4]);
        self.state.set128(self.at + SEQUENCE, [sequence, chunk_bytes - CHUNK_HEADER_BYTES, 0, 0]);
        let mut codec = R::FRESH;
        codec.begin(tables);
        codec.store(&mut self.state, self.at + TRACK_HEADER_BYTES);
    }

    /// Records a stretch of the log; answers how many events it has. Where the pool is full, they are counted as lost.
    #[inline(always)]
    pub(crate) fn record<R: Recorder>(mut self, tables: Tables, stretch: Stretch) -> u64 {
        let (mut done, mut taken) = (0, 0);
        while done < stretch.runs {
            let payload = get64(&self.state, self.at + PAYLOAD);
            let address = stretch.address + u64::from(RUN_BYTES * done);
            if payload == STOPPED {
                return taken + self.lose(address, stretch.runs - done);
            }
            let capacity = self.state.get32(self.at + CAPACITY);
            let mut codec = R::load(&self.state, self.at + TRACK_HEADER_BYTES);
            let payload = GlobalMemory::new(payload, true);
            let log = GlobalMemory::new(address, true);
            let pushed = codec.push_runs(tables, payload, log, stretch.runs - done, capacity);
            codec.store(&mut self.state, self.at + TRACK_HEADER_BYTES);
            let events = self.state.get32(self.at + EVENTS).wrapping_add(pushed.events as u32);
            self.state.set32(self.at + EVENTS, events);
            taken += pushed.events;
            done += pushed.runs;
            if done < stretch.runs {
                self.renew::<R>(tables);
            }
        }
        taken
    }

    /// Counts the events of `runs` runs as lost; answers how many they are.
    #[inline(always)]
    fn lose(mut self, address: u64, runs: u32) -> u64 {
        let log = GlobalMemory::new(address, false);
        let (mut number, mut events) = (0, 0);
        while number < runs {
            events += u64::from(log.get32(RUN_BYTES * number + 8));
            number += 1;
        }
        let lost = get64(&self.state, self.at + LOST) + events;
        set64(&mut self.state, self.at + LOST, lost);
        events
    }

    /// Closes the chunk and claims another.
    #[inline(always)]
    fn renew<R: Recorder>(mut self, tables: Tables) {
        self.close::<R>(tables);
        let claimed = pool::claim_chunk(&pool::descriptor(), self.launch, self.warp, self.number);
        pool::name_chunk(claimed, self.state.get32(self.at + SEQUENCE));
        let payload = if claimed == 0 { STOPPED } else { claimed };
        self.state.set128(self.at + PAYLOAD, [payload as u32, (payload >> 32) as u32, 0, 0]);
        let mut codec = R::FRESH;
        codec.begin(tables);
        codec.store(&mut self.state, self.at + TRACK_HEADER_BYTES);
    }

    /// Closes the current chunk, if there is one.
    #[inline(always)]
    fn close<R: Recorder>(mut self, tables: Tables) {
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
        let length = codec.finish(tables, &mut GlobalMemory::new(payload, true));
        pool::close_chunk(payload, events, length);
        let recorded = get64(&self.state, self.at + RECORDED) + u64::from(events);
        set64(&mut self.state, self.at + RECORDED, recorded);
        let sequence = self.state.get32(self.at + SEQUENCE);
        self.state.set32(self.at + SEQUENCE, sequence + 1);
    }

    /// Flushes the stream, which began at `sequence`, and adds it to the warp's account for this track at the address `account`. Of the
    /// `attempted` events, `skipped` never got as far as the track.
    #[inline(always)]
    pub(crate) fn finish<R: Recorder>(
        self,
        tables: Tables,
        account: u64,
        sequence: u32,
        attempted: u64,
        skipped: u64,
    ) {
        self.close::<R>(tables);
        let recorded = get64(&self.state, self.at + RECORDED);
        let lost = get64(&self.state, self.at + LOST) + skipped;
        let chunks = self.state.get32(self.at + SEQUENCE) - sequence;
        pool::add_to_account(account, [attempted, recorded, lost], chunks);
    }
}
