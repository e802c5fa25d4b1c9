//! The GPU code that a binary carries.

use std::fmt;

use warptrace_device::simt::host::Recording;
use warptrace_device::warp_state_bytes;
use warptrace_format::codec::CodecSpec;

use crate::Placement;

/// What a module of kernels was compiled to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Variant {
    /// Nothing: the kernels as they are.
    Untraced,
    /// `raw`, states in shared memory, as in all that do not say otherwise.
    Raw,
    /// `ecl`.
    Ecl,
    /// `ecl`, states in global memory.
    EclGlobal,
    /// `ecl` and a raw twin.
    EclDual,
    /// `predict`.
    Predict,
    /// `predict`, states in global memory.
    PredictGlobal,
    /// `predict` and a raw twin.
    PredictDual,
    /// `predict`, loops counted.
    PredictCounted,
    /// `predict`, loops counted, and a raw twin.
    PredictCountedDual,
}

impl Variant {
    /// All variants, in the order in which tools list them.
    pub const ALL: [Self; 10] = [
        Self::Untraced,
        Self::Raw,
        Self::Ecl,
        Self::EclGlobal,
        Self::EclDual,
        Self::Predict,
        Self::PredictGlobal,
        Self::PredictDual,
        Self::PredictCounted,
        Self::PredictCountedDual,
    ];

    /// The name that the build gives the module.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Untraced => "untraced",
            Self::Raw => "raw",
            Self::Ecl => "ecl",
            Self::EclGlobal => "ecl-global",
            Self::EclDual => "ecl-dual",
            Self::Predict => "predict",
            Self::PredictGlobal => "predict-global",
            Self::PredictDual => "predict-dual",
            Self::PredictCounted => "predict-counted",
            Self::PredictCountedDual => "predict-counted-dual",
        }
    }

    /// The variant that such a launch needs, or why there is none.
    pub(crate) fn of(tracing: Option<(Recording, Placement)>) -> Result<Self, String> {
        let Some((recording, placement)) = tracing else { return Ok(Self::Untraced) };
        match (recording.codec, recording.counted, recording.dual, placement) {
            (CodecSpec::Raw, false, false, Placement::Shared) => Ok(Self::Raw),
            (CodecSpec::Ecl(_), false, false, Placement::Global) => Ok(Self::EclGlobal),
            (CodecSpec::Ecl(_), false, false, Placement::Shared) => Ok(Self::Ecl),
            (CodecSpec::Ecl(_), false, true, Placement::Shared) => Ok(Self::EclDual),
            (CodecSpec::Predict(_), false, false, Placement::Shared) => Ok(Self::Predict),
            (CodecSpec::Predict(_), false, false, Placement::Global) => Ok(Self::PredictGlobal),
            (CodecSpec::Predict(_), false, true, Placement::Shared) => Ok(Self::PredictDual),
            (CodecSpec::Predict(_), true, false, Placement::Shared) => Ok(Self::PredictCounted),
            (CodecSpec::Predict(_), true, true, Placement::Shared) => Ok(Self::PredictCountedDual),
            (codec, counted, dual, placement) => Err(format!(
                "no kernel is compiled to record `{}` with states in {} memory{}{}",
                codec.name(),
                match placement {
                    Placement::Shared => "shared",
                    Placement::Global => "global",
                },
                if counted { ", loops counted" } else { "" },
                if dual { " and a raw twin" } else { "" }
            )),
        }
    }

    /// Bytes that each warp of a block needs at the end of the block's dynamic shared memory.
    pub(crate) const fn shared_bytes(self) -> u32 {
        match self {
            Self::Untraced | Self::EclGlobal | Self::PredictGlobal => 0,
            Self::Raw | Self::Ecl | Self::Predict => warp_state_bytes(false, false),
            Self::EclDual | Self::PredictDual => warp_state_bytes(true, false),
            Self::PredictCounted => warp_state_bytes(false, true),
            Self::PredictCountedDual => warp_state_bytes(true, true),
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A module of kernels as PTX text.
#[derive(Clone, Copy, Debug)]
pub struct PtxModule {
    /// [`Variant::name`] of what it records.
    pub variant: &'static str,
    /// PTX.
    pub text: &'static str,
}

/// The modules that a binary carries; empty when it was built without a device compiler.
pub type PtxTable = &'static [PtxModule];

#[cfg(test)]
mod tests {
    use warptrace_device::{DEVICE_ECL, DEVICE_PREDICT};

    use super::*;

    #[test]
    fn each_module_is_that_of_one_way_to_record() {
        let mut found = vec![Variant::of(None).unwrap()];
        for placement in [Placement::Shared, Placement::Global] {
            for codec in [CodecSpec::Raw, CodecSpec::Ecl(DEVICE_ECL), CodecSpec::Predict(DEVICE_PREDICT)] {
                for (counted, dual) in [(false, false), (false, true), (true, false), (true, true)] {
                    let recording = Recording { codec, dual, counted };
                    if let Ok(variant) = Variant::of(Some((recording, placement))) {
                        let bytes = warp_state_bytes(dual, counted);
                        let shared = if placement == Placement::Shared { bytes } else { 0 };
                        assert_eq!(variant.shared_bytes(), shared, "{variant}");
                        found.push(variant);
                    }
                }
            }
        }
        assert_eq!(found.len(), Variant::ALL.len());
        assert!(Variant::ALL.iter().all(|variant| found.contains(variant)));
    }

    #[test]
    fn what_no_module_does_is_said() {
        let recording = Recording { codec: CodecSpec::Raw, dual: false, counted: true };
        let error = Variant::of(Some((recording, Placement::Global))).unwrap_err();
        assert_eq!(
            error,
            "no kernel is compiled to record `raw` with states in global memory, loops counted"
        );
    }
}
