//! Errors in metadata.

use crate::account::MAX_TRACKS;
use crate::chunk::{MAX_CHUNK_BYTES, MIN_CHUNK_BYTES};

/// Metadata contradicts itself or the format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// The number of tracks is 0 or too large.
    #[error("{found} tracks are declared; a trace has 1 to {MAX_TRACKS}")]
    Tracks {
        /// Number of tracks.
        found: usize,
    },
    /// A codec's parameters are out of range.
    #[error("track {track}: {source}")]
    Codec {
        /// The track.
        track: usize,
        /// The invalid parameter.
        source: crate::codec::ParamError,
    },
    /// The chunk size is out of range or not a power of two.
    #[error(
        "chunks of {found} bytes; the size is a power of two from {MIN_CHUNK_BYTES} to {MAX_CHUNK_BYTES}"
    )]
    ChunkBytes {
        /// Size found, in bytes.
        found: u32,
    },
    /// A location has id 0.
    #[error("trace point {point} has the id 0; ids begin at 1: give it one that no other trace point has")]
    LocationZero {
        /// Name of the trace point and, if known, its source position.
        point: String,
    },
    /// A location's id does not fit a track's codec.
    #[error(
        "trace point {point} has the id {id}, but the codec `{codec}` carries ids up to {largest}: \
         give it a smaller id, or record with a codec that carries larger ones (`raw` and `predict` do, up to 65535)"
    )]
    LocationTooLarge {
        /// Name of the trace point and, if known, its source position.
        point: String,
        /// Id of the trace point.
        id: u16,
        /// Name of the codec.
        codec: &'static str,
        /// Largest id of the codec.
        largest: u16,
    },
    /// Two locations share an id.
    #[error(
        "trace points {first} and {second} both have the id {id}; \
         an id is unique in a program, over all of its kernels: give each its own"
    )]
    LocationTwice {
        /// The shared id.
        id: u16,
        /// Name of the first trace point and, if known, its source position.
        first: String,
        /// The same for the second trace point.
        second: String,
    },
    /// A location's parent is unknown or does not have a smaller id.
    #[error(
        "trace point {point} (id {id}) lies in location {parent}: \
         a location lies in one of the table with a smaller id, or in 0"
    )]
    Parent {
        /// Name of the trace point and, if known, its source position.
        point: String,
        /// Id of the trace point.
        id: u16,
        /// Id of the parent.
        parent: u16,
    },
    /// An addition is empty.
    #[error("it adds neither a kernel nor a location; leave the section out")]
    NothingAdded,
    /// A count is over the format's limit.
    #[error("{found} {what}; the format holds at most {limit}")]
    TooMany {
        /// Name of the counted items.
        what: &'static str,
        /// Number found.
        found: u64,
        /// The limit.
        limit: u64,
    },
}
