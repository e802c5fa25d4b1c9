//! The contract between the parts of warptrace.
//!
//! Everything that the kernel, the host and the decoder must agree on lives here and nowhere else: what an
//! [`Event`] is, how a [`chunk`] names its stream, the words of the [`pool`] that host and kernel share, the
//! codecs (encoder and decoder in one file each), and, with the feature `std`, the bytes of a `.wtrc` file.
//!
//! Without `std` the crate has no dependency, allocates nothing and compiles for `nvptx64-nvidia-cuda`.
#![cfg_attr(not(feature = "std"), no_std)]

pub mod chosen;
pub mod chunk;
pub mod codec;
pub mod counting;
pub mod event;
#[cfg(feature = "std")]
pub mod file;
pub mod location;
pub mod log;
pub mod memory;
pub mod pool;
pub mod stream;

pub use counting::Counting;
pub use event::{Event, RAW_EVENT_BYTES};
pub use location::{LocationKind, SourceLocation};
pub use memory::{Memory, SliceMemory};
