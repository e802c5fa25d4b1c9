//! The queue of a warp's runs on their way to the encoder.
//!
//! 64 runs of 16 bytes: mask, location, count, zero; run i lies at i mod 64. How many were put in and taken out stands in the warp's
//! header, beside what is read with it (see `state`).
//!
//! A group leaves less than [`FULL`] runs behind; so there is room for all of a mailbox, one more, and what has come late for each
//! lane (see `late`).

use warptrace_format::Memory;

use crate::space::SharedMemory;

const CAPACITY: u32 = 64;
/// Runs after which the queue is emptied.
pub(crate) const FULL: u32 = 16;
const _: () = assert!(FULL - 1 + crate::mail::CAPACITY + 1 + crate::simt::WARP_LANES <= CAPACITY);
/// Bytes of a queue.
pub(crate) const QUEUE_BYTES: u32 = 16 * CAPACITY;

/// A queue in a warp's state.
#[derive(Clone, Copy)]
pub(crate) struct Queue {
    state: SharedMemory,
    /// Where the runs are.
    at: u32,
    /// Where it stands how many were taken out.
    taken_at: u32,
}

impl Queue {
    #[inline(always)]
    pub(crate) fn new(state: SharedMemory, at: u32, taken_at: u32) -> Self {
        Self { state, at, taken_at }
    }

    /// Writes the run with this number.
    #[inline(always)]
    pub(crate) fn put(mut self, number: u32, mask: u32, location: u32, count: u32) {
        self.state.set128(self.at + 16 * (number % CAPACITY), [mask, location, count, 0]);
    }

    /// Mask, location and count of the run with this number.
    #[inline(always)]
    pub(crate) fn get(self, number: u32) -> [u32; 3] {
        let [mask, location, count, _] = self.state.get128(self.at + 16 * (number % CAPACITY));
        [mask, location, count]
    }

    /// Runs taken out.
    #[inline(always)]
    pub(crate) fn taken(self) -> u32 {
        self.state.get32(self.taken_at)
    }

    /// Says how many runs were taken out.
    #[inline(always)]
    pub(crate) fn set_taken(mut self, taken: u32) {
        self.state.set32(self.taken_at, taken);
    }
}
