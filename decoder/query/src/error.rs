//! Errors of queries.

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use parquet::errors::ParquetError;

use crate::message;

/// A query that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The text is not SQL, or names something that does not exist.
    #[error("{0}")]
    Sql(String),
    /// The query started and could not be finished.
    #[error("{0}")]
    Failed(String),
    /// The query was stopped.
    #[error("the query was stopped")]
    Stopped,
    /// The result could not be written.
    #[error("the answer cannot be written: {0}")]
    Write(#[from] std::io::Error),
    /// The result does not fit the format.
    #[error("the answer cannot be written in this format: {0}")]
    Arrow(#[from] ArrowError),
    /// The result could not be written as Parquet.
    #[error("the answer cannot be written as Parquet: {0}")]
    Parquet(#[from] ParquetError),
}

impl QueryError {
    pub(crate) fn planning(error: &DataFusionError) -> Self {
        Self::Sql(message::message_of(error))
    }

    pub(crate) fn running(error: &DataFusionError) -> Self {
        Self::Failed(message::message_of(error))
    }
}
