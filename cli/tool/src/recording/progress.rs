//! Progress bar over the blocks of a simulated launch.

use std::sync::Arc;

use indicatif::ProgressBar;
use warptrace_host::ProgressHook;

use crate::output;

/// Returns the bar and the hook that advances it.
pub(super) fn blocks() -> (ProgressBar, ProgressHook) {
    let bar = output::progress_bar("simulating", "blocks", 0);
    let moved = bar.clone();
    let hook: ProgressHook = Arc::new(move |progress: warptrace_host::Progress| {
        moved.set_length(progress.blocks);
        moved.set_position(progress.blocks_done);
    });
    (bar, hook)
}
