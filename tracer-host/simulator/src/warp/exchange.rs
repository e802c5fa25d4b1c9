//! Operations that exchange data between the lanes of a group.

use warptrace_device::simt::host::WarpOp;

use super::{Group, Warp, answer, bits};
use crate::context::{LANES, WarpCells};
use crate::error::SimError;

impl Warp {
    /// Executes a ballot, shuffle, match or `sync_warp`; other operations exchange no data.
    pub(super) fn exchange(&self, cells: &WarpCells, group: Group) -> Result<(), SimError> {
        match group.op {
            WarpOp::SyncWarp { mask } => answer(cells, group.lanes, mask),
            WarpOp::Ballot { .. } => {
                let votes =
                    select(cells, group.lanes, |op| matches!(op, WarpOp::Ballot { predicate: true, .. }));
                answer(cells, group.lanes, votes);
            }
            WarpOp::MatchAny { .. } => {
                for lane in bits(group.lanes) {
                    let own = cells.op[lane].get();
                    // The group's masks are equal, so equal operations have equal values.
                    cells.answer[lane].set(select(cells, group.lanes, |op| op == own));
                }
            }
            WarpOp::Shuffle { .. } => {
                for lane in bits(group.lanes) {
                    self.shuffle(cells, group.lanes, lane)?;
                }
            }
            WarpOp::Converge
            | WarpOp::Rejoin
            | WarpOp::Located { .. }
            | WarpOp::Join
            | WarpOp::SyncThreads
            | WarpOp::Yield => {}
        }
        Ok(())
    }

    fn shuffle(&self, cells: &WarpCells, lanes: u32, lane: usize) -> Result<(), SimError> {
        let (WarpOp::Shuffle { mask, source, .. }, Some(site)) =
            (cells.op[lane].get(), cells.site[lane].get())
        else {
            return Ok(());
        };
        let from = source % LANES as u32;
        match cells.op[from as usize].get() {
            WarpOp::Shuffle { value, .. } if lanes & (1 << from) != 0 => {
                cells.answer[lane].set(value);
                Ok(())
            }
            _ => {
                let left = mask & (1 << from) != 0;
                Err(SimError::ShuffleSource { place: self.place(lane), site, mask, from, left })
            }
        }
    }
}

fn select(cells: &WarpCells, lanes: u32, chosen: impl Fn(WarpOp) -> bool) -> u32 {
    bits(lanes).filter(|&lane| chosen(cells.op[lane].get())).fold(0, |mask, lane| mask | 1 << lane)
}
