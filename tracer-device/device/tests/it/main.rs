//! All integration tests of this package, in one binary.

mod device_api;
mod math;
mod memory;
