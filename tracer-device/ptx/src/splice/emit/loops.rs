//! Counted loops. The lanes of a *proven* loop stay one group from its start to its end. They begin or
//! continue a run at the start without adding an event, and add their iterations at the end. So their record
//! is the same as event by event; the raw shadow has each event.

use std::fmt::Write;

use warptrace_format::Counting;

use super::registers::{
    ACTIVE, CLOCK, KEY, LANES_BELOW, MASK, NOW, P, Pred, R32, RECORD, TIME, VOTE, WRITES, X, iterations,
};
use super::{Emitter, MAX_KEY_COUNT, TIME_SHIFT};
use crate::splice::state::Pair;

pub(super) struct LoopRun {
    /// Whether the lane appends the run.
    keeps: Pred,
    length: R32,
}

impl Emitter {
    pub(in crate::splice) fn loop_enter(&mut self, location: u16) {
        if self.style.recording.counting == Counting::Proven {
            self.begin_or_repeat(location, 0);
        }
        emit!(self, "mov.u32 {}, 0;", iterations(location));
    }

    /// Resets the counts of loops that lanes may leave without entering.
    pub(super) fn clear_counts(&mut self, loops: &[u16]) {
        if self.style.recording.counting == Counting::All {
            loops.iter().for_each(|location| self.loop_enter(*location));
        }
    }

    pub(in crate::splice) fn loop_tick(&mut self, location: u16, count: u32) {
        let iterations = iterations(location);
        emit!(self, "add.u32 {iterations}, {iterations}, {count};");
        if self.style.recording.counting == Counting::Proven && self.style.recording.dual {
            self.active();
            self.clock(NOW);
            self.shadow_event(location, count);
        }
    }

    /// Adds the iterations of a proven loop to the lanes' current run.
    fn add_iterations(&mut self, location: u16) {
        let (split, done, iterations) = (self.label(), self.label(), iterations(location));
        let (room, is_too_long) = (X[0], P[0]);
        self.active();
        self.load(Pair::Record);
        emit!(self, "and.b32 {room}, {KEY}, {MAX_KEY_COUNT};");
        emit!(self, "sub.u32 {room}, {MAX_KEY_COUNT}, {room};");
        emit!(self, "setp.gt.u32 {is_too_long}, {iterations}, {room};");
        self.branch_if_any(is_too_long, &split);
        emit!(self, "add.u32 {KEY}, {KEY}, {iterations};");
        self.place_label(&done);
        self.store(Pair::Record);
        self.cold(&split, |emitter| emitter.fill_runs(location, &done));
    }

    /// Adds iterations to runs up to the maximum count of a run; branches to `done` in the last run.
    fn fill_runs(&mut self, location: u16, done: &str) {
        let (again, iterations, room, has_more) = (self.label(), iterations(location), X[0], P[0]);
        self.place_label(&again);
        emit!(self, "and.b32 {room}, {KEY}, {MAX_KEY_COUNT};");
        emit!(self, "sub.u32 {room}, {MAX_KEY_COUNT}, {room};");
        emit!(self, "min.u32 {room}, {room}, {iterations};");
        emit!(self, "add.u32 {KEY}, {KEY}, {room};");
        emit!(self, "sub.u32 {iterations}, {iterations}, {room};");
        emit!(self, "setp.ne.u32 {has_more}, {iterations}, 0;");
        self.branch_if_none(has_more, done);
        self.end_run();
        self.clock(TIME);
        self.store(Pair::Time);
        emit!(self, "mov.u32 {KEY}, {};", self.key(location));
        emit!(self, "bra {again};");
    }

    /// Records a counted loop for lanes that leave it together. Each distinct number of iterations makes a
    /// run: its lanes have at least this number, and its length is the difference to the next smaller number.
    /// The lowest lane with exactly this number appends the run.
    pub(in crate::splice) fn loop_leave(&mut self, location: u16) {
        if self.style.recording.counting == Counting::Proven {
            return self.add_iterations(location);
        }
        self.active();
        self.load(Pair::Record);
        self.end_run();
        self.clock(TIME);
        let run = self.find_run(location);
        self.append_iterations(location, run);
        self.no_run();
        self.store(Pair::Record);
        self.loop_enter(location);
    }

    /// Computes the lane's run: mask (lanes with at least as many iterations) and time in the record, and the
    /// rest. Consecutive runs are one unit of time apart, less than computing them takes.
    fn find_run(&mut self, location: u16) -> LoopRun {
        let (found, again) = (self.label(), self.label());
        let iterations = iterations(location);
        let (left, lane, others) = (X[0], X[1], X[2]);
        // Lanes with the same number; the next smaller number; how many lanes have fewer.
        let (equals, smaller, fewer) = (X[4], X[5], X[6]);
        let (are_equal, is_equal, has_more) = (P[0], P[1], P[0]);
        // Fast path: in most groups all numbers are equal.
        emit!(self, "bfind.u32 {lane}, {ACTIVE};");
        self.shuffle(others, iterations, lane);
        emit!(self, "setp.eq.u32 {are_equal}, {others}, {iterations};");
        self.vote("all", VOTE, are_equal);
        emit!(self, "mov.u32 {MASK}, {ACTIVE};");
        emit!(self, "mov.u32 {equals}, {ACTIVE};");
        emit!(self, "mov.u32 {smaller}, 0;");
        emit!(self, "mov.u32 {fewer}, 0;");
        emit!(self, "@{VOTE} bra {found};");
        emit!(self, "mov.u32 {MASK}, 0;");
        emit!(self, "mov.u32 {equals}, 0;");
        emit!(self, "mov.u32 {left}, {ACTIVE};");
        self.place_label(&again);
        emit!(self, "bfind.u32 {lane}, {left};");
        self.shuffle(others, iterations, lane);
        let (bit, is_as_many) = (lane, P[0]);
        emit!(self, "shl.b32 {bit}, 1, {lane};");
        emit!(self, "xor.b32 {left}, {left}, {bit};");
        emit!(self, "setp.ge.u32 {is_as_many}, {others}, {iterations};");
        emit!(self, "setp.eq.u32 {is_equal}, {others}, {iterations};");
        emit!(self, "@{is_as_many} or.b32 {MASK}, {MASK}, {bit};");
        emit!(self, "@{is_equal} or.b32 {equals}, {equals}, {bit};");
        emit!(self, "@!{is_as_many} max.u32 {smaller}, {smaller}, {others};");
        emit!(self, "@!{is_as_many} add.u32 {fewer}, {fewer}, 1;");
        emit!(self, "setp.ne.u32 {has_more}, {left}, 0;");
        self.branch_if_any(has_more, &again);
        self.place_label(&found);
        let (run, lower) = (LoopRun { keeps: P[5], length: X[8] }, X[0]);
        emit!(self, "and.b32 {lower}, {equals}, {LANES_BELOW};");
        emit!(self, "setp.eq.u32 {}, {lower}, 0;", run.keeps);
        emit!(self, "sub.u32 {}, {iterations}, {smaller};", run.length);
        emit!(self, "mov.b64 {CLOCK}, {TIME};");
        emit!(self, "mad.wide.u32 {CLOCK}, {fewer}, {}, {CLOCK};", 1 << TIME_SHIFT);
        emit!(self, "mov.b64 {TIME}, {CLOCK};");
        run
    }

    /// Appends a run of a counted loop to the logs of its leader, in as many entries as its length needs.
    fn append_iterations(&mut self, location: u16, LoopRun { keeps, length }: LoopRun) {
        let piece = self.label();
        let (writes, count, has_more) = (WRITES, X[0], P[0]);
        self.place_label(&piece);
        emit!(self, "min.u32 {KEY}, {length}, {MAX_KEY_COUNT};");
        emit!(self, "sub.u32 {length}, {length}, {KEY};");
        emit!(self, "or.b32 {KEY}, {KEY}, {};", u32::from(location) << 16);
        for log in self.logs() {
            emit!(self, "and.b32 {count}, {KEY}, {MAX_KEY_COUNT};");
            emit!(self, "setp.ne.and.u32 {writes}, {count}, 0, {keeps};");
            self.append(*log, RECORD, writes, true);
        }
        emit!(self, "setp.ne.u32 {has_more}, {length}, 0;");
        self.branch_if_any(has_more, &piece);
    }
}
