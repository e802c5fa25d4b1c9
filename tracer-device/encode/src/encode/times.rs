//! Start times of runs, after the encoded events of a chunk.

use warptrace_format::Memory;
use warptrace_format::chunk::{SPLIT, TIME_BYTES, bytes_of_times};

use crate::memory::GlobalMemory;
use crate::merged::{RUN_BYTES, are_split, time_words};

/// Returns the bytes of padding between events of `length` bytes and the times.
#[inline(always)]
pub(crate) const fn padding(length: u32) -> u32 {
    length.wrapping_neg() % TIME_BYTES
}

/// Returns the number of merged runs at an address, plus [`SPLIT`] if one of them is split.
#[inline(always)]
pub(super) fn with_split(first: u64, runs: u32) -> u32 {
    let log = GlobalMemory::new(first);
    let (mut before, mut is_split, mut run) = (log.get128(0), false, 1);
    while run < runs {
        let next = log.get128(RUN_BYTES * run);
        is_split |= are_split(before, next);
        before = next;
        run += 1;
    }
    runs | if is_split { SPLIT } else { 0 }
}

/// Writes the start times of merged runs at the address `first` after `length` bytes of a chunk's payload.
/// `runs` is their number, plus [`SPLIT`] if one is split. Returns the payload's new length. `lanes` threads
/// call it; this one has the number `lane`.
#[inline(always)]
pub(super) fn write(payload: u64, length: u32, first: u64, runs: u32, lane: u32, lanes: u32) -> u32 {
    let (mut to, log) = (GlobalMemory::new(payload), GlobalMemory::new(first));
    let at = length + padding(length);
    let (mut run, count) = (lane, runs & !SPLIT);
    while run < count {
        let words = log.get128(RUN_BYTES * run);
        if runs & SPLIT == 0 {
            to.set32(at + TIME_BYTES / 2 * run, words[3]);
        } else {
            let next = if run + 1 < count { Some(log.get128(RUN_BYTES * (run + 1))) } else { None };
            to.set64(at + TIME_BYTES * run, time_words(words, next));
        }
        run += lanes;
    }
    at + bytes_of_times(runs) as u32
}
