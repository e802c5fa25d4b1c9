//! All integration tests of this package, in one binary.

mod codecs;
mod damaged;
mod schedule;
mod set;
mod support;
mod times;
mod whole;
