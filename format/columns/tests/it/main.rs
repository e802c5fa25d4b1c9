//! Integration tests of the package.

mod common;
mod reference;
mod round_trip;
mod scan;
mod zero_runs;
