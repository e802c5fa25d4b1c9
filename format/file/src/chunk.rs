//! Chunks: the pieces in which a warp hands over its stream.
//!
//! In device memory a chunk is `PoolDescriptor::chunk_bytes` long:
//!
//! ```text
//! offset  size  field
//!      0     4  warp      linear index of the warp in its launch
//!      4     4  sequence  0 for the warp's first chunk on this track, then +1
//!      8     4  events    events encoded in the payload
//!     12     4  length    payload bytes that are valid
//!     16     4  launch    number of the launch, as the host set it in the descriptor
//!     20     4  track     0 is the trace; 1 is the raw twin of a dual recording
//!     24     4  runs      how many of them the payload has times of; 0 without times
//!     28     4  padding   bytes between the encoded events and the times
//!     32     …  payload
//! ```
//!
//! The payload is the encoded events. Where times are recorded, 0 to 7 bytes follow, up to a multiple of 8,
//! and [`TIME_BYTES`] for each run of events in the chunk:
//!
//! ```text
//!      0     4  when the run began, in units of the clock, modulo 2^32
//!      4     4  how many of its events are in this chunk, if the next run of the chunk is of the same event; else 0
//! ```
//!
//! All little-endian. A chunk starts from a fresh codec state, so each decodes without the others. A chunk
//! with no events and length 0 was claimed and not used; the host passes it over. A warp's chunks lie in the
//! pool in the order of their sequence.

/// Bytes of a chunk's header in device memory.
pub const CHUNK_HEADER_BYTES: u32 = 32;
/// Bytes that the time of a run takes in a chunk.
pub const TIME_BYTES: u32 = 8;
/// Smallest chunk a pool may use, header included.
pub const MIN_CHUNK_BYTES: u32 = 512;
/// Chunk size when nothing else is asked for.
pub const DEFAULT_CHUNK_BYTES: u32 = 4096;
/// Largest chunk a pool may use, header included.
pub const MAX_CHUNK_BYTES: u32 = 1 << 20;

/// The header at the start of each chunk in device memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ChunkHeader {
    /// Linear index of the warp in its launch: linear block index times warps per block, plus warp in block.
    pub warp: u32,
    /// Position of this chunk in the warp's stream, from 0.
    pub sequence: u32,
    /// Events in the payload.
    pub events: u32,
    /// Valid payload bytes, times included; 0 while the chunk is being written.
    pub length: u32,
    /// Launch number.
    pub launch: u32,
    /// Track: 0 is the trace, 1 the raw twin of a dual recording.
    pub track: u32,
    /// Runs whose times are in the payload.
    pub runs: u32,
    /// Bytes between the encoded events and the times.
    pub padding: u32,
}

impl ChunkHeader {
    /// Reads a header from the first [`CHUNK_HEADER_BYTES`] bytes of a chunk; `None` if fewer are given.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let word =
            |at: usize| -> Option<u32> { Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?)) };
        Some(Self {
            warp: word(0)?,
            sequence: word(4)?,
            events: word(8)?,
            length: word(12)?,
            launch: word(16)?,
            track: word(20)?,
            runs: word(24)?,
            padding: word(28)?,
        })
    }
}

const _: () = assert!(size_of::<ChunkHeader>() == CHUNK_HEADER_BYTES as usize);
