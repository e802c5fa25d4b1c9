//! Command line of `whole`.

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
    /// Four on which each codec is run under each policy, in one amount of device memory.
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

    /// Device memory of each recording, and what does not fit is lost: 1GiB with --kind policies if not
    /// given, otherwise as much as it takes to lose nothing
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<MemorySize>,

    /// Rounds, in each of which every program runs once untraced and once with each codec (`predict`, and
    /// unless inputs are long `raw`, if none is named with --codec); one run of each goes before them
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

    /// Program and input, as in the tables: run it once in this process
    #[arg(long, hide = true, requires = "variant")]
    pub(crate) subject: Option<String>,

    /// `untraced`, a codec, or `CODEC / POLICY`
    #[arg(long, hide = true)]
    pub(crate) variant: Option<String>,
}
