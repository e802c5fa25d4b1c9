//! The warp's mailbox: events of groups that found another group in the tracer.
//!
//! ```text
//! offset  size  field
//!      0     4  events before this number have been taken out
//!      4     4  events below this number have a place
//!      8     8  events that were given up, because the mailbox stayed full
//!     16   512  32 events: mask, location, count, state; event i lies at i mod 32
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
//! `lock`).

use warptrace_format::Memory;

use crate::space::SharedMemory;

const TAKEN: u32 = 0;
#[cfg(target_arch = "nvptx64")]
const PLACES: u32 = 4;
const SKIPPED: u32 = 8;
const EVENTS: u32 = 16;
/// Events that the mailbox holds.
pub(crate) const CAPACITY: u32 = 32;
/// Bytes of a mailbox.
pub(crate) const MAIL_BYTES: u32 = EVENTS + 16 * CAPACITY;
const TAKEN_OUT: u32 = 1 << 31;

/// A warp's mailbox at offset `at` of its state. All zero, it is empty.
#[derive(Clone, Copy)]
pub(crate) struct Mail {
    pub(crate) state: SharedMemory,
    pub(crate) at: u32,
}

impl Mail {
    /// Whether there is something in it.
    #[inline(always)]
    pub(crate) fn has_events(self) -> bool {
        let [taken, places] = self.state.get64(self.at);
        taken != places
    }

    /// Takes out what is there: mask, location, count. Inside the lock.
    #[inline(always)]
    pub(crate) fn take_out(mut self, mut take: impl FnMut(u32, u32, u32)) {
        let [mut taken, places] = self.state.get64(self.at);
        let mut number = taken;
        while number != places {
            let [mask, location, count, state] = self.state.get128(self.entry(number));
            let there = number.wrapping_add(1) & !TAKEN_OUT;
            if state == there {
                take(mask, location, count);
                self.state.set32(self.entry(number) + 12, there | TAKEN_OUT);
            }
            if (state == there || state == there | TAKEN_OUT) && taken == number {
                taken = number.wrapping_add(1);
            }
            number = number.wrapping_add(1);
        }
        self.state.set32(self.at + TAKEN, taken);
    }

    /// Events that were given up.
    #[inline(always)]
    pub(crate) fn skipped(self) -> u64 {
        let [low, high] = self.state.get64(self.at + SKIPPED);
        u64::from(low) | u64::from(high) << 32
    }

    #[inline(always)]
    fn entry(self, number: u32) -> u32 {
        self.at + EVENTS + 16 * (number % CAPACITY)
    }

    /// Posts an event, from one lane. Waits while the mailbox is full, but not for ever, because a tracer must not be able to stop
    /// the program that it looks at: an event that is given up is counted.
    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    pub(crate) fn post(self, mask: u32, location: u32, count: u32) {
        const NAPS: u32 = 1 << 9;
        const NAP_NANOSECONDS: u32 = 200;
        let mut naps = NAPS;
        loop {
            let (taken, places) = (self.state.look32(self.at + TAKEN), self.state.look32(self.at + PLACES));
            if places.wrapping_sub(taken) < CAPACITY {
                if self.state.swap_if(self.at + PLACES, places, places.wrapping_add(1)) {
                    let entry = self.entry(places);
                    self.state.show32(entry, mask);
                    self.state.show32(entry + 4, location);
                    self.state.show32(entry + 8, count);
                    self.state.show32(entry + 12, places.wrapping_add(1) & !TAKEN_OUT);
                    return;
                }
            } else if naps == 0 {
                self.state.add64(self.at + SKIPPED, u64::from(count));
                return;
            } else {
                naps -= 1;
                crate::simt::pause(NAP_NANOSECONDS);
            }
        }
    }
}
