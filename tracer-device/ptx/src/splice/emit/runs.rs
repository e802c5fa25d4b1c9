//! Events: the run that a lane is in, and the twin.

use std::fmt::Write;

use warptrace_format::Counting;

use super::{Emitter, HOT_KEY, Log, MAX_KEY_COUNT, RECORD, TRACE, TWIN};
use crate::splice::state::{Pair, Placement};

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

    /// Records `count` events of the lanes that are here at `location`, one after the other.
    fn event(&mut self, location: u16, count: u32) {
        self.begin_or_repeat(location, count);
        if self.style.recording.dual {
            self.twin_event(location, count);
        }
    }

    /// What a record's key is at a location with no event yet.
    pub(super) fn key(&self, location: u16) -> u32 {
        if self.style.hot == Some(location) { HOT_KEY } else { u32::from(location) << 16 }
    }

    /// Leads the lanes that are here into a run at `location`, or on in it, by `count` events.
    pub(super) fn begin_or_repeat(&mut self, location: u16, count: u32) {
        let done = self.label();
        let key = self.key(location);
        emit!(self, "activemask.b32 %wt_a;");
        if self.style.recording.dual {
            self.clock("%wt_cl", "%wt_ch");
        }
        self.load(Pair::Record, "%wt_m", "%wt_k");
        if self.style.hot == Some(location) {
            emit!(self, "setp.lt.s32 %wt_p0, %wt_k, {};", -i64::from(count));
        } else {
            emit!(self, "xor.b32 %wt_x0, %wt_k, {key};");
            emit!(self, "setp.lt.u32 %wt_p0, %wt_x0, {};", MAX_KEY_COUNT + 1 - count);
        }
        emit!(self, "setp.eq.and.u32 %wt_p0, %wt_m, %wt_a, %wt_p0;");
        let asks_early = self.asks_early(location);
        if asks_early {
            self.ask_full(TRACE);
        }
        if self.style.recording.logs.has_open_runs() {
            self.vote_unless_passing(location, count);
        } else {
            self.vote("all", "%wt_r", "%wt_p0");
        }
        if count > 0 {
            emit!(self, "@%wt_r add.u32 %wt_k, %wt_k, {count};");
            self.store_word("@%wt_r ", Pair::Record, 1, "%wt_k");
        }
        emit!(self, "@%wt_r bra {done};");
        self.leave_unless_recorded(location, count, &done);
        let rewrite = self.style.recording.logs.has_open_runs().then(|| self.pass(count));
        self.end_run(asks_early);
        if self.style.recording.dual {
            emit!(self, "mov.u32 %wt_tl, %wt_cl;");
            emit!(self, "mov.u32 %wt_th, %wt_ch;");
        } else {
            self.clock("%wt_tl", "%wt_th");
        }
        emit!(self, "mov.u32 %wt_m, %wt_a;");
        emit!(self, "mov.u32 %wt_k, {};", key | count);
        self.store(Pair::Record, "%wt_m", "%wt_k");
        self.store(Pair::Time, "%wt_tl", "%wt_th");
        if let Some(rewrite) = rewrite {
            self.place_label(&rewrite);
            self.write_open(location);
        }
        self.place_label(&done);
    }

    /// Whether an event at a location asks for full segments together with the question whether it repeats.
    /// Where most events begin a run, that is a vote's latency less; where most repeat one, two instructions
    /// more. (Of streamed logs only the leader's is asked, which is not known yet.)
    pub(super) fn asks_early(&self, location: u16) -> bool {
        let early = self.style.placement == Placement::Registers && !self.style.recording.logs.is_streamed();
        early && self.style.hot != Some(location)
    }

    /// Asks whether any lane's segment is full: `%wt_g`; the lane's own is in `%wt_p1`.
    pub(super) fn ask_full(&mut self, log: Log) {
        emit!(self, "setp.eq.u32 %wt_p1, {}, {};", log.low, log.link);
        self.vote("any", "%wt_g", "%wt_p1");
    }

    /// Appends the run that the lane is in to its log, if it is the one that keeps it; to a streamed log, if
    /// it is the lowest of those that leave the run together. The record is used up. The lanes that are here
    /// are in `%wt_a`.
    ///
    /// `asked`: whether `ask_full` has been asked already.
    pub(super) fn end_run(&mut self, asked: bool) {
        self.load(Pair::Time, "%wt_tl", "%wt_th");
        emit!(self, "and.b32 %wt_x0, %wt_m, %wt_lt;");
        if self.style.recording.logs.is_streamed() {
            // The lowest of those that leave the run now.
            emit!(self, "and.b32 %wt_x0, %wt_x0, %wt_a;");
        }
        emit!(self, "setp.eq.u32 %wt_w, %wt_x0, 0;");
        // A lane that is in no run appends nothing. (In a log of its own an entry without events does no
        // harm, and a lane begins in such a run.)
        match self.style.recording.counting {
            Counting::Proven => {
                emit!(self, "and.b32 %wt_x0, %wt_k, {MAX_KEY_COUNT};");
                emit!(self, "setp.ne.and.u32 %wt_w, %wt_x0, 0, %wt_w;");
            }
            Counting::Never
                if !self.style.recording.logs.is_streamed() && self.style.recording.after.is_none() => {}
            _ => emit!(self, "setp.ne.and.u32 %wt_w, %wt_k, 0, %wt_w;"),
        }
        if let Some(hot) = self.style.hot {
            let back = (u32::from(hot) << 16).wrapping_sub(HOT_KEY);
            emit!(self, "setp.lt.s32 %wt_p0, %wt_k, 0;");
            emit!(self, "@%wt_p0 add.u32 %wt_k, %wt_k, {back};");
        }
        self.append(TRACE, RECORD, asked, false);
    }

    /// Records events on the twin's track: of the lanes of `%wt_a`, at the time in `%wt_cl`, `%wt_ch`.
    pub(super) fn twin_event(&mut self, location: u16, count: u32) {
        let key = u32::from(location) << 16 | count;
        emit!(self, "and.b32 %wt_x0, %wt_a, %wt_lt;");
        emit!(self, "setp.eq.u32 %wt_w, %wt_x0, 0;");
        if self.style.recording.after.is_some() {
            emit!(self, "setp.ne.and.u32 %wt_w, %wt_m, 0, %wt_w;");
        }
        emit!(self, "mov.u32 %wt_tk, {key};");
        self.append(TWIN, ["%wt_a", "%wt_tk", "%wt_cl", "%wt_ch"], false, false);
    }
}
