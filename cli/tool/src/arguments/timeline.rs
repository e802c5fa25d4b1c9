//! Arguments of `timeline`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Arguments of `timeline`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:\n  srun warptrace run -o step.%r.wtrc --times blocks -- python train.py\n  warptrace timeline step.*.wtrc\n\n\
Files say by a clock of their host when launches ran. Clocks of different hosts are compared by launches that end at the \
same time on all ranks, as those of collectives do.")]
pub(crate) struct Timeline {
    /// The traces, one for each rank, recorded with `--times`: files, folders, and patterns in quotes
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Kernels whose launches end at the same time on all ranks, to compare clocks of hosts by; `*` stands for any
    /// characters. May be repeated
    #[arg(long, value_name = "KERNEL", default_value = "nccl*")]
    pub(crate) align: Vec<String>,

    /// How many launches; 0: all. By default 20, and all in JSON
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,

    /// Write the launches of all ranks in this form, in place of the table
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) to: Option<TimelineFormat>,

    /// Where to write that
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    /// Print JSON
    #[arg(long, conflicts_with = "to")]
    pub(crate) json: bool,
}

/// Forms of timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimelineFormat {
    /// A track for each rank, for ui.perfetto.dev
    Perfetto,
}
