//! Python exceptions and conversions of errors.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_schema::ArrowError;
use pyo3::exceptions::{PyException, PyOSError, PyUserWarning, PyValueError};
use pyo3::{PyErr, Python, create_exception};
use warptrace_analysis::AnalysisError;
use warptrace_decoder::{DecodeError, OpenError};
use warptrace_tables::TableError;

create_exception!(warptrace, TraceError, PyException, "The file is no trace, or is damaged.");
create_exception!(
    warptrace,
    LossWarning,
    PyUserWarning,
    "The trace lacks events, or assumes something of the kernel."
);

pub(crate) fn of_open(error: &OpenError) -> PyErr {
    match error {
        // Python chooses a subclass such as `FileNotFoundError` by the error number of the system.
        OpenError::File { path, source } if source.raw_os_error().is_some() => {
            PyOSError::new_err((source.raw_os_error(), source.to_string(), path.clone()))
        }
        OpenError::File { .. } | OpenError::NoFile { .. } | OpenError::Io { .. } => {
            PyOSError::new_err(error.to_string())
        }
        other => TraceError::new_err(other.to_string()),
    }
}

pub(crate) fn of_analysis(error: &AnalysisError) -> PyErr {
    let text = error.to_string();
    match error {
        AnalysisError::UnknownKernel { .. }
        | AnalysisError::UnknownLaunch { .. }
        | AnalysisError::NoLaunchOfKernel { .. }
        | AnalysisError::UnknownBlock { .. }
        | AnalysisError::UnknownWarp { .. } => PyValueError::new_err(text),
        _ => TraceError::new_err(text),
    }
}

pub(crate) fn of_decode(error: &DecodeError) -> PyErr {
    TraceError::new_err(error.to_string())
}

/// Converts an error of a batch. The reader of the stream raises its own exception from it.
pub(crate) fn of_table(error: TableError) -> ArrowError {
    match error {
        TableError::Columns(error) => error,
        other => ArrowError::ExternalError(Box::new(other)),
    }
}

/// Runs `work` without the interpreter lock. Converts a panic into an exception.
pub(crate) fn unlocked<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> Result<T, PyErr> {
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    done.map_err(|_| {
        TraceError::new_err("warptrace met an error of its own; please report it with the trace")
    })
}
