//! All integration tests of this package in one binary: from recording to reading.

mod accesses;
mod additions;
mod ends;
mod figures;
mod golden;
#[path = "../../../../decoder/decode/tests/it/support/mod.rs"]
mod recordings;
mod round_trip;
mod support;
mod traces;
