//! A warp's stream on one track: events into the current chunk, a new chunk when it is full.
//!
//! A track in the warp's state:
//!
//! ```text
//! offset  size  field
//!      0     8  address of the current chunk's payload; STOPPED after the last
//!      8     4  events in the current chunk
//!     12     4  1 while the current chunk has room for one more event
//!     16     8  events in closed chunks
//!     24     8  lost events
//!     32     4  sequence number of the current (or next) chunk
//!     36     4  payload bytes of a chunk
//!     40     4  1 if the encoder stopped because the chunk was full
//!     44     4  unused
//!     48     …  the codec's words
//! ```
//!
//! All of it happens inside the warp's lock (or alone), the claim of a chunk too: groups that come meanwhile do not wait, they
//! leave their events in the mailbox. So a warp's chunks lie in the pool in the order of their sequence.
//!
//! One lane encodes for its group; the others wait behind it. Where the chunk is full it stops, and all lanes of the group claim
//! another together (one of them does, the others go the same way), before it goes on. For a claim is an atomic, which comes with a YIELD, and
//! that ends the wait of lanes at the end of a branch: had one lane alone gone to claim, its group would be apart from then on, and record an
//! event for each part until the program brings them together. (An encoder that all lanes ran came apart more rarely, but lanes
//! that then left a function before the others restored its convergence barriers under them, and the warp stood still. Seen on an H200,
//! where a run filled several chunks.)

use warptrace_format::chunk::CHUNK_HEADER_BYTES;
use warptrace_format::pool::PoolDescriptor;
use warptrace_format::{Event, Memory};

use crate::pool;
use crate::queue::Queue;
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

/// The current chunk, while runs are written to it.
struct Chunk<R> {
    payload: GlobalMemory,
    events: u32,
    /// Whether there is room for one more event.
    ready: bool,
    /// Whether there is no chunk, and will be none.
    stopped: bool,
    capacity: u32,
    codec: R,
}

impl<R: Recorder> Chunk<R> {
    /// Encodes `event` up to `count` times; answers how often.
    #[inline(always)]
    fn push_run(&mut self, tables: Tables, event: Event, count: u32) -> u32 {
        let taken = self.codec.push_run(tables, &mut self.payload, event, count, self.capacity);
        self.events += taken;
        self.ready = self.codec.has_room(self.capacity);
        taken
    }
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
        let ready = u32::from(payload != STOPPED);
        self.state.set128(self.at + PAYLOAD, [payload as u32, (payload >> 32) as u32, 0, ready]);
        self.state.set128(self.at + RECORDED, [0; 4]);
        self.state.set128(self.at + SEQUENCE, [0, pool.chunk_bytes - CHUNK_HEADER_BYTES, 0, 0]);
        let mut codec = R::FRESH;
        codec.begin(tables, zeroed);
        codec.store(&mut self.state, self.at + TRACK_HEADER_BYTES);
    }

    /// Records the runs of a queue up to number `put`, or as many as the chunk has room for; then [`wants_chunk`](Self::wants_chunk) says so,
    /// and what is left of the run stays in the queue. Answers the number of events that left it. Where the pool is full, they are
    /// counted as lost. From one lane.
    #[inline(always)]
    pub(crate) fn drain<R: Recorder>(mut self, tables: Tables, queue: Queue, put: u32) -> u64 {
        let mut chunk = self.load::<R>(tables);
        let mut drained = 0;
        let mut lost = 0;
        let mut full = false;
        let mut taken = queue.taken();
        while taken != put {
            let [mask, location, count] = queue.get(taken);
            let event = Event { location: location as u16, mask };
            let recorded = if chunk.ready { chunk.push_run(tables, event, count) } else { 0 };
            if chunk.stopped {
                lost += u64::from(count);
                drained += u64::from(count);
            } else {
                drained += u64::from(recorded);
                if recorded != count {
                    queue.put(taken, mask, location, count - recorded);
                    full = true;
                    break;
                }
            }
            taken = taken.wrapping_add(1);
        }
        queue.set_taken(taken);
        self.store(&chunk);
        if lost != 0 {
            let lost = get64(&self.state, self.at + LOST) + lost;
            set64(&mut self.state, self.at + LOST, lost);
        }
        if full {
            close_full::<R, S>(self.state, self.number, self.warp, tables);
        }
        self.state.set32(self.at + WANTS, u32::from(full));
        drained
    }

    /// Whether the chunk is full, and another is due before the rest of the queue can be recorded.
    ///
    /// Only [`drain`](Self::drain) changes the answer, not the claim of the chunk: lanes of a group that is apart may ask when the leader
    /// has claimed already, and must go the same way.
    #[inline(always)]
    pub(crate) fn wants_chunk(&self) -> bool {
        self.state.get32(self.at + WANTS) != 0
    }

    /// Claims another chunk. The lanes of a group do it together; what the leader writes counts.
    #[inline(always)]
    pub(crate) fn renew<R: Recorder>(mut self, tables: Tables) {
        let claimed = pool::claim_chunk(&pool::descriptor(), self.warp, self.number, tables.leader);
        let ready = u32::from(claimed != 0);
        pool::name_chunk(claimed, self.state.get32(self.at + SEQUENCE), tables.leader);
        let payload = if claimed == 0 { STOPPED } else { claimed };
        self.state.set128(self.at + PAYLOAD, [payload as u32, (payload >> 32) as u32, 0, ready]);
        let mut codec = R::FRESH;
        codec.begin(tables, false);
        codec.store(&mut self.state, self.at + TRACK_HEADER_BYTES);
    }

    /// Takes the current chunk and its encoder out of the warp's state.
    #[inline(always)]
    fn load<R: Recorder>(&self, tables: Tables) -> Chunk<R> {
        let [low, high, events, ready] = self.state.get128(self.at + PAYLOAD);
        let payload = u64::from(low) | u64::from(high) << 32;
        Chunk {
            payload: GlobalMemory::new(payload, tables.leader),
            events,
            ready: ready != 0,
            stopped: payload == STOPPED,
            capacity: self.state.get32(self.at + CAPACITY),
            codec: R::load(&self.state, self.at + TRACK_HEADER_BYTES),
        }
    }

    /// Puts them back.
    #[inline(always)]
    fn store<R: Recorder>(&mut self, chunk: &Chunk<R>) {
        self.state.set64(self.at + EVENTS, [chunk.events, u32::from(chunk.ready)]);
        chunk.codec.store(&mut self.state, self.at + TRACK_HEADER_BYTES);
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

/// Closes a full chunk. Takes the track's parts one by one: a struct of three words would go through local memory.
#[cold]
#[inline(never)]
fn close_full<R: Recorder, S: Memory + Copy>(state: S, number: u32, warp: u32, tables: Tables) {
    Track::new(state, number, warp).close::<R>(tables);
}
