//! Counted loops.
//!
//! The lanes of a loop that is *proven* stay one group from its beginning to its end. They begin a run with no
//! event, or go on in theirs, where the loop begins, and add their iterations to it where it ends. So their
//! record is what it would be event by event, and the twin has each event.

use std::fmt::Write;

use warptrace_format::Counting;

use super::{Emitter, MAX_KEY_COUNT, RECORD, TIME_SHIFT};
use crate::splice::state::Pair;

impl Emitter {
    /// Opens a counted loop.
    pub(in crate::splice) fn loop_enter(&mut self, location: u16) {
        if self.style.recording.counting == Counting::Proven {
            self.begin_or_repeat(location, 0);
        }
        emit!(self, "mov.u32 %wt_n{location}, 0;");
    }

    /// Prepares loops that lanes may leave without having entered them.
    pub(super) fn clear_counts(&mut self, loops: &[u16]) {
        if self.style.recording.counting == Counting::All {
            loops.iter().for_each(|location| self.loop_enter(*location));
        }
    }

    /// Counts iterations of a loop.
    pub(in crate::splice) fn loop_tick(&mut self, location: u16, count: u32) {
        emit!(self, "add.u32 %wt_n{location}, %wt_n{location}, {count};");
        if self.style.recording.counting == Counting::Proven && self.style.recording.dual {
            emit!(self, "activemask.b32 %wt_a;");
            self.clock("%wt_cl", "%wt_ch");
            self.twin_event(location, count);
        }
    }

    /// Adds the iterations of a proven loop to the run that its lanes are in.
    fn add_iterations(&mut self, location: u16) {
        let (split, done) = (self.label(), self.label());
        emit!(self, "activemask.b32 %wt_a;");
        self.load(Pair::Record, "%wt_m", "%wt_k");
        emit!(self, "and.b32 %wt_x0, %wt_k, {MAX_KEY_COUNT};");
        emit!(self, "sub.u32 %wt_x0, {MAX_KEY_COUNT}, %wt_x0;");
        emit!(self, "setp.gt.u32 %wt_p0, %wt_n{location}, %wt_x0;");
        self.vote("any", "%wt_r", "%wt_p0");
        emit!(self, "@%wt_r bra {split};");
        emit!(self, "add.u32 %wt_k, %wt_k, %wt_n{location};");
        self.place_label(&done);
        self.store(Pair::Record, "%wt_m", "%wt_k");
        let before = std::mem::take(&mut self.out);
        self.place_label(&split);
        self.fill_runs(location, &done);
        let rare = std::mem::replace(&mut self.out, before);
        self.rare.push_str(&rare);
    }

    /// Adds iterations to runs, as many as their counts have room for, and goes to `done` in the last one.
    fn fill_runs(&mut self, location: u16, done: &str) {
        let (again, iterations) = (self.label(), format!("%wt_n{location}"));
        self.place_label(&again);
        emit!(self, "and.b32 %wt_x0, %wt_k, {MAX_KEY_COUNT};");
        emit!(self, "sub.u32 %wt_x0, {MAX_KEY_COUNT}, %wt_x0;");
        emit!(self, "min.u32 %wt_x0, %wt_x0, {iterations};");
        emit!(self, "add.u32 %wt_k, %wt_k, %wt_x0;");
        emit!(self, "sub.u32 {iterations}, {iterations}, %wt_x0;");
        emit!(self, "setp.ne.u32 %wt_p0, {iterations}, 0;");
        self.vote("any", "%wt_r", "%wt_p0");
        emit!(self, "@!%wt_r bra {done};");
        self.end_run(false);
        self.clock("%wt_tl", "%wt_th");
        self.store(Pair::Time, "%wt_tl", "%wt_th");
        emit!(self, "mov.u32 %wt_k, {};", self.key(location));
        emit!(self, "bra {again};");
    }

    /// Records a counted loop for the lanes that leave it together: a run for each number of iterations, of
    /// the lanes that iterated as often or more often, as long as the step from the next smaller number. The
    /// lowest lane whose number it is keeps it.
    pub(in crate::splice) fn loop_leave(&mut self, location: u16) {
        if self.style.recording.counting == Counting::Proven {
            return self.add_iterations(location);
        }
        emit!(self, "activemask.b32 %wt_a;");
        self.load(Pair::Record, "%wt_m", "%wt_k");
        self.end_run(false);
        self.clock("%wt_tl", "%wt_th");
        self.find_run(location);
        self.append_iterations(location);
        self.no_run();
        self.store(Pair::Record, "%wt_m", "%wt_k");
        self.loop_enter(location);
    }

    /// Finds the lane's run of a counted loop: the lanes with as many iterations or more (`%wt_m`), whether
    /// it keeps the run (`%wt_p5`), its length (`%wt_x8`) and time. Times differ by a unit from one run to
    /// the next: finding them takes longer than that, so the lanes' next events are later still.
    pub(super) fn find_run(&mut self, location: u16) {
        let (found, again) = (self.label(), self.label());
        let iterations = format!("%wt_n{location}");
        // Most groups iterated equally often.
        emit!(self, "bfind.u32 %wt_x1, %wt_a;");
        self.shuffle("%wt_x2", &iterations, "%wt_x1");
        emit!(self, "setp.eq.u32 %wt_p0, %wt_x2, {iterations};");
        self.vote("all", "%wt_r", "%wt_p0");
        // Lanes with as many or more; those with as many; the next smaller number; how many lanes have fewer.
        self.lines(&[
            "mov.u32 %wt_m, %wt_a;",
            "mov.u32 %wt_x4, %wt_a;",
            "mov.u32 %wt_x5, 0;",
            "mov.u32 %wt_x6, 0;",
        ]);
        emit!(self, "@%wt_r bra {found};");
        self.lines(&["mov.u32 %wt_m, 0;", "mov.u32 %wt_x4, 0;", "mov.u32 %wt_x0, %wt_a;"]);
        self.place_label(&again);
        emit!(self, "bfind.u32 %wt_x1, %wt_x0;");
        self.shuffle("%wt_x2", &iterations, "%wt_x1");
        emit!(self, "shl.b32 %wt_x1, 1, %wt_x1;");
        emit!(self, "xor.b32 %wt_x0, %wt_x0, %wt_x1;");
        emit!(self, "setp.ge.u32 %wt_p0, %wt_x2, {iterations};");
        emit!(self, "setp.eq.u32 %wt_p1, %wt_x2, {iterations};");
        emit!(self, "@%wt_p0 or.b32 %wt_m, %wt_m, %wt_x1;");
        emit!(self, "@%wt_p1 or.b32 %wt_x4, %wt_x4, %wt_x1;");
        emit!(self, "@!%wt_p0 max.u32 %wt_x5, %wt_x5, %wt_x2;");
        emit!(self, "@!%wt_p0 add.u32 %wt_x6, %wt_x6, 1;");
        emit!(self, "setp.ne.u32 %wt_p0, %wt_x0, 0;");
        self.vote("any", "%wt_r", "%wt_p0");
        emit!(self, "@%wt_r bra {again};");
        self.place_label(&found);
        emit!(self, "and.b32 %wt_x0, %wt_x4, %wt_lt;");
        emit!(self, "setp.eq.u32 %wt_p5, %wt_x0, 0;");
        emit!(self, "sub.u32 %wt_x8, {iterations}, %wt_x5;");
        emit!(self, "mov.b64 %wt_c, {{%wt_tl, %wt_th}};");
        emit!(self, "mad.wide.u32 %wt_c, %wt_x6, {}, %wt_c;", 1 << TIME_SHIFT);
        emit!(self, "mov.b64 {{%wt_tl, %wt_th}}, %wt_c;");
    }

    /// Appends the run that `find_run` has found, in as many entries as its length takes, to the logs of its
    /// leader.
    pub(super) fn append_iterations(&mut self, location: u16) {
        let piece = self.label();
        self.place_label(&piece);
        emit!(self, "min.u32 %wt_k, %wt_x8, {MAX_KEY_COUNT};");
        emit!(self, "sub.u32 %wt_x8, %wt_x8, %wt_k;");
        emit!(self, "or.b32 %wt_k, %wt_k, {};", u32::from(location) << 16);
        for log in self.logs() {
            emit!(self, "and.b32 %wt_x0, %wt_k, {MAX_KEY_COUNT};");
            emit!(self, "setp.ne.and.u32 %wt_w, %wt_x0, 0, %wt_p5;");
            self.append(*log, RECORD, false, true);
        }
        emit!(self, "setp.ne.u32 %wt_p0, %wt_x8, 0;");
        self.vote("any", "%wt_r", "%wt_p0");
        emit!(self, "@%wt_r bra {piece};");
    }
}
