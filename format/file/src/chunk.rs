//! Chunks: the blocks of memory that hold a warp's encoded stream. In device memory, a chunk has
//! `PoolDescriptor::chunk_bytes` bytes, all fields little-endian:
//! ```text
//! offset  size  field
//!      0     4  warp      linear index of the warp in its launch
//!      4     4  sequence  0 for the warp's first chunk on this track, then +1
//!      8     4  events    events encoded in the payload
//!     12     4  length    payload bytes that are valid
//!     16     4  launch    number of the launch, as the host set it in the descriptor
//!     20     4  track     0 is the trace; 1 its raw twin, or addresses and values
//!     24     4  runs      runs whose times are in the payload, plus [`SPLIT`] if one is split; 0 without times
//!     28     4  padding   bytes between the encoded events and the times; on the track of addresses and
//!                         values the number of the stream, counted over all launches
//!     32     …  payload
//! ```
//!
//! The payload begins with the encoded events. If times are recorded, 0 to 7 bytes of padding follow, up to a
//! multiple of 8, and then 4 bytes for each run of events in the chunk, or [`TIME_BYTES`] if one is split:
//! ```text
//!      0     4  begin of the run, in units of the clock, modulo 2^32
//!      4     4  only with split runs: events of the run in this chunk, if the chunk's next run has the same
//!               event; otherwise 0
//! ```
//!
//! A chunk starts from a fresh codec state, so it decodes without the others. The host skips a chunk with no
//! events and length 0, which was not used. A warp's chunks are in the pool in the order of their sequence.

/// Size of a chunk's header in device memory, in bytes.
pub const CHUNK_HEADER_BYTES: u32 = 32;
/// Maximum size of the time of one run in a chunk, in bytes.
pub const TIME_BYTES: u32 = 8;
/// Added to a header's `runs` if two consecutive runs have the same event: times then have [`TIME_BYTES`].
pub const SPLIT: u32 = 1 << 31;
/// Smallest chunk size of a pool, in bytes, header included.
pub const MIN_CHUNK_BYTES: u32 = 512;
/// Default chunk size, in bytes.
pub const DEFAULT_CHUNK_BYTES: u32 = 4096;
/// Largest chunk size of a pool, in bytes, header included.
pub const MAX_CHUNK_BYTES: u32 = 1 << 20;

/// Header at the start of each chunk in device memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ChunkHeader {
    /// Linear index of the warp in its launch.
    pub warp: u32,
    /// Position of this chunk in the warp's stream, from 0.
    pub sequence: u32,
    /// Events in the payload.
    pub events: u32,
    /// Valid payload bytes, times included; 0 while the chunk is being written.
    pub length: u32,
    /// Launch number.
    pub launch: u32,
    /// Track: 0 is the trace, 1 its raw twin, or addresses and values.
    pub track: u32,
    /// Runs whose times are in the payload, plus [`SPLIT`] if one is split.
    pub runs: u32,
    /// Bytes between the encoded events and the times. On the track of addresses and values: the stream.
    pub padding: u32,
}

impl ChunkHeader {
    /// Reads the header of a chunk; `None` for fewer than [`CHUNK_HEADER_BYTES`] bytes.
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

/// Returns the bytes of the times of a header's `runs`.
pub const fn bytes_of_times(runs: u32) -> u64 {
    let each = if runs & SPLIT == 0 { TIME_BYTES / 2 } else { TIME_BYTES };
    (runs & !SPLIT) as u64 * each as u64
}

/// Times of the runs in a chunk, as the device writes them.
#[derive(Clone, Copy, Debug)]
pub struct DeviceTimes<'a> {
    bytes: &'a [u8],
    is_split: bool,
}

impl<'a> DeviceTimes<'a> {
    /// `runs` is the header's field, and `bytes` has [`bytes_of_times`] bytes.
    pub const fn new(runs: u32, bytes: &'a [u8]) -> Self {
        Self { bytes, is_split: runs & SPLIT != 0 }
    }

    /// Returns the time of each run, and its events if it is split; otherwise 0.
    pub fn runs(self) -> impl Iterator<Item = (u32, u32)> + 'a {
        let (both, single) = match self.is_split {
            true => (self.bytes.as_chunks::<8>().0, &[][..]),
            false => (&[][..], self.bytes.as_chunks::<4>().0),
        };
        let both = both.iter().map(|&[a, b, c, d, e, f, g, h]| {
            (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]))
        });
        both.chain(single.iter().map(|time| (u32::from_le_bytes(*time), 0)))
    }
}
