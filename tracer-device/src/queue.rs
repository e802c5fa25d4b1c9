//! The queue of a warp's runs on their way to the encoder.
//!
//! 64 runs of 16 bytes: mask, location, count, zero. It is filled from the start and emptied whole; how
//! many were put in, and taken out if a chunk was full on the way, stands in the warp's header, beside what is read with it (see `state`).
//!
//! A group leaves less than [`FULL`] runs behind; so there is room for all of a mailbox, one more, and what has come late for each lane
//! (see `late`).

use warptrace_format::Memory;

use crate::space::SharedMemory;

/// Bytes of a run.
const RUN_BYTES: u32 = 16;
const CAPACITY: u32 = 64;
/// Runs after which the queue is emptied.
pub(crate) const FULL: u32 = 16;
const _: () = assert!(FULL - 1 + crate::mail::CAPACITY + 1 + crate::simt::WARP_LANES <= CAPACITY);
/// Bytes of a queue.
pub(crate) const QUEUE_BYTES: u32 = RUN_BYTES * CAPACITY;

/// A queue in a warp's state.
#[derive(Clone, Copy)]
pub(crate) struct Queue {
    state: SharedMemory,
    /// Where the runs are.
    at: u32,
}

/// The runs that wait in a queue: from number `taken` up to, not with, number `put`.
#[derive(Clone, Copy)]
pub(crate) struct Waiting {
    pub(crate) taken: u32,
    pub(crate) put: u32,
}

impl Waiting {
    /// None.
    pub(crate) const NONE: Self = Self { taken: 0, put: 0 };
}

impl Queue {
    #[inline(always)]
    pub(crate) fn new(state: SharedMemory, at: u32) -> Self {
        Self { state, at }
    }

    /// Where the run with this number is.
    #[inline(always)]
    fn run_at(self, number: u32) -> u32 {
        self.at + RUN_BYTES * number
    }

    /// Mask, location and count of the run with this number.
    #[inline(always)]
    pub(crate) fn get(self, number: u32) -> [u32; 3] {
        let [mask, location, count, _] = self.state.get128(self.run_at(number));
        [mask, location, count]
    }

    /// Writes the run with this number.
    #[inline(always)]
    pub(crate) fn put(mut self, number: u32, mask: u32, location: u32, count: u32) {
        self.state.set128(self.run_at(number), [mask, location, count, 0]);
    }
}
