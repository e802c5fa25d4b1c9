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
    /// `raw`.
    Raw,
    /// `ecl`, tables in shared memory.
    Ecl,
    /// `ecl`, tables in global memory.
    EclGlobal,
    /// `ecl`, tables in shared memory, and a raw twin.
    EclDual,
    /// `predict`, tables in shared memory.
    Predict,
    /// `predict`, tables in global memory.
    PredictGlobal,
    /// `predict`, tables in shared memory, and a raw twin.
    PredictDual,
    /// `predict`, tables in shared memory, loops counted.
    PredictCounted,
    /// `predict`, tables in shared memory, loops counted, and a raw twin.
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
            (CodecSpec::Raw, false, false, _) => Ok(Self::Raw),
            (CodecSpec::Ecl(_), false, false, Placement::Global) => Ok(Self::EclGlobal),
            (CodecSpec::Ecl(_), false, false, Placement::Shared) => Ok(Self::Ecl),
            (CodecSpec::Ecl(_), false, true, Placement::Shared) => Ok(Self::EclDual),
            (CodecSpec::Predict(_), false, false, Placement::Shared) => Ok(Self::Predict),
            (CodecSpec::Predict(_), false, false, Placement::Global) => Ok(Self::PredictGlobal),
            (CodecSpec::Predict(_), false, true, Placement::Shared) => Ok(Self::PredictDual),
            (CodecSpec::Predict(_), true, false, Placement::Shared) => Ok(Self::PredictCounted),
            (CodecSpec::Predict(_), true, true, Placement::Shared) => Ok(Self::PredictCountedDual),
            (codec, counted, dual, placement) => Err(format!(
                "no kernel is compiled to record `{}` with tables in {placement:?} memory{}{}",
                codec.name(),
                if counted { ", loops counted" } else { "" },
                if dual { " and a raw twin" } else { "" }
            )),
        }
    }

    /// Bytes that each warp of a block needs at the end of the block's dynamic shared memory.
    pub(crate) const fn warp_bytes(self) -> u32 {
        match self {
            Self::Untraced => 0,
            Self::Raw => warp_state_bytes(false, false),
            Self::Ecl => warp_state_bytes(false, false),
            Self::EclGlobal => warp_state_bytes(false, false),
            Self::EclDual => warp_state_bytes(true, false),
            Self::Predict => warp_state_bytes(false, false),
            Self::PredictCounted => warp_state_bytes(false, true),
            Self::PredictGlobal => warp_state_bytes(false, false),
            Self::PredictDual => warp_state_bytes(true, false),
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
