//! Logs: entries, segments, what is lost, and heads.

use std::fmt::Write;

use warptrace_abi::recording::LogKind;

use super::{
    ACCOUNT_BYTES, ACCOUNT_LOST, ENTRY_BYTES, Emitter, HEAD_BYTES, HEADS_ENTRIES, Log, MAX_KEY_COUNT,
    TIME_SHIFT, Words, field,
};
use crate::splice::style::Claim;

impl Emitter {
    /// Appends an entry to the log of each lane for which `%wt_w` holds. All lanes that are here take part.
    /// `asked`: see `end_run`. `is_sole`: of what is appended a lane has no copies in a streamed log.
    pub(super) fn append(&mut self, log: Log, words: Words, asked: bool, is_sole: bool) {
        if self.style.recording.logs.is_streamed() {
            return self.append_streamed(log, words, is_sole);
        }
        let (full, room) = (self.label(), self.label());
        self.load_log(log);
        if !asked {
            self.ask_full(log);
        }
        emit!(self, "@%wt_g bra {full};");
        self.place_label(&room);
        let before = std::mem::take(&mut self.out);
        self.place_label(&full);
        if self.style.recording.logs == LogKind::Ring {
            self.turn(log);
        } else {
            self.claim(log, words);
        }
        emit!(self, "bra {room};");
        let claim = std::mem::replace(&mut self.out, before);
        self.rare.push_str(&claim);
        emit!(self, "mov.b64 %wt_l, {{{}, {}}};", log.low, log.high);
        emit!(self, "@%wt_w st.global.v4.b32 [%wt_l], {{{}}};", words.join(", "));
        emit!(self, "@%wt_w add.u32 {low}, {low}, {ENTRY_BYTES};", low = log.low);
        self.store_word("@%wt_w ", log.pointer, 0, log.low);
    }

    /// Gives each lane for which `%wt_p1` holds another segment. Where memory is used up, the log is stopped,
    /// and what its lane keeps is counted as lost: `%wt_w` no longer holds then.
    ///
    /// A log that has been stopped stays at its link, with the lowest bit set in both addresses. The link
    /// has, beside the 0 in its first word, the lost events (words 1 and 3) and the time of the first one,
    /// with the lowest bit set (word 2).
    pub(super) fn claim(&mut self, log: Log, words: Words) {
        emit!(self, "and.b32 %wt_x2, {}, 1;", log.link);
        emit!(self, "setp.eq.and.u32 %wt_p2, %wt_x2, 0, %wt_p1;");
        emit!(self, "xor.b32 %wt_x2, {}, %wt_x2;", log.link);
        emit!(self, "mov.b64 %wt_l, {{%wt_x2, {}}};", log.high);
        self.claim_entries();
        emit!(self, "@%wt_p3 st.global.b32 [%wt_l], %wt_x0;");
        emit!(self, "@%wt_p3 mov.b64 {{{}, {}}}, %wt_y1;", log.low, log.high);
        emit!(self, "@%wt_p3 cvt.u32.u64 {}, %wt_y2;", log.link);
        // Stopped are those who asked for a segment and got none.
        emit!(self, "not.pred %wt_p3, %wt_p3;");
        emit!(self, "and.pred %wt_p2, %wt_p2, %wt_p3;");
        emit!(self, "@%wt_p2 or.b32 {low}, {low}, 1;", low = log.low);
        emit!(self, "@%wt_p2 or.b32 {link}, {link}, 1;", link = log.link);
        self.store(log.pointer, log.low, log.high);
        self.store_word("", log.end, 0, log.link);
        self.lose(words);
    }

    /// Claims a segment for each lane for which `%wt_p2` holds: `%wt_p3` says whether there is one, `%wt_x0`
    /// is the index of its first entry, `%wt_y1` its address, `%wt_y2` that of its link.
    pub(super) fn claim_entries(&mut self) {
        let again = self.label();
        let own_loop = self.style.claim == Claim::OwnLoop;
        if own_loop {
            self.place_label(&again);
        }
        self.field(32, "%wt_x1", field::SEGMENT_ENTRIES);
        emit!(self, "cvt.u64.u32 %wt_y0, %wt_x1;");
        self.field(64, "%wt_y2", field::CLAIMS);
        emit!(self, "mov.u64 %wt_y1, 0;");
        emit!(self, "@%wt_p2 atom.global.add.u64 %wt_y1, [%wt_y2], %wt_y0;");
        if own_loop {
            // The counter never is so large; the assembler does not know.
            emit!(self, "setp.eq.u64 %wt_p3, %wt_y1, -1;");
            self.vote("any", "%wt_p3", "%wt_p3");
            emit!(self, "@%wt_p3 bra {again};");
        }
        self.field(32, "%wt_x0", field::CLAIMS_FROM);
        emit!(self, "cvt.u64.u32 %wt_y2, %wt_x0;");
        emit!(self, "add.u64 %wt_y1, %wt_y1, %wt_y2;");
        emit!(self, "add.u64 %wt_y0, %wt_y0, %wt_y1;");
        self.field(32, "%wt_x0", field::CLAIMS_END);
        emit!(self, "cvt.u64.u32 %wt_y2, %wt_x0;");
        emit!(self, "setp.le.and.u64 %wt_p3, %wt_y0, %wt_y2, %wt_p2;");
        emit!(self, "cvt.u32.u64 %wt_x0, %wt_y1;");
        self.field(64, "%wt_y3", field::LOGS);
        emit!(self, "mad.wide.u32 %wt_y1, %wt_x0, {ENTRY_BYTES}, %wt_y3;");
        emit!(self, "sub.u32 %wt_x1, %wt_x1, 1;");
        emit!(self, "mad.wide.u32 %wt_y2, %wt_x1, {ENTRY_BYTES}, %wt_y1;");
    }

    /// Counts the entry as lost where `%wt_p1` and `%wt_p3` hold, for "is full" and "has no room", if the
    /// lane keeps it. `%wt_p2` says that the log has just been stopped; `%wt_l` is the address of the link.
    pub(super) fn lose(&mut self, [_, key, time_low, time_high]: Words) {
        let none = self.label();
        emit!(self, "and.pred %wt_p1, %wt_p1, %wt_p3;");
        self.vote("any", "%wt_r", "%wt_p1");
        emit!(self, "@!%wt_r bra {none};");
        self.lines(&["mov.u32 %wt_x1, 0;", "mov.u32 %wt_x2, 0;", "mov.u32 %wt_x3, 0;"]);
        emit!(self, "not.pred %wt_p3, %wt_p2;");
        emit!(self, "and.pred %wt_p3, %wt_p3, %wt_p1;");
        emit!(self, "@%wt_p3 ld.global.v4.b32 {{%wt_x0, %wt_x1, %wt_x2, %wt_x3}}, [%wt_l];");
        // Only what the lane keeps.
        emit!(self, "and.pred %wt_p4, %wt_p1, %wt_w;");
        emit!(self, "and.b32 %wt_x0, {key}, {MAX_KEY_COUNT};");
        emit!(self, "selp.u32 %wt_x0, %wt_x0, 0, %wt_p4;");
        emit!(self, "cvt.u64.u32 %wt_y0, %wt_x0;");
        emit!(self, "mov.b64 %wt_y1, {{%wt_x1, %wt_x3}};");
        emit!(self, "add.u64 %wt_y0, %wt_y0, %wt_y1;");
        emit!(self, "mov.b64 {{%wt_x1, %wt_x3}}, %wt_y0;");
        // The first one's time stays.
        emit!(self, "setp.eq.and.u32 %wt_p4, %wt_x2, 0, %wt_p4;");
        emit!(self, "mov.b64 %wt_y1, {{{time_low}, {time_high}}};");
        emit!(self, "shr.u64 %wt_y1, %wt_y1, {TIME_SHIFT};");
        emit!(self, "cvt.u32.u64 %wt_x0, %wt_y1;");
        emit!(self, "@%wt_p4 or.b32 %wt_x2, %wt_x0, 1;");
        emit!(self, "mov.u32 %wt_x0, 0;");
        emit!(self, "@%wt_p1 st.global.v4.b32 [%wt_l], {{%wt_x0, %wt_x1, %wt_x2, %wt_x3}};");
        emit!(self, "not.pred %wt_p3, %wt_p1;");
        emit!(self, "and.pred %wt_w, %wt_w, %wt_p3;");
        self.place_label(&none);
    }

    /// Finds what the log has lost: `%wt_y1` events if `%wt_p0` holds, and in `%wt_x7` the head's second word
    /// then. Goes to `whole` if no lane has lost any.
    fn lost_in_stopped(&mut self, log: Log, whole: &str) {
        // A log that has been stopped has something to say.
        emit!(self, "and.b32 %wt_x2, {}, 1;", log.link);
        emit!(self, "setp.ne.u32 %wt_p0, %wt_x2, 0;");
        self.vote("any", "%wt_r", "%wt_p0");
        emit!(self, "@!%wt_r bra {whole};");
        emit!(self, "xor.b32 %wt_x2, {}, %wt_x2;", log.link);
        emit!(self, "mov.b64 %wt_l, {{%wt_x2, {}}};", log.high);
        self.lines(&["mov.u32 %wt_x2, 0;", "mov.u32 %wt_x3, 0;"]);
        emit!(self, "@%wt_p0 ld.global.v4.b32 {{%wt_x6, %wt_x2, %wt_x7, %wt_x3}}, [%wt_l];");
        emit!(self, "mov.b64 %wt_y1, {{%wt_x2, %wt_x3}};");
        emit!(self, "setp.ne.u64 %wt_p0, %wt_y1, 0;");
    }

    /// Writes the lane's head of a log, and what the log has lost into the warp's account.
    pub(super) fn head(&mut self, log: Log) {
        let whole = self.label();
        self.stream(log.track);
        self.field(32, "%wt_x6", field::HEADS);
        emit!(self, "mad.lo.u32 %wt_x6, %wt_x4, {HEADS_ENTRIES}, %wt_x6;");
        self.field(64, "%wt_y3", field::LOGS);
        emit!(self, "mad.wide.u32 %wt_y0, %wt_x6, {ENTRY_BYTES}, %wt_y3;");
        emit!(self, "mad.wide.u32 %wt_y0, %wt_x1, {HEAD_BYTES}, %wt_y0;");
        emit!(self, "mov.u32 %wt_x7, 0;");
        if self.style.recording.logs == LogKind::Ring {
            self.lost_in_ring(log, &whole);
        } else {
            self.lost_in_stopped(log, &whole);
        }
        self.field(64, "%wt_y2", field::ACCOUNTS);
        emit!(self, "mad.wide.u32 %wt_y2, %wt_x4, {ACCOUNT_BYTES}, %wt_y2;");
        emit!(self, "@%wt_p0 red.global.add.u64 [%wt_y2], %wt_y1;");
        emit!(self, "@%wt_p0 red.global.add.u64 [%wt_y2+{ACCOUNT_LOST}], %wt_y1;");
        self.place_label(&whole);
        // The index of the entry after the last one.
        emit!(self, "mov.b64 %wt_l, {{{}, {}}};", log.low, log.high);
        emit!(self, "sub.u64 %wt_l, %wt_l, %wt_y3;");
        emit!(self, "shr.u64 %wt_l, %wt_l, {};", ENTRY_BYTES.ilog2());
        emit!(self, "cvt.u32.u64 %wt_x6, %wt_l;");
        emit!(self, "st.global.v2.b32 [%wt_y0], {{%wt_x6, %wt_x7}};");
    }
}
