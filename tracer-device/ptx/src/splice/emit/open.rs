//! Runs that have not ended, in streamed logs (`warptrace_abi::stream`).

use std::fmt::Write;

use warptrace_abi::stream::{CLOCK_MASK, OPEN};

use super::{Emitter, HOT_KEY, MAX_KEY_COUNT, TRACE};
use crate::splice::state::Pair;

impl Emitter {
    /// Votes, `%wt_r`, whether all lanes repeat their run, as `%wt_p0` says, and their count stays below the
    /// next power of two. So a repetition takes one vote, with open runs too.
    pub(super) fn vote_unless_passing(&mut self, location: u16, count: u32) {
        if self.style.hot == Some(location) {
            emit!(self, "and.b32 %wt_x0, %wt_k, {MAX_KEY_COUNT};");
        }
        // `%wt_x0` is the count, if the lane is at the location.
        emit!(self, "add.u32 %wt_x1, %wt_x0, {count};");
        emit!(self, "xor.b32 %wt_x1, %wt_x1, %wt_x0;");
        emit!(self, "setp.le.and.u32 %wt_p1, %wt_x1, %wt_x0, %wt_p0;");
        self.vote("all", "%wt_r", "%wt_p1");
    }

    /// Repeats the lanes' run if `%wt_p0` says for all that they do, and goes to a label, where the run is
    /// written again; returns the label.
    pub(super) fn pass(&mut self, count: u32) -> String {
        let (passes, rewrite) = (self.label(), self.label());
        self.vote("all", "%wt_r", "%wt_p0");
        emit!(self, "@%wt_r bra {passes};");
        let before = std::mem::take(&mut self.out);
        self.place_label(&passes);
        emit!(self, "add.u32 %wt_k, %wt_k, {count};");
        self.store_word("", Pair::Record, 1, "%wt_k");
        self.load(Pair::Time, "%wt_tl", "%wt_th");
        emit!(self, "bra {rewrite};");
        let passing = std::mem::replace(&mut self.out, before);
        self.rare.push_str(&passing);
        rewrite
    }

    /// Writes the run that the lanes of `%wt_a` are in, at this location, to where its leader will append it.
    /// Where the leader has no room it takes a segment, which the run needs in any case when it ends. If
    /// there is none, nothing is written or lost.
    pub(super) fn write_open(&mut self, location: u16) {
        let (full, room) = (self.label(), self.label());
        let log = TRACE;
        self.load_log(log);
        emit!(self, "and.b32 %wt_x0, %wt_a, %wt_lt;");
        emit!(self, "setp.eq.u32 %wt_w, %wt_x0, 0;");
        emit!(self, "setp.eq.and.u32 %wt_p1, {}, {}, %wt_w;", log.low, log.link);
        self.vote("any", "%wt_g", "%wt_p1");
        emit!(self, "@%wt_g bra {full};");
        self.place_label(&room);
        let before = std::mem::take(&mut self.out);
        self.place_label(&full);
        self.take_segment(log);
        emit!(self, "not.pred %wt_p2, %wt_p2;");
        emit!(self, "and.pred %wt_w, %wt_w, %wt_p2;");
        emit!(self, "bra {room};");
        let take = std::mem::replace(&mut self.out, before);
        self.rare.push_str(&take);
        let key = if self.style.hot == Some(location) {
            let back = (u32::from(location) << 16).wrapping_sub(HOT_KEY);
            emit!(self, "add.u32 %wt_x6, %wt_k, {back};");
            "%wt_x6"
        } else {
            "%wt_k"
        };
        emit!(self, "mov.b64 %wt_l, {{{}, {}}};", log.low, log.high);
        emit!(self, "and.b32 %wt_x7, %wt_th, {CLOCK_MASK};");
        emit!(self, "or.b32 %wt_x7, %wt_x7, {};", log.tag);
        emit!(self, "or.b32 %wt_x7, %wt_x7, {OPEN};");
        emit!(self, "@%wt_w st.global.v4.b32 [%wt_l], {{%wt_m, {key}, %wt_tl, %wt_x7}};");
    }
}
