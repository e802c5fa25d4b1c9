//! Events: the lane's current run, and the raw shadow.

use std::fmt::Write;

use warptrace_abi::recording::LogKind;
use warptrace_format::Counting;

use super::registers::{
    ACTIVE, KEY, LANES_BELOW, MASK, NOW, P, Pred, R32, RECORD, SHADOW, SHADOW_KEY, TIME, TRACE, VOTE, Vector,
    WRITES, X,
};
use super::{Emitter, MAX_KEY_COUNT, REPEATED_KEY};
use crate::splice::state::Pair;

/// Maximum number of visits of one marker that are counted one by one: more than any unrolled loop has.
const MOST_SINGLE: u32 = 64;

impl Emitter {
    /// Records `count` consecutive events of the active lanes at `location`. If visits are counted, recording
    /// can begin at any of the first [`MOST_SINGLE`] events; the rest is recorded completely or not at all.
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

    /// Returns a record's key at a location, without events.
    pub(super) fn key(&self, location: u16) -> u32 {
        if self.style.hot == Some(location) { REPEATED_KEY } else { u32::from(location) << 16 }
    }

    /// Returns the difference between a log's key and a record's key at the location that repeats most.
    pub(super) fn log_key_offset(location: u16) -> u32 {
        (u32::from(location) << 16).wrapping_sub(REPEATED_KEY)
    }

    /// Adds `count` events at `location` to the current run of the active lanes, or begins a new run.
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

    pub(super) fn is_lowest(&mut self, mask: R32) -> Pred {
        let lower = X[0];
        emit!(self, "and.b32 {lower}, {mask}, {LANES_BELOW};");
        emit!(self, "setp.eq.u32 {WRITES}, {lower}, 0;");
        WRITES
    }

    /// Appends the lane's current run to its log if the lane is the run's leader. In a streamed log, the
    /// lowest of the lanes that leave the run together appends it. Invalidates the record.
    pub(super) fn end_run(&mut self) {
        self.end_run_before(None);
    }

    /// Like [`Emitter::end_run`], before the active lanes begin a run at a location.
    fn end_run_before(&mut self, begins: Option<u16>) {
        let (writes, scratch, is_repeated) = (WRITES, X[0], P[0]);
        self.load(Pair::Time);
        emit!(self, "and.b32 {scratch}, {MASK}, {LANES_BELOW};");
        if self.style.recording.logs.is_streamed() {
            emit!(self, "and.b32 {scratch}, {scratch}, {ACTIVE};");
        }
        emit!(self, "setp.eq.u32 {writes}, {scratch}, 0;");
        // A lane in no run appends nothing, except where an entry without events is harmless: in kept logs.
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

    /// Records the events of `begin_or_repeat` in the raw shadow.
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
