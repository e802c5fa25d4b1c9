//! The codecs, which encode events as the bytes of a chunk. One file or folder per codec.

#[cfg(feature = "std")]
mod buffered;
pub mod ecl;
#[cfg(feature = "std")]
mod error;
#[cfg(feature = "std")]
pub mod fuzzing;
#[cfg(feature = "std")]
mod item;
mod params;
pub mod predict;
pub mod raw;
#[cfg(feature = "std")]
mod text;

#[cfg(feature = "std")]
pub use buffered::{Decoder, decode_chunk, encode_stream};
#[cfg(feature = "std")]
pub use ecl::EclDecoder;
pub use ecl::{EclParams, EclState};
#[cfg(feature = "std")]
pub use error::CodecError;
#[cfg(feature = "std")]
pub use item::{Item, MAX_BODY};
pub use params::ParamError;
#[cfg(feature = "std")]
pub use predict::PredictDecoder;
pub use predict::{PredictParams, PredictState};
#[cfg(feature = "std")]
pub use raw::RawDecoder;
pub use raw::RawState;
#[cfg(feature = "std")]
pub use text::CodecTextError;

/// A codec with its parameters, as stored in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum CodecSpec {
    /// Six bytes per event.
    Raw,
    /// CUT, LZa2, RLE: the codec of the ECL-Tracer thesis.
    Ecl(EclParams),
    /// Predicts whole events and writes mispredictions as bits.
    Predict(PredictParams),
}

impl CodecSpec {
    /// Checks that the parameters are in range. The error names the first one that is not.
    pub const fn check(self) -> Result<(), ParamError> {
        match self {
            Self::Raw => Ok(()),
            Self::Ecl(params) => params.check(),
            Self::Predict(params) => params.check(),
        }
    }

    /// Returns the largest location id that the codec can carry. The smallest is always 1.
    pub const fn max_location(self) -> u16 {
        match self {
            Self::Ecl(_) => u8::MAX as u16,
            Self::Raw | Self::Predict(_) => u16::MAX,
        }
    }

    /// Returns the codec's name in the tool and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Ecl(_) => "ecl",
            Self::Predict(_) => "predict",
        }
    }

    /// Returns the size of one warp's encoder tables, in bytes: a multiple of 16, and 0 for `raw`.
    pub const fn work_bytes(self) -> u32 {
        match self {
            Self::Raw => 0,
            Self::Ecl(params) => params.work_bytes(),
            Self::Predict(params) => params.work_bytes(),
        }
    }
}
