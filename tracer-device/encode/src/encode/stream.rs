//! The stream writer of one thread: writes runs into a chunk, and reserves a new one when it is full.
//!
//! Its state in the thread's memory:
//! ```text
//! offset  size  field
//!      0     8  address of the current chunk's payload; STOPPED after the last
//!      8     4  events in the current chunk
//!     12     4  sequence number of the current (or next) chunk
//!     16     8  events in closed chunks
//!     24     8  address of the first run in the current chunk
//!     32     4  runs in the current chunk
//!     36    12  not used
//!     48     …  the codec's words
//! ```

use warptrace_abi::pool::PoolDescriptor;
use warptrace_format::chunk::CHUNK_HEADER_BYTES;
use warptrace_format::{Event, Memory};

use super::{Encoder, times};
use crate::chunks::{self, ChunkName};
use crate::memory::GlobalMemory;
use crate::merged::{COUNT_AT, RUN_BYTES};

const PAYLOAD: u32 = 0;
const EVENTS: u32 = 8;
const SEQUENCE: u32 = 12;
const RECORDED: u32 = 16;
const FIRST: u32 = 24;
const RUNS: u32 = 32;
pub(super) const HEADER_BYTES: u32 = 48;

/// The pool was full. The rest of the stream waits for another round.
const STOPPED: u64 = 1;

#[derive(Clone, Copy)]
pub(super) struct Stretch {
    pub(super) address: u64,
    pub(super) runs: u32,
}

#[derive(Clone, Copy)]
pub(super) struct StreamWriter<'a, S, P> {
    pub(super) pool: &'a PoolDescriptor,
    pub(super) state: S,
    pub(super) tables: S,
    pub(super) params: P,
    pub(super) name: ChunkName,
}

#[inline(always)]
fn get64(memory: &impl Memory, at: u32) -> u64 {
    let [low, high] = memory.get64(at);
    u64::from(low) | u64::from(high) << 32
}

#[inline(always)]
fn set64(memory: &mut impl Memory, at: u32, value: u64) {
    memory.set64(at, [value as u32, (value >> 32) as u32]);
}

impl<S: Memory + Copy, P: Copy> StreamWriter<'_, S, P> {
    #[inline(always)]
    pub(super) fn open<E: Encoder<Params = P>>(mut self, payload: u64, sequence: u32) {
        self.state.set128(PAYLOAD, [payload as u32, (payload >> 32) as u32, 0, sequence]);
        self.state.set128(RECORDED, [0; 4]);
        self.begin::<E>();
    }

    #[inline(always)]
    fn begin<E: Encoder<Params = P>>(mut self) {
        let mut encoder = E::FRESH;
        encoder.begin(self.params, &mut self.tables);
        encoder.store(&mut self.state, HEADER_BYTES);
    }

    /// Records a stretch of runs, until the pool is full.
    #[inline(always)]
    pub(super) fn record<E: Encoder<Params = P>>(mut self, stretch: Stretch) {
        let mut done = 0;
        while done < stretch.runs {
            let payload = get64(&self.state, PAYLOAD);
            let address = stretch.address + u64::from(RUN_BYTES) * u64::from(done);
            let rest = Stretch { address, runs: stretch.runs - done };
            if payload == STOPPED {
                return;
            }
            set64(&mut self.state, FIRST, address);
            let mut encoder = E::load(&self.state, HEADER_BYTES);
            let (runs, in_chunk, events) = self.push_runs(&mut encoder, payload, rest);
            self.state.set32(RUNS, in_chunk);
            encoder.store(&mut self.state, HEADER_BYTES);
            let events = self.state.get32(EVENTS).wrapping_add(events);
            self.state.set32(EVENTS, events);
            done += runs;
            if done < stretch.runs {
                self.renew::<E>();
            }
        }
    }

    /// Encodes as many runs as the chunk has room for, and possibly some events of the next run, whose count
    /// it reduces. Returns the number of complete runs, of runs with events in the chunk, and of events.
    #[inline(always)]
    fn push_runs<E: Encoder<Params = P>>(
        mut self,
        encoder: &mut E,
        payload: u64,
        stretch: Stretch,
    ) -> (u32, u32, u32) {
        let time_bytes = self.pool.time_bytes(self.name.track);
        // Excludes the maximum padding between events and times.
        let capacity = self.pool.chunk_bytes - CHUNK_HEADER_BYTES - time_bytes;
        let (mut payload, mut log) = (GlobalMemory::new(payload), GlobalMemory::new(stretch.address));
        let (mut done, mut part, mut events) = (0, 0, 0_u32);
        // Keeps two loads in flight, because a load takes longer than encoding. The last ones are not used.
        let read = |log: &GlobalMemory, number: u32| {
            log.get128(RUN_BYTES * if number < stretch.runs { number } else { 0 })
        };
        let (mut next, mut after_next) = (read(&log, 0), read(&log, 1));
        while done < stretch.runs {
            let run = next;
            next = after_next;
            after_next = read(&log, done + 2);
            let event = Event { location: run[1] as u16, mask: run[0] };
            let (count, capacity) = (run[2], capacity - time_bytes * (done + 1));
            let taken = encoder.push(self.params, &mut self.tables, &mut payload, event, count, capacity);
            events = events.wrapping_add(taken);
            if taken != count {
                log.set32(RUN_BYTES * done + COUNT_AT, count - taken);
                part = u32::from(taken != 0);
                break;
            }
            done += 1;
        }
        (done, done + part, events)
    }

    #[inline(always)]
    fn renew<E: Encoder<Params = P>>(mut self) {
        self.close::<E>();
        let index = chunks::claim_chunks(self.pool, 1);
        let claimed = chunks::start_chunk(self.pool, index, self.name, self.state.get32(SEQUENCE));
        let payload = if claimed == 0 { STOPPED } else { claimed };
        self.state.set64(PAYLOAD, [payload as u32, (payload >> 32) as u32]);
        self.state.set32(EVENTS, 0);
        self.begin::<E>();
    }

    #[inline(always)]
    fn close<E: Encoder<Params = P>>(mut self) {
        let payload = get64(&self.state, PAYLOAD);
        let events = self.state.get32(EVENTS);
        // A chunk without events keeps length 0, and the host skips it.
        if payload == STOPPED || events == 0 {
            return;
        }
        let mut encoder = E::load(&self.state, HEADER_BYTES);
        let (mut length, mut times) =
            (encoder.finish(self.params, &mut self.tables, &mut GlobalMemory::new(payload)), [0; 2]);
        if self.pool.time_bytes(self.name.track) != 0 {
            let first = get64(&self.state, FIRST);
            let runs = times::with_split(first, self.state.get32(RUNS));
            times = [runs, times::padding(length)];
            length = times::write(payload, length, first, runs, 0, 1);
        }
        chunks::close_chunk(payload, events, length, times);
        let recorded = get64(&self.state, RECORDED) + u64::from(events);
        set64(&mut self.state, RECORDED, recorded);
        let sequence = self.state.get32(SEQUENCE);
        self.state.set32(SEQUENCE, sequence + 1);
    }

    /// Ends the stretch, whose first chunk has the number `sequence`, and adds the recorded events to the
    /// account at an address. Only a stretch that is a whole stream can have been stopped.
    #[inline(always)]
    pub(super) fn finish<E: Encoder<Params = P>>(self, account: u64, sequence: u32) {
        self.close::<E>();
        let recorded = get64(&self.state, RECORDED);
        let chunks = self.state.get32(SEQUENCE) - sequence;
        chunks::add_to_account(account, [0, recorded, 0], chunks);
        if get64(&self.state, PAYLOAD) == STOPPED {
            chunks::set_finished(account, false);
            chunks::count_waiting(self.pool);
        }
    }
}
