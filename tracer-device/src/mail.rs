//! The warp's mailbox: events of groups that found another group in the tracer.
//!
//! ```text
//! offset  size  field
//!      0     8  in the warp's header: events before this number have been taken out; events below this number have a place
//!
//!      0     8  in the mailbox: events that were given up
//!     16   256  16 events: mask, location, count, state; event i lies at i mod 16
//! ```
//!
//! An event's state is i + 1 once it is there, and that with the highest bit set once it is taken out.
//!
//! Any number of groups post, switched from one to the other at any instruction: a place is taken by an atomic, and the state is
//! written last. The group inside the tracer takes out what is there. It may find a place whose event is not there yet, and
//! leaves it for later; the group that posts there waits, so none of its lanes has a later event. Lanes of other groups have, but
//! their order against these is free.
//!
//! Atomics and volatile accesses are right here: where groups meet, the YIELDs that ptxas adds to them do no more harm (see
//! `lock`). Nobody waits for the group inside, unless the mailbox is full.

use warptrace_format::Memory;

use crate::space::SharedMemory;
use crate::state::{MAIL, WAITING};

const SKIPPED: u32 = 0;
const EVENTS: u32 = 16;
/// Events that the mailbox holds.
pub(crate) const CAPACITY: u32 = 16;
/// Bytes of a mailbox.
pub(crate) const MAIL_BYTES: u32 = EVENTS + 16 * CAPACITY;
const TAKEN_OUT: u32 = 1 << 31;

/// A warp's mailbox. All zero, it is empty.
#[derive(Clone, Copy)]
pub(crate) struct Mail(pub(crate) SharedMemory);

impl Mail {
    /// Takes out what is there: mask, location, count. Inside the lock.
    #[inline(always)]
    pub(crate) fn take_out(mut self, mut take: impl FnMut(u32, u32, u32)) {
        let [mut taken, places] = self.0.get64(WAITING);
        let mut number = taken;
        while number != places {
            let [mask, location, count, state] = self.0.get128(self.entry(number));
            let there = number.wrapping_add(1) & !TAKEN_OUT;
            if state == there {
                take(mask, location, count);
                self.0.set32(self.entry(number) + 12, there | TAKEN_OUT);
            }
            if (state == there || state == there | TAKEN_OUT) && taken == number {
                taken = number.wrapping_add(1);
            }
            number = number.wrapping_add(1);
        }
        self.0.set32(WAITING, taken);
    }

    /// Events that were given up.
    #[inline(always)]
    pub(crate) fn skipped(self) -> u64 {
        let [low, high] = self.0.get64(MAIL + SKIPPED);
        u64::from(low) | u64::from(high) << 32
    }

    #[inline(always)]
    fn entry(self, number: u32) -> u32 {
        MAIL + EVENTS + 16 * (number % CAPACITY)
    }

    /// Posts an event, from one lane, if there is room; answers whether.
    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    pub(crate) fn post(self, mask: u32, location: u32, count: u32) -> bool {
        loop {
            let (taken, places) = (self.0.look32(WAITING), self.0.look32(WAITING + 4));
            if places.wrapping_sub(taken) >= CAPACITY {
                return false;
            }
            if self.0.swap_if(WAITING + 4, places, places.wrapping_add(1)) {
                let entry = self.entry(places);
                self.0.show32(entry, mask);
                self.0.show32(entry + 4, location);
                self.0.show32(entry + 8, count);
                self.0.show32(entry + 12, places.wrapping_add(1) & !TAKEN_OUT);
                return true;
            }
        }
    }

    /// Counts events as given up, from one lane.
    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    pub(crate) fn skip(self, events: u32) {
        self.0.add64(MAIL + SKIPPED, u64::from(events));
    }
}
