//! Progress bars, drawn on stderr where that is a terminal (indicatif sees to it).

use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};
use warptrace_host::ProgressHook;

fn bar(template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("a constant template");
    ProgressBar::new(0).with_style(style)
}

/// A bar over blocks of a simulated launch, and the hook that moves it.
pub(crate) fn blocks() -> (ProgressBar, ProgressHook) {
    let bar =
        bar("{msg:>12} [{bar:40}] {human_pos}/{human_len} blocks, {eta} left").with_message("simulating");
    let moved = bar.clone();
    let hook: ProgressHook = Arc::new(move |progress: warptrace_host::Progress| {
        moved.set_length(progress.blocks);
        moved.set_position(progress.blocks_done);
    });
    (bar, hook)
}

/// A bar over events.
pub(crate) fn events(message: &'static str, total: u64) -> ProgressBar {
    let bar = bar("{msg:>12} [{bar:40}] {human_pos}/{human_len} events, {eta} left").with_message(message);
    bar.set_length(total);
    bar
}
