//! Frames: chunks of one launch and track, stored together.
//!
//! A `FRAM` body:
//!
//! ```text
//! offset  size  field
//!      0     4  launch
//!      4     4  track
//!      8     4  first warp       lowest warp in the frame
//!     12     4  last warp        highest warp in the frame
//!     16     4  chunks           at least 1
//!     20     1  compression      0 none, 1 zstd
//!     21     3  zero
//!     24     8  events           in all chunks
//!     32     4  plain bytes      length of the contents before compression
//!     36     4  header checksum  CRC-32 of the 36 bytes before
//!     40     …  contents, compressed or not
//! ```
//!
//! The contents are a table with 16 bytes a chunk, then the payloads in the same order, with nothing between:
//!
//! ```text
//!      0     4  warp             linear index in the launch
//!      4     4  sequence         position of the chunk in the warp's stream, from 0
//!      8     4  events           at least 1
//!     12     4  length           payload bytes, at least 1
//! ```
//!
//! The table is sorted by warp, then by sequence. The fixed part has a checksum of its own so that an index can be
//! rebuilt from it without reading the contents.

mod compression;
mod contents;
mod encode;
mod header;

pub use compression::{Compression, StoredAs};
pub(super) use compression::{compress, decompress};
pub use contents::{Chunk, Frame};
pub use encode::{ChunkRef, EncodedFrame, encode_frame};
pub use header::{CHUNK_ENTRY_BYTES, ChunkEntry, FRAME_HEADER_BYTES, FrameHeader};

/// Name of the section in errors.
const SECTION: &str = "FRAM";

#[cfg(test)]
mod tests;
