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
//! The contents of version 1 are a table and the distinct payloads. Chunks of warps that did the same have the same
//! payload, which is stored once. All numbers are varints (seven bits a byte, the lowest first; the high bit
//! says that more follow):
//!
//! ```text
//! chunks × warp        less the warp of the chunk before; of the first chunk 0
//! chunks × sequence    less the least that can stand here: the number after the chunk before if that is of the same
//!                      warp, else 0
//! chunks × payload     0: the next payload that no chunk before has; n: payload n - 1
//! chunks × events      less the events of the last chunk with the same payload (0 if none), as zigzag
//! payloads × length    bytes, at least 1
//! payloads × bytes     in order of their first chunk
//! ```
//!
//! The table is sorted by warp, then by sequence.
//!
//! Version 2 is for warps that repeat. A *class* is the chunks of warps with equal chunks, with sequence numbers
//! from 0 on. A *run* is consecutive warps of one class. The contents are varints and the payloads:
//!
//! ```text
//! runs                        at least 1
//! runs × gap                  first warp of the run, less the warp after the run before; of the first run 0
//! runs × warps                warps of the run, less 1
//! runs × class                0: the next class that no run before has; n: class n - 1
//! classes × chunks            chunks of the class, less 1
//! chunks of classes × events  at least 1
//! chunks of classes × length  bytes of the payload, at least 1
//! chunks of classes × bytes   payloads
//! ```
//!
//! The fixed part has its own checksum, so that an index can be rebuilt from it without reading the contents.
//!
//! Columns stand apart so that zstd sees like with like. Payloads keep the order of warps: sorted by length
//! or content they would compress a little better, but the numbers of the payloads would cost more than that
//! saves (`results/at-rest.md`).

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

/// Name of the section in errors.
const SECTION: &str = "FRAM";

#[cfg(test)]
mod tests;
