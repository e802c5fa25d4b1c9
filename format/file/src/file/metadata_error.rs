//! What can be wrong with metadata.

use crate::account::MAX_TRACKS;
use crate::chunk::{MAX_CHUNK_BYTES, MIN_CHUNK_BYTES};

/// Metadata that contradicts itself or the format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// No track, or more than a launch can record.
    #[error("{found} tracks are declared; a trace has 1 to {MAX_TRACKS}")]
    Tracks {
        /// Tracks found.
        found: usize,
    },
    /// A codec's parameters are out of range.
    #[error("track {track}: {source}")]
    Codec {
        /// The track.
        track: usize,
        /// The parameter.
        source: crate::codec::ParamError,
    },
    /// The chunk size is no power of two in the range.
    #[error(
        "chunks of {found} bytes; the size is a power of two from {MIN_CHUNK_BYTES} to {MAX_CHUNK_BYTES}"
    )]
    ChunkBytes {
        /// Size found.
        found: u32,
    },
    /// A location has id 0.
    #[error("trace point {point} has the id 0; ids begin at 1: give it one that no other trace point has")]
    LocationZero {
        /// The trace point: its name and, where it is known, its place in the source.
        point: String,
    },
    /// A location's id does not fit a track's codec.
    #[error(
        "trace point {point} has the id {id}, but the codec `{codec}` carries ids up to {largest}: \
         give it a smaller id, or record with a codec that carries larger ones (`raw` and `predict` do, up to 65535)"
    )]
    LocationTooLarge {
        /// The trace point: its name and, where it is known, its place in the source.
        point: String,
        /// Its id.
        id: u16,
        /// The codec.
        codec: &'static str,
        /// The codec's largest id.
        largest: u16,
    },
    /// Two locations share an id.
    #[error(
        "trace points {first} and {second} both have the id {id}; \
         an id is unique in a program, over all of its kernels: give each its own"
    )]
    LocationTwice {
        /// The id.
        id: u16,
        /// The first: its name and, where it is known, its place in the source.
        first: String,
        /// The second, in the same form.
        second: String,
    },
    /// A location does not lie in an earlier one of the table.
    #[error(
        "trace point {point} (id {id}) lies in location {parent}: \
         a location lies in one of the table with a smaller id, or in 0"
    )]
    Parent {
        /// The trace point: its name and, where it is known, its place in the source.
        point: String,
        /// Its id.
        id: u16,
        /// The id of what it is said to lie in.
        parent: u16,
    },
    /// An addition without contents.
    #[error("it adds neither a kernel nor a location; leave the section out")]
    NothingAdded,
    /// More of something than the format holds.
    #[error("{found} {what}; the format holds at most {limit}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many were found.
        found: u64,
        /// The limit.
        limit: u64,
    },
}
