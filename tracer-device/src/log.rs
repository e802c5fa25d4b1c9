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
//! Further segments are taken out of the warp's area (see `area`).
//!
//! The time is that of the multiprocessor's clock, in units of 16 cycles: two events of one lane are further apart. So it goes round after 2^36
//! cycles, more than half a minute, and a warp must not be without any run for so long.

use warptrace_format::Memory;
use warptrace_format::pool::LOG_UNIT_BYTES;

use crate::area::Area;
use crate::pool;
use crate::simt;
use crate::space::{GlobalMemory, StateMemory};
#[cfg(any(not(target_arch = "nvptx64"), feature = "counted"))]
use crate::state::MORES;
use crate::state::{LINKS, LOGS, PLACES, RECORDS, SLICE, WARP, log, twin_log};
use crate::stream::get64;
use crate::unit::{NOWHERE, Run};

/// Units of a lane's first segment.
pub(crate) const FIRST_UNITS: u32 = SEGMENT_UNITS;
/// Units of a segment, link included.
pub(crate) const SEGMENT_UNITS: u32 = 8;
/// Units of the lanes' ends in a slice; behind them are the first segments.
const ENDS_UNITS: u32 = simt::WARP_LANES * 4 / LOG_UNIT_BYTES;
/// Units before the warp's first area.
const LANES_UNITS: u32 = ENDS_UNITS + FIRST_UNITS * simt::WARP_LANES;

/// Units of a slice, by choice: with an area of 94 segments, of 30, of 14, or with one that has none.
pub const SLICE_UNITS_CHOICES: [u32; 4] = [1024, 512, 384, LANES_UNITS + SEGMENT_UNITS];
const _: () = assert!(LANES_UNITS.is_multiple_of(SEGMENT_UNITS), "so that all segments are aligned");

/// The record of a lane that has not been in a run yet: all lanes, at no location. Lane 0 keeps that, too, in a place where nothing is looked for: the first unit
/// of its log.
pub(crate) const NOTHING: [u32; 2] = [u32::MAX, NOWHERE];
const NOTHING_BYTES: u32 =
    if cfg!(all(target_arch = "nvptx64", feature = "counted")) { LOG_UNIT_BYTES } else { 0 };

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

impl Log {
    #[inline(always)]
    pub(crate) const fn new(state: StateMemory, places: u32, track: u32) -> Self {
        Self { state, places, track }
    }

    /// Address of the next unit of the lane's log; its high half is 0 while nothing is recorded.
    #[inline(always)]
    fn place(self, lane: u32) -> u64 {
        let [low, high] = self.state.get64(self.places + 8 * lane);
        u64::from(low) | u64::from(high) << 32
    }

    /// Low half of the address of the link of the lane's segment.
    #[inline(always)]
    fn link(self, lane: u32) -> u32 {
        self.state.get32(self.places + (LINKS - PLACES) + 8 * lane)
    }

    #[inline(always)]
    fn set_place(self, lane: u32, address: u64, link: u32) {
        self.set_place_if(true, lane, address, link);
    }

    #[inline(always)]
    fn set_place_if(mut self, condition: bool, lane: u32, address: u64, link: u32) {
        self.set_low_if(condition, lane, address as u32);
        self.state.set32_if(condition, self.places + 8 * lane + 4, (address >> 32) as u32);
        self.set_link_if(condition, lane, link);
    }

    #[inline(always)]
    fn set_low_if(mut self, condition: bool, lane: u32, low: u32) {
        self.state.set32_if(condition, self.places + 8 * lane, low);
    }

    #[inline(always)]
    fn set_link_if(mut self, condition: bool, lane: u32, link: u32) {
        self.state.set32_if(condition, self.places + (LINKS - PLACES) + 8 * lane, link);
    }

    /// Whether the lane's segment has no place left.
    #[inline(always)]
    pub(crate) fn is_full(self, lane: u32) -> bool {
        let place = self.place(lane);
        (place >> 32 != 0) & (place as u32 == self.link(lane))
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
        let first = self.unit(self.start(lane)).address();
        let link = first + u64::from(LOG_UNIT_BYTES * (FIRST_UNITS - 1));
        if is_stopped(self.link(lane)) {
            self.set_place(lane, link, link as u32 + LOG_UNIT_BYTES);
        } else {
            self.set_place(lane, first + u64::from(LOG_UNIT_BYTES), link as u32);
        }
    }

    /// Opens the lane's log in a slice, or leaves it switched off.
    #[inline(always)]
    pub(crate) fn open_or_not(mut self, lane: u32, on: bool, logs: u64, slice: u32) {
        let first = at_unit(logs, first_segment(slice, lane)).address();
        let link = first as u32 + LOG_UNIT_BYTES * (FIRST_UNITS - 1);
        let place =
            first + u64::from(if lane == 0 && self.track == 0 { NOTHING_BYTES } else { LOG_UNIT_BYTES });
        self.state.set64(self.places + 8 * lane, [place as u32, if on { (place >> 32) as u32 } else { 0 }]);
        self.state.set64(self.places + (LINKS - PLACES) + 8 * lane, [link, 0]);
    }

    /// Switches the lane's log off.
    #[inline(always)]
    pub(crate) fn switch_off(mut self, lane: u32) {
        self.state.set32(self.places + 8 * lane + 4, 0);
    }

    /// Whether anything is recorded in the lane's log.
    #[inline(always)]
    pub(crate) fn is_on(self, lane: u32) -> bool {
        self.state.get32(self.places + 8 * lane + 4) != 0
    }

    /// Whether the lane's log has been stopped.
    #[inline(always)]
    pub(crate) fn has_stopped(self, lane: u32) -> bool {
        is_stopped(self.link(lane))
    }

    /// Of a log that has been stopped: counts the run as lost that was appended last, if it still lies there.
    #[inline(always)]
    pub(crate) fn lose_if_full(self, lane: u32) {
        if self.is_full(lane) && self.has_stopped(lane) {
            self.lose(lane);
        }
    }

    /// Gives another segment to each log of the lanes that are here that is full. Answers whether that was all: if not, [`claim`](Self::claim) is due.
    ///
    /// All lanes of a group call it together, whether their logs are full or not. So they stay together: nothing is done under a branch at which they
    /// could part. On the simulator each lane calls it for itself.
    #[inline(always)]
    pub(crate) fn extend(self, lane: u32) -> bool {
        let Needs { extends, stopped } = self.needs(lane);
        let rest = !simt::is_any(stopped);
        let lanes = simt::those(extends, lane);
        if lanes == 0 {
            return rest;
        }
        let first = Area::of(self.state).take(lanes);
        self.go_on_if(extends & (first != 0), lane, first + SEGMENT_UNITS * rank(lane, lanes));
        rest & (first != 0)
    }

    /// The same, whatever it takes, and counts what is lost in logs that have been stopped.
    #[inline(always)]
    pub(crate) fn claim(self, lane: u32) {
        let Needs { extends, stopped } = self.needs(lane);
        let lanes = simt::those(extends, lane);
        if lanes != 0 {
            let segments = Area::of(self.state).claim(self.state, lanes);
            let segment = segments.get(rank(lane, lanes));
            self.go_on_if(extends & (segment != 0), lane, segment);
            self.stop_if(extends & (segment == 0), lane);
        }
        if stopped {
            self.lose(lane);
        }
    }

    #[inline(always)]
    fn needs(self, lane: u32) -> Needs {
        let (full, has_stopped) = (self.is_full(lane), self.has_stopped(lane));
        Needs { extends: full & !has_stopped, stopped: full & has_stopped }
    }

    /// Goes on with a segment.
    #[inline(always)]
    fn go_on_if(self, condition: bool, lane: u32, segment: u32) {
        GlobalMemory::new(self.place(lane), true).set32_if(condition, 0, segment);
        let next = self.unit(segment).address();
        self.set_place_if(condition, lane, next, next as u32 + LOG_UNIT_BYTES * (SEGMENT_UNITS - 1));
    }

    /// Stops a log for which there is no more room.
    #[inline(always)]
    fn stop_if(self, condition: bool, lane: u32) {
        let place = self.place(lane);
        let end = place.wrapping_sub(get64(&self.state, LOGS)) / u64::from(LOG_UNIT_BYTES);
        self.unit(self.start(lane)).set128_if(condition, [end as u32, 0, 0, 1]);
        self.set_link_if(condition, lane, (place as u32).wrapping_add(LOG_UNIT_BYTES));
    }

    /// Counts the run as lost that was appended last to a log for which there is no more room. It lies in the place of the link, which there will
    /// never be. So will the next.
    #[inline(always)]
    pub(crate) fn lose(self, lane: u32) {
        // Segments do not lie across a multiple of 4 GiB, but one may end there: then the place is that of the run, less 4 GiB.
        let place = self.place(lane);
        let low = (place as u32).wrapping_sub(LOG_UNIT_BYTES);
        let run = GlobalMemory::new(place & !u64::from(u32::MAX) | u64::from(low), true).get128(0);
        let run = Run::of_unit(run);
        self.set_low_if(true, lane, low);
        let mut first = self.unit(self.start(lane));
        if first.get32(HAS_LOST) == 1 {
            first.set64(T_LOST, [run.time, 2]);
        }
        let pool = pool::descriptor();
        let count = u64::from(run.count);
        pool::add_to_account(pool.account(self.track, self.state.get32(WARP)), [count, 0, count], 0);
    }

    /// Appends a run, for which there is room. Answers whether the log is full then, and [`extend`](Self::extend) is due.
    #[inline(always)]
    pub(crate) fn append_if(self, lane: u32, condition: bool, unit: [u32; 4]) -> bool {
        let place = self.place(lane);
        let on = condition & (place >> 32 != 0);
        GlobalMemory::new(place, on).set128_if(on, unit);
        let next = (place as u32).wrapping_add(LOG_UNIT_BYTES);
        self.set_low_if(on, lane, next);
        on & (next == self.link(lane))
    }

    /// Writes down where the log ends.
    #[inline(always)]
    pub(crate) fn close(self, lane: u32) {
        let mut end = ((self.place(lane) - get64(&self.state, LOGS)) / u64::from(LOG_UNIT_BYTES)) as u32;
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

/// What a lane's log needs.
struct Needs {
    /// Another segment.
    extends: bool,
    /// [`lose`](Log::lose): it has been stopped, and a run lies in the place of what is lost.
    stopped: bool,
}

/// How many of `lanes` are below `lane`.
#[inline(always)]
fn rank(lane: u32, lanes: u32) -> u32 {
    (lanes & ((1 << lane) - 1)).count_ones()
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

/// Appends the run that the lane is in to its log, if the lane keeps it, and makes another the lane's own: mask, key, count if the key says so, time. From all
/// lanes of a group, each with its own. Answers whether the log of any of them is full.
///
/// On the device `old` is the lane's record, which has just been read.
#[inline(always)]
pub(crate) fn begin_run(state: StateMemory, lane: u32, old: [u32; 2], run: [u32; 4]) -> bool {
    #[cfg(target_arch = "nvptx64")]
    {
        let _ = lane;
        StateMemory::begin_run(state.own(), old, run)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = old;
        let mut state = state;
        let [mask, key, more, time] = run;
        let is_full = end_own_run(state, lane);
        state.set64(RECORDS + 8 * lane, [mask, key]);
        state.set32(MORES + 8 * lane, more);
        state.set32(LINKS + 8 * lane + 4, time);
        is_full
    }
}

/// Appends a run to the twin's log of this lane, if it `keeps` it. Answers whether the log is full.
#[inline(always)]
pub(crate) fn append_to_twin(state: StateMemory, lane: u32, keeps: bool, run: Run) -> bool {
    twin_log(state).append_if(lane, keeps, run.unit())
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
    log(state).append_if(lane, keeps([mask, key], lane), [mask, key, more, time])
}

/// Whether the lane keeps the run in its record.
#[inline(always)]
fn keeps(record: [u32; 2], lane: u32) -> bool {
    #[cfg(target_arch = "nvptx64")]
    {
        let _ = lane;
        crate::access::kept_by_others(record) == 0
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        record[0] & ((1 << lane) - 1) == 0
    }
}

/// The live lanes of the warp.
#[inline(always)]
pub(crate) fn live_lanes(state: StateMemory) -> u32 {
    let (mut lane, mut live) = (0, 0);
    while lane < simt::WARP_LANES {
        live |= u32::from(log(state).is_on(lane)) << lane;
        lane += 1;
    }
    live
}

/// Writes down that there is nothing in the log of a lane which the warp does not have.
#[inline(always)]
pub(crate) fn set_absent(logs: u64, slice: u32, lane: u32) {
    at_unit(logs, slice).set32(4 * lane, 0);
}

/// First unit of the first area in a slice.
#[inline(always)]
pub(crate) const fn first_area(slice: u32) -> u32 {
    slice + LANES_UNITS
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
