//! The logs: runs on their way to the encoder, in global memory.
//!
//! Each lane of a warp has a log of its own, so no two groups ever append to the same one: nothing has to be kept apart, and nobody waits. A run goes
//! to the log of its keeper, the highest lane of its mask. It bears the time at which it began, and that is how the logs of a warp are merged into
//! one sequence afterwards (see `merge`).
//!
//! Log memory is counted in units of 16 bytes, from its start. A run takes one:
//!
//! ```text
//! offset  size  field
//!      0     4  mask
//!      4     2  location
//!      6     1  among runs that began at the same time: which is first
//!      7     1  of the record that it was; means nothing here
//!      8     4  count
//!     12     4  time of its beginning, modulo 2^32
//! ```
//!
//! A log is made of *segments* of 8 units, the last of which has the number of the next segment; the first has 4. (What a lane appends first is its
//! empty record: it takes the first segment's first place, where nobody looks for a run.)
//!
//! A warp's *slice*:
//!
//! ```text
//! units  holds
//!     8  for each lane the unit behind its last run, 4 bytes, or 0 if it has none; the highest bit says that the log has been stopped
//!   128  the lanes' first segments. In the first place of a log that has been stopped: the unit behind its last run; 0; the time of the first run
//!        that found no room; 1, or 2 if there was one
//!     …  the warp's first area
//! ```
//!
//! Further segments are taken out of the area, inside the lock. The first segment's place in an area has the number of the area that follows.
//! Areas are claimed from all of log memory; they are the warp's until the kernel ends.
//!
//! The time is that of the multiprocessor's clock, in units of 16 cycles: two events of one lane are further apart. So it goes round after 2^36
//! cycles, more than half a minute, and a warp must not be without any run for so long.

use warptrace_format::Memory;
use warptrace_format::pool::LOG_UNIT_BYTES;

use crate::drain::drain_units;
use crate::lock::Lock;
use crate::pool;
use crate::simt;
use crate::space::{GlobalMemory, SharedMemory};
use crate::state::{
    AREA, AREA_END, AREA_NEXT, CURSORS, DRAIN, LOGS, RECORDS, SLICE, SLICE_UNITS, TWIN_CURSORS, WARP, WORK,
};
use crate::stream::get64;

/// Units of a lane's first segment, first place and link included.
pub(crate) const FIRST_UNITS: u32 = 4;
/// Units of other segments, link included.
pub(crate) const SEGMENT_UNITS: u32 = 8;
/// Units of an area that is claimed.
const AREA_UNITS: u32 = 256;
/// Units of the lanes' ends in a slice; behind them are the first segments.
const ENDS_UNITS: u32 = simt::WARP_LANES * 4 / LOG_UNIT_BYTES;
/// Units before the warp's first area.
const LANES_UNITS: u32 = ENDS_UNITS + FIRST_UNITS * simt::WARP_LANES;

/// Units of a slice, by choice: with an area of 14 segments, or with one that has none.
pub const SLICE_UNITS_CHOICES: [u32; 2] = [256, LANES_UNITS + SEGMENT_UNITS];

/// In a lane's end: the log has been stopped.
const STOPPED: u32 = 1 << 31;
/// Where in the first place of a log that has been stopped the time of the first loss is, and whether there was one.
const T_LOST: u32 = 8;
const HAS_LOST: u32 = 12;

/// In the word of a record and of a run that has the location: nobody may count repeats of it.
pub(crate) const UNREPEATABLE: u32 = 0x80 << 24;
/// Where in that word the order among runs of the same time is.
pub(crate) const RANK_BITS: u32 = 16;

/// The logs of one track, in a warp's state.
#[derive(Clone, Copy)]
pub(crate) struct Log {
    state: SharedMemory,
    /// Offset of the lanes' cursors: 16 bytes each. The address of the next run; the low half of the link's; in track 0 where the record is of the
    /// run that the lane was in last.
    cursors: u32,
    track: u32,
}

/// What is due after [`Log::further`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Further {
    /// Nothing.
    Done,
    /// [`Log::claim`].
    Claim,
    /// [`Log::lose`].
    Lose,
}

impl Log {
    #[inline(always)]
    pub(crate) const fn new(state: SharedMemory, cursors: u32, track: u32) -> Self {
        Self { state, cursors, track }
    }

    /// First unit of the lane's log.
    #[inline(always)]
    fn start(self, lane: u32) -> u32 {
        first_segment(self.state.get32(SLICE + 4 * self.track), lane)
    }

    /// Writes the lane's end.
    #[inline(always)]
    fn set_end(self, lane: u32, end: u32) {
        self.unit(self.state.get32(SLICE + 4 * self.track)).set32(4 * lane, end);
    }

    /// Memory from a unit on.
    #[inline(always)]
    fn unit(self, unit: u32) -> GlobalMemory {
        at_unit(get64(&self.state, LOGS), unit)
    }

    /// Puts the lane's cursor to the start of its log. Behind the first place, if what it appends first `counts`. In a log that has been stopped it is put to
    /// the place for what is lost, for all further segments become others'.
    #[inline(always)]
    pub(crate) fn rewind(mut self, lane: u32, counts: bool) {
        let at = self.cursors + 16 * lane;
        if is_stopped(self.state.get32(at + 8)) {
            let link = self.unit(self.start(lane) + FIRST_UNITS - 1).address();
            self.state.set64(at, [link as u32, (link >> 32) as u32]);
            self.state.set32(at + 8, link as u32 + LOG_UNIT_BYTES);
        } else {
            self.open(lane, counts);
        }
    }

    /// Opens the lane's log.
    #[inline(always)]
    pub(crate) fn open(mut self, lane: u32, counts: bool) {
        let address = self.unit(self.start(lane)).address();
        let next = address + if counts { u64::from(LOG_UNIT_BYTES) } else { 0 };
        let link = address as u32 + LOG_UNIT_BYTES * (FIRST_UNITS - 1);
        // The record that is marked as unrepeatable first may be any.
        let words = [next as u32, (next >> 32) as u32, link, self.state.get32(self.cursors + 16 * lane + 12)];
        self.state.set128(self.cursors + 16 * lane, words);
    }

    /// Of a log that has been stopped: counts the run as lost that was appended last, if it still lies there.
    #[inline(always)]
    pub(crate) fn lose_if_full(self, lane: u32) {
        let [low, _, link, _] = self.state.get128(self.cursors + 16 * lane);
        if is_stopped(link) && low == link {
            self.lose(lane);
        }
    }

    /// The log of a lane that the warp does not have: there is nothing in it.
    #[inline(always)]
    pub(crate) fn open_absent(self, lane: u32) {
        self.set_end(lane, 0);
    }

    /// Gives a full log another segment. From the lane that the log belongs to.
    #[inline(always)]
    pub(crate) fn further(mut self, lane: u32) -> Further {
        let at = self.cursors + 16 * lane;
        let [low, _, link, _] = self.state.get128(at);
        if is_stopped(link) {
            return Further::Lose;
        }
        // Without waiting, which would let lanes of the kernel go that wait for others (see `lock`).
        let opaque = self.state.seen_with(low);
        let lock = Lock::new(self.state, opaque, lane);
        if !lock.enter() {
            return Further::Claim;
        }
        let segment = opaque.get32(AREA_NEXT);
        let fits = segment != opaque.get32(AREA_END);
        self.state.set32_if(fits, AREA_NEXT, segment + SEGMENT_UNITS);
        lock.leave_if(true);
        if fits {
            self.go_on(lane, segment);
            Further::Done
        } else {
            Further::Claim
        }
    }

    /// The same, whatever it takes: an area is claimed. From any lanes together, of which each has a log that is full.
    #[inline(always)]
    pub(crate) fn claim(mut self, lane: u32) {
        let opaque = self.state.seen_with(lane);
        let lock = Lock::new(self.state, opaque, lane);
        let inside = lock.insist();
        let mut segment = self.state.look32(AREA_NEXT);
        let mut good = inside;
        if inside & (segment == self.state.look32(AREA_END)) {
            let area = self.next_area();
            good = area != 0;
            segment = area + SEGMENT_UNITS;
        }
        self.state.set32_if(good, AREA_NEXT, segment + SEGMENT_UNITS);
        lock.leave_if(inside);
        if good {
            self.go_on(lane, segment);
        } else {
            let at = self.cursors + 16 * lane;
            let [low, high, _, _] = self.state.get128(at);
            let end = (address(low, high) - get64(&self.state, LOGS)) / u64::from(LOG_UNIT_BYTES);
            self.unit(self.start(lane)).set128(0, [end as u32, 0, 0, 1]);
            self.state.set32(at + 8, low + LOG_UNIT_BYTES);
        }
    }

    /// The area that follows the current one, which is full; 0 if there is no memory for one. Inside the lock.
    #[inline(always)]
    fn next_area(mut self) -> u32 {
        let mut current = self.unit(self.state.look32(AREA));
        // One that was in use before the logs were emptied, or a new one.
        let mut area = current.get32(0);
        let pool = pool::descriptor();
        if area == 0 {
            area = pool::claim_units(&pool, AREA_UNITS);
            if area != 0 {
                current.set32(0, area);
                self.unit(area).set32(0, 0);
            }
        }
        // Where half of memory is taken, who can should encode, if there is memory to do it in. (So it is in areas that are used again.)
        if area >= pool.log_units / 2 || area == 0 {
            let mut work = self.state.get32(WORK);
            if work == 0 {
                work = pool::claim_units(&pool, drain_units());
                self.state.set32(WORK, work);
            }
            self.state.set32_if(work != 0, DRAIN, live_lanes(self.state));
        }
        self.state.set32_if(area != 0, AREA, area);
        self.state.set32_if(area != 0, AREA_END, area + AREA_UNITS);
        area
    }

    /// Goes on with a segment.
    #[inline(always)]
    fn go_on(mut self, lane: u32, segment: u32) {
        let at = self.cursors + 16 * lane;
        let [low, high, _, _] = self.state.get128(at);
        GlobalMemory::new(address(low, high), true).set32(0, segment);
        let next = self.unit(segment).address();
        self.state.set64(at, [next as u32, (next >> 32) as u32]);
        self.state.set32(at + 8, next as u32 + LOG_UNIT_BYTES * (SEGMENT_UNITS - 1));
    }

    /// Counts the run as lost that was appended last to a log for which there is no more room. It lies in the place of the link, which there will
    /// never be. So will the next.
    #[inline(always)]
    pub(crate) fn lose(mut self, lane: u32) {
        let at = self.cursors + 16 * lane;
        let [low, high] = self.state.get64(at);
        let [_, _, count, time] = GlobalMemory::new(address(low, high), true).before();
        self.state.set32(at, low - LOG_UNIT_BYTES);
        let mut first = self.unit(self.start(lane));
        if first.get32(HAS_LOST) == 1 {
            first.set64(T_LOST, [time, 2]);
        }
        let pool = pool::descriptor();
        let count = u64::from(count);
        pool::add_to_account(pool.account(self.track, self.state.get32(WARP)), [count, 0, count], 0);
    }

    /// Writes down where the log ends.
    #[inline(always)]
    pub(crate) fn close(self, lane: u32) {
        let [low, high, link, _] = self.state.get128(self.cursors + 16 * lane);
        let mut end = ((address(low, high) - get64(&self.state, LOGS)) / u64::from(LOG_UNIT_BYTES)) as u32;
        if is_stopped(link) {
            end = self.unit(self.start(lane)).get32(0) | STOPPED;
        }
        self.set_end(lane, end);
    }

    /// Makes all logs of the track empty. What was lost stays lost, and so will be what follows.
    #[inline(always)]
    pub(crate) fn empty(self) {
        let mut lane = 0;
        let slice = self.state.get32(SLICE + 4 * self.track);
        while lane < simt::WARP_LANES {
            let stopped = self.unit(slice).get32(4 * lane) & STOPPED;
            self.set_end(lane, stopped);
            self.unit(self.start(lane)).set32_if(stopped != 0, 0, 0);
            lane += 1;
        }
    }
}

/// What a slice says of one lane's log.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    /// Unit of the first run.
    pub(crate) first: u32,
    /// Unit of its segment's link.
    pub(crate) link: u32,
    /// Unit behind the last run; that of the first if there is none.
    pub(crate) end: u32,
    /// Time of the first run that found no room, if one did not.
    pub(crate) lost_from: Option<u32>,
}

impl Extent {
    /// Of the log of a lane in a slice.
    #[inline(always)]
    pub(crate) fn read(logs: u64, slice: u32, lane: u32) -> Self {
        let start = first_segment(slice, lane);
        let word = at_unit(logs, slice).get32(4 * lane);
        let mut lost_from = None;
        if word & STOPPED != 0 {
            let [_, _, time, lost] = at_unit(logs, start).get128(0);
            lost_from = if lost == 2 { Some(time) } else { None };
        }
        let end = word & !STOPPED;
        let first = start + 1;
        // One whose first place alone has been used has no runs.
        let is_empty = end == 0 || end == start;
        Self { first, link: start + FIRST_UNITS - 1, end: if is_empty { first } else { end }, lost_from }
    }
}

/// First unit of a lane's log in a slice.
#[inline(always)]
fn first_segment(slice: u32, lane: u32) -> u32 {
    slice + ENDS_UNITS + FIRST_UNITS * lane
}

/// Appends the run that the lane has kept to its log, and makes it keep another, from all lanes of the group: `keeps` says which of them. The run before
/// it that each was in becomes unrepeatable. Answers whether the log is full.
#[inline(always)]
pub(crate) fn begin_run(state: SharedMemory, lane: u32, keeper: u32, keeps: bool, run: [u32; 4]) -> bool {
    #[cfg(target_arch = "nvptx64")]
    return state.begin_run::<RECORDS, CURSORS>(16 * lane, 16 * keeper, keeps, run);
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let mut state = state;
        let at = CURSORS + 16 * lane;
        let [low, high, link, last] = state.get128(at);
        let mut last_location = state.get32(last + 4);
        last_location |= UNREPEATABLE;
        state.set32(last + 4, last_location);
        state.set32(at + 12, state.record_at(keeper));
        if !keeps || high == 0 {
            return false;
        }
        let [mask, location, count, time] = run;
        let location = location | (count & UNREPEATABLE);
        GlobalMemory::new(address(low, high), true).set128(0, state.get128(RECORDS + 16 * lane));
        state.set128(RECORDS + 16 * lane, [mask, location, count, time]);
        state.set32(at, low + LOG_UNIT_BYTES);
        low + LOG_UNIT_BYTES == link
    }
}

/// Appends a run to the twin's log of this lane, if it `keeps` it. Answers whether the log is full.
#[inline(always)]
pub(crate) fn append_to_twin(state: SharedMemory, lane: u32, keeps: bool, run: [u32; 4]) -> bool {
    let mut state = state;
    let at = TWIN_CURSORS + 16 * lane;
    let [low, high, link, _] = state.get128(at);
    let on = keeps & (high != 0);
    GlobalMemory::new(address(low, high), on).set128_if(on, run);
    state.set32_if(on, at, low + LOG_UNIT_BYTES);
    on & (low + LOG_UNIT_BYTES == link)
}

/// Ends the run that the lane keeps: appends it to its log, where there is room for one run at any time. Answers whether the log has been stopped;
/// [`Log::lose`] is due then.
#[inline(always)]
pub(crate) fn end_own_run(state: SharedMemory, lane: u32) -> bool {
    let mut state = state;
    let at = CURSORS + 16 * lane;
    let [low, high, link, _] = state.get128(at);
    let run = state.get128(RECORDS + 16 * lane);
    let [_, _, count, _] = run;
    let ends = (count != 0) & (high != 0);
    GlobalMemory::new(address(low, high), ends).set128_if(ends, run);
    state.set32_if(ends, at, low + LOG_UNIT_BYTES);
    ends & is_stopped(link)
}

/// The live lanes of the warp.
#[inline(always)]
pub(crate) fn live_lanes(state: SharedMemory) -> u32 {
    let (mut lane, mut live) = (0, 0);
    while lane < simt::WARP_LANES {
        live |= u32::from(state.get32(CURSORS + 16 * lane + 4) != 0) << lane;
        lane += 1;
    }
    live
}

/// Prepares the first area of a warp, in its slice. From one lane.
#[inline(always)]
pub(crate) fn open_area(mut state: SharedMemory, leads: bool) {
    let area = state.get32(SLICE) + LANES_UNITS;
    let end = state.get32(SLICE) + state.get32(SLICE_UNITS);
    GlobalMemory::new(at_unit(get64(&state, LOGS), area).address(), leads).set32_if(leads, 0, 0);
    rewind_area(&mut state, area, end);
}

/// The first area again, with all that were claimed behind it.
#[inline(always)]
pub(crate) fn rewind_first_area(mut state: SharedMemory) {
    let area = state.get32(SLICE) + LANES_UNITS;
    let end = state.get32(SLICE) + state.get32(SLICE_UNITS);
    rewind_area(&mut state, area, end);
}

#[inline(always)]
fn rewind_area(state: &mut SharedMemory, area: u32, end: u32) {
    state.set64(AREA_NEXT, [area + SEGMENT_UNITS, end]);
    state.set32(AREA, area);
}

/// Log memory from a unit on.
#[inline(always)]
pub(crate) fn at_unit(logs: u64, unit: u32) -> GlobalMemory {
    GlobalMemory::new(logs + u64::from(LOG_UNIT_BYTES) * u64::from(unit), true)
}

/// Links lie in the last unit of a multiple of 64 bytes. That of a log that has been stopped is moved behind it.
#[inline(always)]
const fn is_stopped(link: u32) -> bool {
    link.is_multiple_of(LOG_UNIT_BYTES * FIRST_UNITS)
}

#[inline(always)]
fn address(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}
