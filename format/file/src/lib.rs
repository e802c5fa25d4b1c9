//! The shared contract between the parts of warptrace.
//!
//! It defines the [`Event`], the [`chunk`] header, the codecs, and, with the feature `std`, the layout of a
//! `.wtrc` file. Without `std` it does not allocate and compiles for `nvptx64-nvidia-cuda`.
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
mod pattern;
#[cfg(feature = "std")]
mod shown;
pub mod span;

pub use counting::Counting;
pub use event::{Event, LANES, RAW_EVENT_BYTES};
pub use location::{LocationKind, SourceLocation};
pub use memory::{Memory, SliceMemory};
#[cfg(feature = "std")]
pub use pattern::fits;
#[cfg(feature = "std")]
pub use shown::{on_one_line, shown, shown_lines};
