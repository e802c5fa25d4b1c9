//! Errors of specifications.

use warptrace_format::chunk::{MAX_CHUNK_BYTES, MIN_CHUNK_BYTES};
use warptrace_format::codec::ParamError;

use crate::MAX_ZSTD;

/// Error of a specification: a value is invalid, or options contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The codec's parameters are out of range.
    #[error(transparent)]
    Codec(#[from] ParamError),
    /// The chunk size is invalid.
    #[error(
        "chunks of {bytes} bytes: the size is a power of two from {MIN_CHUNK_BYTES} to {MAX_CHUNK_BYTES}"
    )]
    ChunkBytes {
        /// The size.
        bytes: u32,
    },
    /// The zstd level is invalid.
    #[error("zstd has no level {level}: choose 0, for no compression, to {MAX_ZSTD}")]
    Zstd {
        /// The level.
        level: i32,
    },
    /// An option of streamed logs is used with another policy.
    #[error(
        "`{option}` is for logs that the host empties while kernels run: choose the policy `stream` as well"
    )]
    NotStreamed {
        /// The option.
        option: &'static str,
    },
    /// Logs in host memory are combined with the policy `stream`.
    #[error("`host-logs` keeps logs until kernels have ended: choose the policy `stop` or `ring`")]
    HostLogs,
    /// Times of runs are combined with counting of all loops, which records a loop only when lanes leave it.
    #[error(
        "`counted=all` records a loop when lanes leave it, so that it is not known when it began: leave it or `times` out"
    )]
    TimesOfLoops,
    /// Accesses are combined with an incompatible option.
    #[error(
        "`accesses` is recorded with the policy `stop`, from the kernel's start on, and without a dual recording: leave `{option}` out"
    )]
    Accesses {
        /// The other option.
        option: &'static str,
    },
    /// Recording from a visit on is combined with an option that needs each loop from its start.
    #[error("`after` needs each event where it happens: leave `{option}` out")]
    After {
        /// The other option.
        option: &'static str,
    },
    /// An option is not available at this door.
    #[error("{option}: {reason}")]
    Refused {
        /// The option.
        option: &'static str,
        /// The reason, and an alternative.
        reason: &'static str,
    },
    /// A user's property has the name of a property that the recorder writes.
    #[error("the recorder itself writes the property `{name}`: choose another name")]
    RecordersProperty {
        /// The name.
        name: String,
    },
    /// The program has no location with this name.
    #[error("`after`: the program has no location `{location}`; it has {known}")]
    NoLocation {
        /// The location.
        location: String,
        /// The names of existing locations.
        known: String,
    },
    /// Several locations match.
    #[error("`after`: `{location}` is several locations: give one of the ids {ids}")]
    SeveralLocations {
        /// The location.
        location: String,
        /// Their ids, with names.
        ids: String,
    },
}
