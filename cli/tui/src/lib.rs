//! Shows a trace in a terminal: source with heat, loops, warps, blocks, and the runs of one warp.
//!
//! ```text
//! keys ──┐
//!        ├─ App (state) ── draw ── terminal
//! Worker ┘    │
//!   ▲         └─ requests: figures of a kernel, runs of a warp, blocks of a launch
//!   └──────────────────┘
//! ```
//!
//! All figures come from `warptrace-analysis`. The source is shown at once, and figures fill in while a
//! thread reads the trace. `docs/users/tui.md` is the user documentation.

mod app;
mod columns;
mod draw;
mod error;
mod keys;
mod source;
mod strip;
mod terminal;
#[cfg(test)]
mod tests;
mod text;
mod work;

pub use error::TuiError;
pub use terminal::{Options, check_terminal, run};
