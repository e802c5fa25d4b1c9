//! What can go wrong in a session.

use std::time::Duration;

use warptrace_format::file::{LaunchError, MetadataError};

use crate::writer::WriteError;
use crate::{DeviceError, MemorySize, SpecError};

/// A session cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The launch has a shape whose warps cannot be named.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The metadata contradicts itself, for instance by a location id that the codec cannot carry.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// A kernel that the session was not told of.
    #[error(
        "kernel `{kernel}` is not one of the session's ({known}): name it in the program that the session traces"
    )]
    UnknownKernel {
        /// The kernel.
        kernel: String,
        /// The kernels that the session knows.
        known: String,
    },
    /// Two modules of a trace have a location of the same id.
    #[error(
        "location {id} is in module `{first}` and in module `{second}`: number one of them from above the other, \
         `#[warptrace::kernels(first_id = {free})]`, or record each into a trace of its own"
    )]
    SharedId {
        /// The id.
        id: u16,
        /// The one module.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// An id above all of both.
        free: u16,
    },
    /// The window names a kernel that the program does not have.
    #[error("no kernel of this program is named `{name}`: it has {known}")]
    NoSuchKernel {
        /// The name, in which `*` stands for any characters.
        name: String,
        /// The program's kernels.
        known: String,
    },
    /// The specification has a value that is none, or contradicts itself or the program.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A launch needs more device memory than the session may take.
    #[error("{}", memory_problem(*streams, *needed, *limit))]
    Memory {
        /// Warps of the launch, on each track.
        streams: u64,
        /// The smallest limit with which it can be recorded, in bytes; `None` if no limit is large enough.
        needed: Option<u64>,
        /// The limit, in bytes.
        limit: u64,
    },
    /// Launches that still run have left a launch no room.
    #[error(
        "launches before it ({running}) had not ended after {patience:?}, and left no room for it: \
         a larger limit of memory leaves more"
    )]
    Busy {
        /// How many still run.
        running: usize,
        /// How long they were waited for.
        patience: Duration,
    },
    /// Launches that were begun still run.
    #[error("launches that had not ended: {running}; wait for them first")]
    Running {
        /// How many.
        running: usize,
    },
    /// Streamed logs of launches that are not waited for.
    #[error(
        "logs are streamed by the call that launches a kernel, which waits for it: launches that are not waited for are recorded with the policy `stop` or `ring`"
    )]
    NoOverlap,
    /// The pool cannot be what was asked for.
    #[error("{problem}")]
    Pool {
        /// What is wrong and what is allowed.
        problem: String,
    },
    /// A chunk in device memory is not one that a launch wrote.
    #[error(
        "a chunk of launch {launch}, warp {warp}, is damaged: {problem}; the kernel, or another program, wrote into the trace pool"
    )]
    DamagedChunk {
        /// The launch that it names.
        launch: u32,
        /// The warp that it names.
        warp: u32,
        /// What is wrong.
        problem: String,
    },
    /// The thread that writes the file could not be started.
    #[error("cannot start the thread that writes the trace: {source}")]
    Thread {
        /// The system's error.
        source: std::io::Error,
    },
    /// The session was asked to end in the middle of a kernel.
    #[error("interrupted in launch {launch}, of kernel `{kernel}`; what it had recorded is in the file")]
    Interrupted {
        /// Number of the launch.
        launch: u32,
        /// The kernel.
        kernel: String,
    },
    /// A recording of launches that no caller waits for has ended.
    #[error("the trace had ended: {reason}")]
    Ended {
        /// Why.
        reason: String,
    },
    /// An earlier launch failed.
    #[error("an earlier launch of this session failed; start a new session")]
    Unusable,
}

impl SessionError {
    /// Tells whether a launch was refused before anything had run: for want of memory, for its shape, or by
    /// the driver.
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

/// What `SessionError::Memory` says.
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
