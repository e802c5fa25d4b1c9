//! The codecs: how events become bytes inside a chunk. One file (or folder) each, encoder beside decoder.

pub mod ecl;
pub mod raw;

pub use ecl::EclParams;

/// A codec with its parameters, as a file names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum CodecSpec {
    /// Five bytes an event.
    Raw,
    /// CUT, LZa2, RLE: the codec of the ECL-Tracer thesis.
    Ecl(EclParams),
}

impl CodecSpec {
    /// The largest location id that the codec can carry.
    pub const fn max_location(self) -> u16 {
        match self {
            Self::Raw | Self::Ecl(_) => 255,
        }
    }

    /// The name that the tool and the files use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Ecl(_) => "ecl",
        }
    }

    /// Bytes of tables one warp needs while it encodes; 0 for `raw`. A multiple of 16.
    pub const fn work_bytes(self) -> u32 {
        match self {
            Self::Raw => 0,
            Self::Ecl(params) => params.work_bytes(),
        }
    }
}
