//! Errors of opening and decoding.

use std::io;
use std::path::PathBuf;

use warptrace_format::codec::CodecError;
use warptrace_format::file::FormatError;
use warptrace_format::shown;

/// A trace that cannot be opened. A file with a sound beginning and a damaged end opens without an error: see
/// [`TraceFile::completeness`](crate::TraceFile::completeness).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file could not be opened.
    #[error("cannot open {}: {source}", shown(&path.to_string_lossy()))]
    File {
        /// The path given.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The path is a folder.
    #[error("cannot open {}: it is a folder; name a trace in it", shown(&path.to_string_lossy()))]
    Folder {
        /// The path given.
        path: PathBuf,
    },
    /// The path is a pipe, a socket or a device.
    #[error("cannot open {}: it is no file, but a pipe or a device; write its bytes to a file first", shown(&path.to_string_lossy()))]
    NoFile {
        /// The path given.
        path: PathBuf,
    },
    /// The bytes could not be read.
    #[error("cannot read at offset {offset}: {source}")]
    Io {
        /// File offset of the read.
        offset: u64,
        /// The system's error.
        source: io::Error,
    },
    /// The bytes are not a trace that this build reads.
    #[error(transparent)]
    Format(#[from] FormatError),
}

const NO_TIMES: &str = "record with `--times runs`, or, if that was done, again: the file was damaged";

/// Events that could not be decoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The file has no such launch.
    #[error("the trace has no launch {launch}; `warptrace info` lists the launches")]
    UnknownLaunch {
        /// The requested number.
        launch: u32,
    },
    /// The file has no such track.
    #[error("the trace has no track {track}; it declares {tracks} (track 0 is the trace, 1 a raw twin)")]
    UnknownTrack {
        /// The requested track.
        track: u32,
        /// Number of tracks of the file.
        tracks: usize,
    },
    /// The launch has no such warp.
    #[error("launch {launch} has no warp {warp}; its warps are 0 to {}", warps - 1)]
    UnknownWarp {
        /// The launch.
        launch: u32,
        /// The requested warp.
        warp: u32,
        /// Number of warps of the launch.
        warps: u32,
    },
    /// The bytes could not be read.
    #[error("cannot read at offset {offset}: {source}; was the file shortened after it was opened?")]
    Io {
        /// File offset of the read.
        offset: u64,
        /// The system's error.
        source: io::Error,
    },
    /// A section is damaged.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A section is sound but differs from its index entry.
    #[error(
        "{section} at offset {offset}: field `{field}` is {found}, the index says {expected}; \
         the index belongs to another file or was damaged: record again"
    )]
    IndexMismatch {
        /// The kind of section in the index.
        section: &'static str,
        /// File offset of the section.
        offset: u64,
        /// The field.
        field: &'static str,
        /// Value in the section.
        found: u64,
        /// Value in the index.
        expected: u64,
    },
    /// The payload of a chunk does not match its header.
    #[error(
        "launch {launch}, track {track}, warp {warp}, chunk {sequence} (FRAM at offset {frame_offset}): {source}"
    )]
    Chunk {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// The warp.
        warp: u32,
        /// Sequence number of the chunk.
        sequence: u32,
        /// File offset of its frame.
        frame_offset: u64,
        /// The codec's error.
        source: CodecError,
    },
    /// A gap or repetition in a warp's sequence of chunks.
    #[error(
        "launch {launch}, track {track}, warp {warp}: chunk {found} (FRAM at offset {frame_offset}) stands where \
         chunk {expected} should be; a chunk is missing, doubled or out of order"
    )]
    Sequence {
        /// The launch.
        launch: u32,
        /// The track.
        track: u32,
        /// The warp.
        warp: u32,
        /// The sequence number found.
        found: u32,
        /// The sequence number expected.
        expected: u64,
        /// File offset of its frame.
        frame_offset: u64,
    },
    /// A frame has no times, or the trace has none at all.
    #[error("the chunks of the FRAM at offset {frame_offset} have no times: {}", NO_TIMES)]
    NoTimes {
        /// File offset of the frame.
        frame_offset: u64,
    },
    /// Accounts have no spans, in a trace that records them.
    #[error(
        "the warps of the ACCT at offset {accounts_offset} have no times, although they were recorded with them: \
         the file was damaged; record again"
    )]
    NoSpans {
        /// File offset of the accounts.
        accounts_offset: u64,
    },
    /// A part of a warp's addresses and values is missing.
    #[error(
        "launch {launch}, warp {warp}: chunk {found} of addresses and values (DATA at offset {offset}) stands where chunk \
         {expected} should be; a section is missing or damaged: `warptrace verify` says which"
    )]
    DataSequence {
        /// The launch.
        launch: u32,
        /// The warp.
        warp: u32,
        /// The sequence number found.
        found: u32,
        /// The sequence number expected.
        expected: u32,
        /// File offset of the section that holds it.
        offset: u64,
    },
    /// A warp has more addresses and values than the reader holds in memory.
    #[error(
        "launch {launch}, warp {warp}: more than {most} entries of addresses and values, which is the most that is read of a warp"
    )]
    TooManyEntries {
        /// The launch.
        launch: u32,
        /// The warp.
        warp: u32,
        /// The limit.
        most: usize,
    },
    /// Decoding takes more steps than the limit for the length of the file.
    #[error(
        "decoding takes {steps} steps or more, and a file of this length may ask for {most}: it repeats very few \
         bytes very often, as a file that is made to cost time does; `--unlimited` decodes it all the same"
    )]
    TooMuchWork {
        /// Steps when the walk ended.
        steps: u64,
        /// The limit.
        most: u64,
    },
    /// Output is longer than the limit for the length of the file.
    #[error(
        "the output would have more than {most} bytes, which is the most that a file of this length may ask for: it \
         repeats very few bytes very often, as a file that is made to fill disks does; choose a part of the trace, or \
         write it all the same with `--unlimited`"
    )]
    TooMuchOutput {
        /// The limit in bytes.
        most: u64,
    },
}
