//! Frames: chunks of one launch and track, stored together. A `FRAM` body:
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
//! The contents of version 1 are a table, sorted by warp, then by sequence, and the distinct payloads. All
//! numbers are varints (seven bits per byte, the lowest first; the high bit is set on all but the last byte):
//! ```text
//! chunks × warp        minus the warp of the previous chunk; 0 for the first chunk
//! chunks × sequence    minus its least possible value: the previous chunk's plus 1 if it has the same warp,
//!                      otherwise 0
//! chunks × payload     0: the next new payload; n: payload n - 1
//! chunks × events      minus the events of the last chunk with the same payload (0 if none), as zigzag
//! payloads × length    bytes, at least 1
//! payloads × bytes     in order of their first chunk
//! ```
//!
//! Version 2 is for warps with equal streams. A *class* is the list of chunks of such warps, with sequence
//! numbers from 0. A *run* is consecutive warps of one class. The contents are varints, then the payloads:
//! ```text
//! runs                        at least 1
//! runs × gap                  first warp, minus the warp after the previous run; 0 for the first run
//! runs × warps                number of warps, minus 1
//! runs × class                0: the next new class; n: class n - 1
//! classes × chunks            number of chunks, minus 1
//! chunks of classes × events  at least 1
//! chunks of classes × length  bytes of the payload, at least 1
//! chunks of classes × bytes   payloads
//! ```
//!
//! The fixed part has a separate checksum, so that an index can be rebuilt without reading the contents.
//! Columns are separate so that zstd sees similar data together. Payloads keep the order of warps: payload
//! numbers for another order cost more than it saves (`results/at-rest.md`).

mod compression;
mod contents;
mod encode;
mod header;
mod runs;
mod table;

pub use compression::{Compression, RAW_LEVEL, StoredAs};
pub(super) use compression::{compress, decompress};
pub use contents::{Chunk, Frame};
pub use encode::{ChunkRef, Chunks, EncodedFrame, encode_frame, encode_frame_of};
pub use header::{CHUNK_ENTRY_BYTES, ChunkEntry, FRAME_HEADER_BYTES, FrameHeader};
pub(super) use runs::RUNS_VERSION;
pub use runs::{ClassChunk, WarpRun, encode_frame_of_runs};

const SECTION: &str = "FRAM";

#[cfg(test)]
mod tests;
