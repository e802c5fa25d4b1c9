//! Types shared by all programs.

use warptrace_device::{KernelCall, KernelModule, SourceLocation};
use warptrace_host::{Device, DeviceError, LaunchShape, LaunchTime, Launcher, SessionError, TracedProgram};

use crate::ptx;

/// A program's kernels and locations, for tools and the metadata of traces.
#[derive(Clone, Copy, Debug)]
pub struct ProgramInfo {
    /// Name in the tool's command line.
    pub name: &'static str,
    /// Modules of its kernels. Location ids are unique within a program.
    pub modules: &'static [KernelModule],
    /// Copies of the modules with a trace point at every decision; may be empty.
    pub automatic: &'static [KernelModule],
}

impl ProgramInfo {
    /// Returns the program in the form that a session takes.
    pub fn traced(&self) -> TracedProgram<'static> {
        // If the replacement file cannot be read, the session has no PTX.
        TracedProgram { kernels: &[], modules: self.modules, ptx: ptx().unwrap_or_default() }
    }

    /// Names of the kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &'static str> {
        self.modules.iter().flat_map(|module| module.kernels).copied()
    }

    /// Locations of all modules.
    pub fn locations(&self) -> impl Iterator<Item = &'static SourceLocation> {
        self.modules.iter().flat_map(|module| module.locations)
    }

    /// Returns the program with its copies for an [`Automatic`] launcher; `None` if it has none.
    pub fn automatic(&self) -> Option<Self> {
        let all = Self { modules: self.automatic, automatic: &[], ..*self };
        (!self.automatic.is_empty()).then_some(all)
    }
}

/// Launcher that replaces kernels with their copies with a trace point at every decision, if they exist.
pub struct Automatic<'l>(pub &'l mut dyn Launcher);

impl Launcher for Automatic<'_> {
    fn device(&mut self) -> &mut dyn Device {
        self.0.device()
    }

    unsafe fn launch(&mut self, call: &KernelCall, shape: &LaunchShape) -> Result<LaunchTime, SessionError> {
        // SAFETY: the caller's promise holds for the copy: it has the same arguments and the same effects.
        unsafe { self.0.launch(call.automatic().unwrap_or(call), shape) }
    }
}

/// Reason why a program could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// An option is out of range.
    #[error("{option} is {value}: {allowed}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// Its value.
        value: String,
        /// Allowed values.
        allowed: &'static str,
    },
    /// The program does not support an input.
    #[error("{program} cannot work on this input: {problem}")]
    Input {
        /// The program.
        program: &'static str,
        /// The problem, and a suggestion.
        problem: String,
    },
    /// The kernels ran more often than any input needs.
    #[error(
        "{program} made no progress after {launches} launches: the device's results are not to be trusted"
    )]
    NoProgress {
        /// The program.
        program: &'static str,
        /// Number of launches so far.
        launches: u32,
    },
    /// A launch failed, or its recording could not be stored.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
