//! The contract between the parts of warptrace.
//!
//! Everything that the kernel, the host and the decoder must agree on lives here and nowhere else: what an
//! [`Event`] is, how a [`chunk`] names its stream, the codecs (encoder and decoder in one file each), and,
//! with the feature `std`, the bytes of a `.wtrc` file.
//!
//! Without `std` the crate has no dependency, allocates nothing and compiles for `nvptx64-nvidia-cuda`.
#![cfg_attr(not(feature = "std"), no_std)]

pub mod account;
pub mod chosen;
pub mod chunk;
pub mod codec;
pub mod counting;
pub mod data;
pub mod event;
#[cfg(feature = "std")]
pub mod file;
pub mod location;
pub mod memory;
mod named;
#[cfg(feature = "std")]
mod shown;
pub mod span;

pub use counting::Counting;
pub use event::{Event, LANES, RAW_EVENT_BYTES};
pub use location::{LocationKind, SourceLocation};
pub use memory::{Memory, SliceMemory};
#[cfg(feature = "std")]
pub use shown::{on_one_line, shown, shown_lines};
