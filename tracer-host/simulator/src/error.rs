//! Errors of launches.

use std::fmt;
use std::panic::Location;
use std::time::Duration;

use warptrace_device::simt::host::{Site, WarpOp};

/// A thread of a launch, by block, warp and lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadPlace {
    /// Block index in the grid.
    pub block: [u32; 3],
    /// Index of the warp in its block.
    pub warp: u32,
    /// Lane in the warp, 0..32.
    pub lane: u32,
}

impl fmt::Display for ThreadPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { block: [x, y, z], warp, lane } = self;
        write!(f, "block ({x}, {y}, {z}), warp {warp}, lane {lane}")
    }
}

/// A position in the source of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourcePoint {
    /// File name from the compiler.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

impl From<&Location<'_>> for SourcePoint {
    fn from(location: &Location<'_>) -> Self {
        Self { file: location.file().to_owned(), line: location.line(), column: location.column() }
    }
}

impl fmt::Display for SourcePoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Lanes of a warp that wait at the same operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waiting {
    /// Mask of the lanes.
    pub lanes: u32,
    /// The operation; for a ballot, shuffle or match, the operation of the lowest lane.
    pub op: WarpOp,
    /// Position of the operation.
    pub site: Site,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wait = if self.lanes.count_ones() == 1 { "waits" } else { "wait" };
        write!(f, "{} {wait} at {}", Lanes(self.lanes), op_name(self.op))?;
        if let Some(mask) = op_mask(self.op) {
            write!(f, " for {}", Lanes(mask))?;
        }
        write!(f, " ({})", self.site)
    }
}

/// Lanes that left the kernel before others of their warp reached a barrier: no error, but rarely intended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftBefore {
    /// Block index in the grid.
    pub block: [u32; 3],
    /// Index of the warp in its block.
    pub warp: u32,
    /// Mask of the lanes that had left.
    pub lanes: u32,
    /// Position of the barrier.
    pub barrier: Site,
}

impl fmt::Display for LeftBefore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { block, warp, lanes, barrier } = self;
        write!(
            f,
            "{}: {} had left the kernel when the others came to the barrier at {barrier}, which opens without them, on a \
             GPU, too: what they should have done before it is missing; have all threads of a block come to its barriers, \
             and return behind the last one",
            WarpPlace(block, warp),
            Lanes(*lanes)
        )
    }
}

/// Error of a launch: it was rejected, or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// The launch's shape is outside CUDA's limits; see [`limits`](crate::limits).
    #[error("{what} is {value}; it must be {least} to {most}")]
    Shape {
        /// The quantity.
        what: &'static str,
        /// Its value in the launch.
        value: u64,
        /// Minimum.
        least: u64,
        /// Maximum.
        most: u64,
    },
    /// The system provided no memory for the stacks.
    #[error(
        "no memory for the stacks of {lanes} lanes of {stack_bytes} bytes each: {source}; launch fewer lanes at once or lower Simulator::stack_bytes"
    )]
    Stacks {
        /// Lanes resident at once on one thread.
        lanes: u64,
        /// Bytes of a stack.
        stack_bytes: usize,
        /// Error from the system.
        source: std::io::Error,
    },
    /// The launch was requested while this thread unwinds from a panic.
    #[error("a launch was asked for while the thread unwinds from a panic")]
    Unwinding,
    /// The device library ended the launch (`Lane::fail`).
    #[error("{place}: {message} (at {location})")]
    Failed {
        /// The lane.
        place: ThreadPlace,
        /// Message of the device library.
        message: String,
        /// Position of the failure.
        location: SourcePoint,
    },
    /// A lane panicked, for example on an index out of bounds, an overflow or a failed assertion.
    #[error("{place} panicked: {message}{}", AtOrAfter(.location, .last_op))]
    Panicked {
        /// The lane.
        place: ThreadPlace,
        /// The panic's message.
        message: String,
        /// Position of the panic; `None` if another panic hook has replaced the simulator's.
        location: Option<SourcePoint>,
        /// Position of the last operation that the lane reached.
        last_op: Option<Site>,
    },
    /// Lanes of one warp wait at a barrier that other lanes of the warp cannot reach.
    #[error("{}: the warp diverged at a barrier, which is undefined on a GPU: {}; move the barrier out of the branch", WarpPlace(.block, .warp), List(.waiting))]
    BarrierDivergence {
        /// Block index in the grid.
        block: [u32; 3],
        /// Index of the warp in its block.
        warp: u32,
        /// Operations at which its lanes wait.
        waiting: Vec<Waiting>,
    },
    /// Warps of one block wait at different barriers.
    #[error("block ({}, {}, {}): warps wait at different barriers, which is undefined on a GPU: warp {} at {}, warp {} at {}", .block[0], .block[1], .block[2], .first.0, .first.1, .second.0, .second.1)]
    BarrierMismatch {
        /// Block index in the grid.
        block: [u32; 3],
        /// A warp and its barrier.
        first: (u32, Site),
        /// Another warp and its barrier.
        second: (u32, Site),
    },
    /// Lanes wait for lanes of their mask that can never arrive.
    #[error("{}: deadlock: {}; every lane of a mask that has not left the kernel must reach the same operation with the same mask", WarpPlace(.block, .warp), List(.waiting))]
    Deadlock {
        /// Block index in the grid.
        block: [u32; 3],
        /// Index of the warp in its block.
        warp: u32,
        /// Operations at which its lanes wait.
        waiting: Vec<Waiting>,
    },
    /// Lanes reached the same operation with different masks that contain each other.
    #[error("{place}: the masks at {} ({site}) differ: lane {} brought {mask:#010x}, lane {other_lane} brought {other_mask:#010x}", op_name(*.op), .place.lane)]
    MasksDiffer {
        /// A lane.
        place: ThreadPlace,
        /// The operation.
        op: WarpOp,
        /// Position of the operation.
        site: Site,
        /// The lane's mask.
        mask: u32,
        /// A lane of that mask.
        other_lane: u32,
        /// The other lane's mask.
        other_mask: u32,
    },
    /// A lane called an operation with a mask that does not contain it.
    #[error("{place}: is not in its own mask {mask:#010x} of {} ({site})", op_name(*.op))]
    NotInMask {
        /// The lane.
        place: ThreadPlace,
        /// The operation.
        op: WarpOp,
        /// Position of the operation.
        site: Site,
        /// The mask.
        mask: u32,
    },
    /// A shuffle reads from a lane that does not take part.
    #[error("{place}: the shuffle's source, lane {from}, {} ({site})", if *.left { "has left the kernel".to_owned() } else { format!("is outside its mask {mask:#010x}") })]
    ShuffleSource {
        /// The reading lane.
        place: ThreadPlace,
        /// Position of the shuffle.
        site: Site,
        /// The reading lane's mask.
        mask: u32,
        /// The source lane.
        from: u32,
        /// True if the source lane is in the mask but has left the kernel.
        left: bool,
    },
    /// The launch was interrupted ([`Launch::interrupt`](crate::Launch::interrupt)).
    #[error("the launch was interrupted")]
    Interrupted,
    /// All warps that could run only spun for the maximum number of rounds.
    #[error("livelock: in {rounds} rounds every warp that could run only spun; {}: {}; blocks that wait for each other need Interaction::Global", WarpPlace(.block, .warp), List(.waiting))]
    Livelock {
        /// Rounds of all resident warps.
        rounds: u64,
        /// Block index of a spinning warp.
        block: [u32; 3],
        /// Index of the warp in its block.
        warp: u32,
        /// Operations at which its lanes wait.
        waiting: Vec<Waiting>,
    },
    /// The scheduler exceeded the limit on steps.
    #[error("more than {limit} steps; {}: {}; a loop that waits for other threads must call spin_hint, and a kernel that takes longer needs a higher limit (`TraceBuilder::step_limit`, `Watchdog::steps`)", WarpPlace(.block, .warp), List(.waiting))]
    TooManySteps {
        /// The limit.
        limit: u64,
        /// Block index of the warp that exceeded the limit.
        block: [u32; 3],
        /// Index of the warp in its block.
        warp: u32,
        /// Operations at which its lanes wait.
        waiting: Vec<Waiting>,
    },
    /// The launch exceeded the time limit.
    #[error("the launch took longer than {limit:?}; {}: {}", WarpPlace(.block, .warp), List(.waiting))]
    TooLong {
        /// The limit.
        limit: Duration,
        /// Block index of the warp that ran then.
        block: [u32; 3],
        /// Index of the warp in its block.
        warp: u32,
        /// Operations at which its lanes wait.
        waiting: Vec<Waiting>,
    },
}

/// Returns the mask of an operation, if it has one.
pub(crate) fn op_mask(op: WarpOp) -> Option<u32> {
    match op {
        WarpOp::SyncWarp { mask }
        | WarpOp::Ballot { mask, .. }
        | WarpOp::Shuffle { mask, .. }
        | WarpOp::MatchAny { mask, .. } => Some(mask),
        WarpOp::Converge
        | WarpOp::Rejoin
        | WarpOp::Located { .. }
        | WarpOp::Join
        | WarpOp::SyncThreads
        | WarpOp::Yield => None,
    }
}

fn op_name(op: WarpOp) -> &'static str {
    match op {
        WarpOp::Converge => "a trace point or active_mask",
        WarpOp::Rejoin => "the end of a counted loop",
        WarpOp::Located { .. } => "a trace point",
        WarpOp::Join => "the end of a loop's body",
        WarpOp::SyncWarp { .. } => "sync_warp",
        WarpOp::SyncThreads => "sync_threads",
        WarpOp::Ballot { .. } => "ballot",
        WarpOp::Shuffle { .. } => "shuffle",
        WarpOp::MatchAny { .. } => "match_any",
        WarpOp::Yield => "spin_hint",
    }
}

/// Displays a mask as "lane 5" or "lanes 0-15, 20".
struct Lanes(u32);

impl fmt::Display for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.count_ones() == 1 { "lane " } else { "lanes " })?;
        let mut rest = u64::from(self.0);
        let mut separator = "";
        while rest != 0 {
            let first = rest.trailing_zeros();
            let last = first + (rest >> first).trailing_ones() - 1;
            rest &= u64::MAX << (last + 1);
            match last - first {
                0 => write!(f, "{separator}{first}")?,
                _ => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ", ";
        }
        Ok(())
    }
}

struct WarpPlace<'a>(&'a [u32; 3], &'a u32);

impl fmt::Display for WarpPlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([x, y, z], warp) = self;
        write!(f, "block ({x}, {y}, {z}), warp {warp}")
    }
}

struct List<'a>(&'a [Waiting]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, waiting) in self.0.iter().enumerate() {
            write!(f, "{}{waiting}", if at == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

struct AtOrAfter<'a>(&'a Option<SourcePoint>, &'a Option<Site>);

impl fmt::Display for AtOrAfter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            (Some(location), _) => write!(f, " (at {location})"),
            (None, Some(site)) => write!(f, " (after the operation at {site})"),
            (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_read_as_ranges() {
        assert_eq!(Lanes(0b1_0000_1111).to_string(), "lanes 0-3, 8");
        assert_eq!(Lanes(1 << 31).to_string(), "lane 31");
        assert_eq!(Lanes(u32::MAX).to_string(), "lanes 0-31");
    }
}
