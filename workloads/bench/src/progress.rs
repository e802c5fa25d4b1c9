//! Progress bar on stderr. indicatif hides it if stderr is not a terminal.

use indicatif::{ProgressBar, ProgressStyle};

pub(crate) fn steps(total: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("[{elapsed_precise}] [{bar:30}] {pos}/{len} {wide_msg}")
        .expect("a constant template");
    ProgressBar::new(total).with_style(style)
}
