//! Where and when warps run, by a schedule that does not depend on the host's threads.
//!
//! A warp's clock counts its events, so it begins at 0, and a cycle is a nanosecond. [`place`] puts the
//! blocks one after the other on the multiprocessors, which take them in turns: when the launch is over, or
//! for what is known of one that still runs.

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
    pub(crate) unsafe fn new(memory: &LogMemory, recording: Recording, warp: u32) -> Option<Self> {
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

    /// Says that the warp's clock is this. As long as no lane has left, it is no end, but how long the warp
    /// has run.
    pub(crate) fn tick(self, clock: u32) {
        self.word(END_CLOCK).store(clock.into(), Relaxed);
    }

    /// Says that a lane leaves the kernel when the warp's clock is this.
    pub(crate) fn leave(self, clock: u32) {
        self.tick(clock);
        let sm = self.word(SMS).load(Relaxed) & u64::from(u32::MAX);
        self.word(SMS).store(sm | sm << 32, Relaxed);
    }

    fn load(self) -> WarpSpan {
        let word = |offset| self.word(offset).load(Relaxed);
        let sms = word(SMS);
        WarpSpan {
            begin_clock: word(BEGIN_CLOCK),
            begin_timer: word(BEGIN_TIMER),
            end_clock: word(END_CLOCK),
            end_timer: word(END_TIMER),
            begin_sm: sms as u32,
            end_sm: (sms >> 32) as u32,
        }
    }

    /// Puts the warp to its place in time.
    fn store_timers(self, span: &WarpSpan) {
        self.word(BEGIN_TIMER).store(span.begin_timer, Relaxed);
        self.word(END_TIMER).store(span.end_timer, Relaxed);
    }

    fn word(&self, offset: u64) -> &AtomicU64 {
        let word = std::ptr::with_exposed_provenance_mut::<u64>((self.address + offset) as usize);
        // SAFETY: an aligned word of the span (contract of `of`), which is touched by atomics only.
        unsafe { AtomicU64::from_ptr(word) }
    }
}

/// Puts the warps of a launch that is over to their places in time. Returns when the last one ends.
///
/// # Safety
/// As for [`SpanMemory::new`]; no warp runs.
pub(crate) unsafe fn schedule(
    memory: &LogMemory,
    recording: Recording,
    [blocks, warps_per_block, multiprocessors]: [u32; 3],
    start: u64,
) -> u64 {
    let warps = (0..blocks).flat_map(|block| (0..warps_per_block).map(move |warp| (block, warp)));
    let (blocks, memory): (Vec<u32>, Vec<SpanMemory>) = warps
        .filter_map(|(block, warp)| {
            let index = memory.warp_index(block, warp, warps_per_block)?;
            // SAFETY: the caller's promise.
            Some((block, unsafe { SpanMemory::new(memory, recording, index) }?))
        })
        .unzip();
    let mut spans: Vec<WarpSpan> = memory.iter().map(|span| span.load()).collect();
    let end = place(&mut spans, |index| blocks[index], multiprocessors, start);
    memory.iter().zip(&spans).for_each(|(to, span)| to.store_timers(span));
    end
}

/// Puts warps that the simulator runs to their places in time: the multiprocessors take blocks in turns, each
/// runs one after the other from `start` on, in nanoseconds, and the warps of a block begin together. A warp
/// that has not ended takes as long as it has run. Returns when the last one ends.
///
/// `spans` are of the launch's recorded warps in order, as they are in memory; `block_of` gives the block of
/// each by its index. What is there of timers counts for nothing, so it may be done again.
pub fn place(
    spans: &mut [WarpSpan],
    block_of: impl Fn(usize) -> u32,
    multiprocessors: u32,
    start: u64,
) -> u64 {
    let mut free = vec![start; multiprocessors.max(1) as usize];
    let mut from = 0;
    while from < spans.len() {
        let block = block_of(from);
        let to = from + (from..spans.len()).take_while(|index| block_of(*index) == block).count();
        let free = &mut free[block as usize % multiprocessors.max(1) as usize];
        let mut longest = 0;
        for span in spans[from..to].iter_mut().filter(|span| span.has_begun()) {
            span.begin_timer = *free;
            span.end_timer = if span.has_ended() { *free + span.end_clock } else { 0 };
            longest = longest.max(span.end_clock);
        }
        *free += longest;
        from = to;
    }
    free.into_iter().max().unwrap_or(start)
}
