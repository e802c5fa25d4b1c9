//! The codecs that kernels encode with.

#[cfg(not(target_arch = "nvptx64"))]
use warptrace_format::codec::CodecSpec;
use warptrace_format::codec::{EclParams, PredictParams};

/// Parameters of `ecl` in compiled kernels. Constants there, so that shifts and masks cost nothing.
pub const DEVICE_ECL: EclParams = EclParams::DEFAULT;
/// Parameters of `predict` in compiled kernels.
pub const DEVICE_PREDICT: PredictParams = PredictParams::DEFAULT;

/// A codec, without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Codec {
    /// Six bytes an event.
    Raw,
    /// CUT, LZa2, RLE.
    Ecl,
    /// Whole events predicted.
    Predict,
}

impl Codec {
    /// The codec of a specification; `None` for one that this version does not know.
    #[cfg(not(target_arch = "nvptx64"))]
    pub const fn new(spec: CodecSpec) -> Option<Self> {
        match spec {
            CodecSpec::Raw => Some(Self::Raw),
            CodecSpec::Ecl(_) => Some(Self::Ecl),
            CodecSpec::Predict(_) => Some(Self::Predict),
            _ => None,
        }
    }

    /// The codec whose number this is, as kernels are given it; `Raw` for any other number.
    #[inline(always)]
    pub(crate) const fn from_number(number: u32) -> Self {
        match number {
            1 => Self::Ecl,
            2 => Self::Predict,
            _ => Self::Raw,
        }
    }

    /// What a track's events are encoded with, where this is the codec of the trace.
    #[inline(always)]
    pub(crate) const fn of_track(self, track: u32) -> Self {
        if track == 0 { self } else { Self::Raw }
    }
}
