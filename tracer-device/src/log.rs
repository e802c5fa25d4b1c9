//! The logs: runs on their way to the encoder, in global memory.
//!
//! Each lane of a warp has a log of its own, so no two groups ever append to the same one: nothing has to be kept apart, and nobody waits. A run goes
//! to the log of its keeper, the lowest lane of its mask. It bears the time at which it began, and that is how the logs of a warp are merged into
//! one sequence afterwards (see `after::merge`).
//!
//! Log memory is counted in units of 16 bytes, from its start. A run takes one (see `unit`).
//!
//! A log is made of *segments* of 8 units, the last of which has the number of the next segment. In the first of them the first unit is for a log that has been
//! stopped.
//!
//! A warp's *slice*:
//!
//! ```text
//! units  holds
//!     8  for each lane the unit behind its last run, 4 bytes, or 0 if it has none; the highest bit says that the log has been stopped
//!   256  the lanes' first segments. In the first unit of a log that has been stopped: the unit behind its last run; 0; the time of the first run
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
use crate::space::{GlobalMemory, StateMemory};
#[cfg(any(not(target_arch = "nvptx64"), feature = "counted"))]
use crate::state::MORES;
use crate::state::{
    AREA, AREA_END, AREA_NEXT, DRAIN, LINKS, LOGS, PLACES, RECORDS, SLICE, SLICE_UNITS, TWIN_PLACES, WARP,
    WORK,
};
use crate::stream::get64;
use crate::unit::{KEEPS, Run};

/// Units of a lane's first segment.
pub(crate) const FIRST_UNITS: u32 = SEGMENT_UNITS;
/// Units of a segment, link included.
pub(crate) const SEGMENT_UNITS: u32 = 8;
/// Units of an area that is claimed.
const AREA_UNITS: u32 = 256;
/// Units of the lanes' ends in a slice; behind them are the first segments.
const ENDS_UNITS: u32 = simt::WARP_LANES * 4 / LOG_UNIT_BYTES;
/// Units before the warp's first area.
const LANES_UNITS: u32 = ENDS_UNITS + FIRST_UNITS * simt::WARP_LANES;

/// Units of a slice, by choice: with an area of 94 segments, of 30, of 14, or with one that has none.
pub const SLICE_UNITS_CHOICES: [u32; 4] = [1024, 512, 384, LANES_UNITS + SEGMENT_UNITS];
const _: () = assert!(LANES_UNITS.is_multiple_of(SEGMENT_UNITS), "so that all segments are aligned");

/// In a lane's end: the log has been stopped.
const STOPPED: u32 = 1 << 31;
/// Where in the first unit of a log that has been stopped the time of the first loss is, and whether there was one.
const T_LOST: u32 = 8;
const HAS_LOST: u32 = 12;

/// The logs of one track, in a warp's state.
#[derive(Clone, Copy)]
pub(crate) struct Log {
    state: StateMemory,
    /// Offset of the lanes' places, 8 bytes each; behind them are the words with their links, as many.
    places: u32,
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
    pub(crate) const fn new(state: StateMemory, places: u32, track: u32) -> Self {
        Self { state, places, track }
    }

    /// The lane's place: low and high half of the address of the next unit.
    #[inline(always)]
    fn place(self, lane: u32) -> [u32; 2] {
        self.state.get64(self.places + 8 * lane)
    }

    #[inline(always)]
    fn set_place(mut self, lane: u32, address: u64) {
        self.state.set64(self.places + 8 * lane, [address as u32, (address >> 32) as u32]);
    }

    /// Low half of the address of the link of the lane's segment.
    #[inline(always)]
    fn link(self, lane: u32) -> u32 {
        self.state.get32(self.places + (LINKS - PLACES) + 8 * lane)
    }

    #[inline(always)]
    fn set_link(mut self, lane: u32, link: u32) {
        self.state.set32(self.places + (LINKS - PLACES) + 8 * lane, link);
    }

    /// Whether the lane's segment has no place left.
    #[inline(always)]
    pub(crate) fn is_full(self, lane: u32) -> bool {
        let [low, high] = self.place(lane);
        (high != 0) & (low == self.link(lane))
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

    /// Puts the lane's place to the start of its log. In a log that has been stopped it is put to the place for what is lost, for all further segments
    /// become others'.
    #[inline(always)]
    pub(crate) fn rewind(self, lane: u32) {
        if is_stopped(self.link(lane)) {
            let link = self.unit(self.start(lane) + FIRST_UNITS - 1).address();
            self.set_place(lane, link);
            self.set_link(lane, link as u32 + LOG_UNIT_BYTES);
        } else {
            let address = self.unit(self.start(lane)).address();
            self.set_place(lane, address + u64::from(LOG_UNIT_BYTES));
            self.set_link(lane, address as u32 + LOG_UNIT_BYTES * (FIRST_UNITS - 1));
        }
    }

    /// Opens the lane's log in a slice, or leaves it switched off.
    #[inline(always)]
    pub(crate) fn open_or_not(mut self, lane: u32, on: bool, logs: u64, slice: u32) {
        let address = at_unit(logs, first_segment(slice, lane)).address();
        self.set_place(lane, if on { address + u64::from(LOG_UNIT_BYTES) } else { 0 });
        let link = address as u32 + LOG_UNIT_BYTES * (FIRST_UNITS - 1);
        self.state.set64(self.places + (LINKS - PLACES) + 8 * lane, [link, 0]);
    }

    /// Of a log that has been stopped: counts the run as lost that was appended last, if it still lies there.
    #[inline(always)]
    pub(crate) fn lose_if_full(self, lane: u32) {
        if self.is_full(lane) && is_stopped(self.link(lane)) {
            self.lose(lane);
        }
    }

    /// Gives a full log another segment, unless it has been stopped: see [`further`](Self::further). From the lane that the log belongs to.
    #[inline(always)]
    pub(crate) fn go_further(self, lane: u32) -> Further {
        if is_stopped(self.link(lane)) {
            return Further::Lose;
        }
        let group = if cfg!(target_arch = "nvptx64") { simt::active_mask() } else { 1 << lane };
        self.further(lane, group)
    }

    /// Gives a full log another segment. From the lane that the log belongs to, together with the others of `group`, whose logs are full too.
    ///
    /// They all go through the lock as one, with the number of their lowest: without a branch, they write the same and read the same. (Each for itself, all
    /// but one would find the lock taken. Then they would have to wait, and lanes of the kernel that wait for others would be let go: see `lock`.)
    #[inline(always)]
    fn further(self, lane: u32, group: u32) -> Further {
        // The area through the form of which the assembler cannot tell that it is the same: so its accesses stay between those that enter and leave.
        let mut opaque = self.state.seen_with(group);
        let lock = Lock::new(self.state, opaque, group.trailing_zeros());
        let inside = lock.enter();
        let (next, end) = (opaque.get32(AREA_NEXT), opaque.get32(AREA_END));
        // As many as there are.
        let left = end.saturating_sub(next) / SEGMENT_UNITS;
        let wanted = group.count_ones();
        let taken = if wanted < left { wanted } else { left };
        opaque.set32_if(inside, AREA_NEXT, next + SEGMENT_UNITS * taken);
        lock.leave_if(inside);
        let own = (group & ((1 << lane) - 1)).count_ones();
        if inside & (own < taken) {
            self.go_on(lane, next + SEGMENT_UNITS * own);
            Further::Done
        } else {
            Further::Claim
        }
    }

    /// The same, whatever it takes: an area is claimed. From any lanes together, of which each has a log that is full.
    #[inline(always)]
    pub(crate) fn claim(self, lane: u32) {
        let mut opaque = self.state.seen_with(lane);
        let lock = Lock::new(self.state, opaque, lane);
        let inside = lock.insist();
        let mut segment = opaque.look32(AREA_NEXT);
        let mut good = inside;
        if inside & (segment >= opaque.look32(AREA_END)) {
            // As in `further`: not before it is entered, and not after it is left.
            let area = Self { state: opaque, ..self }.next_area();
            good = area != 0;
            segment = area + SEGMENT_UNITS;
        }
        opaque.set32_if(good, AREA_NEXT, segment + SEGMENT_UNITS);
        lock.leave_if(inside);
        if good {
            self.go_on(lane, segment);
        } else {
            let [low, high] = self.place(lane);
            let end = (address(low, high) - get64(&self.state, LOGS)) / u64::from(LOG_UNIT_BYTES);
            self.unit(self.start(lane)).set128(0, [end as u32, 0, 0, 1]);
            self.set_link(lane, low + LOG_UNIT_BYTES);
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
    fn go_on(self, lane: u32, segment: u32) {
        let [low, high] = self.place(lane);
        GlobalMemory::new(address(low, high), true).set32(0, segment);
        let next = self.unit(segment).address();
        self.set_place(lane, next);
        self.set_link(lane, next as u32 + LOG_UNIT_BYTES * (SEGMENT_UNITS - 1));
    }

    /// Counts the run as lost that was appended last to a log for which there is no more room. It lies in the place of the link, which there will
    /// never be. So will the next.
    #[inline(always)]
    pub(crate) fn lose(mut self, lane: u32) {
        let [low, high] = self.place(lane);
        // Segments do not lie across a multiple of 4 GiB, but one may end there.
        let low = low.wrapping_sub(LOG_UNIT_BYTES);
        let run = Run::of_unit(GlobalMemory::new(address(low, high), true).get128(0));
        self.state.set32(self.places + 8 * lane, low);
        let mut first = self.unit(self.start(lane));
        if first.get32(HAS_LOST) == 1 {
            first.set64(T_LOST, [run.time, 2]);
        }
        let pool = pool::descriptor();
        let count = u64::from(run.count);
        pool::add_to_account(pool.account(self.track, self.state.get32(WARP)), [count, 0, count], 0);
    }

    /// Appends a run, for which there is room. Answers whether something is due: [`further`](Self::further) knows what.
    #[inline(always)]
    pub(crate) fn append_if(self, lane: u32, condition: bool, unit: [u32; 4]) -> bool {
        let [low, high] = self.place(lane);
        let on = condition & (high != 0);
        GlobalMemory::new(address(low, high), on).set128_if(on, unit);
        let mut state = self.state;
        state.set32_if(on, self.places + 8 * lane, low.wrapping_add(LOG_UNIT_BYTES));
        on & (low.wrapping_add(LOG_UNIT_BYTES) == self.link(lane))
    }

    /// Writes down where the log ends.
    #[inline(always)]
    pub(crate) fn close(self, lane: u32) {
        let [low, high] = self.place(lane);
        let mut end = ((address(low, high) - get64(&self.state, LOGS)) / u64::from(LOG_UNIT_BYTES)) as u32;
        if is_stopped(self.link(lane)) {
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
        Self { first, link: start + FIRST_UNITS - 1, end: if end == 0 { first } else { end }, lost_from }
    }
}

/// First unit of a lane's log in a slice.
#[inline(always)]
fn first_segment(slice: u32, lane: u32) -> u32 {
    slice + ENDS_UNITS + FIRST_UNITS * lane
}

/// Of the run that the lane is in: mask and key. Appends it to the lane's log if the lane keeps it, and makes another the lane's own: mask, key, count if the
/// key says so. From all lanes of a group, each with its own. Answers whether something is due: the lane's log is full, or memory is short and these are all
/// live lanes. Then, or before, [`set_began`] is due.
///
/// On the device `old` is the lane's record, which has just been read.
#[inline(always)]
pub(crate) fn begin_run(state: StateMemory, lane: u32, old: [u32; 2], run: [u32; 3]) -> bool {
    #[cfg(target_arch = "nvptx64")]
    {
        let _ = lane;
        state.begin_run(state.own(), old, run)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = old;
        let mut state = state;
        let [mask, key, more] = run;
        let slow = end_own_run(state, lane);
        state.set64(RECORDS + 8 * lane, [mask, key]);
        state.set32(MORES + 8 * lane, more);
        slow | (state.get32(DRAIN) == mask)
    }
}

/// Writes down when the run began that is the lane's own now.
#[inline(always)]
pub(crate) fn set_began(state: StateMemory, lane: u32, time: u32) {
    #[cfg(target_arch = "nvptx64")]
    {
        let _ = lane;
        StateMemory::set_began(state.own(), time);
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let mut state = state;
        state.set32(LINKS + 8 * lane + 4, time);
    }
}

/// Appends a run to the twin's log of this lane, if it `keeps` it. Answers whether the log is full.
#[inline(always)]
pub(crate) fn append_to_twin(state: StateMemory, lane: u32, keeps: bool, run: Run) -> bool {
    Log::new(state, TWIN_PLACES, 1).append_if(lane, keeps, run.unit())
}

/// Ends the run that the lane is in: appends it to its log, if it keeps it; there is room for one run at any time. Answers whether the log is full then.
#[inline(always)]
pub(crate) fn end_own_run(state: StateMemory, lane: u32) -> bool {
    let [mask, key] = state.get64(RECORDS + 8 * lane);
    #[cfg(any(not(target_arch = "nvptx64"), feature = "counted"))]
    let more = state.get32(MORES + 8 * lane);
    #[cfg(all(target_arch = "nvptx64", not(feature = "counted")))]
    let more = 0;
    let time = state.get32(LINKS + 8 * lane + 4);
    Log::new(state, PLACES, 0).append_if(lane, key & KEEPS != 0, [mask, key, more, time])
}

/// Whether the log of the lane has been stopped.
#[inline(always)]
pub(crate) fn has_stopped(state: StateMemory, lane: u32) -> bool {
    is_stopped(state.get32(LINKS + 8 * lane))
}

/// The live lanes of the warp.
#[inline(always)]
pub(crate) fn live_lanes(state: StateMemory) -> u32 {
    let (mut lane, mut live) = (0, 0);
    while lane < simt::WARP_LANES {
        live |= u32::from(state.get32(PLACES + 8 * lane + 4) != 0) << lane;
        lane += 1;
    }
    live
}

/// Writes down that there is nothing in the log of a lane which the warp does not have.
#[inline(always)]
pub(crate) fn set_absent(logs: u64, slice: u32, lane: u32) {
    at_unit(logs, slice).set32(4 * lane, 0);
}

/// Prepares the first area of a warp, in its slice of so many units. What a lane does that does not lead is for nothing.
#[inline(always)]
pub(crate) fn open_area(mut state: StateMemory, leads: bool, logs: u64, slice: u32, slice_units: u32) {
    let area = slice + LANES_UNITS;
    GlobalMemory::new(at_unit(logs, area).address(), leads).set32_if(leads, 0, 0);
    rewind_area(&mut state, area, slice + slice_units);
}

/// The first area again, with all that were claimed behind it.
#[inline(always)]
pub(crate) fn rewind_first_area(mut state: StateMemory) {
    let area = state.get32(SLICE) + LANES_UNITS;
    let end = state.get32(SLICE) + state.get32(SLICE_UNITS);
    rewind_area(&mut state, area, end);
}

#[inline(always)]
fn rewind_area(state: &mut StateMemory, area: u32, end: u32) {
    state.set64(AREA_NEXT, [area + SEGMENT_UNITS, end]);
    state.set32(AREA, area);
}

/// Log memory from a unit on.
#[inline(always)]
pub(crate) fn at_unit(logs: u64, unit: u32) -> GlobalMemory {
    GlobalMemory::new(logs + u64::from(LOG_UNIT_BYTES) * u64::from(unit), true)
}

/// Links lie in the last unit of a multiple of 128 bytes. That of a log that has been stopped is moved behind it.
#[inline(always)]
const fn is_stopped(link: u32) -> bool {
    link.is_multiple_of(LOG_UNIT_BYTES * FIRST_UNITS)
}

#[inline(always)]
fn address(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}
