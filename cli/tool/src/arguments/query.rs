//! Arguments of `query` and `worker`.

use std::net::SocketAddr;
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

    #[command(flatten)]
    pub(crate) apart: Apart,
}

/// Which workers have the traces.
#[derive(Debug, Args)]
pub(crate) struct Apart {
    /// Ask these workers, `HOST:PORT` each, with commas between; FILES are those under their folders
    #[arg(long, value_name = "WORKERS", value_delimiter = ',')]
    pub(crate) workers: Vec<String>,

    /// A file with the token that the workers want, on its first line
    #[arg(long, value_name = "FILE", requires = "workers")]
    pub(crate) token_file: Option<PathBuf>,
}

/// Arguments of `worker`.
#[derive(Debug, Args)]
pub(crate) struct Worker {
    /// Folders whose traces may be read, with folders in them
    #[arg(required = true, value_name = "FOLDER")]
    pub(crate) roots: Vec<PathBuf>,

    /// Where to listen; port 0 takes a free one. Beyond this machine a token is needed
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7070")]
    pub(crate) listen: SocketAddr,

    /// A file with the token that clients have to know, on its first line
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Memory for sorting and grouping of all queries together, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u32).range(16..))]
    pub(crate) memory: u32,

    /// How long to work for a query, in seconds; 0: without end
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    pub(crate) timeout: u64,
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
