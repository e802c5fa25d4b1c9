//! Why a trace could not be exported.

use std::io;

use warptrace_analysis::AnalysisError;
use warptrace_decoder::DecodeError;

/// A trace that cannot be exported, or an output that cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// Something was selected that the trace does not have, or it cannot be analysed.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// Time is asked of a trace that has none.
    #[error("the trace has no times of runs, so no {0}: record it with `--times runs`")]
    NoTimes(&'static str),
    /// The trace is damaged.
    #[error("{source}; `warptrace verify` lists all that is wrong with the trace")]
    Decode {
        /// What is wrong, and where.
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
    /// A table cannot be made of the trace.
    #[cfg(feature = "parquet")]
    #[error("{source}; `warptrace verify` lists all that is wrong with the trace")]
    Table {
        /// What is wrong, and where.
        #[from]
        source: warptrace_tables::TableError,
    },
    /// The writer of Parquet files fails, as with an output that cannot be written.
    #[cfg(feature = "parquet")]
    #[error("{}", in_words(source))]
    Parquet {
        /// What it says.
        #[from]
        source: ::parquet::errors::ParquetError,
    },
}

/// What the writer of Parquet says, or what the output said to it.
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
