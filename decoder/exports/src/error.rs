//! Errors of exports.

use std::io;

use warptrace_analysis::AnalysisError;
use warptrace_decoder::DecodeError;

/// A trace that cannot be exported, or an output that cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The selection does not match the trace, or the trace cannot be analysed.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// The export needs times, and the trace has none.
    #[error("the trace has no times of runs, so no {0}: record it with `--times runs`")]
    NoTimes(&'static str),
    /// The trace is damaged.
    #[error("{source}; `warptrace verify` lists all that is wrong with the trace")]
    Decode {
        /// The decoder's error.
        #[from]
        source: DecodeError,
    },
    /// The output cannot be written.
    #[error("cannot write the output: {source}")]
    Write {
        /// The system's error.
        #[from]
        source: io::Error,
    },
    /// A table of the trace cannot be made.
    #[cfg(feature = "parquet")]
    #[error("{source}; `warptrace verify` lists all that is wrong with the trace")]
    Table {
        /// The error of the table.
        #[from]
        source: warptrace_tables::TableError,
    },
    /// The Parquet writer failed, for example because the output cannot be written.
    #[cfg(feature = "parquet")]
    #[error("{}", in_words(source))]
    Parquet {
        /// The writer's error.
        #[from]
        source: ::parquet::errors::ParquetError,
    },
}

#[cfg(feature = "parquet")]
fn in_words(error: &::parquet::errors::ParquetError) -> String {
    match error {
        ::parquet::errors::ParquetError::External(source) => source.to_string(),
        other => format!("the writer of Parquet files: {other}"),
    }
}

impl From<serde_json::Error> for ExportError {
    fn from(error: serde_json::Error) -> Self {
        Self::Write { source: error.into() }
    }
}
