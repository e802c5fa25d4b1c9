//! The GPU code that a binary carries.

use std::fmt;

use warptrace_device::simt::host::Recording;
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
}

impl Variant {
    /// All variants, in the order in which tools list them.
    pub const ALL: [Self; 5] = [Self::Untraced, Self::Raw, Self::Ecl, Self::EclGlobal, Self::EclDual];

    /// The name that the build gives the module.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Untraced => "untraced",
            Self::Raw => "raw",
            Self::Ecl => "ecl",
            Self::EclGlobal => "ecl-global",
            Self::EclDual => "ecl-dual",
        }
    }

    /// The variant that such a launch needs, or why there is none.
    pub(crate) fn of(tracing: Option<(Recording, Placement)>) -> Result<Self, String> {
        let Some((recording, placement)) = tracing else { return Ok(Self::Untraced) };
        match (recording.codec, recording.dual, placement) {
            (CodecSpec::Raw, false, _) => Ok(Self::Raw),
            (CodecSpec::Ecl(_), false, Placement::Global) => Ok(Self::EclGlobal),
            (CodecSpec::Ecl(_), false, Placement::Shared) => Ok(Self::Ecl),
            (CodecSpec::Ecl(_), true, Placement::Shared) => Ok(Self::EclDual),
            (codec, dual, placement) => Err(format!(
                "no kernel is compiled to record `{}` with tables in {placement:?} memory{}",
                codec.name(),
                if dual { " and a raw twin" } else { "" }
            )),
        }
    }

    /// Whether the module expects the encoder's tables at the end of its dynamic shared memory.
    pub(crate) const fn tables_in_shared(self) -> bool {
        matches!(self, Self::Ecl | Self::EclDual)
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
