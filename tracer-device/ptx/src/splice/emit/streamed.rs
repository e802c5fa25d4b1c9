//! Streamed logs (`warptrace_abi::stream`): lanes take segments, which the host empties as the kernel runs.
//!
//! Registers of a lane's log:
//!
//! | state | next entry, lower and upper half | end of the segment | tag |
//! | --- | --- | --- | --- |
//! | has room | address | lower half of its address | the segment's |
//! | segment is full | the end | the end | the segment's |
//! | no segment yet | 0, 0 | 0 | 0 |
//! | waits for a segment | the ticket, with the highest bit set | lower half of the ticket | 0 |
//!
//! In all states but the first, the lower halves are equal.

use std::fmt::Write;

use super::registers::{ANY_FULL, AT, CLOCK, LANES_BELOW, Log, P, Pred, R32, R64, Vector, X, Y};
use super::{ENTRY_BYTES, Emitter, MAX_KEY_COUNT, Warp};
use crate::splice::state::descriptor_bytes;
use crate::splice::style::Claim;

pub(super) mod field {
    use std::mem::offset_of;

    use warptrace_abi::stream::{StreamLogs, StreamState};

    use super::super::Field;

    pub(super) const SEGMENTS: Field<64> = Field(offset_of!(StreamLogs, segments) as u32);
    pub(super) const QUEUE: Field<64> = Field(offset_of!(StreamLogs, queue) as u32);
    pub(super) const STATE: Field<64> = Field(offset_of!(StreamLogs, state) as u32);
    pub(in super::super) const LOST: Field<64> = Field(offset_of!(StreamLogs, lost) as u32);
    pub(super) const ENDED: Field<64> = Field(offset_of!(StreamLogs, ended) as u32);
    pub(super) const PATIENCE: Field<64> = Field(offset_of!(StreamLogs, stall_nanoseconds) as u32);
    pub(in super::super) const WARPS: Field<32> = Field(offset_of!(StreamLogs, warps) as u32);
    pub(super) const LAUNCH: Field<32> = Field(offset_of!(StreamLogs, launch) as u32);
    pub(super) const SEGMENT_ENTRIES: Field<32> = Field(offset_of!(StreamLogs, segment_entries) as u32);
    pub(super) const SLOTS: Field<32> = Field(offset_of!(StreamLogs, slots) as u32);
    /// Offset in the state of the queue.
    pub(super) const GAVE_UP: u32 = offset_of!(StreamState, gave_up) as u32;
    const _: () = {
        assert!(offset_of!(StreamState, tickets) == 0);
        // Both kinds of descriptors have the same size, and the selection of warps at the same offset.
        assert!(offset_of!(StreamLogs, chosen) as u32 == super::super::field::CHOSEN);
        assert!(offset_of!(StreamLogs, chosen) as u32 == super::descriptor_bytes(false));
        assert!(size_of::<StreamLogs>() as u32 == super::descriptor_bytes(true));
    };
}

use warptrace_abi::stream::{
    BEFORE_SHIFT, CLOCK_MASK, LAP_MASK, LAP_SHIFT, LOST_BEFORE, SEGMENT_NUMBERS, SLOT_BYTES, SOLE,
};

/// Marks a ticket in the upper half of the next entry's address. No address has the highest bit set.
const TICKET: u32 = 1 << 31;
/// Nanoseconds between two polls of a slot.
const SLEEP: u32 = 1_000;

#[derive(Clone, Copy)]
struct Taken {
    /// Whether the lane requested a segment and got none.
    denied: Pred,
    stream: R32,
}

#[derive(Clone, Copy)]
struct Ticket {
    number: R64,
    state: R64,
}

#[derive(Clone, Copy)]
struct Slot {
    address: R64,
    /// The lap in which the slot belongs to this ticket.
    round: R32,
}

#[derive(Clone, Copy)]
struct Polled {
    /// Whether the slot has reached the ticket's lap.
    granted: Pred,
    /// Words of the slot: the segment's number with the lap, and the tag.
    segment: R32,
    tag: R32,
}

impl Emitter {
    pub(super) fn no_segment(&mut self, log: Log) {
        for register in [log.low, log.high, log.link, log.tag] {
            emit!(self, "mov.u32 {register}, 0;");
        }
    }

    /// Appends an entry in each lane with `writes` set, or counts it as lost. All active lanes take part.
    pub(super) fn append_streamed(&mut self, log: Log, words: Vector<4>, writes: Pred, is_sole: bool) {
        self.load_log(log);
        self.with_room(log, writes, |emitter, taken| emitter.lose_streamed(words, taken, writes, is_sole));
        let ([mask, key, time_low, time_high], low, last) = (words.0, log.low, X[7]);
        emit!(self, "mov.b64 {AT}, {};", log.next());
        emit!(self, "and.b32 {last}, {time_high}, {CLOCK_MASK};");
        emit!(self, "or.b32 {last}, {last}, {};", log.tag);
        if is_sole {
            emit!(self, "or.b32 {last}, {last}, {SOLE};");
        }
        emit!(self, "@{writes} st.global.v4.b32 [{AT}], {};", Vector([mask, key, time_low, last]));
        emit!(self, "@{writes} add.u32 {low}, {low}, {ENTRY_BYTES};");
        self.store_word(Some(writes), log.next_pair, 0);
    }

    /// Takes a segment for each lane with `writes` set and no room, and calls `rest` with the result.
    fn with_room(&mut self, log: Log, writes: Pred, rest: impl FnOnce(&mut Self, Taken)) {
        let full = P[1];
        emit!(self, "setp.eq.and.u32 {full}, {}, {}, {writes};", log.low, log.link);
        self.vote("any", ANY_FULL, full);
        self.detour(ANY_FULL, |emitter| {
            let taken = emitter.take_segment(log, full);
            rest(emitter, taken);
        });
    }

    /// Takes a segment for each lane with `asks` set. Lanes that get none keep their ticket.
    fn take_segment(&mut self, log: Log, asks: Pred) -> Taken {
        let (Log { low, high, link, .. }, next) = (log, log.next());
        let ticket = self.take_tickets(log, asks);
        let Polled { granted, segment, tag } = self.await_slots(asks, ticket);
        emit!(self, "@{granted} mov.u32 {}, {tag};", log.tag);
        emit!(self, "and.b32 {segment}, {segment}, {};", SEGMENT_NUMBERS - 1);
        let (bytes, at, end) = (self.field(X[5], field::SEGMENT_ENTRIES), Y[0], Y[2]);
        emit!(self, "shl.b32 {bytes}, {bytes}, {};", ENTRY_BYTES.ilog2());
        let segments = self.field(at, field::SEGMENTS);
        let before = self.segment_before(log, segments, bytes);
        emit!(self, "mad.wide.u32 {at}, {segment}, {bytes}, {segments};");
        emit!(self, "cvt.u64.u32 {end}, {bytes};");
        emit!(self, "add.u64 {end}, {end}, {at};");
        let warp = self.warp_in_launch();
        let stream = self.stream(log.track, warp.index, field::WARPS);
        let launch = self.field(X[2], field::LAUNCH);
        // The lane and its previous segment.
        let (lane, before_low) = (warp.thread.lane, X[3]);
        emit!(self, "cvt.u32.u64 {before_low}, {before};");
        emit!(self, "or.b32 {lane}, {lane}, {before_low};");
        emit!(self, "@{granted} st.global.v4.b32 [{at}], {};", Vector([stream, launch, lane, log.tag]));
        emit!(self, "@{granted} cvt.u32.u64 {link}, {end};");
        emit!(self, "add.u64 {at}, {at}, {ENTRY_BYTES};");
        emit!(self, "@{granted} mov.b64 {next}, {at};");
        let denied = P[2];
        self.and_not(denied, asks, granted);
        emit!(self, "@{denied} mov.b64 {next}, {};", ticket.number);
        emit!(self, "@{denied} or.b32 {high}, {high}, {TICKET};");
        emit!(self, "@{denied} mov.u32 {link}, {low};");
        emit!(self, "@{denied} mov.u32 {}, 0;", log.tag);
        self.store_log(log);
        Taken { denied, stream }
    }

    /// Computes the header's reference to the lane's previous segment, from the log's registers at the time
    /// of the request. `segments` is the address of segment 0, `bytes` the size of a segment.
    fn segment_before(&mut self, log: Log, segments: R64, bytes: R32) -> R64 {
        let (before, is_special, scratch) = (Y[3], P[4], X[2]);
        emit!(self, "mov.b64 {before}, {};", log.next());
        emit!(self, "setp.eq.u64 {is_special}, {before}, 0;");
        // Uses the previous segment's last byte, because the lower half of its end may have wrapped to 0.
        emit!(self, "sub.u32 {scratch}, {}, 1;", log.low);
        emit!(self, "mov.b64 {before}, {};", Vector([scratch, log.high]));
        emit!(self, "sub.u64 {before}, {before}, {segments};");
        emit!(self, "bfind.u32 {scratch}, {bytes};");
        emit!(self, "shr.u64 {before}, {before}, {scratch};");
        emit!(self, "add.u64 {before}, {before}, 1;");
        emit!(self, "selp.b64 {before}, 0, {before}, {is_special};");
        emit!(self, "setp.lt.s32 {is_special}, {}, 0;", log.high);
        emit!(self, "selp.b64 {before}, {LOST_BEFORE}, {before}, {is_special};");
        emit!(self, "shl.b64 {before}, {before}, {BEFORE_SHIFT};");
        before
    }

    /// Takes a ticket for each lane with `asks` set that has none.
    fn take_tickets(&mut self, log: Log, asks: Pred) -> Ticket {
        let again = self.label();
        let (number, high, has_one) = (Y[1], X[0], P[4]);
        emit!(self, "and.b32 {high}, {}, {};", log.high, TICKET - 1);
        emit!(self, "mov.b64 {number}, {};", Vector([log.low, high]));
        emit!(self, "setp.lt.s32 {has_one}, {}, 0;", log.high);
        let takes = self.leave_old_tickets(asks, has_one, number);
        let own_loop = self.style.claim == Claim::OwnLoop;
        if own_loop {
            self.place_label(&again);
        }
        let state = self.field(Y[2], field::STATE);
        emit!(self, "@{takes} atom.global.add.u64 {number}, [{state}], 1;");
        if own_loop {
            self.end_own_loop(number, P[4], &again);
        }
        Ticket { number, state }
    }

    /// Selects the lanes that need a ticket: lanes with `asks` set that have none, and lanes whose slot was
    /// already given to a later ticket. Overwrites `has_one`.
    fn leave_old_tickets(&mut self, asks: Pred, has_one: Pred, ticket: R64) -> Pred {
        let (none, takes) = (self.label(), P[3]);
        self.and_not(takes, asks, has_one);
        emit!(self, "and.pred {has_one}, {has_one}, {asks};");
        self.branch_if_none(has_one, &none);
        let slot = self.slot(ticket);
        let (words, [low, high, rounds, ..]) = (Y[3], X);
        emit!(self, "mov.u64 {words}, 0;");
        // An atomic, because it does not add a `YIELD`.
        emit!(self, "@{has_one} atom.global.or.b64 {words}, [{}], 0;", slot.address);
        emit!(self, "mov.b64 {}, {words};", Vector([low, high]));
        emit!(self, "shr.u32 {rounds}, {low}, {LAP_SHIFT};");
        emit!(self, "sub.u32 {rounds}, {rounds}, {};", slot.round);
        emit!(self, "and.b32 {rounds}, {rounds}, {LAP_MASK};");
        emit!(self, "sub.u32 {rounds}, {rounds}, 1;");
        let is_old = has_one;
        emit!(self, "setp.lt.and.u32 {is_old}, {rounds}, {}, {has_one};", LAP_MASK / 2);
        emit!(self, "or.pred {takes}, {takes}, {is_old};");
        self.place_label(&none);
        takes
    }

    fn slot(&mut self, ticket: R64) -> Slot {
        let (address, wide, round) = (Y[0], Y[3], X[4]);
        let [_, _, number, low, ..] = X;
        let slots = self.field(X[1], field::SLOTS);
        emit!(self, "sub.u32 {number}, {slots}, 1;");
        emit!(self, "cvt.u32.u64 {low}, {ticket};");
        emit!(self, "and.b32 {number}, {number}, {low};");
        self.field(address, field::QUEUE);
        emit!(self, "mad.wide.u32 {address}, {number}, {SLOT_BYTES}, {address};");
        emit!(self, "bfind.u32 {slots}, {slots};");
        emit!(self, "shr.u64 {wide}, {ticket}, {slots};");
        emit!(self, "cvt.u32.u64 {round}, {wide};");
        emit!(self, "add.u32 {round}, {round}, 1;");
        emit!(self, "and.b32 {round}, {round}, {LAP_MASK};");
        Slot { address, round }
    }

    /// Waits until each lane with `asks` set has a segment, or the time is up. A separate loop, because
    /// strong loads add a `YIELD`.
    fn await_slots(&mut self, asks: Pred, ticket: Ticket) -> Polled {
        let (poll, done) = (self.label(), self.label());
        let slot = self.slot(ticket.number);
        let polled = Polled { granted: P[3], segment: X[0], tag: X[1] };
        let (start, waited, most, gave_up, flag) = (Y[3], CLOCK, AT, P[2], X[2]);
        emit!(self, "mov.u32 {}, 0;", polled.segment);
        emit!(self, "mov.u32 {}, 0;", polled.tag);
        if self.style.claim == Claim::Plain {
            // In most cases the segment is available and the loop with its `YIELD` is not executed. For
            // earlier architectures this load would add a `YIELD` at the head of the program's loop.
            self.poll(asks, slot, polled, &done);
        }
        emit!(self, "mov.u64 {start}, %globaltimer;");
        self.place_label(&poll);
        self.poll(asks, slot, polled, &done);
        emit!(self, "ld.volatile.global.b32 {flag}, [{}+{}];", ticket.state, field::GAVE_UP);
        emit!(self, "setp.ne.u32 {gave_up}, {flag}, 0;");
        self.branch_if_any(gave_up, &done);
        emit!(self, "nanosleep.u32 {SLEEP};");
        emit!(self, "mov.u64 {waited}, %globaltimer;");
        emit!(self, "sub.u64 {waited}, {waited}, {start};");
        self.field(most, field::PATIENCE);
        // A lane that has waited too long sets a flag, and sees it after the next poll. A volatile store
        // would add a `YIELD` at the head of the program's loop.
        emit!(self, "setp.ge.u64 {gave_up}, {waited}, {most};");
        emit!(self, "mov.u32 {flag}, 1;");
        emit!(self, "@{gave_up} red.global.or.b32 [{}+{}], {flag};", ticket.state, field::GAVE_UP);
        emit!(self, "bra {poll};");
        self.place_label(&done);
        polled
    }

    /// Reads the slots of lanes with `asks` set; branches to `done` if all have reached their ticket's lap.
    fn poll(&mut self, asks: Pred, slot: Slot, polled: Polled, done: &str) {
        let Polled { granted, segment, tag } = polled;
        let (words, round, waits) = (CLOCK, X[2], P[4]);
        // One access, for a consistent lap and tag. It must not write, because the host writes the slot.
        emit!(self, "@{asks} ld.volatile.global.b64 {words}, [{}];", slot.address);
        emit!(self, "@{asks} mov.b64 {}, {words};", Vector([segment, tag]));
        emit!(self, "shr.u32 {round}, {segment}, {LAP_SHIFT};");
        emit!(self, "setp.eq.and.u32 {granted}, {round}, {}, {asks};", slot.round);
        self.and_not(waits, asks, granted);
        self.branch_if_none(waits, done);
    }

    /// In lanes without a segment, clears `writes` and counts the entry as lost if it is the run's original.
    fn lose_streamed(&mut self, words: Vector<4>, taken: Taken, writes: Pred, is_sole: bool) {
        let (Taken { denied, stream }, [mask, key, ..]) = (taken, words.0);
        let (none, word, events, lost) = (self.label(), X[0], Y[1], Y[2]);
        self.branch_if_none(denied, &none);
        emit!(self, "and.b32 {word}, {key}, {MAX_KEY_COUNT};");
        emit!(self, "cvt.u64.u32 {events}, {word};");
        self.field(lost, field::LOST);
        emit!(self, "mad.wide.u32 {lost}, {stream}, 8, {lost};");
        let counts = if is_sole {
            denied
        } else {
            emit!(self, "and.b32 {word}, {mask}, {LANES_BELOW};");
            emit!(self, "setp.eq.and.u32 {}, {word}, 0, {denied};", P[4]);
            P[4]
        };
        emit!(self, "@{counts} red.global.add.u64 [{lost}], {events};");
        self.clear(writes, denied, denied);
        self.place_label(&none);
    }

    pub(super) fn leave_streamed(&mut self, warp: Warp) {
        let (at, bit) = (Y[0], X[2]);
        self.field(at, field::ENDED);
        emit!(self, "mad.wide.u32 {at}, {}, 4, {at};", warp.index);
        emit!(self, "mov.u32 {bit}, 1;");
        emit!(self, "shl.b32 {bit}, {bit}, {};", warp.thread.lane);
        emit!(self, "red.global.or.b32 [{at}], {bit};");
    }
}
