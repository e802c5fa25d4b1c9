//! All integration tests of this package, in one binary.

mod common;
mod reference;
mod round_trip;
mod scan;
mod zero_runs;
