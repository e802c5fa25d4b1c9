//! What every program has in common.

use warptrace_device::{KernelCall, KernelModule, TracePoints};
use warptrace_host::{Device, DeviceError, LaunchShape, LaunchTime, Launcher, SessionError, TracedProgram};

/// A program, for tools and for a trace's metadata.
#[derive(Clone, Copy, Debug)]
pub struct ProgramInfo {
    /// Name, as the tool takes it.
    pub name: &'static str,
    /// Each kernel's name and source file.
    pub kernels: &'static [(&'static str, &'static str)],
    /// The trace points of all its kernels that were placed by hand; ids are unique in the program.
    pub points: &'static [TracePoints],
    /// Modules whose automatic trace points its kernels have.
    pub modules: &'static [KernelModule],
    /// The same program with automatic trace points instead of those placed by hand, to be run by an
    /// [`Automatic`] launcher.
    pub automatic: Option<&'static ProgramInfo>,
}

impl ProgramInfo {
    /// As a session takes it.
    pub fn traced(&self) -> TracedProgram<'static> {
        TracedProgram { kernels: self.kernels, points: self.points, modules: self.modules }
    }

    /// Each location's id and name.
    pub fn locations(&self) -> impl Iterator<Item = (u16, &'static str)> {
        let by_hand = self.points.iter().flat_map(|points| points.points).map(|point| (point.id, point.name));
        let automatic = self.modules.iter().flat_map(|module| module.locations);
        by_hand.chain(automatic.map(|location| (location.id, location.name)))
    }
}

/// Launches the copies of kernels that have automatic trace points, where there are any.
pub struct Automatic<'l>(pub &'l mut dyn Launcher);

impl Launcher for Automatic<'_> {
    fn device(&mut self) -> &mut dyn Device {
        self.0.device()
    }

    unsafe fn launch(&mut self, call: &KernelCall, shape: &LaunchShape) -> Result<LaunchTime, SessionError> {
        // SAFETY: the caller's promise; the copy does the same with the same arguments.
        unsafe { self.0.launch(call.automatic().unwrap_or(call), shape) }
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
