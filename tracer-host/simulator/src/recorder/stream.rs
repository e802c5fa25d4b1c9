//! Streamed logs of one track of a warp: the host empties segments during the launch
//! (`warptrace_abi::stream`).

#[cfg(test)]
mod model;

use std::mem::offset_of;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use warptrace_abi::log::{ENTRY_BYTES, Entry};
use warptrace_abi::stream::{
    LAP_SHIFT, LOST_BEFORE, NONE_BEFORE, SEGMENT_NUMBERS, SLOT_BYTES, StreamLogs, StreamState, header_words,
    is_late, lap, tagged,
};

use super::live::{HostWords, LiveWords, Wait};
use super::track::Track;
use crate::context::LANES;

#[derive(Clone, Copy)]
enum LaneLog {
    /// No segment yet.
    Bare,
    /// A ticket whose segment did not arrive in time.
    Waiting { ticket: u64 },
    /// A segment with room for entries, or a full one.
    Filling(Segment),
}

#[derive(Clone, Copy)]
struct Segment {
    next: u64,
    room: u32,
    tag: u32,
    number: u32,
}

pub(super) struct StreamedTrack<M = HostWords> {
    memory: M,
    logs: StreamLogs,
    /// The warp's index among the recorded warps of its launch.
    warp: u32,
    stream: u32,
    lanes: [LaneLog; LANES],
}

impl StreamedTrack {
    /// # Safety
    /// As for [`Launch::streamed`](crate::Launch::streamed) while these logs are used. The launch has this
    /// warp, and no other logs are for the same track of it.
    pub(super) unsafe fn new(
        logs: &StreamLogs,
        clock: Option<&'static AtomicU64>,
        track: u32,
        warp: u32,
    ) -> Self {
        // SAFETY: accesses only words in the memory that `logs` names and in segments that the host gives.
        Self::within(unsafe { HostWords::new(clock) }, logs, track, warp)
    }
}

impl<M: LiveWords> StreamedTrack<M> {
    fn within(memory: M, logs: &StreamLogs, track: u32, warp: u32) -> Self {
        let stream = track * logs.warps + warp;
        Self { memory, logs: *logs, warp, stream, lanes: [LaneLog::Bare; LANES] }
    }

    /// Returns a segment with room. If the host gives none in time, the lane keeps its ticket.
    fn with_room(&mut self, lane: u32) -> Option<Segment> {
        let ticket = match self.lanes[lane as usize] {
            LaneLog::Filling(segment) if segment.room != 0 => return Some(segment),
            LaneLog::Waiting { ticket } if !self.is_late(ticket) => ticket,
            LaneLog::Waiting { .. } | LaneLog::Filling(_) | LaneLog::Bare => {
                self.memory.add(self.state(TICKETS), 1, Relaxed)
            }
        };
        let before = match self.lanes[lane as usize] {
            LaneLog::Bare => NONE_BEFORE,
            LaneLog::Waiting { .. } => LOST_BEFORE,
            LaneLog::Filling(segment) => segment.number + 1,
        };
        self.lanes[lane as usize] = LaneLog::Waiting { ticket };
        let (number, tag) = self.await_slot(ticket)?;
        let entries = self.logs.segment_entries;
        let header = self.logs.segments + u64::from(number) * u64::from(entries * ENTRY_BYTES);
        self.write(header, header_words(self.stream, self.logs.launch, lane, before, tag));
        Some(Segment { next: header + u64::from(ENTRY_BYTES), room: entries - 1, tag, number })
    }

    /// Returns true if the ticket's slot was given to a later one.
    fn is_late(&self, ticket: u64) -> bool {
        let [first, _] = halves(self.memory.load(self.slot(ticket), Acquire));
        is_late(first, ticket, self.logs.slots)
    }

    fn slot(&self, ticket: u64) -> u64 {
        self.logs.queue + ticket % u64::from(self.logs.slots) * u64::from(SLOT_BYTES)
    }

    /// Waits until the ticket's slot names a segment. Returns number and tag; `None` if memory stays full.
    fn await_slot(&self, ticket: u64) -> Option<(u32, u32)> {
        let slot = self.slot(ticket);
        let round = lap(ticket, self.logs.slots);
        let mut wait = Wait::new(Duration::from_nanos(self.logs.stall_nanoseconds));
        loop {
            // Acquire: the lane's writes to the segment come after the host's reads of its earlier content.
            let [first, tag] = halves(self.memory.load(slot, Acquire));
            if first >> LAP_SHIFT == round {
                return Some((first & (SEGMENT_NUMBERS - 1), tag));
            }
            let [gave_up, _] = halves(self.memory.load(self.state(GAVE_UP), Relaxed));
            if gave_up != 0 {
                return None;
            }
            if !self.memory.pause(&mut wait) {
                self.memory.store(self.state(GAVE_UP), whole([1, 0]), Relaxed);
                return None;
            }
        }
    }

    fn lose(&self, entry: Entry) {
        self.memory.add(self.logs.lost + u64::from(self.stream) * 8, u64::from(entry.count), Relaxed);
    }

    /// Writes an entry or a header. A reader that loads the last eight bytes first sees all of it.
    fn write(&self, address: u64, [mask, key, low, high]: [u32; 4]) {
        self.memory.store(address, whole([mask, key]), Relaxed);
        self.memory.store(address + 8, whole([low, high]), Release);
    }

    fn state(&self, offset: u64) -> u64 {
        self.logs.state + offset
    }
}

impl<M: LiveWords> Track for StreamedTrack<M> {
    fn append(&mut self, lane: u32, entry: Entry, is_sole: bool) {
        let Some(mut segment) = self.with_room(lane) else {
            if is_sole || entry.mask.trailing_zeros() == lane {
                self.lose(entry);
            }
            return;
        };
        self.write(segment.next, tagged(entry, segment.tag, is_sole));
        segment.next += u64::from(ENTRY_BYTES);
        segment.room -= 1;
        self.lanes[lane as usize] = LaneLog::Filling(segment);
    }

    fn has_copies(&self) -> bool {
        true
    }

    /// Marks that a lane leaves the kernel. Nothing is appended to the lane's logs of any track after this.
    fn close(&mut self, lane: u32) {
        let bit = 32 * (self.warp % 2) + lane;
        self.memory.set_bits(self.logs.ended + u64::from(self.warp / 2) * 8, 1 << bit, Release);
    }
}

/// Offsets in the queue's state. The word of the second one holds nothing else.
const TICKETS: u64 = offset_of!(StreamState, tickets) as u64;
const GAVE_UP: u64 = offset_of!(StreamState, gave_up) as u64;
const _: () = assert!(TICKETS.is_multiple_of(8) && GAVE_UP.is_multiple_of(8));
const _: () = assert!(offset_of!(StreamState, reserved) as u64 == GAVE_UP + 4);

/// Returns the two 32-bit words of an eight-byte word, in memory order.
fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

fn whole([first, second]: [u32; 2]) -> u64 {
    u64::from(first) | u64::from(second) << 32
}
