//! Why a file could not be written.

use std::io;

use warptrace_format::file::limits::MAX_FRAME_BYTES;
use warptrace_format::file::{FormatError, MetadataError};

/// A mistake in what a [`TraceWriter`](super::TraceWriter) was given, or an I/O error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The operating system refused a write.
    #[error("the trace could not be written at offset {offset}: {source}")]
    Io {
        /// File offset at which the bytes were to go.
        offset: u64,
        /// The system's error.
        source: io::Error,
    },
    /// An earlier write failed; what it left behind cannot be continued.
    #[error("an earlier write to this trace failed; what was flushed before it can still be read")]
    Broken,
    /// The metadata contradicts itself.
    #[error("the metadata cannot be written: {0}")]
    Metadata(#[from] MetadataError),
    /// A section could not be made.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The frame size is out of range.
    #[error("frames of {found} bytes; the size must be 1 to {MAX_FRAME_BYTES}")]
    FrameBytes {
        /// Size asked for.
        found: u32,
    },
    /// The index is full.
    #[error(
        "the file would hold more than {limit} sections of launches, frames and accounts; use larger frames or another file"
    )]
    TooManySections {
        /// Most sections that an index can list.
        limit: u32,
    },
    /// The launch was announced before.
    #[error("launch {launch} was begun twice; give each launch of a file its own number")]
    LaunchTwice {
        /// The number.
        launch: u32,
    },
    /// The launch was said to have ended early before.
    #[error("the early end of launch {launch} was written before; a launch ends once")]
    EndedTwice {
        /// The number.
        launch: u32,
    },
    /// Too many launches ended early.
    #[error("{limit} launches of this file did not run to their end; it cannot tell of more")]
    TooManyEarlyEnds {
        /// Most of them that a file can tell of.
        limit: usize,
    },
    /// The launch was never announced.
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
    /// The accounting of this launch and track was written already.
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
    /// The launch has the warp, but does not record it.
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
        /// The chunk.
        sequence: u32,
    },
    /// A payload that no chunk of this recording can hold.
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
        /// The chunk.
        sequence: u32,
        /// Bytes of the payload.
        bytes: usize,
        /// Most bytes possible.
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
        /// The chunk.
        sequence: u32,
        /// Least sequence number possible.
        next: u64,
    },
    /// The accounting has not one account for each chosen warp.
    #[error("launch {launch}, track {track}: {found} accounts, but {warps} warps of the launch were chosen")]
    AccountCount {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// Accounts given.
        found: u64,
        /// Warps of the launch that were chosen.
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
