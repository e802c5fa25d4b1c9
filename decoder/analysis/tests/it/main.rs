//! All integration tests of this package, in one binary.

mod classes;
mod codecs;
mod damaged;
mod schedule;
#[cfg(feature = "bytes")]
mod set;
mod support;
mod times;
mod warp_runs;
mod whole;
