//! Progress on stderr, where that is a terminal (indicatif sees to it).

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over `total` steps.
pub(crate) fn steps(total: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("[{elapsed_precise}] [{bar:30}] {pos}/{len} {wide_msg}")
        .expect("a constant template");
    ProgressBar::new(total).with_style(style)
}
