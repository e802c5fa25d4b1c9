//! The queue of a warp's runs on their way to the encoder.
//!
//! ```text
//! offset  size  field
//!      0     4  runs taken out
//!      4    12  unused
//!     16  1024  64 runs: mask, location, count, zero; run i lies at i mod 64
//! ```
//!
//! How many runs were put in stands beside the pending run (see `warp`), so that one access reads both. A group leaves less than
//! [`FULL`] runs behind; so there is room for all of a mailbox, and one more.

use warptrace_format::Memory;

use crate::space::SharedMemory;

const TAKEN: u32 = 0;
const RUNS: u32 = 16;
const CAPACITY: u32 = 64;
/// Runs after which the queue is emptied.
pub(crate) const FULL: u32 = 16;
const _: () = assert!(FULL + crate::mail::CAPACITY <= CAPACITY);
/// Bytes of a queue.
pub(crate) const QUEUE_BYTES: u32 = RUNS + 16 * CAPACITY;

/// A queue in a warp's state. All zero, it is empty.
#[derive(Clone, Copy)]
pub(crate) struct Queue {
    state: SharedMemory,
    at: u32,
}

impl Queue {
    #[inline(always)]
    pub(crate) fn new(state: SharedMemory, at: u32) -> Self {
        Self { state, at }
    }

    /// Writes the run with this number.
    #[inline(always)]
    pub(crate) fn put(mut self, number: u32, mask: u32, location: u32, count: u32) {
        self.state.set128(self.at + RUNS + 16 * (number % CAPACITY), [mask, location, count, 0]);
    }

    /// Mask, location and count of the run with this number.
    #[inline(always)]
    pub(crate) fn get(self, number: u32) -> [u32; 3] {
        let [mask, location, count, _] = self.state.get128(self.at + RUNS + 16 * (number % CAPACITY));
        [mask, location, count]
    }

    /// Runs taken out.
    #[inline(always)]
    pub(crate) fn taken(self) -> u32 {
        self.state.get32(self.at + TAKEN)
    }

    /// Says how many runs were taken out.
    #[inline(always)]
    pub(crate) fn set_taken(mut self, taken: u32) {
        self.state.set32(self.at + TAKEN, taken);
    }
}
