//! Errors of mesh refinement.

use warptrace_host::{DeviceError, SessionError};

use crate::WorkloadError;

/// Reason why refinement did not finish.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DmrError {
    /// An option is out of range, or the device or the recording failed.
    #[error(transparent)]
    Workload(Box<WorkloadError>),
    /// Bad triangles are left after the maximum number of rounds.
    #[error(
        "{waiting} bad triangles are left after {rounds} rounds; allow more rounds, or raise the floor or lower the angle if the mesh grows without end"
    )]
    Rounds {
        /// Rounds done.
        rounds: u32,
        /// Worklist entries left.
        waiting: u32,
    },
    /// A round with one thread, and scratch for a cavity as large as the mesh, changed nothing.
    #[error(
        "round {round} refined none of {waiting} bad triangles, with one thread and room for cavities of {bound} of the mesh's {triangles} triangles; the mesh is damaged, or its coordinates are too coarse for the angle"
    )]
    Stuck {
        /// The round.
        round: u32,
        /// Worklist entries left.
        waiting: u32,
        /// Triangles of the largest cavity that fits the scratch.
        bound: u32,
        /// Triangles in the mesh.
        triangles: u32,
    },
    /// The mesh needs more points or triangles than the program's 32-bit records can number.
    #[error("the mesh would grow to {found} {what}; at most {limit} are possible")]
    TooLarge {
        /// Points or triangles.
        what: &'static str,
        /// Number needed.
        found: u64,
        /// Largest possible number.
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
