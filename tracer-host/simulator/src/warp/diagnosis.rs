//! Errors of a warp that cannot continue.

use warptrace_device::simt::host::WarpOp;

use super::{Group, Turn, Warp, bits};
use crate::context::WarpCells;
use crate::error::{SimError, ThreadPlace, Waiting, op_mask};
use crate::panics::Failure;

impl Warp {
    /// Returns the barrier at which all live lanes wait, or the error if they wait at different barriers.
    pub(super) fn waits(&self, cells: &WarpCells) -> Result<Turn, SimError> {
        let first = cells.site[self.live.trailing_zeros() as usize].get();
        let same = |lane: usize| cells.site[lane].get() == first;
        match first {
            Some(site) if bits(self.live).all(same) => Ok(Turn::AtBarrier(site)),
            _ => Err(self.diverged_at_barrier(cells)),
        }
    }

    /// Returns true if the group is at a trace point or at the end of a loop's body after the barrier at which
    /// other lanes of the warp wait. Its lanes can only reach that barrier apart from them, in a later iteration.
    ///
    /// Points in different files have no order, except in functions with trace points, where the line of the
    /// call counts. At other operations a lane may be in a function without trace points, so they prove nothing.
    pub(super) fn passes_barrier(&self, cells: &WarpCells, group: &Group) -> bool {
        let traced = matches!(group.op, WarpOp::Located { .. } | WarpOp::Join | WarpOp::Rejoin);
        if !traced || self.barrier >= group.point {
            return false;
        }
        let [waits, passes] = [self.at_barrier, group.lanes].map(|lanes| lanes.trailing_zeros() as usize);
        let file = |lane: usize| cells.site[lane].get().map(|site| site.file());
        cells.calls[waits].get().depth > 0 || file(waits) == file(passes)
    }

    pub(super) fn diverged_at_barrier(&self, cells: &WarpCells) -> SimError {
        SimError::BarrierDivergence { block: self.block, warp: self.number, waiting: self.waiting(cells) }
    }

    /// Returns the error of lanes that wait for lanes that cannot arrive.
    pub(super) fn stuck(&self, cells: &WarpCells) -> SimError {
        let candidates = self.live & !self.at_barrier;
        for lane in bits(candidates) {
            let (op, site) = (cells.op[lane].get(), cells.site[lane].get());
            let (Some(mask), Some(site)) = (op_mask(op), site) else { continue };
            let other = bits(mask & candidates).find(|&other| {
                let there = cells.op[other].get();
                cells.site[other].get() == Some(site)
                    && core::mem::discriminant(&there) == core::mem::discriminant(&op)
                    && op_mask(there) != Some(mask)
            });
            if let Some(other) = other {
                return SimError::MasksDiffer {
                    place: self.place(lane),
                    op,
                    site,
                    mask,
                    other_lane: other as u32,
                    other_mask: op_mask(cells.op[other].get()).unwrap_or(0),
                };
            }
        }
        if self.at_barrier != 0 {
            return self.diverged_at_barrier(cells);
        }
        SimError::Deadlock { block: self.block, warp: self.number, waiting: self.waiting(cells) }
    }

    /// Returns the live lanes, grouped by the operation at which they wait.
    pub(crate) fn waiting(&self, cells: &WarpCells) -> Vec<Waiting> {
        let mut groups: Vec<Waiting> = Vec::new();
        for lane in bits(self.live) {
            let Some(site) = cells.site[lane].get() else { continue };
            let op = cells.op[lane].get();
            let same = |group: &&mut Waiting| {
                group.site == site
                    && core::mem::discriminant(&group.op) == core::mem::discriminant(&op)
                    && op_mask(group.op) == op_mask(op)
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.lanes |= 1 << lane,
                None => groups.push(Waiting { lanes: 1 << lane, op, site }),
            }
        }
        groups
    }

    pub(super) fn failed(&self, cells: &WarpCells, lane: usize, failure: Failure) -> SimError {
        let place = self.place(lane);
        match failure {
            Failure { message, location: Some(location), panicked: false } => {
                SimError::Failed { place, message, location }
            }
            Failure { message, location, .. } => {
                SimError::Panicked { place, message, location, last_op: cells.site[lane].get() }
            }
        }
    }

    pub(super) fn place(&self, lane: usize) -> ThreadPlace {
        ThreadPlace { block: self.block, warp: self.number, lane: lane as u32 }
    }
}
