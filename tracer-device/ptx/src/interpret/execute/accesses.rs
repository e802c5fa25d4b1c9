//! Records accesses at sites.

use super::super::error::Fault;
use super::super::machine::{Group, Warp};
use super::super::observed::Access;
use super::super::op::{Op, Predicate, Register, Value};
use super::{Executor, Lane, lanes};

impl Executor<'_> {
    /// Records the address of a lane's access before the instruction executes.
    pub(super) fn note_access(
        &mut self,
        op: &Op,
        warp: &mut Warp,
        lane: Lane,
        site: u16,
        operand: usize,
    ) -> Result<(), Fault> {
        let address = match op {
            Op::Load { address, .. } | Op::Store { address, .. } | Op::Atomic { address, .. } => address,
            Op::Copy { to, .. } if operand == 0 => to,
            Op::Copy { from, .. } => from,
            _ => return Err(Fault::Unknown(format!("site {site} at what accesses no memory"))),
        };
        let base = address.base.map_or(Ok(0), |base| self.value(warp, lane, Value::Register(base)))?;
        let value = base.wrapping_add(address.offset);
        self.accesses.push(Access { warp: warp.index, lane: lane.number, site, value });
        Ok(())
    }

    /// Records a register's value in the lanes of a group whose guard holds.
    pub(in crate::interpret) fn values(
        &mut self,
        warp: &mut Warp,
        group: &Group,
        site: u16,
        register: Register,
        guard: Option<Predicate>,
    ) -> Result<(), Fault> {
        for lane in lanes(group.mask) {
            if guard.map_or(Ok(false), |guard| self.holds(warp, lane, guard).map(|holds| !holds))? {
                continue;
            }
            let value = self.value(warp, lane, Value::Register(register))?;
            self.accesses.push(Access { warp: warp.index, lane: lane.number, site, value });
        }
        Ok(())
    }
}
