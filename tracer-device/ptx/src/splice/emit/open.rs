//! Runs that have not ended, in streamed logs (`warptrace_abi::stream`).

use std::fmt::Write;

use warptrace_abi::stream::{CLOCK_MASK, OPEN};

use super::registers::{ACTIVE, AT, KEY, MASK, P, Pred, R32, TIME, TRACE, VOTE, Vector, X};
use super::streamed::Taken;
use super::{Emitter, MAX_KEY_COUNT};
use crate::splice::state::Pair;

impl Emitter {
    /// Votes whether all lanes repeat their run, and their count stays below the next power of two. So a
    /// repetition takes one vote, with open runs too. `counted` is the count of a lane that is at `location`,
    /// where that is not the one that repeats most.
    pub(super) fn vote_unless_passing(&mut self, location: u16, count: u32, repeats: Pred, counted: R32) {
        let (changed, stays_below) = (X[1], P[1]);
        if self.style.hot == Some(location) {
            emit!(self, "and.b32 {counted}, {KEY}, {MAX_KEY_COUNT};");
        }
        emit!(self, "add.u32 {changed}, {counted}, {count};");
        emit!(self, "xor.b32 {changed}, {changed}, {counted};");
        emit!(self, "setp.le.and.u32 {stays_below}, {changed}, {counted}, {repeats};");
        self.vote("all", VOTE, stays_below);
    }

    /// Repeats the lanes' run if all lanes do, and goes to a label, where the run is written again; returns
    /// the label.
    pub(super) fn pass(&mut self, count: u32, repeats: Pred) -> String {
        let (passes, rewrite) = (self.label(), self.label());
        self.vote("all", VOTE, repeats);
        emit!(self, "@{VOTE} bra {passes};");
        self.cold(&passes, |emitter| {
            emit!(emitter, "add.u32 {KEY}, {KEY}, {count};");
            emitter.store_word(None, Pair::Record, 1);
            emitter.load(Pair::Time);
            emit!(emitter, "bra {rewrite};");
        });
        rewrite
    }

    /// Writes the run that the lanes of `ACTIVE` are in, at this location, to where its leader will append
    /// it. Where the leader has no room it takes a segment, which the run needs in any case when it ends. If
    /// there is none, nothing is written or lost.
    pub(super) fn write_open(&mut self, location: u16) {
        let log = TRACE;
        self.load_log(log);
        let writes = self.is_lowest(ACTIVE);
        self.with_room(log, writes, |emitter, Taken { denied, .. }| emitter.clear(writes, denied, denied));
        let key = if self.style.hot == Some(location) {
            emit!(self, "add.u32 {}, {KEY}, {};", X[6], Self::log_key_offset(location));
            X[6]
        } else {
            KEY
        };
        let ([low, high], last) = (TIME.0, X[7]);
        emit!(self, "mov.b64 {AT}, {};", log.next());
        emit!(self, "and.b32 {last}, {high}, {CLOCK_MASK};");
        emit!(self, "or.b32 {last}, {last}, {};", log.tag);
        emit!(self, "or.b32 {last}, {last}, {OPEN};");
        emit!(self, "@{writes} st.global.v4.b32 [{AT}], {};", Vector([MASK, key, low, last]));
    }
}
