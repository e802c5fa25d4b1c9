//! All integration tests of this package, in one binary.

mod accesses;
mod tables;
