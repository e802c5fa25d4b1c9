//! Hard bounds of the format. A file that passes one of them is refused, so that a reader's memory is bounded
//! whatever the length fields of a file say.

/// Longest body of any section, known or not: 32 MiB.
pub const MAX_SECTION_BYTES: u64 = 32 << 20;
/// Longest metadata body: 16 MiB.
pub const MAX_METADATA_BYTES: u64 = 16 << 20;
/// Kernels that a file may name.
pub const MAX_KERNELS: usize = 4096;
/// Locations that a file may describe: every id but 0.
pub const MAX_LOCATIONS: usize = 65_535;
/// Free-form properties that a file may carry.
pub const MAX_PROPERTIES: usize = 4096;
/// Largest frame in bytes (16 MiB): its table and its distinct payloads before compression, and also 16 bytes
/// and the payload for each chunk, so that a frame of equal chunks does not unfold to more.
pub const MAX_FRAME_BYTES: u32 = 16 << 20;
/// Chunks of a frame.
pub const MAX_FRAME_CHUNKS: u32 = 1 << 18;
/// Runs of a frame whose times are in the file.
pub const MAX_FRAME_RUNS: u32 = MAX_FRAME_BYTES / crate::chunk::TIME_BYTES;
/// Largest payload of one chunk in bytes: the largest chunk of a pool without its header.
pub const MAX_PAYLOAD_BYTES: u32 = crate::chunk::MAX_CHUNK_BYTES - crate::chunk::CHUNK_HEADER_BYTES;
/// Bytes of the message of a launch that failed.
pub const MAX_MESSAGE_BYTES: usize = 4096;
/// Launches of a file that did not run to their end.
pub const MAX_EARLY_ENDS: usize = 1024;
/// Ranges of warps that a launch which still ran names with their positions.
pub const MAX_WARP_RANGES: usize = 1 << 16;
/// Bytes of the name of a kept text.
pub const MAX_TEXT_NAME_BYTES: usize = 4096;
/// Texts that launches of a file are labelled with.
pub const MAX_LABELS: usize = 65_536;
/// Bytes of such a text.
pub const MAX_LABEL_BYTES: usize = 1024;
/// Kernels, each with a reason, of which a file tells that launches were not recorded,
pub const MAX_UNRECORDED: usize = 65_536;
/// notes on what was recorded,
pub const MAX_UNRECORDED_NOTES: usize = 1024;
/// and bytes of a text of these.
pub const MAX_UNRECORDED_TEXT_BYTES: usize = 1024;
/// Frames of all call stacks in a file.
pub const MAX_STACK_FRAMES: usize = 65_536;
/// Call stacks in a file.
pub const MAX_STACKS: usize = 262_144;
/// Frames of one call stack.
pub const MAX_STACK_DEPTH: usize = 32;
/// Bytes of a function or file name in a call stack.
pub const MAX_STACK_TEXT_BYTES: usize = 1024;
/// Bytes of a text that tells where a file was recorded.
pub const MAX_ORIGIN_TEXT_BYTES: usize = 1024;
/// Sentences on what was wrong with that.
pub const MAX_ORIGIN_NOTES: usize = 16;
/// Buffers of a file.
pub const MAX_BUFFERS: usize = 1 << 18;
/// Bytes of a buffer's name.
pub const MAX_BUFFER_NAME_BYTES: usize = 1024;
/// Largest window of a zstd frame: 128 MiB, what readers of zstd take unless they are told otherwise.
pub const MAX_ZSTD_WINDOW: u64 = 1 << 27;
/// Bytes of a kept text before compression: 64 MiB.
pub const MAX_TEXT_BYTES: usize = 64 << 20;
/// Warps in one accounting section.
pub const MAX_ACCOUNTS: u32 = 65_536;
/// Parts of warps' streams in one section of addresses and values,
pub const MAX_PIECES: u32 = 65_536;
/// and their headers and runs.
pub const MAX_DATA_ENTRIES: u32 = 1 << 19;
/// Launches in one section of the host's times.
pub const MAX_HOST_LAUNCHES: u32 = 65_536;
/// Readings of clocks in one such section, and in all of them together.
pub const MAX_HOST_READINGS: u32 = 64;
/// Entries in one index section.
pub const MAX_INDEX_ENTRIES: u32 = 65_536;
/// Sections that an index may list in all (launches, frames and accounting sections together). At the usual
/// frame size of 256 KiB this is 1 TiB of chunks; larger frames reach further.
pub const MAX_INDEXED_SECTIONS: u32 = 1 << 22;
/// Largest number of threads in a block.
pub const MAX_BLOCK_THREADS: u32 = 1024;
