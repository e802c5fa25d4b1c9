use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A kernel that had not ended when a session was interrupted. The file is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interrupted {
    /// The kernel.
    pub kernel: String,
    /// The launch number.
    pub launch: u32,
}

pub(super) struct Interrupt {
    pub(super) asked: Arc<AtomicBool>,
    pub(super) tell: Box<dyn FnMut(&Interrupted)>,
}

impl Interrupt {
    pub(super) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}
