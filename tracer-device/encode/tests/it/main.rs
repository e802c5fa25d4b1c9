//! All integration tests of this package, in one binary.

mod damaged;
mod descriptors;
mod memory;
