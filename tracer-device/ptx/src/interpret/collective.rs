//! Executes instructions that exchange values between lanes.

use super::error::Fault;
use super::execute::{Executor, Lane, lanes, set};
use super::machine::{LANES, Warp};
use super::op::{Op, Register, Shuffle, Value, Vote};

impl Executor<'_> {
    /// Returns the lanes that an instruction names. All active lanes must name the same set and be in it.
    pub(super) fn members(&self, members: Value, warp: &mut Warp, here: u32) -> Result<u32, Fault> {
        let mut all = None;
        for lane in lanes(here) {
            let named = self.value(warp, lane, members)? as u32;
            if *all.get_or_insert(named) != named || named >> lane.number & 1 == 0 {
                return Err(Fault::Members { lane: lane.number, named, here });
            }
        }
        Ok(all.unwrap_or(here))
    }

    /// Executes an instruction that exchanges values between lanes. All lanes that it names must be active.
    pub(super) fn collective(&self, op: &Op, warp: &mut Warp, active: u32) -> Result<(), Fault> {
        match op {
            Op::ActiveMask { to } => self.set_all(warp, active, *to, u64::from(active)),
            Op::Vote { vote, to, of, .. } => {
                let mut ballot = 0;
                for lane in lanes(active) {
                    ballot |= u32::from(self.holds(warp, lane, *of)?) << lane.number;
                }
                let result = match vote {
                    Vote::All => u64::from(ballot == active),
                    Vote::Any => u64::from(ballot != 0),
                    Vote::Uniform => u64::from(ballot == active || ballot == 0),
                    Vote::Ballot => u64::from(ballot),
                };
                self.set_all(warp, active, *to, result)
            }
            Op::Shuffle { shuffle, to, valid, value, lane: from, clamp, .. } => {
                let mut results = Vec::new();
                for lane in lanes(active) {
                    let by = self.value(warp, lane, *from)? as u32 % LANES;
                    let clamp = self.value(warp, lane, *clamp)? as u32;
                    let (source, in_range) = shuffle.source(lane.number, by, clamp);
                    if active >> source & 1 == 0 {
                        return Err(Fault::Source { lane: lane.number, from: source });
                    }
                    results.push((lane, self.value(warp, Lane { number: source }, *value)?, in_range));
                }
                for (lane, result, in_range) in results {
                    set(self.program, warp, lane, *to, result)?;
                    if let Some(valid) = valid {
                        set(self.program, warp, lane, *valid, u64::from(in_range))?;
                    }
                }
                Ok(())
            }
            Op::Match { all, to, holds, of, .. } => {
                let values = lanes(active).map(|lane| Ok((lane, self.value(warp, lane, *of)?)));
                let values = values.collect::<Result<Vec<_>, Fault>>()?;
                for (lane, value) in &values {
                    let same = values.iter().filter(|(_, other)| other == value);
                    let same = same.fold(0_u32, |mask, (other, _)| mask | 1 << other.number);
                    let found = if *all && same != active { 0 } else { same };
                    set(self.program, warp, *lane, *to, u64::from(found))?;
                    if let Some(holds) = holds {
                        set(self.program, warp, *lane, *holds, u64::from(found != 0))?;
                    }
                }
                Ok(())
            }
            Op::Reduce { compute, ty, to, of, .. } => {
                let mut result = None;
                for lane in lanes(active) {
                    let value = self.value(warp, lane, *of)?;
                    result = result.map_or(Some(value), |known| compute.apply(*ty, &[known, value]));
                }
                self.set_all(warp, active, *to, result.unwrap_or_default())
            }
            _ => Ok(()),
        }
    }

    fn set_all(&self, warp: &mut Warp, mask: u32, register: Register, value: u64) -> Result<(), Fault> {
        lanes(mask).try_for_each(|lane| set(self.program, warp, lane, register, value))
    }
}

impl Shuffle {
    /// Returns the lane to read from (its own if out of range), and whether the requested lane is in range.
    fn source(self, lane: u32, by: u32, clamp: u32) -> (u32, bool) {
        let (segment, clamp) = (clamp >> 8 & 31, clamp & 31);
        let most = lane & segment | clamp & !segment;
        let (source, in_range) = match self {
            Self::Up => (lane.wrapping_sub(by), lane >= by && lane - by >= most),
            Self::Down => (lane + by, lane + by <= most),
            Self::Butterfly => (lane ^ by, lane ^ by <= most),
            Self::Index => {
                let source = lane & segment | by & !segment;
                (source, source <= most)
            }
        };
        if in_range { (source, true) } else { (lane, false) }
    }
}
