//! The arguments of slices.

use super::messages::DebugAnnotation;

/// Names of arguments, by iid, from 1.
pub(super) const ARGUMENTS: [&str; 12] = [
    "lanes",
    "mask",
    "count",
    "location",
    "file",
    "line",
    "events",
    "why",
    "launch",
    "cycles",
    "ended on SM",
    "gap before the launch (ns)",
];
pub(super) const LANES: u64 = 1;
pub(super) const MASK: u64 = 2;
pub(super) const COUNT: u64 = 3;
pub(super) const LOCATION: u64 = 4;
pub(super) const FILE: u64 = 5;
pub(super) const LINE: u64 = 6;
pub(super) const EVENTS: u64 = 7;
pub(super) const WHY: u64 = 8;
pub(super) const LAUNCH: u64 = 9;
pub(super) const CYCLES: u64 = 10;
pub(super) const ENDED_ON: u64 = 11;
pub(super) const GAP: u64 = 12;

pub(super) fn number(name_iid: u64, value: u64) -> DebugAnnotation {
    DebugAnnotation { name_iid: Some(name_iid), uint_value: Some(value), ..DebugAnnotation::default() }
}
