//! What is told of a kernel that was interrupted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A kernel that had not ended when a session was interrupted. All that had come of it is in the file, which
/// is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interrupted {
    /// The kernel.
    pub kernel: String,
    /// Number of the launch.
    pub launch: u32,
    /// Warps of the launch that were recorded.
    pub warps: u32,
    /// Warps that had not ended, in their order.
    pub running: Vec<Standing>,
}

/// Where a warp stood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The warp's number in the launch.
    pub warp: u32,
    /// Lanes that had not left the kernel.
    pub lanes: u32,
    /// The last run that lanes of the warp had left: location and mask; none if they had left none.
    pub last: Option<(u16, u32)>,
    /// The runs that its lanes were in, by their beginnings: groups that had parted are in different ones.
    /// None if the recording is not [post-mortem](crate::RecordingSpec::post_mortem), and none of lanes that
    /// were in none or whose run others had left.
    pub open: Vec<OpenRun>,
}

/// A run that had not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenRun {
    /// Its location.
    pub location: u16,
    /// Its lanes.
    pub mask: u32,
    /// This many events it had at least, and less than twice as many.
    pub count: u32,
}

/// Asks a session to end in the middle of a kernel.
pub(super) struct Interrupt {
    pub(super) asked: Arc<AtomicBool>,
    pub(super) tell: Box<dyn FnMut(&Interrupted)>,
}

impl Interrupt {
    pub(super) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}
