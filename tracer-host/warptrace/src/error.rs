//! Errors of the library.

use std::fmt;
use std::path::PathBuf;

use warptrace_host::{DeviceError, SessionError};

/// Error of a device, a launch or a trace. `Debug` prints the message, for errors that `main` returns.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device failed or rejected a request.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The recording failed.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The trace file could not be written.
    #[error("cannot write the trace {}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// An array from cudarc belongs to another context than the device.
    #[error(
        "the array of {elements} elements is not of this device's CUDA context: take the device from a stream of the \
         array's context (`Device::from_cudarc`)"
    )]
    OtherContext {
        /// Elements of the array.
        elements: usize,
    },
    /// An argument names memory that does not belong to the device.
    #[error(
        "argument {argument} of kernel `{kernel}` is no memory of this device: launch on the device that made \
         the buffer"
    )]
    Argument {
        /// The kernel.
        kernel: String,
        /// Number of the argument, from 0.
        argument: usize,
    },
    /// A written argument overlaps another one.
    #[error(
        "argument {written} of kernel `{kernel}`, which it writes, overlaps argument {other}: \
         give it a buffer of its own"
    )]
    Overlap {
        /// The kernel.
        kernel: String,
        /// Number of the written argument, from 0.
        written: usize,
        /// Number of the other argument.
        other: usize,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
