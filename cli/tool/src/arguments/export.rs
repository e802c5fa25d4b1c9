//! Arguments of `export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::answers::Selected;

/// Arguments of `export`.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The trace; with `parquet` and a folder any number of them: files, folders, and patterns in quotes
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Form of the output; docs/reference/exports.md describes what each holds
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) to: ExportFormat,

    /// Where to write. With `parquet` a folder (one that exists, or a name that ends with `/`) gets all
    /// tables, partitioned by job, rank and trace, a file only the runs
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) selected: Selected,

    /// With `parquet`: a row for each event, in place of one for each run of equal events
    #[arg(long)]
    pub(crate) events: bool,

    /// With `firefox`: what samples weigh [default: cycles of a trace with times of runs, else lanes]
    #[arg(long, value_enum, value_name = "WEIGHT")]
    pub(crate) weight: Option<SampleWeight>,
}

/// Forms of exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Tables for SQL and data frames (DuckDB, pandas, Polars): a row for each run
    Parquet,
    /// A track for each warp, in Perfetto's own format, for ui.perfetto.dev
    Perfetto,
    /// Call trees and flame graphs of lanes, for profiler.firefox.com
    Firefox,
    /// Coverage of lines and branches, for genhtml, editors and CI
    Lcov,
}

/// Weight of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SampleWeight {
    /// Active lanes, summed over the visits
    Lanes,
    /// Idle lane slots: lanes that the warp has and that were not active
    Idle,
    /// Visits: times that a warp came
    Visits,
    /// Warp-cycles, of traces with times
    Cycles,
    /// Idle lane-cycles, of traces with times
    IdleCycles,
}
