//! What the interpreter saw.

use std::collections::BTreeMap;

use crate::splice::Marker;

/// A group came to a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkerEvent {
    /// Index of the warp in the launch: blocks in the order x, y, z, and in each block its warps.
    pub warp: u32,
    /// Lanes of the group.
    pub mask: u32,
    /// The marker.
    pub marker: Marker,
}

/// A lane's access at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Index of the warp in the launch, as of a [`MarkerEvent`].
    pub warp: u32,
    /// The lane.
    pub lane: u32,
    /// The site.
    pub site: u16,
    /// The address, or the value.
    pub value: u64,
}

/// How often an instruction was executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executions {
    /// By groups of a warp.
    pub groups: u64,
    /// By lanes.
    pub lanes: u64,
}

/// What a launch did, beside what it wrote to memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The markers that groups came to, in the order in which they did.
    pub markers: Vec<MarkerEvent>,
    /// The accesses at sites, in the order in which they were made.
    pub accesses: Vec<Access>,
    /// Executions of `pmevent.mask`, by its operand.
    pub performance_events: BTreeMap<u64, Executions>,
    /// Executions of instructions, `pmevent` aside, by their line in the text, from 1. A lane whose guard
    /// does not hold counts as one that executes the instruction.
    pub lines: BTreeMap<usize, Executions>,
    /// Instructions that groups executed.
    pub steps: u64,
    /// How often a group split.
    pub splits: u64,
    /// How often two groups joined.
    pub joins: u64,
    /// Bytes of shared memory of a block, all declarations and dynamic memory.
    pub shared_bytes: u64,
}
