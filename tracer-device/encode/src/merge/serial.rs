//! Merges the logs of a stream with one thread, for arbitrary times. The thread compares the next runs of all
//! logs and takes the earliest. It continues with the same log while that log's next run comes before all
//! others. Times are compared relative to the last run taken, so they may wrap repeatedly.

use warptrace_abi::log::Entry;
use warptrace_format::LANES;
use warptrace_format::Memory;

use crate::lane_log::{Cursor, LaneLog, LogMemory, StreamLogs, is_later};
use crate::warp::NEVER;

/// Bytes per log with runs: the cursor at its next run, and that run's time.
const HEAD_BYTES: u32 = 16;
const TIME: u32 = 12;

pub(crate) const HEADS_BYTES: u32 = HEAD_BYTES * LANES;

pub(crate) struct SerialMerge<H, L> {
    heads: H,
    memory: L,
    stream: StreamLogs,
    /// Number of logs with remaining runs.
    logs: u32,
    /// Time of the last run taken.
    last: u32,
    /// Log of that run; [`NEVER`] if the next step must search for the earliest run.
    current: u32,
    /// Time from the last run to the earliest run of the other logs; [`NEVER`] without another log.
    other: u32,
    /// Time of the first run that was lost for lack of memory.
    pub(crate) lost_from: Option<u32>,
    /// Events that were skipped in rings.
    pub(crate) passed_over: u64,
}

/// Returns the clock from which all rings of a stream are complete, if one has lost runs.
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
    /// Opens the logs of a stream. `heads` has [`HEADS_BYTES`] bytes.
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
        // A time before all of them.
        let last = if logs == 0 { 0 } else { heads.get32(TIME).wrapping_sub(1 << 31) };
        let lost_from = if lost { Some(first_lost) } else { None };
        Self { heads, memory, stream, logs, last, current: NEVER, other: 0, lost_from, passed_over }
    }

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

    /// Finds the log with the earliest next run, and the time to the second earliest.
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
