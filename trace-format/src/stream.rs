//! Streamed logs: logs that the host empties while the kernel writes them.
//!
//! Here log memory belongs to nobody for long. It is an array of *segments*, all of the same length. A lane that has
//! something to append and no room takes a segment; when the segment is full, and the host has copied it, it is given to
//! whoever asks next. So a trace of any length goes through memory of any size.
//!
//! # A segment
//! It is an array of entries of 16 bytes, of a power of two. The first is its header:
//! ```text
//! offset  size  field
//!      0     4  number of the stream: track * warps + warp
//!      4     4  number of the launch
//!      8     4  the lane
//!     12     4  tag
//! ```
//! All others hold runs as an entry of a log does ([`log`](crate::log)), but for the last word: it is the tag, with bits 32 to
//! 35 of the clock as its lowest four. So the times of runs are what they are there.
//!
//! The tag tells what was written for whom: each time that the host gives a segment away it has another one, and never
//! 0. An entry whose tag is another is left from earlier, or not written yet. A lane fills its segment in order. So what
//! has been written of a segment can be told at any time, from its bytes alone. This takes that the 16 bytes of an entry
//! are seen all or not at all, which holds where they are stored by one instruction to an address that is a multiple of 16.
//!
//! # Taking a segment
//! [`StreamState::tickets`] counts who has asked: a lane adds 1 and its *ticket* is what the counter was. Its segment is then
//! in slot `ticket % slots` of a queue, as soon as the slot has the ticket's *lap*, that is `ticket / slots + 1`, of which it
//! holds eight bits. The host writes a slot when it has a segment to give, and has seen the header of the one that the slot
//! gave last: until then the lane whose ticket that was may not have looked. Where it passes over a slot for that, it gives
//! only to tickets that have been taken: segments that wait for lanes to come would be missing there. A slot is 8 bytes:
//! ```text
//! offset  size  field
//!      0     3  number of the segment
//!      3     1  lap
//!      4     4  tag, a multiple of 16
//! ```
//! Where the slot does not have the lap yet, memory is full and the lane waits: until the host has given it a segment, or
//! [`StreamLogs::stall_nanoseconds`] have gone by, or another lane has waited so long since the host last gave something
//! ([`StreamState::gave_up`]). Then it counts what it would have appended as lost, keeps the ticket, and looks again
//! when it next has something to append. A lane that leaves the kernel with a ticket takes the segment with it, and the slot,
//! until the launch has ended.
//!
//! # The end
//! When a lane leaves the kernel, it sets its bit in the warp's word of [`StreamLogs::ended`]. What it has appended
//! is in log memory then, or on its way there.
//!
//! # In which order
//! A run is appended when the lane that keeps it comes to its next event or leaves the kernel, so those of a warp's lanes come
//! out of order. A run that was in log memory at one time has these in log memory at any later time: the runs that began
//! before it and whose keeper took part in it, for the keeper had appended them before it began. A run whose keeper has gone
//! another way than its other lanes may come long after theirs.
//!
//! So all runs that a lane keeps and that began before a time are there after a run in which the lane took part and that
//! began then or later has been seen, or the lane's bit in [`StreamLogs::ended`].

use crate::log::{ENTRY_BYTES, Entry, LOCATION_SHIFT, MAX_KEY_COUNT, TIME_SHIFT};

/// Entries of the shortest segments, header included.
pub const MIN_STREAM_ENTRIES: u32 = 4;
/// Entries of the longest segments, header included.
pub const MAX_STREAM_ENTRIES: u32 = 128;
/// The most segments that there can be.
pub const MAX_SEGMENTS: u32 = 1 << 24;
/// What a tag is a multiple of; the bits below are the clock's.
pub const TAG_STEP: u32 = 16;
/// Bytes of a slot of the queue.
pub const SLOT_BYTES: u32 = 8;
/// Bits by which the lap is shifted in a slot's first word.
pub const LAP_SHIFT: u32 = 24;
/// The bits of a lap that a slot holds.
pub const LAP_MASK: u32 = 0xff;

/// What a streamed launch is told: the last parameter of a traced kernel. Size 64 bytes, alignment 8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct StreamLogs {
    /// Address of the first segment, a multiple of a segment's bytes.
    pub segments: u64,
    /// Address of the queue's first slot.
    pub queue: u64,
    /// Address of a [`StreamState`].
    pub state: u64,
    /// Array of `u64`: lost events of each stream of the launch, `lost[track * warps + warp]`.
    pub lost: u64,
    /// Array of `u32`: for each warp the lanes that have left the kernel.
    pub ended: u64,
    /// How long a lane waits for memory, in nanoseconds.
    pub stall_nanoseconds: u64,
    /// Warps of the launch.
    pub warps: u32,
    /// Number of the launch.
    pub launch: u32,
    /// Entries of a segment, header included: a power of two.
    pub segment_entries: u32,
    /// Slots of the queue: a power of two, and at least as many as there are segments.
    pub slots: u32,
}

/// What lanes share of a queue. Size 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct StreamState {
    /// How many tickets have been taken.
    pub tickets: u64,
    /// Not 0 when a lane has waited for memory in vain since the host last gave some.
    pub gave_up: u32,
    /// Not used; 0.
    pub reserved: u32,
}

/// Makes the words of a slot that gives a segment to the holder of a ticket.
#[inline(always)]
pub const fn slot_words(segment: u32, tag: u32, ticket: u64, slots: u32) -> [u32; 2] {
    [segment | lap(ticket, slots) << LAP_SHIFT, tag]
}

/// The lap of a ticket, as far as a slot holds it.
#[inline(always)]
pub const fn lap(ticket: u64, slots: u32) -> u32 {
    (ticket / slots as u64 + 1) as u32 & LAP_MASK
}

/// Makes the words of a segment's header.
#[inline(always)]
pub const fn header_words(stream: u32, launch: u32, lane: u32, tag: u32) -> [u32; 4] {
    [stream, launch, lane, tag]
}

/// Makes the words of an entry with a tag.
#[inline(always)]
pub const fn tagged(entry: Entry, tag: u32) -> [u32; 4] {
    let [mask, key, low, high] = entry.to_words();
    [mask, key, low, high & (TAG_STEP - 1) | tag]
}

/// Whether an entry, or a header, was written with this tag.
#[inline(always)]
pub const fn has_tag(words: [u32; 4], tag: u32) -> bool {
    words[3] & !(TAG_STEP - 1) == tag
}

/// The run of an entry with a tag.
#[inline(always)]
pub const fn untagged([mask, key, low, high]: [u32; 4]) -> Entry {
    Entry::from_words([mask, key, low, high & (TAG_STEP - 1)])
}

const _: () = {
    assert!(size_of::<StreamLogs>() == 64 && align_of::<StreamLogs>() == 8);
    assert!(size_of::<StreamState>() == 16);
    assert!(ENTRY_BYTES == 16 && TIME_SHIFT == 4 && LOCATION_SHIFT == 16 && MAX_KEY_COUNT == 0xffff);
    assert!(MAX_SEGMENTS == 1 << LAP_SHIFT);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_leaves_the_run_as_it_is() {
        let entry = Entry { mask: 7, location: 0xfffe, count: 0xffff, time: 0xf234_5678 };
        let words = tagged(entry, 5 * TAG_STEP);
        assert!(has_tag(words, 5 * TAG_STEP) && !has_tag(words, 4 * TAG_STEP) && !has_tag(words, 0));
        assert_eq!(untagged(words), entry);
        assert!(has_tag(header_words(1, 2, 3, 16), 16));
    }

    #[test]
    fn a_slot_tells_its_lap() {
        assert_eq!(slot_words(3, 32, 0, 8), [3 | 1 << 24, 32]);
        assert_eq!(slot_words(3, 32, 7, 8), [3 | 1 << 24, 32]);
        assert_eq!(slot_words(0xff_ffff, 32, 8, 8), [0xff_ffff | 2 << 24, 32]);
        // A slot that nobody has written is of no lap that a ticket has next.
        assert_eq!((lap(8 * 254, 8), lap(8 * 255, 8), lap(8 * 256, 8)), (255, 0, 1));
    }
}
