//! Specifications that cannot be recorded.

use warptrace_format::chunk::{MAX_CHUNK_BYTES, MIN_CHUNK_BYTES};
use warptrace_format::codec::ParamError;

use crate::MAX_ZSTD;

/// A value that is none, or options that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The codec's parameters are out of range.
    #[error(transparent)]
    Codec(#[from] ParamError),
    /// A size that no chunk has.
    #[error(
        "chunks of {bytes} bytes: the size is a power of two from {MIN_CHUNK_BYTES} to {MAX_CHUNK_BYTES}"
    )]
    ChunkBytes {
        /// The size.
        bytes: u32,
    },
    /// A level that zstd does not have.
    #[error("zstd has no level {level}: choose 0, for no compression, to {MAX_ZSTD}")]
    Zstd {
        /// The level.
        level: i32,
    },
    /// An option of streamed logs, with another policy.
    #[error(
        "`{option}` is for logs that the host empties while kernels run: choose the policy `stream` as well"
    )]
    NotStreamed {
        /// The option.
        option: &'static str,
    },
    /// Logs in memory of the host, which the host empties while kernels run.
    #[error("`host-logs` keeps logs until kernels have ended: choose the policy `stop` or `ring`")]
    HostLogs,
    /// Times of loops whose iterations are counted, and recorded when lanes leave the loop.
    #[error(
        "`counted=all` records a loop when lanes leave it, so that it is not known when it began: leave it or `times` out"
    )]
    TimesOfLoops,
    /// Accesses, and something that cannot be had with them.
    #[error(
        "`accesses` is recorded with the policy `stop`, from the kernel's start on, and without a dual recording: leave `{option}` out"
    )]
    Accesses {
        /// The other option.
        option: &'static str,
    },
    /// Lanes that are recorded from a visit on, and something that needs each loop from its start.
    #[error("`after` needs each event where it happens: leave `{option}` out")]
    After {
        /// The other option.
        option: &'static str,
    },
    /// An option that cannot be had at this door.
    #[error("{option}: {reason}")]
    Refused {
        /// The option.
        option: &'static str,
        /// Why not, and what to do.
        reason: &'static str,
    },
    /// A property of the user's own with the name of one that the recorder writes.
    #[error("the recorder itself writes the property `{name}`: choose another name")]
    RecordersProperty {
        /// The name.
        name: String,
    },
    /// The program has no location that is called so.
    #[error("`after`: the program has no location `{location}`; it has {known}")]
    NoLocation {
        /// The location.
        location: String,
        /// The names of those that there are.
        known: String,
    },
    /// Several locations are called so.
    #[error("`after`: `{location}` is several locations: give one of the ids {ids}")]
    SeveralLocations {
        /// The location.
        location: String,
        /// Their ids, with names.
        ids: String,
    },
}
