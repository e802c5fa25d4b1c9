//! Events: the run that a lane is in, and the raw shadow.

use std::fmt::Write;

use warptrace_abi::recording::LogKind;
use warptrace_format::Counting;

use super::registers::{
    ACTIVE, KEY, LANES_BELOW, MASK, NOW, P, Pred, R32, RECORD, SHADOW, SHADOW_KEY, TIME, TRACE, VOTE, Vector,
    WRITES, X,
};
use super::{Emitter, MAX_KEY_COUNT, REPEATED_KEY};
use crate::splice::state::Pair;

/// Visits of one marker that are counted one by one: more than any loop is unrolled.
const MOST_SINGLE: u32 = 64;

impl Emitter {
    /// Records `count` events of the lanes that are here at `location`, one after the other. Where visits are
    /// counted, each of them may be the first that is recorded; of very many, those behind the first ones are
    /// recorded all or not at all.
    pub(in crate::splice) fn events(&mut self, location: u16, count: u32) {
        let single = if self.style.recording.after.is_some_and(|after| after.location == location) {
            count.min(MOST_SINGLE)
        } else {
            0
        };
        (0..single).for_each(|_| self.event(location, 1));
        if count > single {
            self.event(location, count - single);
        }
    }

    fn event(&mut self, location: u16, count: u32) {
        self.begin_or_repeat(location, count);
        if self.style.recording.dual {
            self.shadow_event(location, count);
        }
    }

    /// Returns a record's key at a location with no event yet.
    pub(super) fn key(&self, location: u16) -> u32 {
        if self.style.hot == Some(location) { REPEATED_KEY } else { u32::from(location) << 16 }
    }

    /// Returns what makes a log's key of a record's key at the location that repeats most.
    pub(super) fn log_key_offset(location: u16) -> u32 {
        (u32::from(location) << 16).wrapping_sub(REPEATED_KEY)
    }

    /// Leads the lanes that are here into a run at `location`, or on in it, by `count` events.
    pub(super) fn begin_or_repeat(&mut self, location: u16, count: u32) {
        let done = self.label();
        let key = self.key(location);
        let (repeats, counted) = (P[0], X[0]);
        self.active();
        if self.style.recording.dual {
            self.clock(NOW);
        }
        self.load(Pair::Record);
        if self.style.hot == Some(location) {
            emit!(self, "setp.lt.s32 {repeats}, {KEY}, {};", -i64::from(count));
        } else {
            emit!(self, "xor.b32 {counted}, {KEY}, {key};");
            emit!(self, "setp.lt.u32 {repeats}, {counted}, {};", MAX_KEY_COUNT + 1 - count);
        }
        emit!(self, "setp.eq.and.u32 {repeats}, {MASK}, {ACTIVE}, {repeats};");
        self.vote("all", VOTE, repeats);
        if count > 0 {
            emit!(self, "@{VOTE} add.u32 {KEY}, {KEY}, {count};");
            self.store_word(Some(VOTE), Pair::Record, 1);
        }
        emit!(self, "@{VOTE} bra {done};");
        self.leave_unless_recorded(location, count, &done);
        self.end_run_before(Some(location));
        if self.style.recording.dual {
            for (time, now) in TIME.0.iter().zip(NOW.0) {
                emit!(self, "mov.u32 {time}, {now};");
            }
        } else {
            self.clock(TIME);
        }
        emit!(self, "mov.u32 {MASK}, {ACTIVE};");
        emit!(self, "mov.u32 {KEY}, {};", key | count);
        self.store(Pair::Record);
        self.store(Pair::Time);
        if self.style.recording.logs == LogKind::Kept {
            self.open_run(location, count);
        }
        self.place_label(&done);
    }

    /// Finds whether the lane is the lowest one of `mask`.
    pub(super) fn is_lowest(&mut self, mask: R32) -> Pred {
        let lower = X[0];
        emit!(self, "and.b32 {lower}, {mask}, {LANES_BELOW};");
        emit!(self, "setp.eq.u32 {WRITES}, {lower}, 0;");
        WRITES
    }

    /// Appends the run that the lane is in to its log, if it is the one that keeps it; to a streamed log, if
    /// it is the lowest of those that leave the run together. The record is used up.
    pub(super) fn end_run(&mut self) {
        self.end_run_before(None);
    }

    /// The same, where the lanes that are here begin a run at a location.
    fn end_run_before(&mut self, begins: Option<u16>) {
        let (writes, scratch, is_repeated) = (WRITES, X[0], P[0]);
        self.load(Pair::Time);
        emit!(self, "and.b32 {scratch}, {MASK}, {LANES_BELOW};");
        if self.style.recording.logs.is_streamed() {
            // The lowest of those that leave the run now.
            emit!(self, "and.b32 {scratch}, {scratch}, {ACTIVE};");
        }
        emit!(self, "setp.eq.u32 {writes}, {scratch}, 0;");
        // A lane that is in no run appends nothing. (In a log of its own an entry without events does no
        // harm, and a lane begins in such a run.)
        match self.style.recording.counting {
            Counting::Proven => {
                emit!(self, "and.b32 {scratch}, {KEY}, {MAX_KEY_COUNT};");
                emit!(self, "setp.ne.and.u32 {writes}, {scratch}, 0, {writes};");
            }
            Counting::Never
                if !self.style.recording.logs.is_streamed() && self.style.recording.after.is_none() => {}
            _ => emit!(self, "setp.ne.and.u32 {writes}, {KEY}, 0, {writes};"),
        }
        if let Some(location) = self.style.hot {
            emit!(self, "setp.lt.s32 {is_repeated}, {KEY}, 0;");
            emit!(self, "@{is_repeated} add.u32 {KEY}, {KEY}, {};", Self::log_key_offset(location));
        }
        if self.style.recording.logs != LogKind::Kept {
            return self.append(TRACE, RECORD, writes, false);
        }
        if begins.is_some() {
            self.find_opens();
        }
        self.append_kept(TRACE, RECORD, writes, begins);
    }

    /// Records the events that `begin_or_repeat` was told of in the raw shadow.
    pub(super) fn shadow_event(&mut self, location: u16, count: u32) {
        let key = u32::from(location) << 16 | count;
        let writes = self.is_lowest(ACTIVE);
        if self.style.recording.after.is_some() {
            emit!(self, "setp.ne.and.u32 {writes}, {MASK}, 0, {writes};");
        }
        emit!(self, "mov.u32 {SHADOW_KEY}, {key};");
        let [low, high] = NOW.0;
        self.append(SHADOW, Vector([ACTIVE, SHADOW_KEY, low, high]), writes, false);
    }
}
