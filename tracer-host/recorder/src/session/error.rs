use std::time::Duration;

use warptrace_format::file::{LaunchError, MetadataError};

use crate::writer::WriteError;
use crate::{DeviceError, MemorySize, SpecError};

/// A session cannot continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The shape of the launch is not supported by the file format.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The metadata is contradictory, for instance because the codec cannot encode a location ID.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// A kernel that the session does not have.
    #[error(
        "kernel `{kernel}` is not one of the session's ({known}): name it in the program that the session traces"
    )]
    UnknownKernel {
        /// The kernel.
        kernel: String,
        /// The kernels of the session.
        known: String,
    },
    /// Two modules of a trace have a location with the same ID.
    #[error(
        "location {id} is in module `{first}` and in module `{second}`: number one of them from above the other, \
         `#[warptrace::kernels(first_id = {free})]`, or record each into a trace of its own"
    )]
    SharedId {
        /// The ID.
        id: u16,
        /// The first module.
        first: &'static str,
        /// The second module.
        second: &'static str,
        /// An ID above all IDs of both modules.
        free: u16,
    },
    /// The window names a kernel that the program does not have.
    #[error("no kernel of this program is named `{name}`: it has {known}")]
    NoSuchKernel {
        /// The name, in which `*` matches any characters.
        name: String,
        /// The program's kernels.
        known: String,
    },
    /// The specification has an invalid value, or contradicts itself or the program.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A launch needs more device memory than the session's limit.
    #[error("{}", memory_problem(*streams, *needed, *limit))]
    Memory {
        /// Number of streams of the launch: its warps on all tracks.
        streams: u64,
        /// The lowest sufficient limit in bytes; `None` if no limit is sufficient.
        needed: Option<u64>,
        /// The limit in bytes.
        limit: u64,
    },
    /// Launches that are still running occupy the memory that a launch needs.
    #[error(
        "launches before it ({running}) had not ended after {patience:?}, and left no room for it: \
         a larger limit of memory leaves more"
    )]
    Busy {
        /// Number of running launches.
        running: usize,
        /// How long the launch waited for them.
        patience: Duration,
    },
    /// Launches are still running.
    #[error("launches that had not ended: {running}; wait for them first")]
    Running {
        /// Their number.
        running: usize,
    },
    /// Streamed logs were requested for launches that are not waited for.
    #[error(
        "logs are streamed by the call that launches a kernel, which waits for it: launches that are not waited for are recorded with the policy `stop` or `ring`"
    )]
    NoOverlap,
    /// The pool cannot have the requested properties.
    #[error("{problem}")]
    Pool {
        /// The problem, and the allowed values.
        problem: String,
    },
    /// A chunk in device memory is invalid.
    #[error(
        "a chunk of launch {launch}, warp {warp}, is damaged: {problem}; the kernel, or another program, wrote into the trace pool"
    )]
    DamagedChunk {
        /// The launch in its header.
        launch: u32,
        /// The warp in its header.
        warp: u32,
        /// The problem.
        problem: String,
    },
    /// A writer thread could not be started.
    #[error("cannot start the thread that writes the trace: {source}")]
    Thread {
        /// The system's error.
        source: std::io::Error,
    },
    /// The session was interrupted while a kernel ran.
    #[error("interrupted in launch {launch}, of kernel `{kernel}`; what it had recorded is in the file")]
    Interrupted {
        /// The launch number.
        launch: u32,
        /// The kernel.
        kernel: String,
    },
    /// A recording of launches that are not waited for has ended.
    #[error("the trace had ended: {reason}")]
    Ended {
        /// The reason.
        reason: String,
    },
    /// An earlier launch failed.
    #[error("an earlier launch of this session failed; start a new session")]
    Unusable,
}

impl SessionError {
    /// Returns true if a launch was refused before anything ran: because of memory, its shape, or the driver.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Memory { .. }
                | Self::Busy { .. }
                | Self::Launch(_)
                | Self::Device(DeviceError::NotLaunched { .. })
        )
    }
}

/// Returns the message of `SessionError::Memory`.
fn memory_problem(streams: u64, needed: Option<u64>, limit: u64) -> String {
    let limit = MemorySize(limit);
    match needed {
        Some(needed) => {
            let needed = MemorySize(needed).to_string();
            let option = needed.replace(' ', "");
            let what = match streams {
                0 | 1 => "recording anything".to_owned(),
                _ => format!("recording a launch of {streams} warps, those of all tracks,"),
            };
            format!(
                "{what} takes at least {needed} of device memory, for accounts and the shortest logs; \
                 the limit is {limit}: allow more (`--memory {option}`, `TraceBuilder::memory`), or launch smaller grids"
            )
        }
        None => format!(
            "a launch of {streams} warps, those of all tracks, needs more logs than there can be, whatever the limit: launch smaller grids"
        ),
    }
}
