//! A lane's log, entry by entry: for those who read it by one thread, on either device.

use warptrace_abi::log::{Entry, FLAT, LoggedLaunch, RESERVED_ENTRIES, first_segment};
use warptrace_format::LANES;

use crate::memory::at_entry;
use warptrace_format::Memory;

/// Log memory that can be read.
pub(crate) trait LogMemory: Copy {
    /// Index of the entry after the last one that may belong to a log.
    fn end(self) -> u32;
    /// A lane's head among those that begin at an entry: index of the entry after its last one; 0, or when
    /// its first run was lost; of a ring, whether something was.
    fn head(self, heads: u32, lane: u32) -> [u32; 2];
    /// The words of an entry before [`end`](Self::end).
    fn entry(self, index: u32) -> [u32; 4];
    /// The first word of an entry: of a link, where it leads.
    fn first_word(self, index: u32) -> u32;
}

/// Log memory behind an address.
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
    fn head(self, heads: u32, lane: u32) -> [u32; 2] {
        at_entry(self.logs, heads).get64(8 * lane)
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

/// Where the logs of a stream are.
#[derive(Clone, Copy)]
pub(crate) struct StreamLogs {
    /// Index of the first entry of their heads.
    pub(crate) heads: u32,
    /// Index of the first entry of lane 0's first segment; those of the other lanes follow.
    pub(crate) first: u32,
    /// Entries of a first segment, at least 2.
    pub(crate) first_entries: u32,
    /// Entries of any other segment, at least 2.
    pub(crate) segment_entries: u32,
    /// The lanes that the warp has.
    pub(crate) lanes: u32,
    /// How the logs are laid out.
    pub(crate) layout: Layout,
}

/// How logs are laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Layout {
    /// Segments, each with a link to the next one.
    Linked = 0,
    /// Rings, whose two segments are the first segment's halves.
    Ring = 1,
    /// One array of runs each.
    Flat = FLAT,
}

impl Layout {
    /// That of a launch with this [`LoggedLaunch::ring`].
    #[inline(always)]
    pub(crate) const fn from_number(number: u32) -> Self {
        match number {
            0 => Self::Linked,
            FLAT => Self::Flat,
            _ => Self::Ring,
        }
    }
}

/// Entries that a flat log has room for, as far as its cursor knows: it never comes to a link.
const UNLINKED: u32 = 1 << 31;

impl StreamLogs {
    /// Gives the logs of a launch's stream: `track * warps + warp`.
    #[inline(always)]
    pub(crate) fn new(launch: &LoggedLaunch, stream: u32, warp: u32) -> Self {
        Self {
            heads: launch.heads_of(stream),
            first: launch.first_segment(stream, 0),
            first_entries: launch.first_entries,
            segment_entries: launch.segment_entries,
            lanes: launch.lanes(warp),
            layout: Layout::from_number(launch.ring),
        }
    }

    /// Whether logs are rings.
    #[inline(always)]
    pub(crate) fn is_ring(self) -> bool {
        matches!(self.layout, Layout::Ring)
    }

    /// Index of the first entry of a lane's first segment.
    #[inline(always)]
    pub(crate) fn first_segment(self, lane: u32) -> u32 {
        first_segment(self.first, 0, lane, self.first_entries)
    }
}

/// The segment to which a link leads: none that is not inside of log memory. From a half of a ring, the other
/// one.
#[inline(always)]
pub(crate) fn follow(memory: impl LogMemory, link: u32, logs: StreamLogs) -> Option<u32> {
    if logs.is_ring() {
        return Some((link + 1 - logs.segment_entries) ^ logs.segment_entries);
    }
    let segment = memory.first_word(link);
    let last = memory.end().saturating_sub(logs.segment_entries);
    if segment < RESERVED_ENTRIES || segment > last { None } else { Some(segment) }
}

/// What a lane's head says of its log.
#[derive(Clone, Copy, Default)]
pub(crate) struct LaneLog {
    /// The first entry. What remains from there on are all entries, those included that hold no run.
    pub(crate) start: Cursor,
    /// When its first run was lost, if one was. Not of a ring.
    pub(crate) lost_from: Option<u32>,
    /// Of a ring whose lane has lost something: the clock of the first run that it has.
    pub(crate) oldest: Option<u64>,
}

impl LaneLog {
    /// Reads the head of a lane, and counts the entries along the links. A log that is damaged ends where it
    /// leads out of memory; one that is longer than memory is empty.
    #[inline(always)]
    pub(crate) fn read(memory: impl LogMemory, logs: StreamLogs, lane: u32) -> Self {
        let is_there = logs.lanes >> (lane % LANES) & 1 != 0;
        if let Layout::Flat = logs.layout {
            let head = if is_there { memory.head(logs.heads, lane % LANES) } else { [0, 0] };
            return Self::read_flat(memory, head);
        }
        let first = logs.first_segment(lane % LANES);
        if logs.is_ring() {
            let head = if is_there { memory.head(logs.heads, lane % LANES) } else { [first, 0] };
            return Self::read_ring(memory, logs, first, head);
        }
        let link = first + (logs.first_entries - 1);
        let mut log = Self { start: Cursor { index: first, link, remaining: 0 }, ..Self::default() };
        if !is_there {
            return log;
        }
        let [end, lost] = memory.head(logs.heads, lane % LANES);
        log.lost_from = if lost == 0 { None } else { Some(lost) };
        let (mut segment, mut length) = (first, logs.first_entries - 1);
        let entries = &mut log.start.remaining;
        loop {
            let here = end.wrapping_sub(segment);
            if here <= length {
                *entries = entries.saturating_add(here);
                return log;
            }
            *entries = entries.saturating_add(length);
            match follow(memory, segment + length, logs) {
                Some(next) if *entries < memory.end() => segment = next,
                Some(_) => {
                    *entries = 0;
                    return log;
                }
                None => return log,
            }
            length = logs.segment_entries - 1;
        }
    }

    /// Reads a flat log from its lane's head. One that leads out of memory is empty.
    #[inline(always)]
    fn read_flat(memory: impl LogMemory, [first, count]: [u32; 2]) -> Self {
        let is_inside = first >= RESERVED_ENTRIES && count <= memory.end().saturating_sub(first);
        let (index, remaining) = if is_inside { (first, count) } else { (RESERVED_ENTRIES, 0) };
        let link = index.wrapping_add(UNLINKED);
        Self { start: Cursor { index, link, remaining }, ..Self::default() }
    }

    /// Reads a ring from its lane's head. One that is damaged is empty.
    #[inline(always)]
    fn read_ring(memory: impl LogMemory, logs: StreamLogs, first: u32, [end, lost]: [u32; 2]) -> Self {
        let length = logs.segment_entries - 1;
        let second = first + logs.segment_entries;
        let (in_first, in_second) = (end.wrapping_sub(first), end.wrapping_sub(second));
        let (index, remaining) = if in_second <= length {
            (first, length + in_second)
        } else if in_first > length {
            (first, 0)
        } else if lost != 0 {
            (second, length + in_first)
        } else {
            (first, in_first)
        };
        let mut log = Self { start: Cursor { index, link: index + length, remaining }, ..Self::default() };
        if lost != 0 {
            let mut cursor = log.start;
            log.oldest = cursor.seek_words(memory, logs).map(Entry::clock);
        }
        log
    }

    /// Passes over the runs of a ring that began before a clock, and over what holds no run before others;
    /// returns how many events they had.
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

/// Whether a clock is later than another one, which it is not by half of its range.
#[inline(always)]
pub(crate) fn is_later(clock: u64, other: u64) -> bool {
    (other.wrapping_sub(clock) as i64) < 0
}

/// How far a log has been read.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cursor {
    /// Index of the next entry, if there is one.
    pub(crate) index: u32,
    /// Index of its segment's link.
    pub(crate) link: u32,
    /// Entries from there on.
    pub(crate) remaining: u32,
}

impl Cursor {
    /// Moves to the next run, past entries that hold none; returns the run.
    #[inline(always)]
    pub(crate) fn seek(&mut self, memory: impl LogMemory, logs: StreamLogs) -> Option<Entry> {
        self.seek_words(memory, logs).map(Entry::from_words)
    }

    /// Moves to the next run; returns the words of its entry.
    #[inline(always)]
    pub(crate) fn seek_words(&mut self, memory: impl LogMemory, logs: StreamLogs) -> Option<[u32; 4]> {
        while self.remaining != 0 {
            if self.index == self.link {
                // It was there when the entries were counted.
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

    /// Moves past an entry.
    #[inline(always)]
    pub(crate) fn advance(&mut self) {
        self.index += 1;
        self.remaining -= 1;
    }
}
