//! Interfaces between host, traced kernels and encoders of one release.
//!
//! - [`recording`]: the form in which a traced kernel records
//! - [`log`], [`data`], [`stream`]: logs of events, of addresses and values, and logs that the host empties
//! - [`pool`]: the memory in which the encoder works
//! - [`run`]: the interface between `warptrace run` and the library that it loads
//! - [`shared`]: the shared memory of traced kernels
//! - [`mod@marker`]: the comments in PTX that mark trace points
//!
//! Both sides are built together: no layout is in files, and each may change with every release. The stable
//! layout of `.wtrc` files is in `warptrace_format`. The crate compiles for `nvptx64-nvidia-cuda`.
#![cfg_attr(not(test), no_std)]

pub mod data;
pub mod log;
pub mod marker;
pub mod pool;
pub mod recording;
pub mod run;
pub mod shared;
pub mod stream;
