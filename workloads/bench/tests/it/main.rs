//! All integration tests of this package, in one binary.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

mod faults;
mod files;
mod fixtures;
mod formulas;
#[path = "../../../../cli/tool/tests/it/golden.rs"]
mod golden;
mod interrupted;
mod losses;
mod quick;
mod record;
mod support;
mod window;
mod window_streamed;
