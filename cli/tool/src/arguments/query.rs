//! Arguments of `query`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Arguments of `query`.
#[derive(Debug, Args)]
pub(crate) struct Query {
    /// The question, as in "SELECT name, sum(count) FROM runs GROUP BY name"
    pub(crate) sql: String,

    /// The traces: files, folders, and patterns in quotes; the column `trace` tells them from each other
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Form of the answer
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: QueryFormat,

    /// Where to write; standard output if not given
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// How many rows of a table; 0: all. Other formats have all rows
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,

    /// Memory for sorting and grouping, in MiB; more goes to temporary files, or ends the query
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u32).range(16..))]
    pub(crate) memory: u32,
}

/// Forms of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum QueryFormat {
    /// Columns for people
    Table,
    /// Comma-separated values with a header
    Csv,
    /// A list of objects
    Json,
    /// A Parquet file
    Parquet,
}
