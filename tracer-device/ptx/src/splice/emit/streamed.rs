//! Streamed logs: segments that a lane takes from a queue, and that the host empties meanwhile
//! (`warptrace_abi::stream`).
//!
//! A lane's registers say how its log stands:
//!
//! | | next entry, lower and upper half | end of the segment | tag |
//! | --- | --- | --- | --- |
//! | it has room | address | lower half of its address | the segment's |
//! | its segment is full | the end | the end | the segment's |
//! | it has had none yet | 0, 0 | 0 | 0 |
//! | it waits for one | the ticket, with the highest bit set | lower half of the ticket | 0 |
//!
//! In all but the first of these the lower halves are equal.

use std::fmt::Write;

use super::{ENTRY_BYTES, Emitter, Log, MAX_KEY_COUNT, Words};
use crate::splice::state::descriptor_bytes;
use crate::splice::style::Claim;

/// Offsets in the launch's descriptor, and in the state of the queue.
mod field {
    use std::mem::offset_of;

    use warptrace_abi::stream::{StreamLogs, StreamState};

    pub(super) const SEGMENTS: u32 = offset_of!(StreamLogs, segments) as u32;
    pub(super) const QUEUE: u32 = offset_of!(StreamLogs, queue) as u32;
    pub(super) const STATE: u32 = offset_of!(StreamLogs, state) as u32;
    pub(super) const LOST: u32 = offset_of!(StreamLogs, lost) as u32;
    pub(super) const ENDED: u32 = offset_of!(StreamLogs, ended) as u32;
    pub(super) const STALL: u32 = offset_of!(StreamLogs, stall_nanoseconds) as u32;
    pub(super) const WARPS: u32 = offset_of!(StreamLogs, warps) as u32;
    pub(super) const LAUNCH: u32 = offset_of!(StreamLogs, launch) as u32;
    pub(super) const SEGMENT_ENTRIES: u32 = offset_of!(StreamLogs, segment_entries) as u32;
    pub(super) const SLOTS: u32 = offset_of!(StreamLogs, slots) as u32;
    pub(super) const GAVE_UP: u32 = offset_of!(StreamState, gave_up) as u32;
    const _: () = {
        assert!(offset_of!(StreamState, tickets) == 0);
        // So both kinds of descriptors take as many bytes, and say at the same place which warps record.
        assert!(offset_of!(StreamLogs, chosen) as u32 == super::super::field::CHOSEN);
        assert!(offset_of!(StreamLogs, chosen) as u32 == super::descriptor_bytes(false));
        assert!(size_of::<StreamLogs>() as u32 == super::descriptor_bytes(true));
    };
}

use warptrace_abi::stream::{
    BEFORE_SHIFT, CLOCK_MASK, LAP_MASK, LAP_SHIFT, LOST_BEFORE, SEGMENT_NUMBERS, SLOT_BYTES, SOLE,
};

/// Marks a ticket in the upper half of the next entry's address, of which no address has the highest bit.
const TICKET: u32 = 1 << 31;
/// Nanoseconds between two looks at a slot.
const SLEEP: u32 = 1_000;

impl Emitter {
    /// Puts a log to "has had no segment yet".
    pub(super) fn no_segment(&mut self, log: Log) {
        for register in [log.low, log.high, log.link, log.tag] {
            emit!(self, "mov.u32 {register}, 0;");
        }
    }

    /// Appends an entry to the log of each lane for which `%wt_w` holds. All lanes that are here take part.
    /// Where there is no memory, the entry is counted as lost.
    pub(super) fn append_streamed(&mut self, log: Log, words: Words, is_sole: bool) {
        let (full, room) = (self.label(), self.label());
        self.load_log(log);
        emit!(self, "setp.eq.and.u32 %wt_p1, {}, {}, %wt_w;", log.low, log.link);
        self.vote("any", "%wt_g", "%wt_p1");
        emit!(self, "@%wt_g bra {full};");
        self.place_label(&room);
        let before = std::mem::take(&mut self.out);
        self.place_label(&full);
        self.take_segment(log);
        self.lose_streamed(words, is_sole);
        emit!(self, "bra {room};");
        let claim = std::mem::replace(&mut self.out, before);
        self.rare.push_str(&claim);
        let [mask, key, time_low, time_high] = words;
        emit!(self, "mov.b64 %wt_l, {{{}, {}}};", log.low, log.high);
        emit!(self, "and.b32 %wt_x7, {time_high}, {CLOCK_MASK};");
        emit!(self, "or.b32 %wt_x7, %wt_x7, {};", log.tag);
        if is_sole {
            emit!(self, "or.b32 %wt_x7, %wt_x7, {SOLE};");
        }
        emit!(self, "@%wt_w st.global.v4.b32 [%wt_l], {{{mask}, {key}, {time_low}, %wt_x7}};");
        emit!(self, "@%wt_w add.u32 {low}, {low}, {ENTRY_BYTES};", low = log.low);
        self.store_word("@%wt_w ", log.pointer, 0, log.low);
    }

    /// Takes a segment for each lane for which `%wt_p1` holds. Lanes that are given none keep their ticket:
    /// `%wt_p2` holds for them. `%wt_x4` is the number of the stream then.
    pub(super) fn take_segment(&mut self, log: Log) {
        self.take_tickets(log);
        self.await_slots();
        // `%wt_p3`: the lane has been given the segment of which `%wt_x0` has the number and `%wt_x1` the
        // tag.
        emit!(self, "@%wt_p3 mov.u32 {}, %wt_x1;", log.tag);
        emit!(self, "and.b32 %wt_x0, %wt_x0, {};", SEGMENT_NUMBERS - 1);
        self.field(32, "%wt_x5", field::SEGMENT_ENTRIES);
        emit!(self, "shl.b32 %wt_x5, %wt_x5, {};", ENTRY_BYTES.ilog2());
        self.field(64, "%wt_y0", field::SEGMENTS);
        self.segment_before(log);
        emit!(self, "mad.wide.u32 %wt_y0, %wt_x0, %wt_x5, %wt_y0;");
        emit!(self, "cvt.u64.u32 %wt_y2, %wt_x5;");
        emit!(self, "add.u64 %wt_y2, %wt_y2, %wt_y0;");
        self.warp_in_launch();
        emit!(self, "mov.u32 %wt_x4, %wt_x0;");
        if log.track != 0 {
            self.field(32, "%wt_x4", field::WARPS);
            emit!(self, "mad.lo.u32 %wt_x4, %wt_x4, {}, %wt_x0;", log.track);
        }
        self.field(32, "%wt_x2", field::LAUNCH);
        emit!(self, "cvt.u32.u64 %wt_x3, %wt_y3;");
        emit!(self, "or.b32 %wt_x1, %wt_x1, %wt_x3;");
        emit!(self, "@%wt_p3 st.global.v4.b32 [%wt_y0], {{%wt_x4, %wt_x2, %wt_x1, {}}};", log.tag);
        emit!(self, "@%wt_p3 cvt.u32.u64 {}, %wt_y2;", log.link);
        emit!(self, "add.u64 %wt_y0, %wt_y0, {ENTRY_BYTES};");
        emit!(self, "@%wt_p3 mov.b64 {{{}, {}}}, %wt_y0;", log.low, log.high);
        emit!(self, "not.pred %wt_p2, %wt_p3;");
        emit!(self, "and.pred %wt_p2, %wt_p2, %wt_p1;");
        emit!(self, "@%wt_p2 mov.b64 {{{}, {}}}, %wt_y1;", log.low, log.high);
        emit!(self, "@%wt_p2 or.b32 {high}, {high}, {TICKET};", high = log.high);
        emit!(self, "@%wt_p2 mov.u32 {}, {};", log.link, log.low);
        emit!(self, "@%wt_p2 mov.u32 {}, 0;", log.tag);
        self.store(log.pointer, log.low, log.high);
        self.store(log.end, log.link, log.tag);
    }

    /// Finds what a header says of the lane's segment before, `%wt_y3`, from the registers of the log as they
    /// were when it asked. `%wt_y0` is the address of segment 0, `%wt_x5` the bytes of a segment.
    fn segment_before(&mut self, log: Log) {
        emit!(self, "mov.b64 %wt_y3, {{{}, {}}};", log.low, log.high);
        emit!(self, "setp.eq.u64 %wt_p4, %wt_y3, 0;");
        // From the last byte of the segment before, since its end may lie where the lower half is 0 again.
        emit!(self, "sub.u32 %wt_x2, {}, 1;", log.low);
        emit!(self, "mov.b64 %wt_y3, {{%wt_x2, {}}};", log.high);
        emit!(self, "sub.u64 %wt_y3, %wt_y3, %wt_y0;");
        emit!(self, "bfind.u32 %wt_x2, %wt_x5;");
        emit!(self, "shr.u64 %wt_y3, %wt_y3, %wt_x2;");
        emit!(self, "add.u64 %wt_y3, %wt_y3, 1;");
        emit!(self, "selp.b64 %wt_y3, 0, %wt_y3, %wt_p4;");
        emit!(self, "setp.lt.s32 %wt_p4, {}, 0;", log.high);
        emit!(self, "selp.b64 %wt_y3, {LOST_BEFORE}, %wt_y3, %wt_p4;");
        emit!(self, "shl.b64 %wt_y3, %wt_y3, {BEFORE_SHIFT};");
    }

    /// Takes a ticket for each lane for which `%wt_p1` holds and that has none yet: `%wt_y1`. `%wt_y2` is the
    /// address of the queue's state then.
    fn take_tickets(&mut self, log: Log) {
        let again = self.label();
        emit!(self, "and.b32 %wt_x0, {}, {};", log.high, TICKET - 1);
        emit!(self, "mov.b64 %wt_y1, {{{}, %wt_x0}};", log.low);
        emit!(self, "setp.lt.s32 %wt_p4, {}, 0;", log.high);
        self.leave_old_tickets();
        let own_loop = self.style.claim == Claim::OwnLoop;
        if own_loop {
            self.place_label(&again);
        }
        self.field(64, "%wt_y2", field::STATE);
        emit!(self, "@%wt_p3 atom.global.add.u64 %wt_y1, [%wt_y2], 1;");
        if own_loop {
            // No ticket is so large; the assembler does not know.
            emit!(self, "setp.eq.u64 %wt_p4, %wt_y1, -1;");
            self.vote("any", "%wt_p4", "%wt_p4");
            emit!(self, "@%wt_p4 bra {again};");
        }
    }

    /// Finds the lanes that need a ticket, `%wt_p3`: of those for which `%wt_p1` holds, those that have none,
    /// which `%wt_p4` says, and those whose slot has been given to a later ticket, which they were too late
    /// for.
    fn leave_old_tickets(&mut self) {
        let none = self.label();
        emit!(self, "not.pred %wt_p3, %wt_p4;");
        emit!(self, "and.pred %wt_p3, %wt_p3, %wt_p1;");
        emit!(self, "and.pred %wt_p4, %wt_p4, %wt_p1;");
        self.vote("any", "%wt_r", "%wt_p4");
        emit!(self, "@!%wt_r bra {none};");
        self.slot();
        emit!(self, "mov.u64 %wt_y3, 0;");
        // An atomic, which brings no `YIELD` where there is none.
        emit!(self, "@%wt_p4 atom.global.or.b64 %wt_y3, [%wt_y0], 0;");
        emit!(self, "mov.b64 {{%wt_x0, %wt_x1}}, %wt_y3;");
        emit!(self, "shr.u32 %wt_x2, %wt_x0, {LAP_SHIFT};");
        emit!(self, "sub.u32 %wt_x2, %wt_x2, %wt_x4;");
        emit!(self, "and.b32 %wt_x2, %wt_x2, {LAP_MASK};");
        emit!(self, "sub.u32 %wt_x2, %wt_x2, 1;");
        emit!(self, "setp.lt.and.u32 %wt_p4, %wt_x2, {}, %wt_p4;", LAP_MASK / 2);
        emit!(self, "or.pred %wt_p3, %wt_p3, %wt_p4;");
        self.place_label(&none);
    }

    /// Finds a ticket's slot, `%wt_y0`, and the bits of its lap, `%wt_x4`.
    fn slot(&mut self) {
        self.field(32, "%wt_x1", field::SLOTS);
        emit!(self, "sub.u32 %wt_x2, %wt_x1, 1;");
        emit!(self, "cvt.u32.u64 %wt_x3, %wt_y1;");
        emit!(self, "and.b32 %wt_x2, %wt_x2, %wt_x3;");
        self.field(64, "%wt_y0", field::QUEUE);
        emit!(self, "mad.wide.u32 %wt_y0, %wt_x2, {SLOT_BYTES}, %wt_y0;");
        emit!(self, "bfind.u32 %wt_x1, %wt_x1;");
        emit!(self, "shr.u64 %wt_y3, %wt_y1, %wt_x1;");
        emit!(self, "cvt.u32.u64 %wt_x4, %wt_y3;");
        emit!(self, "add.u32 %wt_x4, %wt_x4, 1;");
        emit!(self, "and.b32 %wt_x4, %wt_x4, {LAP_MASK};");
    }

    /// Waits until each lane for which `%wt_p1` holds has a segment, or it has taken too long: `%wt_p3` says
    /// which have one, `%wt_x0` and `%wt_x1` are the words of their slots. A loop of its own, since strong
    /// loads bring a `YIELD`.
    fn await_slots(&mut self) {
        let (look, done) = (self.label(), self.label());
        self.slot();
        emit!(self, "mov.u32 %wt_x0, 0;");
        emit!(self, "mov.u32 %wt_x1, 0;");
        if self.style.claim == Claim::Plain {
            // Mostly the segment is there, and the `YIELD` of the loop is not executed. For earlier
            // architectures this would bring one to the head of the program's loop.
            self.look();
            emit!(self, "@!%wt_r bra {done};");
        }
        emit!(self, "mov.u64 %wt_y3, %globaltimer;");
        self.place_label(&look);
        self.look();
        emit!(self, "@!%wt_r bra {done};");
        emit!(self, "ld.volatile.global.b32 %wt_x2, [%wt_y2+{}];", field::GAVE_UP);
        emit!(self, "setp.ne.u32 %wt_p2, %wt_x2, 0;");
        self.vote("any", "%wt_r", "%wt_p2");
        emit!(self, "@%wt_r bra {done};");
        emit!(self, "nanosleep.u32 {SLEEP};");
        emit!(self, "mov.u64 %wt_c, %globaltimer;");
        emit!(self, "sub.u64 %wt_c, %wt_c, %wt_y3;");
        self.field(64, "%wt_l", field::STALL);
        // Who has waited too long says so, and sees at the next look that it has been said. A volatile store
        // would bring a `YIELD` to the head of the program's loop.
        emit!(self, "setp.ge.u64 %wt_p2, %wt_c, %wt_l;");
        emit!(self, "mov.u32 %wt_x2, 1;");
        emit!(self, "@%wt_p2 red.global.or.b32 [%wt_y2+{}], %wt_x2;", field::GAVE_UP);
        emit!(self, "bra {look};");
        self.place_label(&done);
    }

    /// Looks whether slots hold the ticket's lap, of which `%wt_x4` has the bits: `%wt_p3`. `%wt_r`: some
    /// lane's does not.
    fn look(&mut self) {
        // One access, so that lap and tag are of one time; and none that writes, since the host does.
        emit!(self, "@%wt_p1 ld.volatile.global.b64 %wt_c, [%wt_y0];");
        emit!(self, "@%wt_p1 mov.b64 {{%wt_x0, %wt_x1}}, %wt_c;");
        emit!(self, "shr.u32 %wt_x2, %wt_x0, {LAP_SHIFT};");
        emit!(self, "setp.eq.and.u32 %wt_p3, %wt_x2, %wt_x4, %wt_p1;");
        emit!(self, "not.pred %wt_p4, %wt_p3;");
        emit!(self, "and.pred %wt_p4, %wt_p4, %wt_p1;");
        self.vote("any", "%wt_r", "%wt_p4");
    }

    /// Counts the entry as lost where `%wt_p2` holds, after which `%wt_w` does not, if it is its run's
    /// original; `%wt_x4` is the number of the stream.
    fn lose_streamed(&mut self, [mask, key, ..]: Words, is_sole: bool) {
        let none = self.label();
        self.vote("any", "%wt_r", "%wt_p2");
        emit!(self, "@!%wt_r bra {none};");
        emit!(self, "and.b32 %wt_x0, {key}, {MAX_KEY_COUNT};");
        emit!(self, "cvt.u64.u32 %wt_y1, %wt_x0;");
        self.field(64, "%wt_y2", field::LOST);
        emit!(self, "mad.wide.u32 %wt_y2, %wt_x4, 8, %wt_y2;");
        if is_sole {
            emit!(self, "@%wt_p2 red.global.add.u64 [%wt_y2], %wt_y1;");
        } else {
            emit!(self, "and.b32 %wt_x0, {mask}, %wt_lt;");
            emit!(self, "setp.eq.and.u32 %wt_p4, %wt_x0, 0, %wt_p2;");
            emit!(self, "@%wt_p4 red.global.add.u64 [%wt_y2], %wt_y1;");
        }
        emit!(self, "not.pred %wt_p2, %wt_p2;");
        emit!(self, "and.pred %wt_w, %wt_w, %wt_p2;");
        self.place_label(&none);
    }

    /// Says that the lane leaves the kernel, from the values of `warp_in_launch`.
    pub(super) fn leave_streamed(&mut self) {
        self.field(64, "%wt_y0", field::ENDED);
        emit!(self, "mad.wide.u32 %wt_y0, %wt_x0, 4, %wt_y0;");
        emit!(self, "mov.u32 %wt_x2, 1;");
        emit!(self, "shl.b32 %wt_x2, %wt_x2, %wt_x1;");
        emit!(self, "red.global.or.b32 [%wt_y0], %wt_x2;");
    }
}
