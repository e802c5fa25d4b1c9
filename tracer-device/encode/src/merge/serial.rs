//! The logs of a stream, merged by one thread, whatever times they hold.
//!
//! The thread looks at the next run of each log and takes the earliest. As long as a log's next run comes
//! before all others', it is taken without another look. Times are compared from the last run taken on, so
//! that they may wrap again and again.

use warptrace_abi::log::Entry;
use warptrace_format::LANES;
use warptrace_format::Memory;

use crate::lane_log::{Cursor, LaneLog, LogMemory, StreamLogs, is_later};
use crate::warp::NEVER;

/// What is kept of each log that has runs, in this order: the cursor at its next run, and the time of that.
const HEAD_BYTES: u32 = 16;
const TIME: u32 = 12;

/// Bytes of memory that merging by one thread needs.
pub(crate) const HEADS_BYTES: u32 = HEAD_BYTES * LANES;

/// The logs of a stream, on their way into one sequence.
pub(crate) struct SerialMerge<H, L> {
    heads: H,
    memory: L,
    stream: StreamLogs,
    /// Logs that have runs.
    logs: u32,
    /// Time of the run that was taken last.
    last: u32,
    /// From which log; [`NEVER`] if the earliest is to be looked for.
    current: u32,
    /// How long after the last run the earliest of the other logs comes; [`NEVER`] without another log.
    other: u32,
    /// Time of the first run that found no memory, if one did not.
    pub(crate) lost_from: Option<u32>,
    /// Events of runs that were passed over in rings.
    pub(crate) passed_over: u64,
}

/// The clock from which on the rings of a stream have all runs, if one has lost some.
#[inline(always)]
fn complete_from(memory: impl LogMemory, stream: StreamLogs) -> Option<u64> {
    let (mut latest, mut lane) = (None, 0);
    while stream.is_ring() && lane < LANES {
        if let Some(clock) = LaneLog::read(memory, stream, lane).oldest
            && latest.is_none_or(|latest| is_later(clock, latest))
        {
            latest = Some(clock);
        }
        lane += 1;
    }
    latest
}

impl<H: Memory, L: LogMemory> SerialMerge<H, L> {
    /// Opens the logs of a stream. `heads` are [`HEADS_BYTES`] of memory.
    #[inline(always)]
    pub(crate) fn open(mut heads: H, memory: L, stream: StreamLogs) -> Self {
        let (mut logs, mut lost, mut first_lost) = (0, false, 0);
        let (complete_from, mut passed_over) = (complete_from(memory, stream), 0);
        let mut lane = 0;
        while lane < LANES {
            let mut log = LaneLog::read(memory, stream, lane);
            if let Some(clock) = complete_from {
                passed_over += log.pass_over(memory, stream, clock);
            }
            if let Some(time) = log.lost_from {
                let is_earlier = !lost || (time.wrapping_sub(first_lost) as i32) < 0;
                first_lost = if is_earlier { time } else { first_lost };
                lost = true;
            }
            let mut cursor = log.start;
            if let Some(entry) = cursor.seek(memory, stream) {
                heads.set128(HEAD_BYTES * logs, [cursor.index, cursor.link, cursor.remaining, entry.time]);
                logs += 1;
            }
            lane += 1;
        }
        // Some time before all of them.
        let last = if logs == 0 { 0 } else { heads.get32(TIME).wrapping_sub(1 << 31) };
        let lost_from = if lost { Some(first_lost) } else { None };
        Self { heads, memory, stream, logs, last, current: NEVER, other: 0, lost_from, passed_over }
    }

    /// Takes the next run.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<Entry> {
        if self.logs == 0 {
            return None;
        }
        if self.current == NEVER {
            self.look();
        }
        let at = HEAD_BYTES * self.current;
        let [index, link, remaining, time] = self.heads.get128(at);
        let entry = Entry::from_words(self.memory.entry(index));
        let since = time.wrapping_sub(self.last);
        self.other = if self.other == NEVER { NEVER } else { self.other.wrapping_sub(since) };
        self.last = time;
        let mut cursor = Cursor { index, link, remaining };
        cursor.advance();
        match cursor.seek(self.memory, self.stream) {
            None => {
                self.logs -= 1;
                let moved = self.heads.get128(HEAD_BYTES * self.logs);
                self.heads.set128(at, moved);
                self.current = NEVER;
            }
            Some(next) => {
                self.heads.set128(at, [cursor.index, cursor.link, cursor.remaining, next.time]);
                if self.other != NEVER && next.time.wrapping_sub(self.last) >= self.other {
                    self.current = NEVER;
                }
            }
        }
        Some(entry)
    }

    /// Finds the earliest next run, and how much later the one after it comes.
    #[inline(always)]
    fn look(&mut self) {
        let (mut first, mut other, mut current) = (NEVER, NEVER, 0);
        let mut head = 0;
        while head < self.logs {
            let since = self.heads.get32(HEAD_BYTES * head + TIME).wrapping_sub(self.last);
            if (since < first) | (head == 0) {
                other = first;
                (first, current) = (since, head);
            } else if since < other {
                other = since;
            }
            head += 1;
        }
        (self.current, self.other) = (current, other);
    }
}
