//! Observations of the interpreter.

use std::collections::BTreeMap;

use crate::splice::Marker;

/// Arrival of a group at a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkerEvent {
    /// Index of the warp in the launch: blocks in the order x, y, z, and the warps of each block.
    pub warp: u32,
    /// Lanes of the group.
    pub mask: u32,
    /// The marker.
    pub marker: Marker,
}

/// A lane's access at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Index of the warp in the launch, as in [`MarkerEvent`].
    pub warp: u32,
    /// The lane.
    pub lane: u32,
    /// The site.
    pub site: u16,
    /// The address or the value.
    pub value: u64,
}

/// Execution counts of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executions {
    /// By groups of a warp.
    pub groups: u64,
    /// By lanes.
    pub lanes: u64,
}

/// Observations of a launch, except its writes to memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Markers that groups reached, in execution order.
    pub markers: Vec<MarkerEvent>,
    /// Accesses at sites, in execution order.
    pub accesses: Vec<Access>,
    /// Executions of `pmevent.mask`, by its operand.
    pub performance_events: BTreeMap<u64, Executions>,
    /// Executions of instructions except `pmevent`, by line (from 1). Lanes with a false guard count too.
    pub lines: BTreeMap<usize, Executions>,
    /// Number of instructions that groups executed.
    pub steps: u64,
    /// Number of splits of groups.
    pub splits: u64,
    /// Number of joins of two groups.
    pub joins: u64,
    /// Shared memory of a block in bytes, declared and dynamic.
    pub shared_bytes: u64,
}
