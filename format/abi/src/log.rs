//! Logs: written by a traced kernel while it runs, read by host and encoder.
//!
//! A log belongs to one lane of one warp, for one track of one launch, and only that lane writes to it. It
//! holds *log entries*, one for each run that the lane leads, in the order in which the runs began. The
//! *leader* of a run is the lowest lane of its mask; in a counted loop, the lowest that iterated no further.
//!
//! Log memory is an array of 16-byte entries, addressed by index. Entry 0 means "none" and is never used.
//!
//! # Entry
//! ```text
//! offset  size  field
//!      0     4  mask
//!      4     4  key: location in the upper half, count in the lower half
//!      8     8  the multiprocessor's clock when the run began, in cycles
//! ```
//! A run of more than 65,535 repeats takes several entries. An entry with count 0 holds no run. Runs are
//! ordered by the clock in units of 16 cycles, modulo 2^32. Events of a lane are more than one unit apart.
//!
//! # Segments
//! A log is a chain of segments; the first one begins with a header of one entry. The last entry of a segment
//! is its link, which the lane writes when it continues in another segment or leaves the kernel. The link's
//! first word is the index of the next segment's first entry, or 0 at the end of the log. There the second
//! word is the number of unwritten entries before the link, possibly with the bit [`ALL_LEFT`]. If a lane
//! finds no memory, the second word is [`STOPPED`], and the third the time of the first lost run.
//!
//! A launch has preallocated *first segments* of [`LaunchLogs::first_entries`] entries: for lane 0 of each
//! stream (a warp's track), or for each lane ([`LaunchLogs::first_lanes`]). Other segments have
//! [`LaunchLogs::segment_entries`] entries and are reserved from
//! [`Claims::log_entries`](crate::pool::Claims). Both numbers are powers of two. The address of a segment is
//! a multiple of its length, so the upper half of a write pointer changes only between segments.
//!
//! # Headers
//! The header of lane 0's first segment is the *stream's head*. Lane 0 clears it when the kernel begins:
//! ```text
//! offset  size  field
//!      0     8  1 after the warp has begun. If lanes without a segment have lost runs: the complement of the
//!               clock of the first lost run, in units of 16 cycles; its upper half is not 0
//!      8     4  start of the list of reserved first segments: index of a first entry, 0 if there are none.
//!               If each lane has a preallocated first segment: the mask of lanes whose logs hold entries
//!     12     4  mask of lanes that have left the kernel
//! ```
//! If each lane has a preallocated first segment, a lane with an empty log writes no link when it leaves, and
//! leaving lanes add themselves to the last two words of the head in one operation. If only lane 0 has one
//! and all 32 lanes leave together, lane 0's link has the bit [`ALL_LEFT`] instead.
//!
//! The reserved first segments of a stream form a list. The header of each:
//! ```text
//! offset  size  field
//!      0     4  index of the first entry of the next one in the list; 0 at the end
//!      4     4  lane
//!      8     8  unused
//! ```
//! A lane that finds no memory counts the events of each run that it cannot append, and adds them to the
//! losses of the warp when it leaves. The time of its first lost run is in its last link or, without a
//! segment, in the stream's head. From the earliest such time on, all runs of the warp are lost.
//!
//! # Kernels that run
//! Log memory is all zeros when a launch begins. When a run begins, its leader writes it where it will append
//! it: to the entry after its last one, or into the link. So a copy of the logs of a running kernel shows the
//! positions of the lanes. A log extends to the first entry with mask 0. A link to another segment has zeros
//! after its first word; with two nonzero words it holds a run that has begun, with an unknown count.
//!
//! While the lane is in the kernel, the last link of a stopped log holds the current run:
//! ```text
//! offset  size  field
//!      0     4  mask
//!      4     2  number of times that the count of lost events overflowed the lane's registers
//!      6     2  location
//!      8     4  the time of the first run that the lane lost
//!     12     4  STOPPED, and the clock when the run began, in units of 2^14 cycles modulo 2^31
//! ```
//!
//! # Rings
//! If [`LaunchLogs::ring`] is set, each log is a ring that keeps the lane's latest runs, in a preallocated
//! first segment without a header. The lane fills its two halves in turn, each up to its last entry:
//! ```text
//! first half   runs ... | state   second half   runs ... | unused
//! ```
//! Before a lane refills a half, it counts the events in that half as lost. The state begins with the number
//! of events lost so far, in eight bytes. The next four are the end of the log, written when the lane leaves:
//! the number of ring entries before it. The log is the ring up to the end. If the end is in the first half
//! and the lane has lost events, the second half precedes it.
//!
//! The recorded part of a warp is a suffix. Merging skips runs of the warp that began before the latest first
//! run of its lanes that have lost events, and counts them as lost. It compares times of whole clocks.
//!
//! # Flat logs
//! Logs gathered from elsewhere can be [flat](FLAT): arrays of runs. [`LoggedLaunch::first_segments`] is then
//! the index of a table with [`FLAT_ENTRIES`] entries for each stream. For each lane it has, in eight bytes,
//! the index of the first entry of its log and the number of entries.

use warptrace_format::LANES;
use warptrace_format::chosen::ChosenWarps;

/// Bytes of a log entry.
pub const ENTRY_BYTES: u32 = 16;
/// Entries per stream that locate its flat logs.
pub const FLAT_ENTRIES: u32 = LANES / 2;
/// Minimum entries of a segment.
pub const SEGMENT_MULTIPLE: u32 = 8;
/// Maximum entries of a segment that is not a first segment.
pub const MAX_SEGMENT_ENTRIES: u32 = 128;
/// Maximum entries of a first segment, 64 KiB. Log memory begins at a multiple of this length.
pub const MAX_FIRST_ENTRIES: u32 = 4096;
/// Minimum entries of a first segment that is a ring.
pub const MIN_RING_ENTRIES: u32 = 16;
/// Unused entries at the start of log memory.
pub const RESERVED_ENTRIES: u32 = MAX_SEGMENT_ENTRIES;
/// Alignment of log memory: the length of the longest segment. Aligned indices then have aligned addresses.
pub const LOG_ALIGNMENT: u64 = MAX_FIRST_ENTRIES as u64 * ENTRY_BYTES as u64;
/// Maximum count in a key.
pub const MAX_KEY_COUNT: u32 = 0xffff;
/// Second word of the link of a stopped log.
pub const STOPPED: u32 = 1 << 31;
/// Bit in the second word of the last link of a log: all lanes of the warp have left together with this one.
pub const ALL_LEFT: u32 = 1 << 30;
/// Right shift of the clock that the last link of a stopped log contains while the kernel runs.
pub const STOPPED_TIME_SHIFT: u32 = 14;
/// Maximum entries of log memory: almost 64 GiB.
pub const MAX_ENTRIES: u32 = 0xffff_0000;
/// Left shift of a location in a key.
pub const LOCATION_SHIFT: u32 = 16;
/// Right shift of the clock in a time.
pub const TIME_SHIFT: u32 = 4;

/// Parameters of a launch: the last parameter of a traced kernel. Size 88 bytes, alignment 8. A kernel that
/// records every warp takes only the 64 bytes before [`chosen`](Self::chosen).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct LaunchLogs {
    /// Address of log memory, a multiple of [`LOG_ALIGNMENT`].
    pub logs: u64,
    /// Address of a [`Claims`](crate::pool::Claims), whose first field counts entries.
    pub claims: u64,
    /// Address of [`WarpAccount`](warptrace_format::account::WarpAccount)s, indexed by `track * warps +
    /// warp`.
    /// If spans are recorded, a [`WarpSpan`](warptrace_format::span::WarpSpan) for each warp follows.
    pub accounts: u64,
    /// Lanes of each stream that have preallocated first segments: 1 or 32.
    pub first_lanes: u32,
    /// Number of warps of the launch that record.
    pub warps: u32,
    /// Entries of a preallocated first segment.
    pub first_entries: u32,
    /// Entries of every other segment; in a [ring](Self::ring), of one half.
    pub segment_entries: u32,
    /// Added to the counter's value before a reservation to get the index of the segment's first entry.
    pub claims_from: u32,
    /// End of the entries that can be reserved: a segment must end at or before this index.
    pub claims_end: u32,
    /// Number of the launch.
    pub launch: u32,
    /// Index of the first entry of the first segments, a multiple of [`first_entries`](Self::first_entries).
    pub first_segments: u32,
    /// 1 if logs are rings that keep the latest runs; 0 if they extend by segments until no memory is left.
    pub ring: u32,
    /// Unused; 0.
    pub reserved: u32,
    /// The recording warps; their positions index the tables. All zero: all warps.
    pub chosen: ChosenWarps,
    /// Unused; 0.
    pub unused: u32,
}

impl LaunchLogs {
    /// Returns the index of a warp in the launch's tables; `None` if the warp does not record.
    #[inline(always)]
    pub const fn warp_index(&self, block: u32, warp_in_block: u32, warps_per_block: u32) -> Option<u32> {
        self.chosen.table_index(self.warps, block, warp_in_block, warps_per_block)
    }

    /// Returns the layout of the launch's first segments.
    pub const fn first(&self) -> FirstSegments {
        FirstSegments { lanes: self.first_lanes, entries: self.first_entries }
    }

    /// Returns the index of the first entry of a first segment. `lane` has a preallocated one.
    pub const fn first_segment(&self, track: u32, warp: u32, lane: u32) -> u32 {
        self.first_segments + self.first().offset(track * self.warps + warp, lane)
    }
}

/// Preallocated first segments of each stream of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstSegments {
    /// Lanes that have a first segment: 1 or 32.
    pub lanes: u32,
    /// Entries of each first segment.
    pub entries: u32,
}

impl FirstSegments {
    /// Returns a layout with one first segment of `entries` entries per stream.
    pub const fn of_streams(entries: u32) -> Self {
        Self { lanes: 1, entries }
    }

    /// Returns a layout with one first segment of `entries` entries per lane.
    pub const fn of_lanes(entries: u32) -> Self {
        Self { lanes: LANES, entries }
    }

    /// Returns the distance from the first segment of lane 0 of stream 0 to the given one, in entries.
    #[inline(always)]
    pub const fn offset(self, stream: u32, lane: u32) -> u32 {
        (stream * self.lanes + lane) * self.entries
    }

    /// Returns the entries of all first segments of this number of streams.
    #[inline(always)]
    pub const fn total(self, streams: u64) -> u64 {
        streams * self.lanes as u64 * self.entries as u64
    }
}

/// Range of a launch's first segments in log memory, as indices of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// The first entry of the first segments.
    pub first_segments: u64,
    /// The entry after the last one, rounded up so that segments of any length can be reserved from there.
    pub end: u64,
}

impl Fixed {
    /// Places the first segments of this number of streams at or after entry `from`, at an aligned index.
    pub const fn place(from: u64, streams: u64, first: FirstSegments) -> Self {
        let first_segments = from.next_multiple_of(first.entries as u64);
        let end = (first_segments + first.total(streams)).next_multiple_of(MAX_SEGMENT_ENTRIES as u64);
        Self { first_segments, end }
    }
}

/// A decoded log entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Lanes that took part.
    pub mask: u32,
    /// Location id, 1 to 65,535.
    pub location: u16,
    /// Repeat count, at most [`MAX_KEY_COUNT`]; 0 if the entry holds no run.
    pub count: u32,
    /// Start time, in units of 16 cycles.
    pub time: u32,
}

impl Entry {
    /// Decodes an entry from its words.
    #[inline(always)]
    pub const fn from_words([mask, key, low, high]: [u32; 4]) -> Self {
        let time = low >> TIME_SHIFT | high << (32 - TIME_SHIFT);
        Self { mask, location: (key >> LOCATION_SHIFT) as u16, count: key & MAX_KEY_COUNT, time }
    }

    /// Encodes the entry as words. Only the lower 16 bits of `count` are used.
    #[inline(always)]
    pub const fn to_words(self) -> [u32; 4] {
        let key = (self.location as u32) << LOCATION_SHIFT | self.count & MAX_KEY_COUNT;
        [self.mask, key, self.time << TIME_SHIFT, self.time >> (32 - TIME_SHIFT)]
    }

    /// Returns the clock of an entry's words in cycles, rounded down to a multiple of 16.
    #[inline(always)]
    pub const fn clock([_, _, low, high]: [u32; 4]) -> u64 {
        (low >> TIME_SHIFT << TIME_SHIFT) as u64 | (high as u64) << 32
    }

    /// Returns true if the entry holds a run; otherwise it is skipped.
    #[inline(always)]
    pub const fn is_run(self) -> bool {
        self.count != 0
    }
}

/// Launch whose logs are to be merged and encoded. Size 48 bytes, alignment 16.
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
    /// Threads of a block in its recorded warps, which determine the lanes of its last warp.
    pub block_threads: u32,
    /// Number of the launch.
    pub launch: u32,
    /// Number of streams of the launches before this one in the table.
    pub first_stream: u32,
    /// Number of recorded tracks.
    pub tracks: u32,
    /// As in [`LaunchLogs`].
    pub first_segments: u32,
    /// As in [`LaunchLogs`], or [`FLAT`].
    pub ring: u32,
}

/// Value of [`LoggedLaunch::ring`] for flat logs. The lengths and positions of segments are then unused.
pub const FLAT: u32 = 2;

impl LoggedLaunch {
    /// Returns the mask of lanes that exist in a warp.
    #[inline(always)]
    pub const fn lanes(&self, warp: u32) -> u32 {
        let warps = self.block_threads.div_ceil(LANES);
        let before = (warp % warps) * LANES;
        let left = self.block_threads - before;
        if left >= LANES { u32::MAX } else { (1 << left) - 1 }
    }

    /// Returns the layout of the launch's first segments.
    #[inline(always)]
    pub const fn first(&self) -> FirstSegments {
        FirstSegments { lanes: self.first_lanes, entries: self.first_entries }
    }

    /// Returns the index of the first entry of the first segment of a lane of stream `track * warps + warp`.
    #[inline(always)]
    pub const fn first_segment(&self, stream: u32, lane: u32) -> u32 {
        self.first_segments + self.first().offset(stream, lane)
    }

    /// Returns the index of the first entry that locates the stream's flat logs.
    #[inline(always)]
    pub const fn flat_logs(&self, stream: u32) -> u32 {
        self.first_segments + FLAT_ENTRIES * stream
    }

    /// Decodes a launch from its words in a table.
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

    /// Encodes the launch as words of a table.
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
