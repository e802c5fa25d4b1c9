//! Positions and times of warps, by a schedule that does not depend on the host's threads.
//!
//! A warp's clock counts its events. It begins at 0, and a cycle is a nanosecond. [`place`] assigns the
//! blocks to the multiprocessors in turn, after the launch or for a snapshot of a running launch.

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
/// Both multiprocessors, with the first one in the lower half.
const SMS: u64 = offset_of!(WarpSpan, begin_sm) as u64;
const _: () = assert!(offset_of!(WarpSpan, end_sm) as u64 == SMS + 4 && SMS.is_multiple_of(8));

#[derive(Clone, Copy)]
pub(crate) struct SpanMemory {
    address: u64,
}

impl SpanMemory {
    /// Returns the span of a warp that records; `None` if spans are not recorded or the warp does not exist.
    ///
    /// # Safety
    /// As for [`Launch::traced`](crate::Launch::traced) and [`Launch::streamed`](crate::Launch::streamed)
    /// while the span is used. Others access it only by atomics of eight bytes.
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

    pub(crate) fn begin(self, sm: u32) {
        self.word(BEGIN_CLOCK).store(0, Relaxed);
        self.word(BEGIN_TIMER).store(0, Relaxed);
        self.word(SMS).store(u64::from(sm + 1), Relaxed);
    }

    /// Stores the warp's clock: the elapsed time while no lane has left, later the end.
    pub(crate) fn tick(self, clock: u32) {
        self.word(END_CLOCK).store(clock.into(), Relaxed);
    }

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

    fn store_timers(self, span: &WarpSpan) {
        self.word(BEGIN_TIMER).store(span.begin_timer, Relaxed);
        self.word(END_TIMER).store(span.end_timer, Relaxed);
    }

    fn word(&self, offset: u64) -> &AtomicU64 {
        let word = std::ptr::with_exposed_provenance_mut::<u64>((self.address + offset) as usize);
        // SAFETY: an aligned word of the span (contract of `new`), which is accessed only atomically.
        unsafe { AtomicU64::from_ptr(word) }
    }
}

/// Assigns times to the warps of an ended launch. Returns the end of the last warp.
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
            // SAFETY: guaranteed by the caller.
            Some((block, unsafe { SpanMemory::new(memory, recording, index) }?))
        })
        .unzip();
    let mut spans: Vec<WarpSpan> = memory.iter().map(|span| span.load()).collect();
    let end = place(&mut spans, |index| blocks[index], multiprocessors, start);
    memory.iter().zip(&spans).for_each(|(to, span)| to.store_timers(span));
    end
}

/// Assigns times, in nanoseconds, to warps of the simulator. Blocks are assigned to multiprocessors in turn.
/// From `start`, each multiprocessor runs its blocks one after the other, and the warps of a block begin
/// together. A warp that has not ended takes its elapsed time. Returns the end of the last warp. `spans` are
/// the launch's recorded warps in memory order, and `block_of` returns the block for an index. Existing
/// timers are ignored, so the function may be called again.
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
