//! What can go wrong.

use std::path::PathBuf;

use warptrace_host::{DeviceError, SessionError};

/// A device, a launch or a trace could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device failed or refused.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The recording failed.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The trace's file could not be written.
    #[error("cannot write the trace {}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// An argument names memory that the device does not have.
    #[error(
        "argument {argument} of kernel `{kernel}` is no memory of this device: keep the buffer until the launch \
         is over, and launch where it was made"
    )]
    Argument {
        /// The kernel.
        kernel: String,
        /// Number of the argument, from 0.
        argument: usize,
    },
    /// An argument that the kernel writes overlaps another.
    #[error(
        "argument {written} of kernel `{kernel}`, which it writes, overlaps argument {other}: \
         give it a buffer of its own"
    )]
    Overlap {
        /// The kernel.
        kernel: String,
        /// Number of the argument that is written, from 0.
        written: usize,
        /// Number of the other argument.
        other: usize,
    },
}
