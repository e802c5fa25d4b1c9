//! A lane's log, read entry by entry by one thread, on the device or on the host.

use warptrace_abi::log::{ALL_LEFT, Entry, FLAT, FirstSegments, LoggedLaunch, RESERVED_ENTRIES, STOPPED};
use warptrace_format::LANES;

use crate::memory::at_entry;
use warptrace_format::Memory;

pub(crate) trait LogMemory: Copy {
    /// Returns the index after the last entry that may belong to a log.
    fn end(self) -> u32;
    fn entry(self, index: u32) -> [u32; 4];
    /// Reads the first word of an entry. In a link, it is the index of the next segment.
    fn first_word(self, index: u32) -> u32;
}

#[derive(Clone, Copy)]
pub(crate) struct DeviceLogs {
    pub(crate) logs: u64,
    pub(crate) end: u32,
}

impl LogMemory for DeviceLogs {
    #[inline(always)]
    fn end(self) -> u32 {
        self.end
    }

    #[inline(always)]
    fn entry(self, index: u32) -> [u32; 4] {
        at_entry(self.logs, index).get128(0)
    }

    #[inline(always)]
    fn first_word(self, index: u32) -> u32 {
        at_entry(self.logs, index).get32(0)
    }
}

/// The position and layout of a stream's logs.
#[derive(Clone, Copy)]
pub(crate) struct StreamLogs {
    /// Index of the first entry of lane 0's first segment; for flat logs, of the entries with positions.
    pub(crate) first: u32,
    /// Lanes with a first segment from the start.
    pub(crate) first_lanes: u32,
    /// Entries of such a first segment, at least 2.
    pub(crate) first_entries: u32,
    /// Entries of any other segment, at least 2.
    pub(crate) segment_entries: u32,
    /// Mask of the lanes that exist in the warp.
    pub(crate) lanes: u32,
    pub(crate) layout: Layout,
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Layout {
    /// Segments, each with a link to the next one.
    Linked = 0,
    /// Rings. Their two segments are the halves of the first segment.
    Ring = 1,
    /// One array of runs per log.
    Flat = FLAT,
}

impl Layout {
    #[inline(always)]
    pub(crate) const fn from_number(number: u32) -> Self {
        match number {
            0 => Self::Linked,
            FLAT => Self::Flat,
            _ => Self::Ring,
        }
    }
}

/// Entries after which a flat log's cursor expects a link. More than any log has, so no link is followed.
const UNLINKED: u32 = 1 << 31;

impl StreamLogs {
    #[inline(always)]
    pub(crate) fn new(launch: &LoggedLaunch, stream: u32, warp: u32) -> Self {
        Self {
            first: if launch.ring == FLAT {
                launch.flat_logs(stream)
            } else {
                launch.first_segment(stream, 0)
            },
            first_lanes: launch.first_lanes,
            first_entries: launch.first_entries,
            segment_entries: launch.segment_entries,
            lanes: launch.lanes(warp),
            layout: Layout::from_number(launch.ring),
        }
    }

    #[inline(always)]
    pub(crate) fn is_ring(self) -> bool {
        matches!(self.layout, Layout::Ring)
    }

    /// Returns the index of the first entry of a lane's first segment, which exists from the start.
    #[inline(always)]
    fn first_segment(self, lane: u32) -> u32 {
        self.first + FirstSegments { lanes: self.first_lanes, entries: self.first_entries }.offset(0, lane)
    }

    /// Finds the first segment of a lane and its number of entries. `list` is the head of the list of
    /// reserved first segments or, if all lanes have one from the start, the mask of lanes with entries.
    #[inline(always)]
    fn find_first(self, memory: impl LogMemory, lane: u32, list: u32) -> Option<[u32; 2]> {
        if lane < self.first_lanes {
            let is_empty = self.first_lanes > 1 && list >> lane & 1 == 0;
            return if is_empty { None } else { Some([self.first_segment(lane), self.first_entries]) };
        }
        let (mut next, mut looked_at) = (list, 0);
        while looked_at < LANES && is_segment(memory, next, self) {
            let [following, owner, ..] = memory.entry(next);
            if owner == lane {
                return Some([next, self.segment_entries]);
            }
            next = following;
            looked_at += 1;
        }
        None
    }
}

/// Returns true if a reserved segment that begins at `first` lies inside log memory.
#[inline(always)]
fn is_segment(memory: impl LogMemory, first: u32, logs: StreamLogs) -> bool {
    first >= RESERVED_ENTRIES && first <= memory.end().saturating_sub(logs.segment_entries)
}

/// Returns the segment (in a ring, the other half) that a link leads to, or `None` outside of log memory.
#[inline(always)]
pub(crate) fn follow(memory: impl LogMemory, link: u32, logs: StreamLogs) -> Option<u32> {
    if logs.is_ring() {
        return Some((link + 1 - logs.segment_entries) ^ logs.segment_entries);
    }
    let segment = memory.first_word(link);
    if is_segment(memory, segment, logs) { Some(segment) } else { None }
}

#[derive(Clone, Copy, Default)]
pub(crate) struct LaneLog {
    /// Cursor at the first entry. Its remaining entries include entries without a run.
    pub(crate) start: Cursor,
    /// Start time of the first run that was lost, by this lane or by lanes without a log. Not used for rings.
    pub(crate) lost_from: Option<u32>,
    /// For a ring that has lost runs: the clock of its oldest run.
    pub(crate) oldest: Option<u64>,
}

impl LaneLog {
    /// Counts the entries of a lane's log along the links. A damaged log ends where a link leaves log memory.
    /// A log longer than log memory counts as empty.
    #[inline(always)]
    pub(crate) fn read(memory: impl LogMemory, logs: StreamLogs, lane: u32) -> Self {
        let lane = lane % LANES;
        let is_there = logs.lanes >> lane & 1 != 0;
        match logs.layout {
            Layout::Flat if is_there => return Self::read_flat(memory, logs.first, lane),
            Layout::Ring if is_there => return Self::read_ring(memory, logs, logs.first_segment(lane)),
            Layout::Flat | Layout::Ring => return Self::default(),
            Layout::Linked => {}
        }
        let [low, high, list, _] = memory.entry(logs.first);
        let mut log = Self::default();
        if high != 0 {
            log.lost_from = Some(!low | 1);
        }
        if !is_there {
            return log;
        }
        let Some([mut segment, entries]) = logs.find_first(memory, lane, list) else { return log };
        let mut length = entries - 1;
        log.start = Cursor { index: segment + 1, link: segment + length, remaining: 0 };
        let (mut header, entries) = (1, &mut log.start.remaining);
        loop {
            let [next, free, time, _] = memory.entry(segment + length);
            let here = length - header;
            if next == 0 {
                let is_stopped = free & STOPPED != 0;
                *entries = entries.saturating_add(here.saturating_sub(free & !(STOPPED | ALL_LEFT)));
                if is_stopped && log.lost_from.is_none_or(|other| (time.wrapping_sub(other) as i32) < 0) {
                    log.lost_from = Some(time | 1);
                }
                return log;
            }
            *entries = entries.saturating_add(here);
            if !is_segment(memory, next, logs) {
                return log;
            }
            if *entries >= memory.end() {
                *entries = 0;
                return log;
            }
            (segment, length, header) = (next, logs.segment_entries - 1, 0);
        }
    }

    /// Reads the position of a lane's flat log. A log that leaves log memory counts as empty.
    #[inline(always)]
    fn read_flat(memory: impl LogMemory, flat_logs: u32, lane: u32) -> Self {
        let [a, b, c, d] = memory.entry(flat_logs + lane / 2);
        let [first, count] = if lane.is_multiple_of(2) { [a, b] } else { [c, d] };
        let is_inside = first >= RESERVED_ENTRIES && count <= memory.end().saturating_sub(first);
        let (index, remaining) = if is_inside { (first, count) } else { (RESERVED_ENTRIES, 0) };
        let link = index.wrapping_add(UNLINKED);
        Self { start: Cursor { index, link, remaining }, ..Self::default() }
    }

    /// Reads the state of a ring. A damaged ring counts as empty.
    #[inline(always)]
    fn read_ring(memory: impl LogMemory, logs: StreamLogs, first: u32) -> Self {
        let length = logs.segment_entries - 1;
        let second = first + logs.segment_entries;
        let [low, high, in_first, _] = memory.entry(first + length);
        let has_lost = low | high != 0;
        let in_second = in_first.wrapping_sub(logs.segment_entries);
        let (index, remaining) = if in_second <= length {
            (first, length + in_second)
        } else if in_first > length {
            (first, 0)
        } else if has_lost {
            (second, length + in_first)
        } else {
            (first, in_first)
        };
        let mut log = Self { start: Cursor { index, link: index + length, remaining }, ..Self::default() };
        if has_lost {
            let mut cursor = log.start;
            log.oldest = cursor.seek_words(memory, logs).map(Entry::clock);
        }
        log
    }

    /// Skips entries without a run, and runs of a ring that began before `from`. Returns the skipped events.
    #[inline(always)]
    pub(crate) fn pass_over(&mut self, memory: impl LogMemory, logs: StreamLogs, from: u64) -> u64 {
        let mut events = 0;
        while let Some(words) = self.start.seek_words(memory, logs) {
            if !is_later(from, Entry::clock(words)) {
                break;
            }
            events += u64::from(Entry::from_words(words).count);
            self.start.advance();
        }
        events
    }
}

/// Returns true if `clock` is later than `other`. They must differ by less than half of the clock's range.
#[inline(always)]
pub(crate) fn is_later(clock: u64, other: u64) -> bool {
    (other.wrapping_sub(clock) as i64) < 0
}

/// The position up to which a log has been read.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cursor {
    pub(crate) index: u32,
    /// Index of the link of its segment.
    pub(crate) link: u32,
    /// Remaining entries, including the next one.
    pub(crate) remaining: u32,
}

impl Cursor {
    /// Moves to the next run, past entries without one, and returns it.
    #[inline(always)]
    pub(crate) fn seek(&mut self, memory: impl LogMemory, logs: StreamLogs) -> Option<Entry> {
        self.seek_words(memory, logs).map(Entry::from_words)
    }

    #[inline(always)]
    pub(crate) fn seek_words(&mut self, memory: impl LogMemory, logs: StreamLogs) -> Option<[u32; 4]> {
        while self.remaining != 0 {
            if self.index == self.link {
                // The link was valid when the entries were counted.
                self.index = follow(memory, self.link, logs)?;
                self.link = self.index + (logs.segment_entries - 1);
            }
            let words = memory.entry(self.index);
            if Entry::from_words(words).is_run() {
                return Some(words);
            }
            self.advance();
        }
        None
    }

    #[inline(always)]
    pub(crate) fn advance(&mut self) {
        self.index += 1;
        self.remaining -= 1;
    }
}
