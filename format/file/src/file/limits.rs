//! Limits of the format. Readers reject a file that exceeds one of them, so their memory is bounded.

/// Maximum body size of any section, known or not: 32 MiB.
pub const MAX_SECTION_BYTES: u64 = 32 << 20;
/// Maximum size of the metadata body: 16 MiB.
pub const MAX_METADATA_BYTES: u64 = 16 << 20;
/// Maximum number of kernels in a file.
pub const MAX_KERNELS: usize = 4096;
/// Maximum number of locations in a file: every id except 0.
pub const MAX_LOCATIONS: usize = 65_535;
/// Maximum number of properties in a file.
pub const MAX_PROPERTIES: usize = 4096;
/// Maximum size of a frame: 16 MiB, both for the contents before compression and for the sum of 16 bytes plus
/// the payload for each chunk, so that a frame of equal chunks does not expand to more.
pub const MAX_FRAME_BYTES: u32 = 16 << 20;
/// Maximum number of chunks in a frame.
pub const MAX_FRAME_CHUNKS: u32 = 1 << 18;
/// Maximum number of runs with times in a frame.
pub const MAX_FRAME_RUNS: u32 = MAX_FRAME_BYTES / crate::chunk::TIME_BYTES;
/// Maximum payload size of a chunk, in bytes: the largest chunk of a pool without its header.
pub const MAX_PAYLOAD_BYTES: u32 = crate::chunk::MAX_CHUNK_BYTES - crate::chunk::CHUNK_HEADER_BYTES;
/// Maximum size of the message of a failed launch, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 4096;
/// Maximum number of incomplete launches in a file.
pub const MAX_EARLY_ENDS: usize = 1024;
/// Maximum number of ranges of warps in the positions of an incomplete launch.
pub const MAX_WARP_RANGES: usize = 1 << 16;
/// Maximum size of a source text's name, in bytes.
pub const MAX_TEXT_NAME_BYTES: usize = 4096;
/// Maximum number of label texts in a file.
pub const MAX_LABELS: usize = 65_536;
/// Maximum size of a label, in bytes.
pub const MAX_LABEL_BYTES: usize = 1024;
/// Maximum number of unrecorded kernels, each with a reason, in a file.
pub const MAX_UNRECORDED: usize = 65_536;
/// Maximum number of notes on recorded launches.
pub const MAX_UNRECORDED_NOTES: usize = 1024;
/// Maximum size of a kernel, reason or note of these, in bytes.
pub const MAX_UNRECORDED_TEXT_BYTES: usize = 1024;
/// Frames of all call stacks in a file.
pub const MAX_STACK_FRAMES: usize = 65_536;
/// Call stacks in a file.
pub const MAX_STACKS: usize = 262_144;
/// Frames of one call stack.
pub const MAX_STACK_DEPTH: usize = 32;
/// Bytes of a function or file name in a call stack.
pub const MAX_STACK_TEXT_BYTES: usize = 1024;
/// Maximum size of a text of a file's origin, in bytes.
pub const MAX_ORIGIN_TEXT_BYTES: usize = 1024;
/// Maximum number of notes on a file's origin.
pub const MAX_ORIGIN_NOTES: usize = 16;
/// Maximum number of buffers in a file.
pub const MAX_BUFFERS: usize = 1 << 18;
/// Maximum size of a buffer's name, in bytes.
pub const MAX_BUFFER_NAME_BYTES: usize = 1024;
/// Maximum window of a zstd frame: 128 MiB, the default limit of zstd readers.
pub const MAX_ZSTD_WINDOW: u64 = 1 << 27;
/// Maximum size of a source text before compression: 64 MiB.
pub const MAX_TEXT_BYTES: usize = 64 << 20;
/// Maximum number of warps in an accounting section.
pub const MAX_ACCOUNTS: u32 = 65_536;
/// Maximum number of chunks in a section of addresses and values.
pub const MAX_DATA_CHUNKS: u32 = 65_536;
/// Maximum number of headers and runs in such a section.
pub const MAX_DATA_ENTRIES: u32 = 1 << 19;
/// Maximum number of launches in a section of the host's times.
pub const MAX_HOST_LAUNCHES: u32 = 65_536;
/// Maximum number of clock readings in such a section, and in all of them together.
pub const MAX_HOST_READINGS: u32 = 64;
/// Maximum number of entries in an index section.
pub const MAX_INDEX_ENTRIES: u32 = 65_536;
/// Maximum number of sections in an index: with frames of 256 KiB, 1 TiB of chunks.
pub const MAX_INDEXED_SECTIONS: u32 = 1 << 22;
/// Maximum number of threads in a block.
pub const MAX_BLOCK_THREADS: u32 = 1024;
