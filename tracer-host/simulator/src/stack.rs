//! The lanes' stacks, in one mapping.
//!
//! ```text
//! lower addresses                                                                higher addresses
//! ┌───────┬──────────────────────────┬────────┬───────┬─────────────────────────┬────────┬───
//! │ guard │ stack of slot 0        ← │ colour │ guard │ stack of slot 1       ← │ colour │ …
//! └───────┴──────────────────────────┴────────┴───────┴─────────────────────────┴────────┴───
//!   page    Simulator::stack_bytes     page
//! ```
//!
//! Pages are reserved without swap and get memory when they are first touched. With equal offsets in a page,
//! the hot ends of 32 stacks would share a few cache sets. Therefore each stack starts slightly lower than
//! its neighbour (colour).
//!
//! Guards: a stack overflow must hit memory that faults. Linux 6.13 can mark guard pages inside a mapping
//! (`MADV_GUARD_INSTALL`). On other systems each guard is a `PROT_NONE` page, which splits the mapping. A
//! process may have 65,530 mappings by default, so only [`MAX_GUARD_MAPPINGS`] of its stacks get a guard.
//! `Context::warp_op` also checks the stack at each operation.

use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use corosensei::stack::{Stack, StackPointer};

/// Maximum stacks of a process with a `PROT_NONE` page; each takes two mappings.
const MAX_GUARD_MAPPINGS: usize = 12_288;
static GUARD_MAPPINGS: AtomicUsize = AtomicUsize::new(0);

#[cfg(target_os = "linux")]
const MADV_GUARD_INSTALL: libc::c_int = 102;

/// Offset between the starts of neighbouring stacks.
const COLOUR_BYTES: usize = 128;
const COLOURS: usize = 32;

#[derive(Debug)]
pub(crate) struct Arena {
    start: NonNull<u8>,
    slots: usize,
    slot_bytes: usize,
    guard_bytes: usize,
    /// `PROT_NONE` pages, subtracted from [`GUARD_MAPPINGS`] on drop.
    guard_mappings: usize,
}

// SAFETY: the arena owns its mapping. `Resident` stays on one thread while it uses the stacks.
unsafe impl Send for Arena {}

/// One slot of an arena, as a stack for corosensei.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneStack {
    base: StackPointer,
    limit: StackPointer,
}

// SAFETY: base and limit bound at least `MIN_STACK_SIZE` usable bytes (see `Arena::new`), aligned to pages or
// 128 bytes. The arena provides the guard, within the limits that the module describes.
unsafe impl Stack for LaneStack {
    #[inline]
    fn base(&self) -> StackPointer {
        self.base
    }
    #[inline]
    fn limit(&self) -> StackPointer {
        self.limit
    }
}

impl Arena {
    /// Maps `slots` stacks of at least `stack_bytes` each. Fails if they do not fit or the system refuses.
    pub(crate) fn new(slots: usize, stack_bytes: usize) -> io::Result<Self> {
        let page = page_bytes();
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        let usable = stack_bytes
            .max(corosensei::stack::MIN_STACK_SIZE)
            .checked_next_multiple_of(page)
            .ok_or_else(too_large)?;
        let colour = (COLOUR_BYTES * COLOURS).next_multiple_of(page);
        let slot_bytes = usable.checked_add(colour + page).ok_or_else(too_large)?;
        let bytes = slot_bytes.checked_mul(slots.max(1)).ok_or_else(too_large)?;
        #[cfg(target_os = "linux")]
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        #[cfg(not(target_os = "linux"))]
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
        // SAFETY: a new anonymous mapping at an address that the system chooses.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast::<u8>()).ok_or_else(too_large)?;
        let mut arena = Self { start, slots: slots.max(1), slot_bytes, guard_bytes: page, guard_mappings: 0 };
        arena.install_guards()?;
        Ok(arena)
    }

    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// # Safety
    /// `index` is below [`slots`](Self::slots), one coroutine at a time uses the slot, and it ends before the
    /// arena is dropped.
    pub(crate) unsafe fn stack(&self, index: usize) -> LaneStack {
        debug_assert!(index < self.slots);
        let slot = self.start.addr().get() + index * self.slot_bytes;
        let base = slot + self.slot_bytes - (index % COLOURS) * COLOUR_BYTES;
        let address = |at| NonZeroUsize::new(at).expect("a mapping does not start at 0");
        LaneStack { base: address(base), limit: address(slot) }
    }

    /// Returns the lowest address of slot `index` after the guard.
    pub(crate) fn floor(&self, index: usize) -> usize {
        self.start.addr().get() + index * self.slot_bytes + self.guard_bytes
    }

    fn install_guards(&mut self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if self.each_guard(|guard, bytes| {
            // SAFETY: a page of this arena that no stack uses.
            unsafe { libc::madvise(guard, bytes, MADV_GUARD_INSTALL) }
        }) {
            return Ok(());
        }
        let before = GUARD_MAPPINGS.fetch_add(self.slots, Ordering::Relaxed);
        if before + self.slots > MAX_GUARD_MAPPINGS {
            GUARD_MAPPINGS.fetch_sub(self.slots, Ordering::Relaxed);
            return Ok(());
        }
        self.guard_mappings = self.slots;
        if self.each_guard(|guard, bytes| {
            // SAFETY: a page of this arena that no stack uses.
            unsafe { libc::mprotect(guard, bytes, libc::PROT_NONE) }
        }) {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Calls `guard` with each guard page until it returns an error; returns true if it returned none.
    fn each_guard(&self, guard: impl Fn(*mut libc::c_void, usize) -> libc::c_int) -> bool {
        (0..self.slots).all(|index| {
            // SAFETY: the slot is inside the mapping.
            let page = unsafe { self.start.add(index * self.slot_bytes) };
            guard(page.as_ptr().cast(), self.guard_bytes) == 0
        })
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        GUARD_MAPPINGS.fetch_sub(self.guard_mappings, Ordering::Relaxed);
        // SAFETY: the mapping from `new`. Its coroutines have ended (contract of `stack`).
        let result = unsafe { libc::munmap(self.start.as_ptr().cast(), self.slots * self.slot_bytes) };
        debug_assert_eq!(result, 0, "munmap of our own mapping");
    }
}

fn page_bytes() -> usize {
    // SAFETY: a query without side effects.
    let answer = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(answer).ok().filter(|page| page.is_power_of_two()).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use corosensei::{Coroutine, CoroutineResult};

    use super::*;

    #[test]
    fn coroutines_run_on_neighbouring_slots() {
        let arena = Arena::new(40, 16 << 10).unwrap();
        let mut lanes: Vec<_> = (0..40)
            .map(|index| {
                // SAFETY: each slot is used once; the coroutines end before the arena.
                let stack = unsafe { arena.stack(index) };
                Coroutine::with_stack(stack, move |yielder: &corosensei::Yielder<u32, u32>, first| {
                    let space = std::hint::black_box([first; 2000]);
                    yielder.suspend(index as u32 + space[1999])
                })
            })
            .collect();
        for (index, lane) in lanes.iter_mut().enumerate() {
            assert_eq!(lane.resume(7), CoroutineResult::Yield(index as u32 + 7));
        }
        for lane in &mut lanes {
            assert_eq!(lane.resume(9), CoroutineResult::Return(9));
        }
    }

    #[test]
    fn slots_do_not_overlap_and_have_the_size_asked_for() {
        let arena = Arena::new(33, 10_000).unwrap();
        for index in 0..33 {
            // SAFETY: no coroutine uses the stack.
            let stack = unsafe { arena.stack(index) };
            assert!(stack.base().get() - arena.floor(index) >= 10_000);
            assert!(arena.floor(index) > stack.limit().get());
            assert!(stack.base().get().is_multiple_of(corosensei::stack::STACK_ALIGNMENT));
            if index > 0 {
                // SAFETY: no coroutine uses the stack.
                assert!(unsafe { arena.stack(index - 1) }.base() <= stack.limit());
            }
        }
    }

    #[test]
    fn a_size_past_the_address_space_is_an_error() {
        assert!(Arena::new(usize::MAX / 4096, 64 << 10).is_err());
        assert!(Arena::new(1 << 40, 1 << 20).is_err());
    }
}
