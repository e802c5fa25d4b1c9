//! Executes instructions at which lanes exchange values.

use super::error::Fault;
use super::execute::{Executor, Lane, frame, lanes, set_all};
use super::machine::{LANES, Warp};
use super::op::{Op, Value, Vote};

impl Executor<'_> {
    /// Executes an instruction at which lanes exchange values.
    pub(super) fn collective(&self, op: &Op, warp: &mut Warp, active: u32) -> Result<(), Fault> {
        let check = |warp: &mut Warp, members: &Option<Value>| {
            for lane in lanes(active) {
                let Some(members) = members else { continue };
                let named = self.value(warp, lane, *members)? as u32;
                if named != active {
                    return Err(Fault::Members { lane: lane.number, named, here: active });
                }
            }
            Ok(())
        };
        match op {
            Op::ActiveMask { to } => set_all(warp, active, *to, u64::from(active)),
            Op::Vote { vote, to, of, negated, members } => {
                check(warp, members)?;
                let mut ballot = 0;
                for lane in lanes(active) {
                    let holds = (self.value(warp, lane, *of)? == 1) != *negated;
                    ballot |= u32::from(holds) << lane.number;
                }
                let answer = match vote {
                    Vote::All => u64::from(ballot == active),
                    Vote::Any => u64::from(ballot != 0),
                    Vote::Ballot => u64::from(ballot),
                };
                set_all(warp, active, *to, answer)
            }
            Op::Shuffle { to, value, lane: from, members } => {
                check(warp, members)?;
                let mut answers = Vec::new();
                for lane in lanes(active) {
                    let source = self.value(warp, lane, *from)? as u32 % LANES;
                    if active >> source & 1 == 0 {
                        return Err(Fault::Source { lane: lane.number, from: source });
                    }
                    answers.push((lane, self.value(warp, Lane { number: source }, *value)?));
                }
                for (lane, answer) in answers {
                    frame(warp, lane)?.registers[*to] = Some(answer & u64::from(u32::MAX));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
