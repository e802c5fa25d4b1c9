//! What the threads of a block that merges tell each other, in shared memory: a part for each warp.

use warptrace_format::Memory;

use super::logs::SLOT_BYTES;
use crate::merge::MERGE_BYTES;
use crate::simt::{self, WARP_LANES};
use crate::space::SharedMemory;

/// Most warps of a block that merges.
pub(super) const MOST_WARPS: u32 = 8;
/// Bytes of a warp's part. Where one thread merges the logs, all of it is for that.
const PART_BYTES: u32 = MERGE_BYTES;
/// While the logs are read: the slots. After that: where each list of keys begins, and the places of those that there are not, as of empty lists at the end.
const STARTS: u32 = 0;
/// What the block should know of the stream: see [`Order`].
const ORDER: u32 = STARTS + SLOT_BYTES;
const TOGETHER: u32 = ORDER + 16;
const UNSORTED: u32 = ORDER + 20;
const _: () = assert!(UNSORTED + 4 <= PART_BYTES && 4 * (WARP_LANES + 1) <= SLOT_BYTES);

/// A stream whose keys wait to be sorted.
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

/// A warp's part.
#[derive(Clone, Copy)]
pub(super) struct Board {
    pub(super) memory: SharedMemory,
}

impl Board {
    /// That of the warp with this number in the block.
    #[inline(always)]
    pub(super) fn of(warp: u32) -> Self {
        Self { memory: memory(PART_BYTES * (warp % MOST_WARPS)) }
    }

    #[inline(always)]
    pub(super) fn start(self, list: u32) -> u32 {
        self.memory.get32(STARTS + 4 * list)
    }

    #[inline(always)]
    pub(super) fn set_start(mut self, list: u32, place: u32) {
        self.memory.set32(STARTS + 4 * list, place);
    }

    #[inline(always)]
    pub(super) fn order(self) -> Order {
        let [to, runs, lists, kept] = self.memory.get128(ORDER);
        Order { to, runs, lists, kept }
    }

    /// Writes down an order, which the warp carries out alone, or the block together.
    #[inline(always)]
    pub(super) fn set_order(mut self, order: Order, together: bool) {
        self.memory.set128(ORDER, [order.to, order.runs, order.lists, order.kept]);
        self.memory.set64(TOGETHER, [u32::from(together), 0]);
    }

    #[inline(always)]
    pub(super) fn is_for_all(self) -> bool {
        self.memory.get32(TOGETHER) != 0
    }

    /// Takes note that a list was not sorted.
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
        let bytes = (MOST_WARPS * PART_BYTES) as usize;
        let base = simt::host::with_lane(|lane| lane.shared(&raw const KEY as usize, bytes));
        SharedMemory::new(base.expose_provenance() as u64 + u64::from(at), true)
    }
}

// Only the kernel that merges takes it.
#[cfg(target_arch = "nvptx64")]
core::arch::global_asm!(
    ".shared .align 16 .b8 warptrace_merging[{}];",
    const MOST_WARPS * PART_BYTES
);
