//! Why a query was not answered.

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use parquet::errors::ParquetError;

use crate::message;

/// A query that could not be answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The text is no SQL, or names what is not there.
    #[error("{0}")]
    Sql(String),
    /// The query was begun and could not be finished.
    #[error("{0}")]
    Failed(String),
    /// The query was stopped.
    #[error("the query was stopped")]
    Stopped,
    /// The answer could not be written.
    #[error("the answer cannot be written: {0}")]
    Write(#[from] std::io::Error),
    /// The answer does not fit the format.
    #[error("the answer cannot be written in this format: {0}")]
    Arrow(#[from] ArrowError),
    /// The answer could not be written as Parquet.
    #[error("the answer cannot be written as Parquet: {0}")]
    Parquet(#[from] ParquetError),
}

impl QueryError {
    /// The error of a query that was not understood.
    pub(crate) fn planning(error: &DataFusionError) -> Self {
        Self::Sql(message::message_of(error))
    }

    /// The error of a query that was begun.
    pub(crate) fn running(error: &DataFusionError) -> Self {
        Self::Failed(message::message_of(error))
    }
}
