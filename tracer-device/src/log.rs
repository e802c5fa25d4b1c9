//! A warp's log: the runs on their way to the encoder, in global memory.
//!
//! ```text
//! offset  size  field
//!      0    32  header of the chunk that the segment is made of; in its word at 24 the number of the segment that follows
//!     32     …  runs of 16 bytes: mask, location, count, a word for the encoder
//! ```
//!
//! A segment has the size of a chunk. The first is reserved for the warp, if the pool has room; others are claimed, each with the chunk before it, for
//! what its runs become. Their memory is the warp's until the kernel ends.
//!
//! The *cursor* is the place of the next run: the number of a segment, and of a run in it. A group that is not alone moves it inside a lock of few
//! instructions (see `lock`, also for why it is not an atomic); the run itself is written outside. Where a run lies is its *spot*, in units of a run
//! from segment 0.

use warptrace_format::Memory;
use warptrace_format::chunk::CHUNK_HEADER_BYTES;
use warptrace_format::pool::PoolDescriptor;

use crate::lock::Lock;
use crate::pool;
use crate::space::{GlobalMemory, SharedMemory};
use crate::state::{LOST, ORIGIN};
use crate::stream::get64;

/// Bytes of a run.
pub(crate) const RUN_BYTES: u32 = 16;
/// The run's number in the cursor has so many bits; above them is the segment's.
const NUMBER_BITS: u32 = 8;
/// Most runs in a segment.
const MOST_RUNS: u32 = (1 << NUMBER_BITS) - 1;
/// Segments with this number or above cannot be said in the cursor.
const SEGMENTS_END: u32 = 1 << (32 - NUMBER_BITS);
/// Where the next segment's number is in a segment's header.
const NEXT: u32 = 24;

/// Offsets in a log's words: the place of the next run; that of the first; how many runs a segment may have.
const CURSOR: u32 = 4;
const FIRST: u32 = 8;
const LIMIT: u32 = 12;

/// As a limit: nothing is recorded, now or later.
pub(crate) const OFF: u32 = u32::MAX;
/// As a limit: there is no room for more runs, until the log is emptied.
const STOPPED: u32 = 0;
/// As a first place: the log has no segment.
const NO_SEGMENT: u32 = !LONG;
/// In the first place, whose number is 0: the log is long.
const LONG: u32 = 1;

/// Stands for the spot of a run that has none.
pub(crate) const NO_SPOT: u32 = u32::MAX;

/// What lies in a log's words, read at once. The word before them belongs to somebody else.
#[derive(Clone, Copy)]
pub(crate) struct Head {
    pub(crate) before: u32,
    cursor: u32,
    first: u32,
    limit: u32,
}

impl Head {
    /// Whether nothing is recorded.
    #[inline(always)]
    pub(crate) fn is_off(self) -> bool {
        self.limit == OFF
    }

    /// Whether the log should be emptied at the next opportunity: the pool gets short.
    #[inline(always)]
    pub(crate) fn is_long(self) -> bool {
        self.first & LONG != 0
    }
}

/// The log of one track, in a warp's state.
#[derive(Clone, Copy)]
pub(crate) struct Log {
    state: SharedMemory,
    /// Offset of its words.
    at: u32,
    track: u32,
}

/// A stretch of runs, one behind the other.
#[derive(Clone, Copy)]
pub(crate) struct Stretch {
    /// Address of the first.
    pub(crate) address: u64,
    pub(crate) runs: u32,
}

impl Log {
    #[inline(always)]
    pub(crate) fn new(state: SharedMemory, at: u32, track: u32) -> Self {
        Self { state, at, track }
    }

    /// Puts up the first segment. All lanes of the warp, together; `leader` is the one whose writes count.
    #[inline(always)]
    pub(crate) fn open(mut self, pool: &PoolDescriptor, warp: u32, before: u32, leader: bool) {
        let segment = pool::first_segment(pool, warp, self.track, leader);
        let there = segment < SEGMENTS_END;
        let first = if there { segment << NUMBER_BITS } else { NO_SEGMENT };
        let limit = if there { most_runs(pool.chunk_bytes) } else { STOPPED };
        self.state.set128(self.at, [before, first, first, limit]);
    }

    #[inline(always)]
    pub(crate) fn head(self) -> Head {
        let [before, cursor, first, limit] = self.state.get128(self.at);
        Head { before, cursor, first, limit }
    }

    /// Takes `runs` places for runs, at most 32, from the keeper of a group. Answers the spot of the first; the others follow. [`NO_SPOT`] if the
    /// segment has no room or another group is at the cursor: then [`reserve_further`](Self::reserve_further) does it. `alone`: the group has
    /// all live lanes. `opaque`: see [`Lock::new`].
    #[inline(always)]
    pub(crate) fn reserve(
        mut self,
        head: Head,
        runs: u32,
        keeper: u32,
        alone: bool,
        opaque: SharedMemory,
    ) -> u32 {
        let lock = Lock::new(self.state, opaque, keeper);
        let mut place = head.cursor;
        if !alone {
            if !lock.enter() {
                return NO_SPOT;
            }
            place = opaque.get32(self.at + CURSOR);
        }
        let fits = number(place) + runs <= head.limit;
        self.state.set32_if(fits, self.at + CURSOR, place + runs);
        lock.leave_if(!alone);
        if fits { self.spot(place) } else { NO_SPOT }
    }

    /// The same, whatever it takes. Answers [`NO_SPOT`] if the pool is used up. What is left of a segment that is too short is filled with runs of
    /// no event.
    #[inline(always)]
    pub(crate) fn reserve_further(self, runs: u32, keeper: u32, opaque: SharedMemory) -> u32 {
        let lock = Lock::new(self.state, opaque, keeper);
        let inside = lock.insist();
        // Few branches, as `apart` wants it: what is not to be written goes nowhere.
        let mut state = self.state.led_by(inside);
        let mut place = self.state.look32(self.at + CURSOR);
        let most = self.state.get32(ORIGIN + 12);
        let stopped = self.state.look32(self.at + LIMIT) == STOPPED;
        let mut good = inside & !stopped & (runs <= most);
        if good & (number(place) + runs > most) {
            let segment = self.claim(place);
            good = segment < SEGMENTS_END;
            let first = place - number(place);
            let mut rest = number(place);
            while rest < most {
                self.put(self.spot(first + rest), [0; 3]);
                rest += 1;
            }
            place = segment << NUMBER_BITS;
        }
        state.set32_if(inside & good, self.at + CURSOR, place + runs);
        state.set32_if(inside & !good, self.at + LIMIT, STOPPED);
        lock.leave_if(inside);
        if good { self.spot(place) } else { NO_SPOT }
    }

    /// Appends a run, from its keeper; otherwise as [`reserve`](Self::reserve).
    #[inline(always)]
    pub(crate) fn append(
        self,
        head: Head,
        run: [u32; 3],
        keeper: u32,
        alone: bool,
        opaque: SharedMemory,
    ) -> u32 {
        let spot = self.reserve(head, 1, keeper, alone, opaque);
        if spot != NO_SPOT {
            self.put(spot, run);
        }
        spot
    }

    /// The same, whatever it takes. If the pool is used up, the run's events are counted as lost.
    #[inline(always)]
    pub(crate) fn append_further(self, run: [u32; 3], keeper: u32, opaque: SharedMemory) -> u32 {
        let spot = self.reserve_further(1, keeper, opaque);
        let [_, _, count] = run;
        if spot == NO_SPOT {
            self.lose(count);
        } else {
            self.put(spot, run);
        }
        spot
    }

    /// Where the run with this place lies.
    #[inline(always)]
    fn spot(self, place: u32) -> u32 {
        (place >> NUMBER_BITS) * self.state.get32(ORIGIN + 8) + number(place)
    }

    /// Writes a run to its spot.
    #[inline(always)]
    pub(crate) fn put(self, spot: u32, [mask, location, count]: [u32; 3]) {
        let address = get64(&self.state, ORIGIN) + u64::from(RUN_BYTES) * u64::from(spot);
        GlobalMemory::new(address, true).set128(0, [mask, location, count, 0]);
    }

    /// Claims a segment to follow that of `place`. Answers its number, or [`SEGMENTS_END`] or more if there is none.
    #[inline(always)]
    fn claim(self, place: u32) -> u32 {
        let pool = pool::descriptor();
        let segment = pool::claim_segment(&pool);
        let header = self.segment(place) - u64::from(CHUNK_HEADER_BYTES);
        GlobalMemory::new(header, true).set32(NEXT, segment);
        // From here on, warps that can should encode: the other half is for what comes of the logs.
        let mut state = self.state;
        let first = state.get32(self.at + FIRST);
        state.set32_if(segment > pool.chunk_count / 2, self.at + FIRST, first | LONG);
        segment
    }

    /// Counts events that found no room.
    #[inline(always)]
    pub(crate) fn lose(self, count: u32) {
        self.state.add64(LOST + 8 * self.track, u64::from(count));
    }

    /// The segments of the log, first to last, are given to `each`: number, and how many runs are in it. From one lane, when nobody appends.
    #[inline(always)]
    pub(crate) fn for_each_segment(self, mut each: impl FnMut(u32, Stretch)) {
        let Head { cursor, first, .. } = self.head();
        if first & !LONG == NO_SEGMENT {
            return;
        }
        let most = self.state.get32(ORIGIN + 12);
        let mut place = first & !LONG;
        loop {
            let address = self.segment(place);
            let last = place >> NUMBER_BITS == cursor >> NUMBER_BITS;
            let runs = if last { number(cursor) } else { most };
            // Read before `each`, which may write there.
            let next = GlobalMemory::new(address - u64::from(CHUNK_HEADER_BYTES), false).get32(NEXT);
            each(place >> NUMBER_BITS, Stretch { address, runs });
            if last {
                break;
            }
            place = next << NUMBER_BITS;
        }
    }

    /// Whether the log has no more than one segment.
    #[inline(always)]
    pub(crate) fn is_short(self) -> bool {
        let Head { cursor, first, .. } = self.head();
        cursor >> NUMBER_BITS == first >> NUMBER_BITS
    }

    /// Whether the log has a segment.
    #[inline(always)]
    pub(crate) fn has_segment(self) -> bool {
        self.head().first & !LONG != NO_SEGMENT
    }

    /// Makes the log empty, as it was opened. If events were lost already, those that follow are, too: what is recorded is a beginning.
    #[inline(always)]
    pub(crate) fn clear(mut self) {
        let first = self.head().first & !LONG;
        if first != NO_SEGMENT {
            let lost = get64(&self.state, LOST + 8 * self.track);
            let limit = if lost == 0 { self.state.get32(ORIGIN + 12) } else { STOPPED };
            self.state.set32(self.at + CURSOR, first);
            self.state.set32(self.at + FIRST, first);
            self.state.set32(self.at + LIMIT, limit);
        }
    }

    /// Address of the first run in a place's segment.
    #[inline(always)]
    fn segment(self, place: u32) -> u64 {
        let [low, high, runs_per_segment, _] = self.state.get128(ORIGIN);
        let runs = u64::from(place >> NUMBER_BITS) * u64::from(runs_per_segment);
        (u64::from(low) | u64::from(high) << 32) + u64::from(RUN_BYTES) * runs
    }
}

/// Writes the count of the run at `spot`.
#[inline(always)]
pub(crate) fn set_count(state: SharedMemory, spot: u32, count: u32) {
    let address = get64(&state, ORIGIN) + u64::from(RUN_BYTES) * u64::from(spot);
    GlobalMemory::new(address, true).set32(8, count);
}

/// What stands in the warp's state for its logs to be found: the address of run 0 in segment 0, the runs from one segment to the next, those that a
/// segment has room for.
#[inline(always)]
pub(crate) fn origin(pool: &PoolDescriptor) -> [u32; 4] {
    let first = pool.chunks + u64::from(CHUNK_HEADER_BYTES);
    [first as u32, (first >> 32) as u32, pool.chunk_bytes / RUN_BYTES, most_runs(pool.chunk_bytes)]
}

/// Runs that a segment of so many bytes has room for.
#[inline(always)]
const fn most_runs(chunk_bytes: u32) -> u32 {
    let runs = (chunk_bytes - CHUNK_HEADER_BYTES) / RUN_BYTES;
    if runs < MOST_RUNS { runs } else { MOST_RUNS }
}

/// Number of a place's run in its segment.
#[inline(always)]
const fn number(place: u32) -> u32 {
    place & ((1 << NUMBER_BITS) - 1)
}
