//! Errors of the report.

use warptrace_analysis::AnalysisError;
use warptrace_decoder::DecodeError;

use crate::limits::MAX_BYTES;

/// Reasons why no page can be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The figures of the trace or of its base cannot be computed.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// The trace is damaged.
    #[error("{source}; `warptrace verify` lists all that is wrong with the trace")]
    Decode {
        /// Defect and its position.
        #[from]
        source: DecodeError,
    },
    /// The two traces have no location in common.
    #[error(
        "no location of {trace} is in {base}: they are not of the same program, or one has no table of locations; \
         `warptrace info` lists the locations of a trace"
    )]
    NothingInCommon {
        /// Name of the trace.
        trace: String,
        /// Name of the trace to compare it with.
        base: String,
    },
    /// The page would be too large even with few rows.
    #[error(
        "the page would take {bytes} bytes, more than {MAX_BYTES}, even with few rows: choose a kernel or a launch"
    )]
    TooLarge {
        /// Size of the page.
        bytes: usize,
    },
    /// A template failed.
    #[error("cannot write the page: {0}")]
    Template(#[from] askama::Error),
    /// The figures cannot be written as JSON.
    #[error("cannot write the figures as JSON: {0}")]
    Json(#[from] serde_json::Error),
}
