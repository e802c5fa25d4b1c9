//! Why a trace could not be opened or decoded.

use std::io;
use std::path::PathBuf;

use warptrace_format::codec::CodecError;
use warptrace_format::file::FormatError;
use warptrace_format::shown;

/// A trace that cannot be opened at all.
///
/// A file whose beginning is sound but whose end is missing or damaged is no error: it opens, and
/// [`TraceFile::completeness`](crate::TraceFile::completeness) tells how far it goes.
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
    /// What is there is a folder.
    #[error("cannot open {}: it is a folder; name a trace in it", shown(&path.to_string_lossy()))]
    Folder {
        /// The path given.
        path: PathBuf,
    },
    /// What is there is a pipe, a socket or a device.
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

/// What to do about missing times.
const NO_TIMES: &str = "record with `--times runs`, or, if that was done, again: the file was damaged";

/// Events that could not be decoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The file has no such launch.
    #[error("the trace has no launch {launch}; `warptrace info` lists the launches")]
    UnknownLaunch {
        /// The number asked for.
        launch: u32,
    },
    /// The file has no such track.
    #[error("the trace has no track {track}; it declares {tracks} (track 0 is the trace, 1 a raw twin)")]
    UnknownTrack {
        /// The track asked for.
        track: u32,
        /// Tracks of the file.
        tracks: usize,
    },
    /// The launch has no such warp.
    #[error("launch {launch} has no warp {warp}; its warps are 0 to {}", warps - 1)]
    UnknownWarp {
        /// The launch.
        launch: u32,
        /// The warp asked for.
        warp: u32,
        /// Warps of the launch.
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
    /// A frame or an accounting section is damaged.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A frame or an accounting section is sound but not the one that the index announces.
    #[error(
        "{section} at offset {offset}: field `{field}` is {found}, the index says {expected}; \
         the index belongs to another file or was damaged: record again"
    )]
    IndexMismatch {
        /// The kind of section that the index announces.
        section: &'static str,
        /// File offset of the section.
        offset: u64,
        /// The field.
        field: &'static str,
        /// What the section says.
        found: u64,
        /// What the index says.
        expected: u64,
    },
    /// A chunk's payload is not what its header promises.
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
        /// The chunk.
        sequence: u32,
        /// File offset of the frame that holds it.
        frame_offset: u64,
        /// What is wrong with it.
        source: CodecError,
    },
    /// A warp's chunks do not follow each other.
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
        /// The one that comes next.
        expected: u64,
        /// File offset of the frame that holds it.
        frame_offset: u64,
    },
    /// A frame without times, in a trace with times; or a trace without.
    #[error("the chunks of the FRAM at offset {frame_offset} have no times: {}", NO_TIMES)]
    NoTimes {
        /// File offset of the frame.
        frame_offset: u64,
    },
    /// Accounts without spans, in a trace that says where and when warps ran.
    #[error(
        "the warps of the ACCT at offset {accounts_offset} have no times, although they were recorded with them: \
         the file was damaged; record again"
    )]
    NoSpans {
        /// File offset of the accounts.
        accounts_offset: u64,
    },
    /// A part of a warp's addresses and values is not there.
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
        /// The one that comes next.
        expected: u32,
        /// File offset of the section that holds it.
        offset: u64,
    },
    /// A warp has more addresses and values than are held in memory at once.
    #[error(
        "launch {launch}, warp {warp}: more than {most} entries of addresses and values, which is the most that is read of a warp"
    )]
    TooManyEntries {
        /// The launch.
        launch: u32,
        /// The warp.
        warp: u32,
        /// The most.
        most: usize,
    },
    /// Decoding takes more steps than a file of this length may ask for.
    #[error(
        "decoding takes {steps} steps or more, and a file of this length may ask for {most}: it repeats very few \
         bytes very often, as a file that is made to cost time does; `--unlimited` decodes it all the same"
    )]
    TooMuchWork {
        /// Steps up to where the walk was ended.
        steps: u64,
        /// Steps that the file may ask for.
        most: u64,
    },
    /// What is written of the trace is longer than a file of this length may ask for.
    #[error(
        "the output would have more than {most} bytes, which is the most that a file of this length may ask for: it \
         repeats very few bytes very often, as a file that is made to fill disks does; choose a part of the trace, or \
         write it all the same with `--unlimited`"
    )]
    TooMuchOutput {
        /// Bytes that the file may ask for.
        most: u64,
    },
}
