//! A lane's log, entry by entry: for those who read it by one thread, on either device.

use warptrace_format::log::{Entry, LANES, RESERVED_ENTRIES, first_segment};

use crate::memory::at_entry;
use warptrace_format::Memory;

/// Log memory that can be read.
pub(crate) trait LogMemory: Copy {
    /// Index of the entry after the last one that may belong to a log.
    fn end(self) -> u32;
    /// A lane's head in a slice: index of the entry after its last one; 0, or when its first run was lost.
    fn head(self, slice: u32, lane: u32) -> [u32; 2];
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
    fn head(self, slice: u32, lane: u32) -> [u32; 2] {
        at_entry(self.logs, slice).get64(8 * lane)
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
pub(crate) struct Slice {
    /// Index of the slice's first entry.
    pub(crate) first: u32,
    /// Entries of a first segment, at least 2.
    pub(crate) first_entries: u32,
    /// Entries of any other segment, at least 2.
    pub(crate) segment_entries: u32,
    /// The lanes that the warp has.
    pub(crate) lanes: u32,
}

/// The segment to which a link leads: none that is not inside of log memory.
#[inline(always)]
pub(crate) fn follow(memory: impl LogMemory, link: u32, slice: Slice) -> Option<u32> {
    let segment = memory.first_word(link);
    let last = memory.end().saturating_sub(slice.segment_entries);
    if segment < RESERVED_ENTRIES || segment > last { None } else { Some(segment) }
}

/// What a lane's head says of its log.
#[derive(Clone, Copy, Default)]
pub(crate) struct LaneLog {
    /// Index of the first entry.
    pub(crate) first: u32,
    /// How many entries it has, those included that hold no run.
    pub(crate) entries: u32,
    /// When its first run was lost, if one was.
    pub(crate) lost_from: Option<u32>,
}

impl LaneLog {
    /// Reads the head of a lane, and counts the entries along the links. A log that is damaged ends where it leads
    /// out of memory; one that is longer than memory is empty.
    #[inline(always)]
    pub(crate) fn read(memory: impl LogMemory, slice: Slice, lane: u32) -> Self {
        let first = first_segment(slice.first, lane % LANES, slice.first_entries);
        let mut log = Self { first, entries: 0, lost_from: None };
        if slice.lanes >> (lane % LANES) & 1 == 0 {
            return log;
        }
        let [end, lost] = memory.head(slice.first, lane % LANES);
        log.lost_from = if lost == 0 { None } else { Some(lost) };
        let (mut segment, mut length) = (first, slice.first_entries - 1);
        loop {
            let here = end.wrapping_sub(segment);
            if here <= length {
                log.entries = log.entries.saturating_add(here);
                return log;
            }
            log.entries = log.entries.saturating_add(length);
            match follow(memory, segment + length, slice) {
                Some(next) if log.entries < memory.end() => segment = next,
                Some(_) => {
                    log.entries = 0;
                    return log;
                }
                None => return log,
            }
            length = slice.segment_entries - 1;
        }
    }

    /// A cursor at the first entry.
    #[inline(always)]
    pub(crate) fn cursor(self, slice: Slice) -> Cursor {
        Cursor { index: self.first, link: self.first + (slice.first_entries - 1), remaining: self.entries }
    }
}

/// How far a log has been read.
#[derive(Clone, Copy)]
pub(crate) struct Cursor {
    /// Index of the next entry, if there is one.
    pub(crate) index: u32,
    /// Index of its segment's link.
    pub(crate) link: u32,
    /// Entries from there on.
    pub(crate) remaining: u32,
}

impl Cursor {
    /// Moves to the next run, past entries that hold none; answers the run.
    #[inline(always)]
    pub(crate) fn seek(&mut self, memory: impl LogMemory, slice: Slice) -> Option<Entry> {
        while self.remaining != 0 {
            if self.index == self.link {
                // It was there when the entries were counted.
                self.index = follow(memory, self.link, slice)?;
                self.link = self.index + (slice.segment_entries - 1);
            }
            let entry = Entry::from_words(memory.entry(self.index));
            if entry.is_run() {
                return Some(entry);
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
