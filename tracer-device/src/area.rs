//! A warp's area: memory for further segments of its lanes' logs (see `log`).
//!
//! The first area is in the warp's slice. Its first segment's place holds this, and that of each further area the first two words of it:
//!
//! ```text
//! offset  size  field
//!      0     4  first unit of the area that follows, or 0
//!      4     4  in an area that was claimed: its units
//!     16     4  first unit that is free in the current area
//!     20     4  the unit behind its last
//!     24     4  first unit of the current area
//!     32    32  one byte a lane: 1 while the group of which it is the lowest takes memory
//! ```
//!
//! # Nobody waits
//! Groups of a warp that have come apart may take memory at the same time, for two of them may be switched at any instruction. So a group raises its flag, and
//! looks whether another's is up. If not, it is alone: who comes later sees its flag. If there is one, it takes its flag down and takes memory that is its own
//! from the beginning: an area that no other group knows of. Two that come at once may both do so. (A lock would have to be waited for. Its first version was
//! Lamport's fast mutual exclusion; who waits needs a loop with a `YIELD`, and that is what must not be.)
//!
//! # Why not an atomic
//! ptxas puts a `YIELD` before every atomic that answers something, before every volatile or strong load, and into loops with one, for they might wait for
//! another thread (`docs/device.md`). On the hardware a `YIELD` ends the wait of lanes that stand at a convergence barrier: lanes that had left a loop stop waiting for those
//! inside, and the program no longer runs as it does untraced. Measured on an H200 with fractal: one atomic at the trace point split the exits of the
//! loop apart (0.7% more events); the loop of a spin lock split every warp into single lanes (28 times the events).
//!
//! Stores, fences, and plain loads have none, whatever their space. So the flags are written by volatile stores, a fence follows, and they are read by plain
//! loads: all of one warp, whose accesses are carried out by one multiprocessor, in the order that fences and dependences give them. What is
//! protected is read at an address that depends on what the flags were.
//!
//! Only an area that is claimed from all of log memory takes an atomic. All lanes of the group come to it together, so that the group stays whole; lanes of
//! the kernel that wait for the group may be let go then. It happens once in 32 segments at most, and less often the longer the logs are.
//!
//! These words lie in global memory, where the state may be in shared memory: there every word that changes is one lane's own, but for two that are written when
//! memory gets short.

use warptrace_format::Memory;

use crate::drain::drain_units;
use crate::log::{SEGMENT_UNITS, at_unit, first_area, live_lanes};
use crate::pool;
use crate::simt;
use crate::space::{GlobalMemory, StateMemory};
use crate::state::{DRAIN, LOGS, SLICE, SLICE_UNITS, WORK};
use crate::stream::get64;

const FREE: u32 = 16;
const CURRENT: u32 = 24;
const FLAGS: u32 = 32;

/// Least units of an area that is claimed: a segment for each lane of a warp, and a place before them.
const LEAST_UNITS: u32 = (simt::WARP_LANES + 1) * SEGMENT_UNITS;
/// Most units of an area that is claimed. Each is twice as large as the one before, so that long logs do not come here often; but not where that is more
/// than a small part of the memory that is left.
const MOST_UNITS: u32 = 4096;
/// What is a small part of it.
const SMALL_PART: u32 = 64;

/// The words of a warp's area.
#[derive(Clone, Copy)]
pub(crate) struct Area {
    words: GlobalMemory,
    logs: u64,
}

/// Segments for the lanes of a group, in their order.
#[derive(Clone, Copy)]
pub(crate) struct Segments {
    /// So many from `first` on.
    count: u32,
    first: u32,
    /// All others from here on, or none.
    more: u32,
}

impl Segments {
    /// First unit of the segment with this number; 0 if there is none.
    #[inline(always)]
    pub(crate) fn get(self, number: u32) -> u32 {
        let more =
            if self.more == 0 { 0 } else { self.more + SEGMENT_UNITS * number.wrapping_sub(self.count) };
        if number < self.count { self.first + SEGMENT_UNITS * number } else { more }
    }
}

impl Area {
    /// That of the warp with this state.
    #[inline(always)]
    pub(crate) fn of(state: StateMemory) -> Self {
        let logs = get64(&state, LOGS);
        Self { words: at_unit(logs, first_area(state.get32(SLICE))), logs }
    }

    /// Prepares the words of a warp whose slice has so many units. What a lane does that does not lead is for nothing.
    #[inline(always)]
    pub(crate) fn open(leads: bool, logs: u64, slice: u32, slice_units: u32) {
        let mut words = GlobalMemory::new(at_unit(logs, first_area(slice)).address(), leads);
        words.set128(0, [0; 4]);
        words.set128(FLAGS, [0; 4]);
        words.set128(FLAGS + 16, [0; 4]);
        Self { words, logs }.rewind(slice, slice_units);
    }

    /// The first area again, with all that were claimed behind it.
    #[inline(always)]
    pub(crate) fn rewind_in(self, state: StateMemory) {
        self.rewind(state.get32(SLICE), state.get32(SLICE_UNITS));
    }

    #[inline(always)]
    fn rewind(mut self, slice: u32, slice_units: u32) {
        let area = first_area(slice);
        self.words.set128(FREE, [area + SEGMENT_UNITS, slice + slice_units, area, 0]);
    }

    /// Takes a segment for each of `lanes`, if there are so many, and no other group is taking any; answers the first unit, or 0. From all of these lanes,
    /// together, and perhaps others with them. On the simulator from one for all.
    #[inline(always)]
    pub(crate) fn take(self, lanes: u32) -> u32 {
        let flag = lanes.trailing_zeros();
        let (alone, mut words) = self.enter(flag);
        let [next, end] = words.get64(FREE);
        let units = SEGMENT_UNITS * lanes.count_ones();
        let taken = alone & (end.wrapping_sub(next) >= units);
        words.set32_if(taken, FREE, next.wrapping_add(units));
        self.leave_if(alone, flag);
        if taken { next } else { 0 }
    }

    /// The same, whatever it takes: an area is claimed. Where there is no memory for one, only the lowest lanes get a segment, or none does.
    #[inline(always)]
    pub(crate) fn claim(self, state: StateMemory, lanes: u32) -> Segments {
        let flag = lanes.trailing_zeros();
        let (alone, mut words) = self.enter(flag);
        let [next, end] = words.get64(FREE);
        let wanted = lanes.count_ones();
        let left = if alone { end.wrapping_sub(next) / SEGMENT_UNITS } else { 0 };
        let count = if wanted < left { wanted } else { left };
        let (mut free, mut more) = (next.wrapping_add(SEGMENT_UNITS * count), 0);
        if simt::is_any(count < wanted) {
            let (area, units) = self.next(words, alone, flag);
            let pool = pool::descriptor();
            // Where half of memory is taken, who can should encode, if there is memory to do it in. (So it is in areas that are used again.)
            if simt::is_any(alone & ((area >= pool.log_units / 2) | (area == 0))) {
                ask_to_drain(state, flag);
            }
            if area != 0 {
                more = area + SEGMENT_UNITS;
                free = more + SEGMENT_UNITS * (wanted - count);
            }
            words.set32_if(alone & (area != 0), FREE + 4, area + units);
            words.set32_if(alone & (area != 0), CURRENT, area);
        }
        words.set32_if(alone, FREE, free);
        self.leave_if(alone, flag);
        Segments { count, first: next, more }
    }

    /// The area that follows the current one, which is full, and its units; 0 if there is no memory for one. For a group that is not alone a new one of
    /// which nobody else knows.
    #[inline(always)]
    fn next(self, words: GlobalMemory, alone: bool, leader: u32) -> (u32, u32) {
        let [_, end, current, _] = words.get128(FREE);
        // One that was in use before the logs were emptied, or a new one.
        let mut last = at_unit(self.logs, current);
        let known = if alone { last.get32(0) } else { 0 };
        if !simt::is_any(known == 0) {
            return (known, at_unit(self.logs, known).get32(4));
        }
        let double = if alone { 2 * (end - current) } else { 0 };
        let units = if double < LEAST_UNITS { LEAST_UNITS } else { double };
        let units = if units > MOST_UNITS { MOST_UNITS } else { units };
        let pool = pool::descriptor();
        let own = simt::is_own(leader);
        let left = simt::value_of(leader, pool::units_left_if(own, &pool));
        let units = if units > left / SMALL_PART { LEAST_UNITS } else { units };
        let new = simt::value_of(leader, pool::claim_units_if(own, &pool, units));
        last.set32_if(alone, 0, new);
        let mut memory = at_unit(self.logs, new);
        memory.set32_if(new != 0, 0, 0);
        memory.set32_if(new != 0, 4, units);
        (new, units)
    }

    /// Raises the flag of a group; answers whether it is alone, and the words as they are then. If it is not, the flag is taken down.
    #[inline(always)]
    fn enter(self, flag: u32) -> (bool, GlobalMemory) {
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let _ = flag;
            (true, self.words)
        }
        #[cfg(target_arch = "nvptx64")]
        {
            self.set_flag_if(true, flag, 1);
            simt::fence_block_strictly();
            // Each flag is 0 or 1, so no sum of eight goes beyond its byte.
            let (low, high) = (self.words.get128(FLAGS), self.words.get128(FLAGS + 16));
            let sum = |four: [u32; 4]| four[0] + four[1] + four[2] + four[3];
            let others = (sum(low) + sum(high)) ^ 1 << (8 * (flag % 4));
            let alone = others == 0;
            self.set_flag_if(!alone, flag, 0);
            (alone, self.words.read_after(others))
        }
    }

    /// Takes the flag of a group down that was alone.
    #[inline(always)]
    fn leave_if(self, alone: bool, flag: u32) {
        #[cfg(not(target_arch = "nvptx64"))]
        let _ = (alone, flag);
        #[cfg(target_arch = "nvptx64")]
        {
            simt::fence_block();
            self.set_flag_if(alone, flag, 0);
        }
    }

    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    fn set_flag_if(self, condition: bool, flag: u32, value: u32) {
        // SAFETY: one of the flags.
        unsafe {
            core::arch::asm!("{{", ".reg .pred p;", "setp.ne.u32 p, {}, 0;", "@p st.volatile.global.u8 [{}], {};", "}}",
                in(reg32) condition as u32, in(reg64) self.words.address() + u64::from(FLAGS + flag),
                in(reg32) value, options(nostack, preserves_flags));
        }
    }
}

/// Has the logs emptied as soon as all live lanes are together, if there is memory for what that needs. From a group that is alone.
#[inline(always)]
fn ask_to_drain(mut state: StateMemory, leader: u32) {
    let mut work = state.get32(WORK);
    if simt::is_any(work == 0) {
        let claimed = pool::claim_units_if(simt::is_own(leader), &pool::descriptor(), drain_units());
        work = simt::value_of(leader, claimed);
        state.set32(WORK, work);
    }
    state.set32_if(work != 0, DRAIN, live_lanes(state));
}
