//! What every program has in common.

use warptrace_device::TracePoints;
use warptrace_host::{DeviceError, SessionError, TracedProgram};

/// A program, for tools and for a trace's metadata.
#[derive(Clone, Copy, Debug)]
pub struct ProgramInfo {
    /// Name, as the tool takes it.
    pub name: &'static str,
    /// Each kernel's name and source file.
    pub kernels: &'static [(&'static str, &'static str)],
    /// The trace points of all its kernels; ids are unique in the program.
    pub points: &'static [TracePoints],
}

impl ProgramInfo {
    /// As a session takes it.
    pub fn traced(&self) -> TracedProgram<'static> {
        TracedProgram { kernels: self.kernels, points: self.points }
    }
}

/// A program could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// An option out of its range.
    #[error("{option} is {value}: {allowed}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// Its value.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// An input that the program is not made for.
    #[error("{program} cannot work on this input: {problem}")]
    Input {
        /// The program.
        program: &'static str,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// The kernels ran more often than any input can need.
    #[error(
        "{program} made no progress after {launches} launches: the device's results are not to be trusted"
    )]
    NoProgress {
        /// The program.
        program: &'static str,
        /// Launches so far.
        launches: u32,
    },
    /// A launch failed, or what it recorded could not be kept.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
