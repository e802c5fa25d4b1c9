//! Random functions from the build script: [`traced`] with `#[warptrace::kernels]`, [`plain`] without. Tests
//! compare their results.
#![allow(
    warnings,
    arithmetic_overflow,
    unconditional_panic,
    clippy::all,
    reason = "whatever Rust accepts, however odd: what matters is that it compiles and computes the same"
)]

include!(concat!(env!("OUT_DIR"), "/random.rs"));
