//! The codecs of the encoding kernels.

#[cfg(not(target_arch = "nvptx64"))]
use warptrace_format::codec::CodecSpec;
use warptrace_format::codec::{EclParams, PredictParams};

/// Parameters of `ecl` in compiled kernels. They are constants there, so that shifts and masks fold.
pub const DEVICE_ECL: EclParams = EclParams::DEFAULT;
/// Parameters of `predict` in compiled kernels.
pub const DEVICE_PREDICT: PredictParams = PredictParams::DEFAULT;

/// A codec, without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Codec {
    /// Six bytes per event.
    Raw,
    /// The transformations CUT, LZa2 and RLE.
    Ecl,
    /// Prediction of whole events.
    Predict,
}

impl Codec {
    /// Returns the codec of a specification, or `None` if this version does not support it.
    #[cfg(not(target_arch = "nvptx64"))]
    pub const fn new(spec: CodecSpec) -> Option<Self> {
        match spec {
            CodecSpec::Raw => Some(Self::Raw),
            CodecSpec::Ecl(_) => Some(Self::Ecl),
            CodecSpec::Predict(_) => Some(Self::Predict),
            _ => None,
        }
    }

    /// Returns the codec for the number in a kernel's arguments; `Raw` for unknown numbers.
    #[inline(always)]
    pub(crate) const fn from_number(number: u32) -> Self {
        match number {
            1 => Self::Ecl,
            2 => Self::Predict,
            _ => Self::Raw,
        }
    }

    /// Returns the codec for a track's events, if `self` is the codec of the trace.
    #[inline(always)]
    pub(crate) const fn of_track(self, track: u32) -> Self {
        if track == 0 { self } else { Self::Raw }
    }
}
