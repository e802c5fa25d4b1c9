//! Warps that did not finish.

use serde::Serialize;

/// A warp that did not finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct StandingWarp {
    /// Number of the launch.
    pub launch: u32,
    /// Linear index of the warp in the launch.
    pub warp: u32,
}

/// Warps that did not finish, and go round the same loop; of those that go round none: that have their last
/// event at the same location, or have none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// Name of the kernel.
    pub kernel: String,
    /// Head of the loop: of those that the lanes of the last event have come back in the one with the most
    /// trips.
    pub head: Option<u16>,
    /// Trips so far of the warp that made the fewest; 0 without a loop.
    pub trips: u64,
    /// Number of the event, from 0, with which the last warp to come into the loop did so: none has left
    /// since. 0 without a loop.
    pub since: u64,
    /// Locations of their last events, most warps first; empty if they have none.
    pub last: Vec<StandingAt>,
    /// Locations of the last events of their lanes that are not in their last event, most lanes first:
    /// perhaps who is waited for. [`Point::BEGIN`](super::Point::BEGIN): lanes without any event.
    pub others: Vec<StandingLanes>,
    /// The barrier of their block at which most of them have their last event, if one is there.
    pub waits_at: Option<u16>,
    /// Where warps of the same blocks are that did not finish either, and whose last event is at no place of
    /// that barrier: most warps first. Of a barrier whose number is not known, at another place than this one.
    pub not_come: Vec<NotCome>,
    /// How many warps.
    pub warps: u64,
    /// The first of them.
    pub first: StandingWarp,
}

/// Warps whose last event is at a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StandingAt {
    /// The location.
    pub location: u16,
    /// How many warps.
    pub warps: u64,
}

/// Warps that have not come to a barrier at which others of their block wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NotCome {
    /// The location of their last event.
    pub location: u16,
    /// How many warps.
    pub warps: u64,
    /// The first of them.
    pub first: StandingWarp,
}

/// Lanes whose last event is at a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StandingLanes {
    /// The location.
    pub location: u16,
    /// How many lanes.
    pub lanes: u64,
}
