//! All integration tests of this package, in one binary.

mod after;
mod automatic;
mod dmr;
mod fractal;
#[cfg(feature = "evaluation")]
mod inputs;
mod matmul;
mod memory_limit;
mod mir;
mod mis;
mod mst;
mod nbody;
mod programs;
mod ptx;
mod sessions;
mod stress;
mod triad;
