use std::io;

use warptrace_format::file::limits::MAX_FRAME_BYTES;
use warptrace_format::file::{FormatError, MetadataError};

/// A misuse of [`TraceWriter`](super::TraceWriter), or an I/O error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A write failed.
    #[error("the trace could not be written at offset {offset}: {source}")]
    Io {
        /// File offset of the write.
        offset: u64,
        /// The system's error.
        source: io::Error,
    },
    /// An earlier write failed, so that the file cannot be continued.
    #[error("an earlier write to this trace failed; what was flushed before it can still be read")]
    Broken,
    /// The metadata is contradictory.
    #[error("the metadata cannot be written: {0}")]
    Metadata(#[from] MetadataError),
    /// A section could not be encoded.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The frame size is out of range.
    #[error("frames of {found} bytes; the size must be 1 to {MAX_FRAME_BYTES}")]
    FrameBytes {
        /// The requested size.
        found: u32,
    },
    /// The index is full.
    #[error(
        "the file would hold more than {limit} sections of launches, frames and accounts; use larger frames or another file"
    )]
    TooManySections {
        /// Maximum number of sections in an index.
        limit: u32,
    },
    /// The launch number was used before.
    #[error("launch {launch} was begun twice; give each launch of a file its own number")]
    LaunchTwice {
        /// The number.
        launch: u32,
    },
    /// An early end of the launch was written before.
    #[error("the early end of launch {launch} was written before; a launch ends once")]
    EndedTwice {
        /// The number.
        launch: u32,
    },
    /// Too many launches ended early.
    #[error("{limit} launches of this file did not run to their end; it cannot tell of more")]
    TooManyEarlyEnds {
        /// Maximum number of early ends in a file.
        limit: usize,
    },
    /// The launch was not begun.
    #[error("launch {launch} is unknown; call begin_launch first")]
    UnknownLaunch {
        /// The number.
        launch: u32,
    },
    /// The metadata has no such kernel.
    #[error("launch {launch} is of kernel {kernel}, but the metadata names {kernels} kernels")]
    UnknownKernel {
        /// The launch.
        launch: u32,
        /// Index of the kernel.
        kernel: u32,
        /// Kernels in the metadata.
        kernels: usize,
    },
    /// The metadata has no such track.
    #[error("launch {launch}: track {track} is not declared; the metadata names {tracks} tracks")]
    UnknownTrack {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// Tracks in the metadata.
        tracks: usize,
    },
    /// The accounts of this launch and track were written already.
    #[error(
        "launch {launch}, track {track}: end_launch was called before; write all chunks first, then end once"
    )]
    TrackEnded {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
    },
    /// The launch has no such warp.
    #[error("launch {launch}, track {track}: chunk of warp {warp}, but the launch has {warps} warps")]
    UnknownWarp {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// The warp.
        warp: u32,
        /// Warps of the launch.
        warps: u32,
    },
    /// The warp exists, but is not recorded.
    #[error("launch {launch}, track {track}: chunk of warp {warp}, which was not chosen")]
    NotChosen {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// The warp.
        warp: u32,
    },
    /// A chunk without events or without bytes.
    #[error("launch {launch}, track {track}, warp {warp}, chunk {sequence} is empty; leave empty chunks out")]
    EmptyChunk {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// The warp.
        warp: u32,
        /// The sequence number.
        sequence: u32,
    },
    /// A payload that is too large for the chunks of this recording.
    #[error(
        "launch {launch}, track {track}, warp {warp}, chunk {sequence} has {bytes} payload bytes; \
         the metadata's chunks hold {capacity}"
    )]
    PayloadTooLarge {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// The warp.
        warp: u32,
        /// The sequence number.
        sequence: u32,
        /// Bytes of the payload.
        bytes: usize,
        /// Maximum bytes of a payload.
        capacity: u32,
    },
    /// A chunk that repeats or precedes one that was written before.
    #[error(
        "launch {launch}, track {track}, warp {warp}: chunk {sequence} comes too late or twice; \
         the next one must be {next} or later"
    )]
    SequenceNotAscending {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// The warp.
        warp: u32,
        /// The sequence number.
        sequence: u32,
        /// The lowest valid sequence number.
        next: u64,
    },
    /// The number of accounts differs from the number of recorded warps.
    #[error("launch {launch}, track {track}: {found} accounts, but {warps} warps of the launch were chosen")]
    AccountCount {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// Number of accounts given.
        found: u64,
        /// Number of recorded warps of the launch.
        warps: u32,
    },
    /// An account whose `finished` is neither 0 nor 1.
    #[error(
        "launch {launch}, track {track}: the account of warp {warp} has finished = {finished}; it must be 0 or 1"
    )]
    AccountFinished {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// The warp.
        warp: usize,
        /// The value.
        finished: u32,
    },
}
