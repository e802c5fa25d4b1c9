//! What can go wrong in a session.

use warptrace_format::file::{LaunchError, MetadataError};

use crate::DeviceError;
use crate::writer::WriteError;

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
    /// The window names a kernel that the program does not have.
    #[error("no kernel of this program is named `{name}`: it has {known}")]
    NoSuchKernel {
        /// The name, in which `*` stands for any characters.
        name: String,
        /// The program's kernels.
        known: String,
    },
    /// The pool cannot be what was asked for.
    #[error("{problem}")]
    Pool {
        /// What is wrong and what is allowed.
        problem: String,
    },
    /// The device memory that the tracer may use is too little for a launch.
    #[error(
        "a launch whose {lanes} lanes may record at once needs {} MiB of device memory, and the trace has {} MiB: give it more, or launch smaller grids",
        .needed.div_ceil(1 << 20), .given >> 20
    )]
    Memory {
        /// Bytes that the trace has.
        given: u64,
        /// Bytes that will do.
        needed: u64,
        /// Lanes that may hold log memory at once.
        lanes: u64,
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
    /// An earlier launch failed.
    #[error("an earlier launch of this session failed; start a new session")]
    Unusable,
}
