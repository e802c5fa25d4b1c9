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
