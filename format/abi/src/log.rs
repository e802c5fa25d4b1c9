//! Logs: what a traced kernel writes while it runs, and what host and encoder read.
//!
//! A log belongs to one lane of one warp, for one track of one launch; nothing else writes to it. It holds
//! *log entries*: one for each run that its lane has *kept*, in the order in which they began. The leader
//! lane of a run is the lowest lane of its mask (of a counted loop's run: the lowest lane that leaves the
//! loop with it).
//!
//! Log memory is an array of entries of 16 bytes, named by their index. Entry 0 stands for "none" and is
//! never used.
//!
//! # An entry
//! ```text
//! offset  size  field
//!      0     4  mask
//!      4     4  key: location in the upper half, count in the lower half
//!      8     8  the multiprocessor's clock when the run began, in cycles
//! ```
//! A run of more than 65,535 repeats takes several entries. An entry whose count is 0 holds no run and is
//! passed over. Runs are ordered by the clock in units of 16 cycles, modulo 2^32 units: two events of a lane
//! are further from each other than one unit.
//!
//! # Segments
//! A log is a chain of segments. The last entry of a segment is its link. Its first word is the index of
//! the next segment's first entry, or 0 if the log ends in this segment. Then the second word says how many
//! entries before the link were not written. A lane writes the link when it goes on to another segment, or
//! when it leaves the kernel; or when it finds no memory: then the second word is [`STOPPED`], and the
//! third is the time of the first run that the lane has lost, in units of 16 cycles, modulo 2^32. Of a log
//! that ends, the second word may have [`ALL_LEFT`], too.
//!
//! The first segment of a log begins with a header of one entry. Other segments have none.
//!
//! A launch has *first segments* from the start, of [`LaunchLogs::first_entries`] entries: for lane 0 of each
//! stream (a warp's track), or for each of its lanes ([`LaunchLogs::first_lanes`]). All other segments are
//! claimed when they are needed, from [`Claims::log_entries`](crate::pool::Claims), and have
//! [`LaunchLogs::segment_entries`] entries. Both numbers are powers of two from [`SEGMENT_MULTIPLE`] to
//! [`MAX_FIRST_ENTRIES`] and [`MAX_SEGMENT_ENTRIES`], and each segment begins at an address that is a
//! multiple of its length: so no segment crosses a multiple of 4 GiB, and the upper half of a write pointer
//! changes only from segment to segment.
//!
//! # Headers
//! The header of lane 0's first segment is the *stream's head*. Lane 0 clears it when the kernel begins:
//! ```text
//! offset  size  field
//!      0     8  1 since the warp has begun, or the time of the first run that lanes without a segment have lost: the
//!               complement of its clock in units of 16 cycles, whose upper half is not 0
//!      8     4  index of the first entry of a claimed first segment, 0 if there is none; or where each lane has a first
//!               segment from the start: the lanes whose logs hold entries
//!     12     4  the lanes that have left the kernel
//! ```
//! A lane that leaves the kernel with an empty log writes no link, if each lane has a first segment.
//! Leaving lanes add themselves to the last words of the head together. Where only lane 0 has a first
//! segment, and all 32 lanes leave together, its link says [`ALL_LEFT`] instead.
//!
//! The claimed first segments of a stream are a list. The header of each of them:
//! ```text
//! offset  size  field
//!      0     4  index of the first entry of the next one in the list; 0 at the end
//!      4     4  lane
//!      8     8  not used
//! ```
//! If a lane finds no memory for another segment, it counts the events of each run that it would append,
//! and adds them to the losses in the warp's account when it leaves. The time of the first one is in its
//! last link, or in the stream's head. What any lane of the warp began at the earliest of these times or
//! later is lost too: what is recorded of a warp is a beginning.
//!
//! # Kernels that run
//! Log memory is all zeros when a launch begins. The leader of a run writes it when it begins, to where it
//! will append it: into the entry behind its last one, or where that is the link into the link. So a copy of
//! the logs of a kernel that runs shows where lanes are. A log goes up to the first entry whose mask is 0. A
//! link that leads on has zeros behind its first word; one whose second word is not 0 is a run that has
//! begun, if its first word is not 0. How often that is repeated is not known.
//!
//! A log that was stopped has the run in its last link:
//! ```text
//! offset  size  field
//!      0     4  mask
//!      4     2  how often the count of lost events had no room in the lane's registers
//!      6     2  location
//!      8     4  the time of the first run that the lane has lost
//!     12     4  STOPPED, and the clock when the run began, in units of 2^14 cycles modulo 2^31
//! ```
//! When the lane leaves, the link gets what links of stopped logs have.
//!
//! # Rings
//! If the launch says so ([`LaunchLogs::ring`]), each log is a ring: nothing is claimed, each lane has a
//! first segment without a header, and keeps its latest runs. The first segment then consists of two segments
//! of half its length, which the lane fills in turn, each up to its last entry:
//! ```text
//! first half   runs ... | state   second half   runs ... | not used
//! ```
//! Before a lane begins to fill a half anew, it counts the events that the half holds as lost. The first
//! half's last entry is the lane's state. Its first eight bytes say how many events the lane has lost so far,
//! 0 when the kernel begins. The next four say where the log ends: how many entries of the ring lie before
//! it. They are written when the lane leaves. So its log is, if it ends in the second half, all of the first
//! half and what is before the end; if it ends in the first half and has lost something, all of the second
//! half and what is before the end.
//!
//! What is recorded of a warp is an end. A lane that has lost something has all its runs from the first one
//! in its log on. So the warp has all runs from that time on which is the latest among the first ones of
//! such lanes. Runs that began before it are passed over when logs are merged, and counted as lost. Here
//! times are compared as whole clocks, in units of 16 cycles.
//!
//! # Flat logs
//! Logs that were gathered from elsewhere can be [flat](FLAT): each is one array of entries, all of them
//! runs. [`LoggedLaunch::first_segments`] then leads to an array of [`FLAT_ENTRIES`] entries for each stream,
//! with eight bytes for each lane: the index of its first entry, and how many there are.

use warptrace_format::LANES;
use warptrace_format::chosen::ChosenWarps;

/// Bytes of a log entry.
pub const ENTRY_BYTES: u32 = 16;
/// Entries that say where the flat logs of a stream are.
pub const FLAT_ENTRIES: u32 = LANES / 2;
/// Entries of the shortest segments.
pub const SEGMENT_MULTIPLE: u32 = 8;
/// Entries of the longest segments.
pub const MAX_SEGMENT_ENTRIES: u32 = 128;
/// Entries of the longest first segments. Log memory begins at a multiple of their length, 64 KiB.
pub const MAX_FIRST_ENTRIES: u32 = 4096;
/// Entries of the shortest first segments that are rings.
pub const MIN_RING_ENTRIES: u32 = 16;
/// Entries at the start of log memory that have no owner.
pub const RESERVED_ENTRIES: u32 = MAX_SEGMENT_ENTRIES;
/// What the address of log memory is a multiple of: the length of the longest segments. So an index that is a
/// multiple of a segment's entries is an address that is a multiple of its length.
pub const LOG_ALIGNMENT: u64 = MAX_FIRST_ENTRIES as u64 * ENTRY_BYTES as u64;
/// The most that a key counts.
pub const MAX_KEY_COUNT: u32 = 0xffff;
/// What the second word of a link is if the log was stopped.
pub const STOPPED: u32 = 1 << 31;
/// Bit of the second word of a link that leads nowhere: all lanes of the warp have left, together with this
/// one.
pub const ALL_LEFT: u32 = 1 << 30;
/// Bits by which the clock is shifted in the last link of a log that was stopped, while the kernel runs.
pub const STOPPED_TIME_SHIFT: u32 = 14;
/// The most entries of log memory: almost 64 GiB.
pub const MAX_ENTRIES: u32 = 0xffff_0000;
/// Bits by which a location is shifted in a key.
pub const LOCATION_SHIFT: u32 = 16;
/// Bits by which the clock is shifted in a time.
pub const TIME_SHIFT: u32 = 4;

/// What a traced launch is told: the last parameter of a traced kernel. Size 88 bytes, alignment 8. A kernel
/// that records every warp takes only what stands before [`chosen`](Self::chosen): 64 bytes.
///
/// Each launch has its own, so launches may overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct LaunchLogs {
    /// Address of log memory, a multiple of [`LOG_ALIGNMENT`].
    pub logs: u64,
    /// Address of a [`Claims`](crate::pool::Claims), whose first field counts entries.
    pub claims: u64,
    /// Array of [`WarpAccount`](warptrace_format::account::WarpAccount), one for each warp and track:
    /// `accounts[track * warps + warp]`. Where warps write [where and when they
    /// ran](warptrace_format::span::WarpSpan), an array of that for each warp stands directly behind it.
    pub accounts: u64,
    /// Lanes of a stream that have first segments from the start: 1 or 32.
    pub first_lanes: u32,
    /// Warps of the launch that record.
    pub warps: u32,
    /// Entries of such a first segment.
    pub first_entries: u32,
    /// Entries of every other segment; in a [ring](Self::ring), of one half.
    pub segment_entries: u32,
    /// Added to a claim's answer: the index of the segment's first entry, a multiple of the segment's length.
    pub claims_from: u32,
    /// Entries of log memory that may be claimed: a segment must end at or before this index.
    pub claims_end: u32,
    /// Number of the launch.
    pub launch: u32,
    /// Index of the first entry of the launch's first segments, a multiple of
    /// [`first_entries`](Self::first_entries).
    pub first_segments: u32,
    /// 1 if logs are rings, which keep the latest runs; 0 if they take segments until there are no more.
    pub ring: u32,
    /// Not used; 0.
    pub reserved: u32,
    /// The warps that record. In the tables above a warp stands at its index among them; their number is
    /// [`warps`](Self::warps). All zero: every warp of the launch.
    pub chosen: ChosenWarps,
    /// Not used; 0.
    pub unused: u32,
}

impl LaunchLogs {
    /// Index of a warp in the launch's tables, given by its block, its number in the block and the warps of a
    /// block; `None` if it does not record.
    #[inline(always)]
    pub const fn warp_index(&self, block: u32, warp_in_block: u32, warps_per_block: u32) -> Option<u32> {
        self.chosen.table_index(self.warps, block, warp_in_block, warps_per_block)
    }

    /// The launch's first segments.
    pub const fn first(&self) -> FirstSegments {
        FirstSegments { lanes: self.first_lanes, entries: self.first_entries }
    }

    /// Index of the first entry of the first segment of a stream's lane, one of
    /// [`first_lanes`](Self::first_lanes).
    pub const fn first_segment(&self, track: u32, warp: u32, lane: u32) -> u32 {
        self.first_segments + self.first().offset(track * self.warps + warp, lane)
    }
}

/// What each stream of a launch has from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstSegments {
    /// Lanes that have a first segment: 1 or 32.
    pub lanes: u32,
    /// Entries of each of them.
    pub entries: u32,
}

impl FirstSegments {
    /// One for each stream, of this many entries.
    pub const fn of_streams(entries: u32) -> Self {
        Self { lanes: 1, entries }
    }

    /// One for each lane, of this many entries.
    pub const fn of_lanes(entries: u32) -> Self {
        Self { lanes: LANES, entries }
    }

    /// Entries from the first segment of lane 0 of stream 0 to that of a lane of a stream.
    #[inline(always)]
    pub const fn offset(self, stream: u32, lane: u32) -> u32 {
        (stream * self.lanes + lane) * self.entries
    }

    /// Entries of all first segments of this many streams.
    #[inline(always)]
    pub const fn total(self, streams: u64) -> u64 {
        streams * self.lanes as u64 * self.entries as u64
    }
}

/// Where in log memory the first segments of a launch lie: indices of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// The first entry of the first one.
    pub first_segments: u64,
    /// The entry after the last one, rounded up to where segments of any length may be claimed.
    pub end: u64,
}

impl Fixed {
    /// Places the first segments of this many streams in the entries from `from` on. What alignment leaves
    /// out has no owner.
    pub const fn place(from: u64, streams: u64, first: FirstSegments) -> Self {
        let first_segments = from.next_multiple_of(first.entries as u64);
        let end = (first_segments + first.total(streams)).next_multiple_of(MAX_SEGMENT_ENTRIES as u64);
        Self { first_segments, end }
    }
}

/// A run, as an entry holds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Lanes that took part.
    pub mask: u32,
    /// Location id, 1 to 65,535.
    pub location: u16,
    /// How often the event repeats, at most [`MAX_KEY_COUNT`]; 0: no run.
    pub count: u32,
    /// When it began, in units of 16 cycles.
    pub time: u32,
}

impl Entry {
    /// Reads an entry's words.
    #[inline(always)]
    pub const fn from_words([mask, key, low, high]: [u32; 4]) -> Self {
        let time = low >> TIME_SHIFT | high << (32 - TIME_SHIFT);
        Self { mask, location: (key >> LOCATION_SHIFT) as u16, count: key & MAX_KEY_COUNT, time }
    }

    /// The words of an entry. Of `count` the lower 16 bits count.
    #[inline(always)]
    pub const fn to_words(self) -> [u32; 4] {
        let key = (self.location as u32) << LOCATION_SHIFT | self.count & MAX_KEY_COUNT;
        [self.mask, key, self.time << TIME_SHIFT, self.time >> (32 - TIME_SHIFT)]
    }

    /// The clock in an entry's words, in whole units of 16 cycles: the cycles of the last unit are 0.
    #[inline(always)]
    pub const fn clock([_, _, low, high]: [u32; 4]) -> u64 {
        (low >> TIME_SHIFT << TIME_SHIFT) as u64 | (high as u64) << 32
    }

    /// Whether this is a run; if not, the entry is passed over.
    #[inline(always)]
    pub const fn is_run(self) -> bool {
        self.count != 0
    }
}

/// A launch whose warps have left logs, for those who merge and encode them. Size 48 bytes, alignment 16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct LoggedLaunch {
    /// As in [`LaunchLogs`].
    pub accounts: u64,
    /// As in [`LaunchLogs`].
    pub first_lanes: u32,
    /// As in [`LaunchLogs`].
    pub first_entries: u32,
    /// As in [`LaunchLogs`].
    pub segment_entries: u32,
    /// As in [`LaunchLogs`].
    pub warps: u32,
    /// Threads of a block, of its recorded warps only: tells which lanes of a block's last warp there are.
    /// First segments of the others mean nothing.
    pub block_threads: u32,
    /// Number of the launch.
    pub launch: u32,
    /// Streams of the launches before this one in the table.
    pub first_stream: u32,
    /// Tracks that the launch records.
    pub tracks: u32,
    /// As in [`LaunchLogs`].
    pub first_segments: u32,
    /// As in [`LaunchLogs`]; or [`FLAT`].
    pub ring: u32,
}

/// What [`LoggedLaunch::ring`] is if the logs are flat. Lengths and places of segments mean nothing then.
pub const FLAT: u32 = 2;

impl LoggedLaunch {
    /// The lanes that a warp of the launch has.
    #[inline(always)]
    pub const fn lanes(&self, warp: u32) -> u32 {
        let warps = self.block_threads.div_ceil(LANES);
        let before = (warp % warps) * LANES;
        let left = self.block_threads - before;
        if left >= LANES { u32::MAX } else { (1 << left) - 1 }
    }

    /// The launch's first segments.
    #[inline(always)]
    pub const fn first(&self) -> FirstSegments {
        FirstSegments { lanes: self.first_lanes, entries: self.first_entries }
    }

    /// Index of the first entry of the first segment of a lane of the launch's stream: `track * warps + warp`.
    #[inline(always)]
    pub const fn first_segment(&self, stream: u32, lane: u32) -> u32 {
        self.first_segments + self.first().offset(stream, lane)
    }

    /// Index of the first of the entries that say where the flat logs of the stream are.
    #[inline(always)]
    pub const fn flat_logs(&self, stream: u32) -> u32 {
        self.first_segments + FLAT_ENTRIES * stream
    }

    /// Reads a launch from its words in a table.
    #[inline(always)]
    pub const fn from_words(words: [u32; 12]) -> Self {
        let [low, high, first_lanes, first_entries, segment_entries, warps, rest @ ..] = words;
        let [block_threads, launch, first_stream, tracks, first_segments, ring] = rest;
        Self {
            accounts: low as u64 | (high as u64) << 32,
            first_lanes,
            first_entries,
            segment_entries,
            warps,
            block_threads,
            launch,
            first_stream,
            tracks,
            first_segments,
            ring,
        }
    }

    /// The words of a launch in a table.
    pub const fn to_words(&self) -> [u32; 12] {
        let (low, high) = (self.accounts as u32, (self.accounts >> 32) as u32);
        let [first_lanes, first_entries, segment_entries] =
            [self.first_lanes, self.first_entries, self.segment_entries];
        let [warps, threads, launch] = [self.warps, self.block_threads, self.launch];
        let [first_stream, tracks, segments] = [self.first_stream, self.tracks, self.first_segments];
        [
            low,
            high,
            first_lanes,
            first_entries,
            segment_entries,
            warps,
            threads,
            launch,
            first_stream,
            tracks,
            segments,
            self.ring,
        ]
    }
}

const _: () = {
    assert!(size_of::<LaunchLogs>() == 88 && align_of::<LaunchLogs>() == 8);
    assert!(core::mem::offset_of!(LaunchLogs, chosen) == 64);
    assert!(size_of::<LoggedLaunch>() == 48);
    assert!(LOG_ALIGNMENT.is_multiple_of(MAX_SEGMENT_ENTRIES as u64 * ENTRY_BYTES as u64));
    assert!(MAX_FIRST_ENTRIES.is_power_of_two() && MAX_SEGMENT_ENTRIES.is_power_of_two());
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_clock_in_units() {
        let entry = Entry::from_words([3, 0xffff_0007, 0x9abc_def5, 0xffff_fff2]);
        assert_eq!(entry, Entry { mask: 3, location: 0xffff, count: 7, time: 0x29ab_cdef });
        assert_eq!(Entry::from_words(entry.to_words()), entry);
        assert_eq!(Entry::clock([3, 0xffff_0007, 0x9abc_def5, 0xffff_fff2]), 0xffff_fff2_9abc_def0);
    }

    #[test]
    fn a_logged_launch_has_its_fields_words() {
        let launch = LoggedLaunch {
            accounts: 0x2_0000_0001,
            first_lanes: 3,
            first_entries: 4,
            segment_entries: 5,
            warps: 6,
            block_threads: 7,
            launch: 8,
            first_stream: 9,
            tracks: 10,
            first_segments: 11,
            ring: 12,
        };
        let words = launch.to_words();
        assert_eq!(words, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(LoggedLaunch::from_words(words), launch);
        assert_eq!(core::mem::offset_of!(LoggedLaunch, first_segments), 4 * 10);
    }

    #[test]
    fn first_segments_begin_at_multiples_of_their_length() {
        let placed = |from, streams, lanes, entries| {
            let Fixed { first_segments, end } = Fixed::place(from, streams, FirstSegments { lanes, entries });
            [first_segments, end]
        };
        assert_eq!(placed(128, 1, 1, 8), [128, 256]);
        assert_eq!(placed(128, 1, 32, 8), [128, 384]);
        assert_eq!(placed(129, 3, 32, 32), [160, 3328]);
        assert_eq!(placed(128, 2, 32, 4096), [4096, 4096 + 64 * 4096]);
        let logs = LaunchLogs {
            first_segments: 8192,
            first_lanes: 32,
            first_entries: 4096,
            warps: 3,
            ..LaunchLogs::default()
        };
        assert_eq!((logs.first_segment(0, 0, 1), logs.first_segment(1, 0, 0)), (12_288, 8192 + 96 * 4096));
        let logs = LaunchLogs { first_lanes: 1, first_entries: 8, ..logs };
        assert_eq!((logs.first_segment(0, 2, 0), logs.first_segment(1, 0, 0)), (8208, 8216));
    }

    #[test]
    fn a_blocks_last_warp_may_lack_lanes() {
        let launch = LoggedLaunch { block_threads: 70, ..LoggedLaunch::default() };
        assert_eq!(
            [0, 1, 2, 3, 5].map(|warp| launch.lanes(warp)),
            [u32::MAX, u32::MAX, 0x3f, u32::MAX, 0x3f]
        );
        let whole = LoggedLaunch { block_threads: 64, ..LoggedLaunch::default() };
        assert_eq!(whole.lanes(1), u32::MAX);
    }
}
