//! Page-locked host memory: a device copies into it at the rate of the link, also while all cores are busy.
//!
//! Locking takes as long as a page's first use, and launches of other threads wait for it. So blocks are used
//! again, and prepared blocks suffice for short programs. Locking does not wait for running kernels, but unlocking
//! does ([leaving-out.md]).
//!
//! [leaving-out.md]: ../../../../results/nvidia-h200/leaving-out.md

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;
use std::sync::PoisonError;

use cudarc::driver::sys;
#[cfg(target_os = "linux")]
use rustix::mm::{Advice, madvise};

use crate::host_memory::{Block, Free, Locked};

/// Minimum bytes of data for which a free block is worthwhile, and for which a new block is.
const WORTH_FREE: usize = 4 << 10;
const WORTH_NEW: usize = 1 << 20;
/// The parts into which powers of two are divided for the sizes of blocks.
const SIZES: usize = 8;
/// Maximum bytes that a device handle locks. Further data is copied through [`Staging`](super::staging::Staging).
const MOST_BYTES: usize = 256 << 20;
/// Blocks that are prepared, together a region of huge pages.
const PREPARED: [usize; 5] = [8 << 20, 4 << 20, 2 << 20, 1 << 20, 1 << 20];
/// Size of a huge page, and the alignment of regions.
const HUGE_PAGE: usize = 2 << 20;

#[derive(Default)]
pub(super) struct LockedMemory {
    regions: Vec<(NonNull<u8>, Layout)>,
    free: Free,
    bytes: usize,
    /// Whether the driver has refused to lock memory.
    is_refused: bool,
}

impl LockedMemory {
    /// Locks the prepared blocks.
    pub(super) fn prepare(&mut self) {
        if self.regions.is_empty() {
            self.lock(&PREPARED);
        }
    }

    /// Returns a block of at least `bytes` bytes. `None` if that is not worthwhile, too much is locked, or the
    /// driver refuses.
    pub(super) fn take(&mut self, bytes: usize) -> Option<Locked> {
        if bytes < WORTH_FREE {
            return None;
        }
        let smallest = |free: &Free| {
            let mut free = free.lock().unwrap_or_else(PoisonError::into_inner);
            let fitting = free.iter().enumerate().filter(|(_, block)| block.bytes >= bytes);
            let (at, _) = fitting.min_by_key(|(_, block)| block.bytes)?;
            Some(free.swap_remove(at))
        };
        let block = smallest(&self.free).or_else(|| {
            let step = (bytes.checked_next_power_of_two()? / SIZES).max(WORTH_NEW);
            self.lock(&[bytes.checked_next_multiple_of(step).filter(|_| bytes >= WORTH_NEW)?]);
            smallest(&self.free)
        });
        Some(Locked::new(block?, &self.free))
    }

    /// Locks a region and divides it into blocks, unless that is too much or the driver refuses.
    fn lock(&mut self, blocks: &[usize]) {
        let bytes: usize = blocks.iter().sum();
        let Ok(layout) = Layout::from_size_align(bytes, HUGE_PAGE) else { return };
        if self.is_refused || bytes > MOST_BYTES - self.bytes {
            return;
        }
        // SAFETY: the size is not 0.
        let Some(mut start) = NonNull::new(unsafe { alloc(layout) }) else { return };
        #[cfg(target_os = "linux")]
        for advice in [Advice::LinuxHugepage, Advice::LinuxDontFork] {
            // Without huge pages, all works as well. A child process must not share pages that a device writes.
            // SAFETY: the region's pages hold nothing else, and no child process uses them before `give_back`.
            let _ = unsafe { madvise(start.as_ptr().cast(), bytes, advice) };
        }
        // First use is done here and not in the driver, for which launches wait.
        // SAFETY: the region has this length.
        unsafe { start.write_bytes(0, bytes) };
        // SAFETY: the region was allocated here. It is freed in `drop`, after the driver has unlocked it.
        if unsafe { sys::cuMemHostRegister_v2(start.as_ptr().cast(), bytes, 0) }.result().is_err() {
            self.is_refused = true;
            // SAFETY: allocated above, and not locked.
            unsafe { give_back(start, layout) };
            return;
        }
        self.regions.push((start, layout));
        self.bytes += bytes;
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        for &bytes in blocks {
            free.push(Block { start, bytes });
            // SAFETY: the blocks are together as long as the region.
            start = unsafe { start.add(bytes) };
        }
    }
}

impl Drop for LockedMemory {
    fn drop(&mut self) {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = |start: NonNull<u8>, bytes: usize| {
            let inside = free.iter().filter(|block| {
                (0..bytes).contains(&block.start.addr().get().wrapping_sub(start.addr().get()))
            });
            inside.map(|block| block.bytes).sum::<usize>() == bytes
        };
        for &(start, layout) in &self.regions {
            // Regions with blocks in use stay locked until the process ends.
            if is_free(start, layout.size()) {
                // Errors are ignored. SAFETY: locked in `lock`, and no block is in use.
                unsafe {
                    if sys::cuMemHostUnregister(start.as_ptr().cast()).result().is_ok() {
                        give_back(start, layout);
                    }
                }
            }
        }
    }
}

/// Frees a region, whose pages the program's allocator may use again.
///
/// # Safety
/// The region was allocated with this layout, and nothing uses it.
unsafe fn give_back(start: NonNull<u8>, layout: Layout) {
    #[cfg(target_os = "linux")]
    // SAFETY: child processes get the pages from now on.
    if unsafe { madvise(start.as_ptr().cast(), layout.size(), Advice::LinuxDoFork) }.is_err() {
        return;
    }
    // SAFETY: the caller guarantees the region.
    unsafe { dealloc(start.as_ptr(), layout) };
}
