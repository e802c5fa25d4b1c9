//! Streamed logs: logs that the host empties while the kernel writes them.
//!
//! Here log memory has no owner for long. It is an array of *segments*, all of the same length. A lane
//! that has something to append and no room takes a segment; when the segment is full, and the host has
//! copied it, it is given to the lane that asks next. So a trace of any length goes through memory of any
//! size.
//!
//! # A segment
//! It is an array of entries of 16 bytes, of a power of two. The first is its header:
//! ```text
//! offset  size  field
//!      0     4  number of the stream: track * warps + warp, of the warps that record
//!      4     4  number of the launch
//!      8     1  the lane
//!      9     3  number of the segment that the lane had before, plus 1; 0: none; 2^24 - 1: not known
//!     12     4  tag
//! ```
//! All others hold runs as an entry of a log does ([`log`](crate::log)), but for the last word: it is the
//! tag, with bits 32 to 35 of the clock as its lowest four, and [`SOLE`] or not. So the times of runs are
//! what they are there.
//!
//! The tag tells what was written for whom: each time that the host gives a segment away it has another one,
//! which is not 0. An entry whose tag is another is left from earlier, or not written yet. A lane fills its
//! segment in order. So what has been written of a segment can be told at any time, from its bytes alone.
//! This takes that the 16 bytes of an entry are seen all or not at all, which holds where they are stored by
//! one instruction to an address that is a multiple of 16.
//!
//! # Taking a segment
//! [`StreamState::tickets`] counts who has asked: a lane adds 1 and its *ticket* is what the counter was. Its
//! segment is then in slot `ticket % slots` of a queue, as soon as the slot has the ticket's *lap*, that is
//! `ticket / slots + 1`, of which it holds eight bits. The host writes a slot when it has a segment to give,
//! in the order of tickets. A slot is 8 bytes:
//! ```text
//! offset  size  field
//!      0     3  number of the segment
//!      3     1  lap
//!      4     4  tag, a multiple of 64
//! ```
//! A lane may look at its slot much later than it took its ticket, when others have gone round the queue. So
//! the host writes a slot again only when it has seen the header of the segment that the slot named before,
//! unless a lane has given up waiting, as below.
//!
//! Where the slot does not have the lap yet, memory is full and the lane waits: until the host has given it a
//! segment, or [`StreamLogs::stall_nanoseconds`] have gone by, or another lane has waited so long since the
//! host last gave something ([`StreamState::gave_up`]). Then it counts what it would have appended as lost,
//! keeps the ticket, and looks again when it next has something to append. If the slot has been given to a
//! later ticket by then, it takes a new one. (That is told from the laps if the later one is at most 127 laps
//! later.) A segment whose ticket was left so, or by a lane that has left the kernel, is out of use until the
//! launch has ended: there is no telling whether a lane is about to write to it.
//!
//! # The end
//! When a lane leaves the kernel, it sets its bit in the warp's word of [`StreamLogs::ended`]. What it has
//! appended is in log memory then, or on its way there.
//!
//! # In which order
//! A run is appended when lanes leave it. The lowest lane of its mask, its leader, may leave it long after
//! others of its lanes, and these may end further runs meanwhile. So whenever a group of lanes leaves a run,
//! the lowest of them that was in it appends it: the leader its *original*, others *copies*, which are the
//! same but for the lane in whose segment they are. No lane adds to a run that a lane has left.
//!
//! So what was in log memory at one time has all its predecessors in log memory at any later time: each run
//! of its lanes that began before had been left by them, and been appended, before it began. Runs that share
//! the lowest lane of their mask began at different times: of two with the same lane and time one is a copy.
//! Only runs that lanes append without copies, such as those of a counted loop, are marked as [`SOLE`]: each
//! of them is an original, whichever lane has appended it, and several may be of one time.
//!
//! Each original that finds no memory is counted in [`StreamLogs::lost`]. So the originals in log memory and
//! the number there make up all events that there were; those that no original and no copy tells of are lost.

use crate::log::{ENTRY_BYTES, Entry, LOCATION_SHIFT, MAX_KEY_COUNT, TIME_SHIFT};
use warptrace_format::chosen::ChosenWarps;

/// Entries of the shortest segments, header included.
pub const MIN_STREAM_ENTRIES: u32 = 4;
/// Entries of the longest segments, header included.
pub const MAX_STREAM_ENTRIES: u32 = 128;
/// Numbers that a slot has for segments.
pub const SEGMENT_NUMBERS: u32 = 1 << LAP_SHIFT;
/// The most segments that there can be: a header tells two more cases.
pub const MAX_SEGMENTS: u32 = SEGMENT_NUMBERS - 2;
/// Bits by which a header's third word has the segment before shifted.
pub const BEFORE_SHIFT: u32 = 8;
/// Says in a header that the lane had no segment before.
pub const NONE_BEFORE: u32 = 0;
/// Says in a header that the lane has lost something since its segment before.
pub const LOST_BEFORE: u32 = SEGMENT_NUMBERS - 1;
/// What a tag is a multiple of; the bits below are the clock's.
pub const TAG_STEP: u32 = 64;
/// Marks an entry of which there are no copies.
pub const SOLE: u32 = 16;
/// The bits of the clock in the last word.
pub const CLOCK_MASK: u32 = 15;
/// Bytes of a slot of the queue.
pub const SLOT_BYTES: u32 = 8;
/// Bits by which the lap is shifted in a slot's first word.
pub const LAP_SHIFT: u32 = 24;
/// The bits of a lap that a slot holds.
pub const LAP_MASK: u32 = 0xff;

/// What a streamed launch is told: the last parameter of a traced kernel. Size 88 bytes, alignment 8. A
/// kernel that records every warp takes only what stands before [`chosen`](Self::chosen): 64 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct StreamLogs {
    /// Address of the first segment, a multiple of a segment's bytes.
    pub segments: u64,
    /// Address of the queue's first slot.
    pub queue: u64,
    /// Address of a [`StreamState`].
    pub state: u64,
    /// Array of `u64`: events of originals that found no memory, for each stream of the launch, `lost[track *
    /// warps + warp]`. Where warps write [where and when they ran](warptrace_format::span::WarpSpan), an
    /// array of that for each warp stands directly behind it.
    pub lost: u64,
    /// Array of `u32`: for each warp the lanes that have left the kernel.
    pub ended: u64,
    /// How long a lane waits for memory, in nanoseconds.
    pub stall_nanoseconds: u64,
    /// Warps of the launch that record.
    pub warps: u32,
    /// Number of the launch.
    pub launch: u32,
    /// Entries of a segment, header included: a power of two.
    pub segment_entries: u32,
    /// Slots of the queue: a power of two, and at least as many as there are segments.
    pub slots: u32,
    /// The warps that record. In the tables above, and in the number of a stream, a warp stands at its index
    /// among them; their number is [`warps`](Self::warps). All zero: every warp of the launch.
    pub chosen: ChosenWarps,
    /// Not used; 0.
    pub unused: u32,
}

impl StreamLogs {
    /// Index of a warp in the launch's tables, given by its block, its number in the block and the warps of a
    /// block; `None` if it does not record.
    #[inline(always)]
    pub const fn warp_index(&self, block: u32, warp_in_block: u32, warps_per_block: u32) -> Option<u32> {
        self.chosen.table_index(self.warps, block, warp_in_block, warps_per_block)
    }
}

/// What lanes share of a queue. Size 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct StreamState {
    /// How many tickets have been taken.
    pub tickets: u64,
    /// Not 0 when a lane has given up waiting for memory since the host last gave some.
    pub gave_up: u32,
    /// Not used; 0.
    pub reserved: u32,
}

/// Makes the words of a slot that gives a segment to the holder of a ticket.
#[inline(always)]
pub const fn slot_words(segment: u32, tag: u32, ticket: u64, slots: u32) -> [u32; 2] {
    [segment | lap(ticket, slots) << LAP_SHIFT, tag]
}

/// Whether a slot whose first word is this was given to a later ticket than this one.
#[inline(always)]
pub const fn is_late(slot: u32, ticket: u64, slots: u32) -> bool {
    let later = (slot >> LAP_SHIFT).wrapping_sub(lap(ticket, slots)) & LAP_MASK;
    later.wrapping_sub(1) < LAP_MASK / 2
}

/// The lap of a ticket, as far as a slot holds it.
#[inline(always)]
pub const fn lap(ticket: u64, slots: u32) -> u32 {
    (ticket / slots as u64 + 1) as u32 & LAP_MASK
}

/// Makes the words of a segment's header. `before` is the number of the lane's segment before plus 1,
/// [`NONE_BEFORE`] or [`LOST_BEFORE`].
#[inline(always)]
pub const fn header_words(stream: u32, launch: u32, lane: u32, before: u32, tag: u32) -> [u32; 4] {
    [stream, launch, lane | before << BEFORE_SHIFT, tag]
}

/// The lane of a header, and what it says of the segment before.
#[inline(always)]
pub const fn lane_and_before([_, _, word, _]: [u32; 4]) -> (u32, u32) {
    (word & ((1 << BEFORE_SHIFT) - 1), word >> BEFORE_SHIFT)
}

/// Makes the words of an entry with a tag.
#[inline(always)]
pub const fn tagged(entry: Entry, tag: u32, is_sole: bool) -> [u32; 4] {
    let [mask, key, low, high] = entry.to_words();
    [mask, key, low, high & CLOCK_MASK | tag | if is_sole { SOLE } else { 0 }]
}

/// Whether an entry is its run's original, if it lies in a segment of this lane.
#[inline(always)]
pub const fn is_original(words: [u32; 4], lane: u32) -> bool {
    is_sole(words) || words[0].trailing_zeros() == lane
}

/// Whether an entry is marked as one of which there are no copies.
#[inline(always)]
pub const fn is_sole(words: [u32; 4]) -> bool {
    words[3] & SOLE != 0
}

/// Whether an entry, or a header, was written with this tag.
#[inline(always)]
pub const fn has_tag(words: [u32; 4], tag: u32) -> bool {
    words[3] & !(TAG_STEP - 1) == tag
}

/// The run of an entry with a tag.
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
        // A slot that nothing has written is of no lap that a ticket has next.
        assert_eq!((lap(8 * 254, 8), lap(8 * 255, 8), lap(8 * 256, 8)), (255, 0, 1));
    }
}
