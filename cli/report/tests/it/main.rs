//! All integration tests of this package, in one binary.

mod odd_traces;
