//! Why a mesh could not be refined.

use warptrace_host::{DeviceError, SessionError};

use crate::WorkloadError;

/// Refinement could not be finished.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DmrError {
    /// An option is out of range, or the device or the recording failed.
    #[error(transparent)]
    Workload(Box<WorkloadError>),
    /// The limit on rounds was reached.
    #[error(
        "{waiting} bad triangles are left after {rounds} rounds; allow more rounds, or raise the floor or lower the angle if the mesh grows without end"
    )]
    Rounds {
        /// Rounds done.
        rounds: u32,
        /// Worklist entries left.
        waiting: u32,
    },
    /// A round with a single thread, and a cavity bound that covers the mesh, changed nothing.
    #[error(
        "round {round} refined none of {waiting} bad triangles, with one thread and room for cavities of {bound} of the mesh's {triangles} triangles; the mesh is damaged, or its coordinates are too coarse for the angle"
    )]
    Stuck {
        /// The round.
        round: u32,
        /// Worklist entries left.
        waiting: u32,
        /// Triangles of a cavity for which there was room.
        bound: u32,
        /// Triangles in the mesh.
        triangles: u32,
    },
    /// More points or triangles than the program's 32-bit records can name.
    #[error("the mesh would grow to {found} {what}; at most {limit} are possible")]
    TooLarge {
        /// Points or triangles.
        what: &'static str,
        /// How many there would be.
        found: u64,
        /// Most that are possible.
        limit: u64,
    },
}

impl From<WorkloadError> for DmrError {
    fn from(error: WorkloadError) -> Self {
        Self::Workload(Box::new(error))
    }
}

impl From<DeviceError> for DmrError {
    fn from(error: DeviceError) -> Self {
        WorkloadError::from(error).into()
    }
}

impl From<SessionError> for DmrError {
    fn from(error: SessionError) -> Self {
        WorkloadError::from(error).into()
    }
}
