//! Errors of tables.

use std::sync::Arc;

use arrow_schema::ArrowError;
use warptrace_analysis::AnalysisError;
use warptrace_decoder::DecodeError;

/// A table that could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The trace is damaged, or has too many figures.
    #[error(transparent)]
    Trace(Arc<AnalysisError>),
    /// The columns do not fit the schema.
    #[error("the columns do not fit their table: {0}")]
    Columns(#[from] ArrowError),
}

impl From<Arc<AnalysisError>> for TableError {
    fn from(error: Arc<AnalysisError>) -> Self {
        Self::Trace(error)
    }
}

impl From<AnalysisError> for TableError {
    fn from(error: AnalysisError) -> Self {
        Self::Trace(Arc::new(error))
    }
}

impl From<DecodeError> for TableError {
    fn from(error: DecodeError) -> Self {
        AnalysisError::from(error).into()
    }
}
