//! What did my warps do? A trace in a terminal: the source with its heat, loops, warps, and one warp run by
//! run.
//!
//! ```text
//! keys ──┐
//!        ├─ App (what is shown) ── draw ── terminal
//! Worker ┘    │
//!   ▲         └─ requests: figures of a kernel, the runs of a warp
//!   └──────────────────┘
//! ```
//!
//! Everything shown comes from `warptrace-analysis`. The screen is there at once; figures fill in while a
//! thread reads the trace. `docs/users/tui.md` is the page for users.

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
