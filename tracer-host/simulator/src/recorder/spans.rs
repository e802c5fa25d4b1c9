//! Where and when warps run, by a schedule that does not depend on the host's threads.
//!
//! A warp's clock counts its events, so it begins at 0, and a cycle is a nanosecond. When the launch is over,
//! [`schedule`] puts the blocks one after the other on the multiprocessors, which take them in turns.

use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use warptrace_abi::recording::Recording;
use warptrace_format::account::WarpAccount;
use warptrace_format::span::WarpSpan;

use crate::launch::LogMemory;

const BEGIN_CLOCK: u64 = offset_of!(WarpSpan, begin_clock) as u64;
const BEGIN_TIMER: u64 = offset_of!(WarpSpan, begin_timer) as u64;
const END_CLOCK: u64 = offset_of!(WarpSpan, end_clock) as u64;
const END_TIMER: u64 = offset_of!(WarpSpan, end_timer) as u64;
/// Both multiprocessors, the first one in the lower half.
const SMS: u64 = offset_of!(WarpSpan, begin_sm) as u64;
const _: () = assert!(offset_of!(WarpSpan, end_sm) as u64 == SMS + 4 && SMS.is_multiple_of(8));

/// The span of a warp that records, in the launch's memory.
#[derive(Clone, Copy)]
pub(crate) struct SpanMemory {
    address: u64,
}

impl SpanMemory {
    /// The span of the warp with this index among those that record; `None` if spans are not recorded, or
    /// there is no such warp.
    ///
    /// # Safety
    /// As for [`Launch::traced`](crate::Launch::traced) and [`Launch::streamed`](crate::Launch::streamed),
    /// for as long as the span is used. Nothing else uses it meanwhile but by atomics of eight bytes.
    pub(crate) unsafe fn of(memory: &LogMemory, recording: Recording, warp: u32) -> Option<Self> {
        let tracks = u64::from(recording.tracks());
        let (before, warps) = match memory {
            LogMemory::Kept(logs) => {
                (logs.accounts + tracks * u64::from(logs.warps) * size_of::<WarpAccount>() as u64, logs.warps)
            }
            LogMemory::Streamed { logs, .. } => {
                (logs.lost + tracks * u64::from(logs.warps) * size_of::<u64>() as u64, logs.warps)
            }
            LogMemory::None => return None,
        };
        let address = before + u64::from(warp) * size_of::<WarpSpan>() as u64;
        (recording.spans && warp < warps).then_some(Self { address })
    }

    /// Says that the warp begins, on this multiprocessor.
    pub(crate) fn begin(self, sm: u32) {
        self.word(BEGIN_CLOCK).store(0, Relaxed);
        self.word(BEGIN_TIMER).store(0, Relaxed);
        self.word(SMS).store(u64::from(sm + 1), Relaxed);
    }

    /// Says that a lane leaves the kernel when the warp's clock is this.
    pub(crate) fn leave(self, clock: u32) {
        self.word(END_CLOCK).fetch_max(clock.into(), Relaxed);
        self.word(END_TIMER).fetch_max(clock.into(), Relaxed);
        let sm = self.word(SMS).load(Relaxed) & u64::from(u32::MAX);
        self.word(SMS).store(sm | sm << 32, Relaxed);
    }

    /// Returns how long the warp ran; `None` if it has not begun.
    fn length(self) -> Option<u64> {
        (self.word(SMS).load(Relaxed) != 0).then(|| self.word(END_CLOCK).load(Relaxed))
    }

    /// Puts a warp that has begun to its place in time.
    fn shift(self, by: u64) {
        self.word(BEGIN_TIMER).fetch_add(by, Relaxed);
        if self.word(SMS).load(Relaxed) >> 32 != 0 {
            self.word(END_TIMER).fetch_add(by, Relaxed);
        }
    }

    fn word(&self, offset: u64) -> &AtomicU64 {
        let word = std::ptr::with_exposed_provenance_mut::<u64>((self.address + offset) as usize);
        // SAFETY: an aligned word of the span (contract of `of`), which is touched by atomics only.
        unsafe { AtomicU64::from_ptr(word) }
    }
}

/// Puts the warps of a launch that is over to their places in time: the multiprocessors take blocks in turns,
/// each runs one after the other, and the warps of a block begin together. Returns when the last one ends.
///
/// # Safety
/// As for [`SpanMemory::of`]; no warp runs.
pub(crate) unsafe fn schedule(
    memory: &LogMemory,
    recording: Recording,
    [blocks, warps_per_block, multiprocessors]: [u32; 3],
    start: u64,
) -> u64 {
    let mut free = vec![start; multiprocessors.max(1) as usize];
    for block in 0..blocks {
        let indices = (0..warps_per_block).filter_map(|warp| memory.warp_index(block, warp, warps_per_block));
        // SAFETY: the caller's promise.
        let spans: Vec<SpanMemory> = indices
            .filter_map(|warp| unsafe { SpanMemory::of(memory, recording, warp) })
            .filter(|span| span.length().is_some())
            .collect();
        let sm = (block as usize) % free.len();
        spans.iter().for_each(|span| span.shift(free[sm]));
        free[sm] += spans.iter().filter_map(|span| span.length()).max().unwrap_or(0);
    }
    free.into_iter().max().unwrap_or(start)
}
