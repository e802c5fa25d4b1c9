//! What can go wrong.

use std::fmt;
use std::path::PathBuf;

use warptrace_host::{DeviceError, SessionError};

/// A device, a launch or a trace could not do what was asked.
///
/// Its `Debug` form is the message, too, which is what a `main` prints that returns it.
#[derive(thiserror::Error)]
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
    /// An array of cudarc's is of another context than the device.
    #[error(
        "the array of {elements} elements is not of this device's CUDA context: take the device from a stream of the \
         array's context (`Device::from_cudarc`)"
    )]
    OtherContext {
        /// Elements of the array.
        elements: usize,
    },
    /// An argument names memory that the device does not have.
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

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
