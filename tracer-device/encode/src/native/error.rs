//! Errors of the native encoder.

use warptrace_format::codec::ParamError;

/// Invalid or contradictory descriptors. Nothing was encoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The codec's parameters are out of range.
    #[error("the codec cannot encode: {0}")]
    Codec(#[from] ParamError),
    /// This encoder does not support the codec.
    #[error("there is no encoder for the codec `{name}`; record with raw, ecl or predict")]
    UnknownCodec {
        /// Name of the codec.
        name: &'static str,
    },
    /// A field of the pool's descriptor has an invalid value.
    #[error("the pool's descriptor has {field} {value:#x}: {must}")]
    Pool {
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// The requirement.
        must: &'static str,
    },
    /// A field of a launch has an invalid value.
    #[error("launch {launch} (number {index} in the table) has {field} {value:#x}: {must}")]
    Launch {
        /// Index in the table of launches.
        index: usize,
        /// Number of the launch.
        launch: u32,
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// The requirement.
        must: &'static str,
    },
}
