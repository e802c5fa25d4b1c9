//! The command lines of `whole`, `policies` and the processes that they start.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use warptrace_host::MemorySize;

use crate::arguments::Target;

/// Which inputs `whole` runs the programs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Inputs {
    /// The thesis's, or of their families: they take milliseconds.
    Short,
    /// Such that a program takes a good part of a second.
    Long,
    /// Those of `policies`.
    #[value(hide = true)]
    Policies,
}

/// Arguments of `whole`.
#[derive(Debug, Args)]
pub(crate) struct Whole {
    #[command(flatten)]
    pub(crate) target: Target,

    /// Which inputs
    #[arg(long, value_enum, default_value_t = Inputs::Short)]
    pub(crate) kind: Inputs,

    /// Rounds, in each of which every program runs once untraced and once with each codec (`predict`, and of
    /// short inputs `raw`, if none is named with --codec); one run of each goes before them
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,

    /// Run the program untraced in each process before the run that counts
    #[arg(long)]
    pub(crate) warm: bool,

    /// Folder for whole.md and whole.json
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) out: PathBuf,

    /// Commit of the build, for the table
    #[arg(long, env = "WARPTRACE_COMMIT", default_value = option_env!("WARPTRACE_COMMIT").unwrap_or("unknown"))]
    pub(crate) commit: String,

    /// Seconds after which no round is begun that would not end by then; there is one in any case
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) time_limit: Option<u64>,
}

/// Arguments of `policies`.
#[derive(Debug, Args)]
pub(crate) struct Policies {
    #[command(flatten)]
    pub(crate) target: Target,

    /// Device memory of each recording
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub(crate) memory: MemorySize,

    /// Rounds, in each of which every program runs once untraced and once with each codec (`raw` and
    /// `predict`, if none is named with --codec) under each policy; one untraced run goes before them
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,

    /// Folder for policies.md and policies.json
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) out: PathBuf,

    /// Commit of the build, for the table
    #[arg(long, env = "WARPTRACE_COMMIT", default_value = option_env!("WARPTRACE_COMMIT").unwrap_or("unknown"))]
    pub(crate) commit: String,

    /// Seconds for all programs; each may take its share of what remains, and has one run in any case
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) time_limit: Option<u64>,
}

/// Arguments of `whole-run`.
#[derive(Debug, Args)]
pub(crate) struct WholeRun {
    /// Program and input, as in the tables
    pub(crate) subject: String,

    #[command(flatten)]
    pub(crate) target: Target,

    /// Whose input it is
    #[arg(long, value_enum)]
    pub(crate) kind: Inputs,

    /// `untraced`, a codec, or `CODEC / POLICY`; each is run once, in this order
    #[arg(long = "way", value_name = "WAY", required = true)]
    pub(crate) ways: Vec<String>,

    /// Device memory of a recording; a session's own if not given
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<MemorySize>,

    /// Run the program untraced before
    #[arg(long)]
    pub(crate) warm: bool,

    /// Seconds after which no run is begun, but the first
    #[arg(long, value_name = "SECONDS")]
    pub(crate) time_limit: Option<u64>,

    /// Folder for the trace while it is needed
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}
