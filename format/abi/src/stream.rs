//! Streamed logs: logs that the host empties while the kernel writes them.
//!
//! Log memory is an array of *segments* of equal length. A lane without room for a run takes a segment. When
//! it is full and the host has copied it, the host gives it to the next lane. So traces of any length fit.
//!
//! # Segment
//! A segment is an array of 16-byte entries. Their number is a power of two. The first entry is the header:
//! ```text
//! offset  size  field
//!      0     4  number of the stream: track * warps + warp, counting warps that record
//!      4     4  number of the launch
//!      8     1  the lane
//!      9     3  number of the lane's previous segment, plus 1; 0: none; 2^24 - 1: unknown
//!     12     4  tag
//! ```
//! All other entries hold runs as in [`log`](crate::log), except for the last word: it is the tag, with bits
//! 32 to 35 of the clock in its lowest four bits and the bit [`SOLE`].
//!
//! A tag identifies one use of a segment: the host chooses a different nonzero tag for each. An entry with a
//! different tag is old or not yet written. A lane fills its segment in order, so the bytes show how much of
//! it has been written. A reader sees all 16 bytes of an entry or none: one aligned store writes them.
//!
//! # Taking a segment
//! A lane adds 1 to [`StreamState::tickets`]; the previous value is its *ticket*. Its segment is in slot
//! `ticket % slots` of a queue as soon as the slot has the ticket's *lap*, `ticket / slots + 1` modulo 256.
//! The host writes slots in the order of tickets, when it has a free segment:
//! ```text
//! offset  size  field
//!      0     3  number of the segment
//!      3     1  lap
//!      4     4  tag, a multiple of 64
//! ```
//! A lane may read its slot long after other lanes have advanced around the queue. So the host rewrites a
//! slot only after it has seen the header of its segment, unless a lane has stopped waiting.
//!
//! If the slot does not have the lap yet, memory is full and the lane waits, for at most
//! [`StreamLogs::stall_nanoseconds`] or until another lane has waited that long since the host last gave a
//! segment ([`StreamState::gave_up`]). Then it counts the runs that it would have appended as lost, keeps the
//! ticket, and reads the slot again when it next has a run to append. If the slot then belongs to a later
//! ticket (detectable up to 127 laps later), it takes a new one. The segment of an abandoned ticket, also of
//! a lane that leaves the kernel, is not used again until the launch ends: a lane may still write to it.
//!
//! # End
//! A lane that leaves the kernel sets its bit in [`StreamLogs::ended`]. Its runs are written or in flight.
//!
//! # Order
//! Lanes append a run when they leave it. The leader, the lowest lane of the run's mask, may leave long after
//! other lanes, which may end further runs in the meantime. Therefore, in each group of lanes that leaves a
//! run together, the lowest one appends it. The leader appends the *original*, other lanes append *copies*,
//! which differ only in the lane of their segment. No lane adds to a run that a lane has left.
//!
//! So, if a run is in log memory, so are all its predecessors at any later time. Runs whose masks have the
//! same lowest lane began at different times: of two with the same time, one is a copy. Runs without copies,
//! such as runs of a counted loop, are marked as [`SOLE`]: originals in any segment, also with equal times.
//!
//! [`StreamLogs::lost`] counts the originals that found no memory. With the originals in log memory they add
//! up to all events. Events without an original or a copy in log memory are lost.

use crate::log::{ENTRY_BYTES, Entry, LOCATION_SHIFT, MAX_KEY_COUNT, TIME_SHIFT};
use warptrace_format::chosen::ChosenWarps;

/// Minimum entries of a segment, header included.
pub const MIN_STREAM_ENTRIES: u32 = 4;
/// Maximum entries of a segment, header included.
pub const MAX_STREAM_ENTRIES: u32 = 128;
/// Number of segment numbers that a slot can represent.
pub const SEGMENT_NUMBERS: u32 = 1 << LAP_SHIFT;
/// Maximum number of segments. A header reserves two values for other cases.
pub const MAX_SEGMENTS: u32 = SEGMENT_NUMBERS - 2;
/// Left shift of the previous segment in a header's third word.
pub const BEFORE_SHIFT: u32 = 8;
/// Header value: the lane had no segment before.
pub const NONE_BEFORE: u32 = 0;
/// Header value: the lane has lost runs since its previous segment.
pub const LOST_BEFORE: u32 = SEGMENT_NUMBERS - 1;
/// Tags are multiples of this value; the lower bits hold the clock and [`SOLE`].
pub const TAG_STEP: u32 = 64;
/// Marks an entry without copies.
pub const SOLE: u32 = 16;
/// Bits of the clock in the last word.
pub const CLOCK_MASK: u32 = 15;
/// Bytes of a slot of the queue.
pub const SLOT_BYTES: u32 = 8;
/// Left shift of the lap in a slot's first word.
pub const LAP_SHIFT: u32 = 24;
/// Bits of a lap that a slot stores.
pub const LAP_MASK: u32 = 0xff;

/// Parameters of a streamed launch: the last parameter of a traced kernel. Size 88 bytes, alignment 8. A
/// kernel that records every warp takes only the 64 bytes before [`chosen`](Self::chosen).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct StreamLogs {
    /// Address of the first segment, a multiple of a segment's bytes.
    pub segments: u64,
    /// Address of the queue's first slot.
    pub queue: u64,
    /// Address of a [`StreamState`].
    pub state: u64,
    /// Address of an array of `u64`, `lost[track * warps + warp]`: events of originals that found no memory.
    /// If warps write their spans, a [`WarpSpan`](warptrace_format::span::WarpSpan) for each warp follows.
    pub lost: u64,
    /// Address of an array of `u32`: for each warp, the mask of lanes that have left the kernel.
    pub ended: u64,
    /// Maximum wait of a lane for memory, in nanoseconds.
    pub stall_nanoseconds: u64,
    /// Number of warps of the launch that record.
    pub warps: u32,
    /// Number of the launch.
    pub launch: u32,
    /// Entries of a segment, header included: a power of two.
    pub segment_entries: u32,
    /// Slots of the queue: a power of two, at least the number of segments.
    pub slots: u32,
    /// The recording warps; their positions index the tables. All zero: all warps.
    pub chosen: ChosenWarps,
    /// Unused; 0.
    pub unused: u32,
}

impl StreamLogs {
    /// Returns the index of a warp in the launch's tables; `None` if the warp does not record.
    #[inline(always)]
    pub const fn warp_index(&self, block: u32, warp_in_block: u32, warps_per_block: u32) -> Option<u32> {
        self.chosen.table_index(self.warps, block, warp_in_block, warps_per_block)
    }
}

/// State of a queue, shared by all lanes. Size 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct StreamState {
    /// Number of tickets taken.
    pub tickets: u64,
    /// Nonzero if a lane has stopped waiting for memory since the host last gave a segment.
    pub gave_up: u32,
    /// Unused; 0.
    pub reserved: u32,
}

/// Encodes a slot that gives a segment to the holder of a ticket.
#[inline(always)]
pub const fn slot_words(segment: u32, tag: u32, ticket: u64, slots: u32) -> [u32; 2] {
    [segment | lap(ticket, slots) << LAP_SHIFT, tag]
}

/// Returns true if a slot with this first word belongs to a later ticket than `ticket`.
#[inline(always)]
pub const fn is_late(slot: u32, ticket: u64, slots: u32) -> bool {
    let later = (slot >> LAP_SHIFT).wrapping_sub(lap(ticket, slots)) & LAP_MASK;
    later.wrapping_sub(1) < LAP_MASK / 2
}

/// Returns the bits of a ticket's lap that a slot stores.
#[inline(always)]
pub const fn lap(ticket: u64, slots: u32) -> u32 {
    (ticket / slots as u64 + 1) as u32 & LAP_MASK
}

/// Encodes a segment's header. `before` is the previous segment plus 1, [`NONE_BEFORE`] or [`LOST_BEFORE`].
#[inline(always)]
pub const fn header_words(stream: u32, launch: u32, lane: u32, before: u32, tag: u32) -> [u32; 4] {
    [stream, launch, lane | before << BEFORE_SHIFT, tag]
}

/// Returns the lane of a header and the field for the previous segment.
#[inline(always)]
pub const fn lane_and_before([_, _, word, _]: [u32; 4]) -> (u32, u32) {
    (word & ((1 << BEFORE_SHIFT) - 1), word >> BEFORE_SHIFT)
}

/// Encodes an entry with a tag.
#[inline(always)]
pub const fn tagged(entry: Entry, tag: u32, is_sole: bool) -> [u32; 4] {
    let [mask, key, low, high] = entry.to_words();
    [mask, key, low, high & CLOCK_MASK | tag | if is_sole { SOLE } else { 0 }]
}

/// Returns true if an entry in a segment of this lane is the original of its run.
#[inline(always)]
pub const fn is_original(words: [u32; 4], lane: u32) -> bool {
    is_sole(words) || words[0].trailing_zeros() == lane
}

/// Returns true if an entry is marked as having no copies.
#[inline(always)]
pub const fn is_sole(words: [u32; 4]) -> bool {
    words[3] & SOLE != 0
}

/// Returns true if an entry or a header has this tag.
#[inline(always)]
pub const fn has_tag(words: [u32; 4], tag: u32) -> bool {
    words[3] & !(TAG_STEP - 1) == tag
}

/// Returns the run of an entry with a tag.
#[inline(always)]
pub const fn untagged([mask, key, low, high]: [u32; 4]) -> Entry {
    Entry::from_words([mask, key, low, high & CLOCK_MASK])
}

const _: () = {
    assert!(size_of::<StreamLogs>() == 88 && align_of::<StreamLogs>() == 8);
    assert!(core::mem::offset_of!(StreamLogs, chosen) == 64);
    assert!(size_of::<StreamState>() == 16);
    assert!(ENTRY_BYTES == 16 && TIME_SHIFT == 4 && LOCATION_SHIFT == 16 && MAX_KEY_COUNT == 0xffff);
    assert!(LAP_SHIFT + BEFORE_SHIFT == 32);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_leaves_the_run_as_it_is() {
        let entry = Entry { mask: 7, location: 0xfffe, count: 0xffff, time: 0xf234_5678 };
        let words = tagged(entry, 5 * TAG_STEP, false);
        assert!(has_tag(words, 5 * TAG_STEP) && !has_tag(words, 4 * TAG_STEP) && !has_tag(words, 0));
        assert_eq!(untagged(words), entry);
        assert!(has_tag(header_words(1, 2, 3, 4, TAG_STEP), TAG_STEP));
        let sole = tagged(entry, 5 * TAG_STEP, true);
        assert!(has_tag(sole, 5 * TAG_STEP) && untagged(sole) == entry && is_sole(sole) && !is_sole(words));
        assert_eq!([0, 1, 2].map(|lane| is_original(words, lane)), [true, false, false]);
        assert!(is_original(sole, 9));
    }

    #[test]
    fn a_slot_tells_its_lap() {
        assert_eq!(slot_words(3, 32, 0, 8), [3 | 1 << 24, 32]);
        assert_eq!(slot_words(3, 32, 7, 8), [3 | 1 << 24, 32]);
        assert_eq!(slot_words(0xff_ffff, 32, 8, 8), [0xff_ffff | 2 << 24, 32]);
        for (ticket, given, late) in
            [(8, 0, false), (8, 8, false), (8, 16, true), (8, 8 * 128, true), (8 * 250, 8 * 260, true)]
        {
            assert_eq!(is_late(slot_words(3, 32, given, 8)[0], ticket, 8), late, "{ticket} {given}");
        }
        // An unwritten slot has lap 0, which is not the lap of the first tickets.
        assert_eq!((lap(8 * 254, 8), lap(8 * 255, 8), lap(8 * 256, 8)), (255, 0, 1));
    }
}
