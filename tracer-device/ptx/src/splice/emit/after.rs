//! From where on lanes are recorded (`warptrace_format::chosen::After`).
//!
//! A lane that is not recorded yet is in a run of no lanes and no events, and has in that record, in the
//! place of the time, how many visits are still to come. So it takes no register that others do not take, and
//! no event repeats its run.

use std::fmt::Write;

use super::Emitter;
use crate::splice::state::Pair;

impl Emitter {
    /// Puts the lane's record to "not recorded yet", or to "in no run" if lanes are recorded from their start
    /// on.
    pub(super) fn begin_record(&mut self) {
        self.no_run();
        emit!(self, "mov.u32 %wt_tl, 0;");
        emit!(self, "mov.u32 %wt_th, 0;");
        if let Some(after) = self.style.recording.after {
            emit!(self, "mov.u32 %wt_m, 0;");
            emit!(self, "mov.u32 %wt_tl, {};", after.count);
        }
    }

    /// Goes to `done` with `count` events that are not recorded: none of their lanes is recorded yet, or has
    /// no visit to come before it is. Their lanes are in `%wt_a`, their records' masks in `%wt_m`. All lanes
    /// of the event answer the same, so those that go on are recorded from now on.
    pub(super) fn leave_unless_recorded(&mut self, location: u16, count: u32, done: &str) {
        let Some(after) = self.style.recording.after else { return };
        emit!(self, "setp.ne.u32 %wt_p0, %wt_m, 0;");
        if after.location == location {
            self.load(Pair::Time, "%wt_tl", "%wt_th");
            if count == 1 {
                emit!(self, "@!%wt_p0 sub.u32 %wt_tl, %wt_tl, 1;");
            } else {
                emit!(self, "min.u32 %wt_x0, %wt_tl, {count};");
                emit!(self, "@!%wt_p0 sub.u32 %wt_tl, %wt_tl, %wt_x0;");
            }
            self.store(Pair::Time, "%wt_tl", "%wt_th");
            // Of a lane that is recorded already the answer is the same, whatever its time is.
            emit!(self, "setp.eq.or.u32 %wt_p0, %wt_tl, 0, %wt_p0;");
        }
        self.vote("any", "%wt_r", "%wt_p0");
        emit!(self, "@!%wt_r bra {done};");
    }
}
