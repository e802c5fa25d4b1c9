//! Start times of runs, after the encoded events of a chunk.

use warptrace_format::Memory;
use warptrace_format::chunk::TIME_BYTES;

use crate::memory::GlobalMemory;
use crate::merged::{RUN_BYTES, time_words};

/// Returns the bytes of padding between events of `length` bytes and the times.
#[inline(always)]
pub(crate) const fn padding(length: u32) -> u32 {
    length.wrapping_neg() % TIME_BYTES
}

/// Writes the start times of `runs` merged runs at the address `first` after `length` bytes of a chunk's
/// payload. Returns the payload's new length. `lanes` threads call it; this one has the number `lane`.
#[inline(always)]
pub(super) fn write(payload: u64, length: u32, first: u64, runs: u32, lane: u32, lanes: u32) -> u32 {
    let (mut to, log) = (GlobalMemory::new(payload), GlobalMemory::new(first));
    let at = length + padding(length);
    let mut run = lane;
    while run < runs {
        let next = if run + 1 < runs { Some(log.get128(RUN_BYTES * (run + 1))) } else { None };
        to.set64(at + TIME_BYTES * run, time_words(log.get128(RUN_BYTES * run), next));
        run += lanes;
    }
    at + TIME_BYTES * runs
}
