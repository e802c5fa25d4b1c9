//! What host, traced kernels and encoders of one release agree on, and no file holds.
//!
//! What a traced kernel records ([`recording`]), logs that lanes write ([`log`], [`data`] for addresses and values, and [`stream`] where the
//! host empties them while a kernel runs), the memory that the encoder works in ([`pool`]), what
//! `warptrace run` says to the library that it loads ([`run`]), shared memory ([`shared`]), and the comments
//! in PTX that stand for trace points ([`mod@marker`]). All of it may change with each release: both sides
//! are built together. What a `.wtrc` file holds is in `warptrace_format`, and does not change.
//!
//! The crate allocates nothing and compiles for `nvptx64-nvidia-cuda`.
#![cfg_attr(not(test), no_std)]

pub mod data;
pub mod log;
pub mod marker;
pub mod pool;
pub mod recording;
pub mod run;
pub mod shared;
pub mod stream;
