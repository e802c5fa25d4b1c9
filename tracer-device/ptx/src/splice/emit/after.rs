//! From where on lanes are recorded (`warptrace_format::chosen::After`).
//!
//! A lane that is not recorded yet is in a run of no lanes and no events, and has in that record, in the
//! place of the time, how many visits are still to come. So it takes no register that others do not take, and
//! no event repeats its run.

use std::fmt::Write;

use super::Emitter;
use super::registers::{MASK, P, TIME, X};
use crate::splice::state::Pair;

impl Emitter {
    /// Puts the lane's record to "not recorded yet", or to "in no run" if lanes are recorded from their start
    /// on.
    pub(super) fn begin_record(&mut self) {
        let [visits, high] = TIME.0;
        self.no_run();
        emit!(self, "mov.u32 {visits}, 0;");
        emit!(self, "mov.u32 {high}, 0;");
        if let Some(after) = self.style.recording.after {
            emit!(self, "mov.u32 {MASK}, 0;");
            emit!(self, "mov.u32 {visits}, {};", after.count);
        }
    }

    /// Goes to `done` with `count` events that are not recorded: none of their lanes is recorded yet, or has
    /// no visit to come before it is. All lanes of the event go the same way, so those that do not go to
    /// `done` are recorded from now on.
    pub(super) fn leave_unless_recorded(&mut self, location: u16, count: u32, done: &str) {
        let Some(after) = self.style.recording.after else { return };
        let (recorded, left, [visits, _]) = (P[0], X[0], TIME.0);
        emit!(self, "setp.ne.u32 {recorded}, {MASK}, 0;");
        if after.location == location {
            self.load(Pair::Time);
            if count == 1 {
                emit!(self, "@!{recorded} sub.u32 {visits}, {visits}, 1;");
            } else {
                emit!(self, "min.u32 {left}, {visits}, {count};");
                emit!(self, "@!{recorded} sub.u32 {visits}, {visits}, {left};");
            }
            self.store(Pair::Time);
            // A lane that is recorded already stays so, whatever its time is.
            emit!(self, "setp.eq.or.u32 {recorded}, {visits}, 0, {recorded};");
        }
        self.branch_if_none(recorded, done);
    }
}
