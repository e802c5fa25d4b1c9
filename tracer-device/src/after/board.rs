//! What the steps of merging hand on to each other, and the threads of a block to each other, in shared memory: a part for each warp.
//!
//! ```text
//! offset  size  field
//!      0   512  while the logs are read: the slots; then: where each list of keys begins; where one lane merges the logs: all of it for that
//!    512    16  the order: see [`Order`]
//!    528    16  account, as an address; unit of the slice; number of the first chunk
//!    544    16  warp, launch, track; what is to be done
//!    560    16  attempted and lost events
//!    576    16  whether all runs fit into chunks; whether a list of keys was not sorted; nothing
//! ```

use warptrace_format::Memory;

use super::logs::SLOT_BYTES;
use super::sort::KEY_BYTES;
use crate::merge::MERGE_BYTES;
use crate::simt::WARP_LANES;
use crate::space::SharedMemory;

/// Most warps of a block that merges.
pub(super) const MOST_WARPS: u32 = 4;
const ORDER: u32 = MERGE_BYTES;
const PLACE: u32 = ORDER + 16;
const NAME: u32 = ORDER + 32;
const TO_DO: u32 = NAME + 12;
const EVENTS: u32 = ORDER + 48;
const FITS: u32 = ORDER + 64;
const UNSORTED: u32 = ORDER + 68;
/// Bytes of a warp's part.
const PART_BYTES: u32 = ORDER + 80;
/// Most runs of a stream whose keys are in shared memory: more than most streams have, and as few as leave room for eight blocks of a multiprocessor.
pub(super) const NEAR_RUNS: u32 = 384;
/// Where the warps' keys are: behind all parts.
const KEYS: u32 = MOST_WARPS * PART_BYTES;
const NEAR_BYTES: u32 = 2 * KEY_BYTES * NEAR_RUNS;
const ALL_BYTES: u32 = KEYS + MOST_WARPS * NEAR_BYTES;
const _: () = assert!(SLOT_BYTES <= ORDER && 4 * (WARP_LANES + 1) <= ORDER);

/// A stream's keys.
#[derive(Clone, Copy)]
pub(super) struct Order {
    /// Unit of the first place, in log memory for what is merged.
    pub(super) to: u32,
    /// How many runs there are.
    pub(super) runs: u32,
    /// In how many lists.
    pub(super) lists: u32,
    /// How many of the first runs are recorded.
    pub(super) kept: u32,
}

/// Where a stream is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) account: u64,
    /// Unit of its slice.
    pub(super) slice: u32,
    /// Number of its next chunk.
    pub(super) sequence: u32,
    pub(super) warp: u32,
    pub(super) launch: u32,
    pub(super) track: u32,
}

/// What is known of a stream's runs.
#[derive(Clone, Copy)]
pub(super) struct Sums {
    pub(super) attempted: u64,
    pub(super) lost: u64,
    /// Whether each run that is kept fits into a chunk.
    pub(super) fits: bool,
}

/// What is to be done with a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum ToDo {
    /// There is none, or nothing in it.
    Nothing,
    /// Its runs are merged.
    Cut,
    /// Its keys are to be sorted by its warp.
    SortAlone,
    /// By the block.
    SortTogether,
    /// Its logs have to be merged run by run. (Those of which a list is not sorted, too.)
    MergeOneByOne,
}

/// A warp's part.
#[derive(Clone, Copy)]
pub(super) struct Board {
    pub(super) memory: SharedMemory,
    /// Keys of its stream, if they are few.
    pub(super) keys: SharedMemory,
}

impl Board {
    /// That of the warp with this number in the block.
    #[inline(always)]
    pub(super) fn of(warp: u32) -> Self {
        let warp = warp % MOST_WARPS;
        Self { memory: memory(PART_BYTES * warp), keys: memory(KEYS + NEAR_BYTES * warp) }
    }

    /// Where a list of keys begins. Of lists that there are not: as if they were empty and came last.
    #[inline(always)]
    pub(super) fn start(self, list: u32) -> u32 {
        self.memory.get32(4 * list)
    }

    #[inline(always)]
    pub(super) fn set_start(mut self, list: u32, place: u32) {
        self.memory.set32(4 * list, place);
    }

    #[inline(always)]
    pub(super) fn order(self) -> Order {
        let [to, runs, lists, kept] = self.memory.get128(ORDER);
        Order { to, runs, lists, kept }
    }

    #[inline(always)]
    pub(super) fn set_order(mut self, order: &Order) {
        self.memory.set128(ORDER, [order.to, order.runs, order.lists, order.kept]);
    }

    #[inline(always)]
    pub(super) fn place(self) -> Place {
        let [low, high, slice, sequence] = self.memory.get128(PLACE);
        let [warp, launch, track, _] = self.memory.get128(NAME);
        let account = u64::from(low) | u64::from(high) << 32;
        Place { account, slice, sequence, warp, launch, track }
    }

    /// Writes down where a stream is; nothing is to be done with it so far.
    #[inline(always)]
    pub(super) fn set_place(mut self, place: &Place) {
        let account = [place.account as u32, (place.account >> 32) as u32];
        self.memory.set128(PLACE, [account[0], account[1], place.slice, place.sequence]);
        self.memory.set128(NAME, [place.warp, place.launch, place.track, ToDo::Nothing as u32]);
    }

    #[inline(always)]
    pub(super) fn is_to(self, act: ToDo) -> bool {
        self.memory.get32(TO_DO) == act as u32
    }

    #[inline(always)]
    pub(super) fn set_to_do(mut self, act: ToDo) {
        self.memory.set32(TO_DO, act as u32);
    }

    #[inline(always)]
    pub(super) fn sums(self) -> Sums {
        let [a, b, c, d] = self.memory.get128(EVENTS);
        Sums {
            attempted: u64::from(a) | u64::from(b) << 32,
            lost: u64::from(c) | u64::from(d) << 32,
            fits: self.memory.get32(FITS) != 0,
        }
    }

    #[inline(always)]
    pub(super) fn set_sums(mut self, sums: &Sums) {
        let Sums { attempted, lost, fits } = *sums;
        let words = [attempted as u32, (attempted >> 32) as u32, lost as u32, (lost >> 32) as u32];
        self.memory.set128(EVENTS, words);
        self.memory.set64(FITS, [u32::from(fits), 0]);
    }

    /// Takes note that a list of keys was not sorted. What is to be done stays as it is, for others may not have seen it yet.
    #[inline(always)]
    pub(super) fn set_unsorted(mut self) {
        self.memory.set32(UNSORTED, 1);
    }

    #[inline(always)]
    pub(super) fn is_unsorted(self) -> bool {
        self.memory.get32(UNSORTED) != 0
    }
}

/// The block's memory from `at` on.
#[inline(always)]
fn memory(at: u32) -> SharedMemory {
    #[cfg(target_arch = "nvptx64")]
    {
        let base: u32;
        // SAFETY: reads the address of an array that the module declares.
        unsafe {
            core::arch::asm!("mov.u32 {}, warptrace_merging;", out(reg32) base,
                options(pure, nomem, nostack, preserves_flags));
        }
        SharedMemory::new(base + at, true)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        static KEY: u8 = 0;
        let bytes = ALL_BYTES as usize;
        let base = crate::simt::host::with_lane(|lane| lane.shared(&raw const KEY as usize, bytes));
        SharedMemory::new(base.expose_provenance() as u64 + u64::from(at), true)
    }
}

// Only the kernel that merges takes it.
#[cfg(target_arch = "nvptx64")]
core::arch::global_asm!(
    ".shared .align 16 .b8 warptrace_merging[{}];",
    const ALL_BYTES
);
