//! Start of recording at a visit (`warptrace_format::chosen::After`). A lane that is not recorded yet has a
//! record with an empty mask and no events, with the number of remaining visits in place of the time. This
//! needs no additional register, and no event repeats this record.

use std::fmt::Write;

use super::Emitter;
use super::registers::{MASK, P, TIME, X};
use crate::splice::state::Pair;

impl Emitter {
    /// Sets the lane's record to "not recorded yet", or to "in no run" if lanes are recorded from the start.
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

    /// Branches to `done` with `count` events that are not recorded: no lane of the event is recorded yet or
    /// has reached its first recorded visit. All lanes of the event branch together. Lanes that do not branch
    /// are recorded from now on.
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
            // Lanes that are already recorded stay recorded: for them the word is a part of the time.
            emit!(self, "setp.eq.or.u32 {recorded}, {visits}, 0, {recorded};");
        }
        self.branch_if_none(recorded, done);
    }
}
