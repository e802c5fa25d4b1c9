//! Why logs could not be encoded.

use warptrace_format::codec::ParamError;

/// Descriptors that contradict themselves or each other. Nothing was encoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The codec's parameters are out of range.
    #[error("the codec cannot encode: {0}")]
    Codec(#[from] ParamError),
    /// The codec is one that this encoder does not know.
    #[error("there is no encoder for the codec `{name}`; record with raw, ecl or predict")]
    UnknownCodec {
        /// Its name.
        name: &'static str,
    },
    /// A field of the pool's descriptor has a value that it cannot have.
    #[error("the pool's descriptor has {field} {value:#x}: {must}")]
    Pool {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// What it must be.
        must: &'static str,
    },
    /// A field of a launch has a value that it cannot have.
    #[error("launch {launch} (number {index} in the table) has {field} {value:#x}: {must}")]
    Launch {
        /// Index in the table of launches.
        index: usize,
        /// Number of the launch.
        launch: u32,
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// What it must be.
        must: &'static str,
    },
}
