//! A lane's log, entry by entry: for those who read it by one thread, on either device.

use warptrace_abi::log::{ALL_LEFT, Entry, FLAT, FirstSegments, LoggedLaunch, RESERVED_ENTRIES, STOPPED};
use warptrace_format::LANES;

use crate::memory::at_entry;
use warptrace_format::Memory;

/// Log memory that can be read.
pub(crate) trait LogMemory: Copy {
    /// Index of the entry after the last one that may belong to a log.
    fn end(self) -> u32;
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
    /// Index of the first entry of lane 0's first segment; of flat logs, of the entries that say where they
    /// are.
    pub(crate) first: u32,
    /// Lanes that have a first segment behind it.
    pub(crate) first_lanes: u32,
    /// Entries of such a first segment, at least 2.
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

    /// Whether logs are rings.
    #[inline(always)]
    pub(crate) fn is_ring(self) -> bool {
        matches!(self.layout, Layout::Ring)
    }

    /// Index of the first entry of the first segment of a lane that has one from the start.
    #[inline(always)]
    fn first_segment(self, lane: u32) -> u32 {
        self.first + FirstSegments { lanes: self.first_lanes, entries: self.first_entries }.offset(0, lane)
    }

    /// Finds the first segment of a lane, and how many entries it has. `list` is the first of those that were
    /// claimed; or where each lane has a first segment, the lanes whose logs hold entries.
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

/// Whether a claimed segment that begins there is inside of log memory.
#[inline(always)]
fn is_segment(memory: impl LogMemory, first: u32, logs: StreamLogs) -> bool {
    first >= RESERVED_ENTRIES && first <= memory.end().saturating_sub(logs.segment_entries)
}

/// The segment to which a link leads: none that is not inside of log memory. From a half of a ring, the other
/// one.
#[inline(always)]
pub(crate) fn follow(memory: impl LogMemory, link: u32, logs: StreamLogs) -> Option<u32> {
    if logs.is_ring() {
        return Some((link + 1 - logs.segment_entries) ^ logs.segment_entries);
    }
    let segment = memory.first_word(link);
    if is_segment(memory, segment, logs) { Some(segment) } else { None }
}

/// What is known of a lane's log before its entries are read.
#[derive(Clone, Copy, Default)]
pub(crate) struct LaneLog {
    /// The first entry. What remains from there on are all entries, those included that hold no run.
    pub(crate) start: Cursor,
    /// When the first run of the lane was lost, or of lanes without a log, if one was. Not of a ring.
    pub(crate) lost_from: Option<u32>,
    /// Of a ring whose lane has lost something: the clock of the first run that it has.
    pub(crate) oldest: Option<u64>,
}

impl LaneLog {
    /// Counts the entries of a lane's log along the links. A log that is damaged ends where it leads out of
    /// memory; one that is longer than memory is empty.
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

    /// Reads where a lane's flat log is. One that leads out of memory is empty.
    #[inline(always)]
    fn read_flat(memory: impl LogMemory, flat_logs: u32, lane: u32) -> Self {
        let [a, b, c, d] = memory.entry(flat_logs + lane / 2);
        let [first, count] = if lane.is_multiple_of(2) { [a, b] } else { [c, d] };
        let is_inside = first >= RESERVED_ENTRIES && count <= memory.end().saturating_sub(first);
        let (index, remaining) = if is_inside { (first, count) } else { (RESERVED_ENTRIES, 0) };
        let link = index.wrapping_add(UNLINKED);
        Self { start: Cursor { index, link, remaining }, ..Self::default() }
    }

    /// Reads a ring, from its state. One that is damaged is empty.
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
