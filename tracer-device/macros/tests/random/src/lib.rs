//! Random functions, made by the build script: in [`traced`] with `#[warptrace::kernels]`, in [`plain`]
//! without. Their tests compare what they compute.
#![allow(
    warnings,
    arithmetic_overflow,
    unconditional_panic,
    clippy::all,
    reason = "whatever Rust accepts, however odd: what matters is that it compiles and computes the same"
)]

include!(concat!(env!("OUT_DIR"), "/random.rs"));
