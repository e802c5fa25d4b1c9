//! A maximal independent set by priorities, without rounds.
//!
//! Luby's idea (1986): a node joins when it ranks above all its undecided neighbours. The ranks favour low
//! degrees and are fixed at the start, and no thread waits for a round to end, as in Burtscher, Devale,
//! Azimi, Jaiganesh, Powers, "A High-Quality and Fast Maximal Independent Set Implementation for GPUs"
//! (2018): a status word only ever goes from undecided to in or out, so that a stale read can delay a node
//! but not mislead it. Ranks are unique (the node's number breaks ties), so the set is the greedy one by
//! rank, whatever the order in which threads run.
//!
//! The graph is symmetric and without self-loops; repeated arcs do no harm.

use warptrace_device::{Global, atomic, simt};
use warptrace_macros::kernels;

use crate::hash::scramble;

/// Status of a node outside the set. Below every rank.
pub const OUT: u32 = 0;
/// Status of a node in the set. Above every rank.
pub const IN: u32 = u32::MAX - 1;
/// Set in the status of undecided nodes, whose status is their rank.
const UNDECIDED_BIT: u32 = 1;
/// Steps that ranks distinguish; a power of two, so that scaling is exact.
const RANKS: f32 = 16_777_216.0;

/// Status of an undecided node, which is its rank: `average / (average + degree - h)` in 2^24 steps, where h
/// in [0, 1) is the node's number scrambled. Odd.
///
/// `degree` is at least 1 and `average`, the average degree, above 0. Only operations that IEEE 754 rounds
/// exactly, so every device computes the same ranks.
#[inline(always)]
pub fn rank(node: u32, degree: u32, average: f32) -> u32 {
    const TO_UNIT: f32 = 1.0 / 4_294_967_296.0;
    let spread = degree as f32 - scramble(node) as f32 * TO_UNIT;
    let share = average / (average + spread);
    ((share * RANKS) as u32) << 1 | UNDECIDED_BIT
}

#[kernels(device = warptrace_device, only_marked, automatic = 1)]
mod kernels {
    use super::*;

    /// Gives each node its first status: a rank, or `IN` if it has no neighbours.
    ///
    /// `offsets` are the graph's row offsets (nodes + 1), `status` has one word a node, `average` is the
    /// average degree. One-dimensional grid of any size; nodes + threads is at most 2^32 - 1.
    #[kernel]
    pub fn mis_init(offsets: Global<u32>, status: Global<u32>, average: f32) {
        trace!("INIT_ENTER");
        let nodes = status.len() as u32;
        let stride = simt::grid_threads_x();
        let mut node = simt::global_thread_x();
        while node < nodes {
            trace!("INIT_NODE");
            let row = u64::from(node);
            // SAFETY: one offset more than nodes; nothing writes them.
            let degree = unsafe { offsets.get(row + 1) - offsets.get(row) };
            let first = if degree == 0 {
                trace!("INIT_ISOLATED");
                IN
            } else {
                trace!("INIT_RANKED");
                rank(node, degree, average)
            };
            // SAFETY: no two threads have the same node.
            unsafe { status.set(row, first) };
            node += stride;
        }
        trace!("INIT_DONE");
    }

    /// Decides nodes until no node waits, or `patience` passes in a row decided no node of the thread.
    ///
    /// `offsets` (nodes + 1) and `neighbours` are the graph's rows, `status` is what `mis_init` or a launch
    /// before wrote. Threads that gave up are counted in `waiting[0]`; the host launches again until none
    /// does. So a grid of any size finishes, although a thread may wait for one whose block has not started.
    /// Every launch decides at least the highest of the undecided nodes. One-dimensional grid; nodes +
    /// threads is at most 2^32 - 1.
    #[kernel]
    pub fn mis_find(
        offsets: Global<u32>,
        neighbours: Global<u32>,
        status: Global<u32>,
        waiting: Global<u32>,
        patience: u32,
    ) {
        trace!("FIND_ENTER");
        let nodes = status.len() as u32;
        let first = simt::global_thread_x();
        let stride = simt::grid_threads_x();
        let mut in_vain = 0;
        loop {
            trace!("PASS");
            let (mut waits, mut decided) = (false, false);
            let mut node = first;
            while node < nodes {
                trace!("NODE");
                let row = u64::from(node);
                // SAFETY: below the number of nodes; statuses are reached by atomics only in this kernel.
                let own = unsafe { atomic::load_u32(status.at(row)) };
                if own & UNDECIDED_BIT == 0 {
                    trace!("DECIDED");
                } else {
                    trace!("UNDECIDED");
                    // SAFETY: one offset more than nodes; nothing writes them.
                    let (begin, end) = unsafe { (offsets.get(row), offsets.get(row + 1)) };
                    let standing = ordered(own, node);
                    // Computed, and not set to `true` where the loop is left: the compiler would then end the
                    // trace of the loop twice, for lanes that are blocked and for those that are not.
                    let mut blocked = false;
                    let mut arc = begin;
                    let mut compared = trace_loop!("COMPARE");
                    while arc < end && !blocked {
                        compared.tick();
                        // SAFETY: arcs of a row, whose neighbours are nodes.
                        let (neighbour, theirs) = unsafe {
                            let neighbour = neighbours.get(u64::from(arc));
                            (neighbour, atomic::load_u32(status.at(u64::from(neighbour))))
                        };
                        blocked = ordered(theirs, neighbour) > standing;
                        arc += 1;
                    }
                    drop(compared);
                    if blocked {
                        trace!("BLOCKED");
                        waits = true;
                    } else {
                        trace!("JOINS");
                        // The neighbours go out first: who sees this node in may rely on nothing else.
                        let mut arc = begin;
                        let mut removed = trace_loop!("REMOVE");
                        while arc < end {
                            removed.tick();
                            // SAFETY: as above.
                            unsafe {
                                let neighbour = neighbours.get(u64::from(arc));
                                atomic::store_u32(status.at(u64::from(neighbour)), OUT);
                            }
                            arc += 1;
                        }
                        drop(removed);
                        trace!("JOINED");
                        // SAFETY: as above.
                        unsafe { atomic::store_u32(status.at(row), IN) };
                        decided = true;
                    }
                }
                node += stride;
            }
            if !waits {
                trace!("FINISHED");
                break;
            }
            in_vain = if decided { 0 } else { in_vain + 1 };
            if in_vain > patience {
                trace!("GAVE_UP" = 18);
                // SAFETY: a counter that this kernel only adds to.
                unsafe { atomic::add_u32(waiting.at(0), 1) };
                break;
            }
            trace!("AGAIN" = 17);
            simt::spin_hint();
        }
    }
}

pub use kernels::*;

/// Status and number in one, so that one comparison orders nodes with ties broken. The order is strict.
#[inline(always)]
fn ordered(status: u32, node: u32) -> u64 {
    u64::from(status) << 32 | u64::from(node)
}
