//! All integration tests of this package, in one binary.

mod accounting;
mod bad_input;
mod chosen;
mod frame_runs;
mod golden;
mod host;
mod items;
mod losses;
mod reading;
mod spans;
mod support;
mod unrecorded;
mod verify;
