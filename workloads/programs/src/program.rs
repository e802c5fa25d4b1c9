//! What every program has in common.

use warptrace_device::{KernelCall, KernelModule, SourceLocation};
use warptrace_host::{Device, DeviceError, LaunchShape, LaunchTime, Launcher, SessionError, TracedProgram};

use crate::ptx;

/// A program, for tools and for a trace's metadata.
#[derive(Clone, Copy, Debug)]
pub struct ProgramInfo {
    /// Name, as the tool takes it.
    pub name: &'static str,
    /// The modules of its kernels; ids of their locations are unique in the program.
    pub modules: &'static [KernelModule],
    /// Their copies with a trace point at every decision, if there are any.
    pub automatic: &'static [KernelModule],
}

impl ProgramInfo {
    /// As a session takes it.
    pub fn traced(&self) -> TracedProgram<'static> {
        // Without the file that was asked for instead nothing is known of the code.
        TracedProgram { kernels: &[], modules: self.modules, ptx: ptx().unwrap_or_default() }
    }

    /// Names of the kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &'static str> {
        self.modules.iter().flat_map(|module| module.kernels).copied()
    }

    /// Its locations.
    pub fn locations(&self) -> impl Iterator<Item = &'static SourceLocation> {
        self.modules.iter().flat_map(|module| module.locations)
    }

    /// The same program with a trace point at every decision, to be run by an [`Automatic`] launcher; `None`
    /// if its kernels have no such copies.
    pub fn automatic(&self) -> Option<Self> {
        let all = Self { modules: self.automatic, automatic: &[], ..*self };
        (!self.automatic.is_empty()).then_some(all)
    }
}

/// Launches the copies of kernels that have a trace point at every decision, where there are any.
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
