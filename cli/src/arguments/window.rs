//! What to record, for every program.

use clap::Args;
use warptrace_host::{BlockChoice, NumberRange, Window};

/// What to record: what fulfils all of it. A RANGE is written as in Rust: `3`, `3..7`, `3..=7`, `3..`, `..7`.
#[derive(Debug, Args)]
#[command(
    next_help_heading = "What to record (by default everything; ranges as in Rust: 3, 3..7, 3..=7, 3.., ..7)"
)]
pub(crate) struct Chosen {
    /// Only this kernel; `*` stands for any characters; may be given more than once
    #[arg(long = "kernel", value_name = "NAME")]
    kernels: Vec<String>,

    /// Only these launches; all launches of the program count, from 0
    #[arg(long = "launch", value_name = "RANGE", default_value = "..", hide_default_value = true)]
    launches: NumberRange,

    /// Only these blocks of each launch, by their linear index; `1/64`: those whose index is a multiple of 64
    #[arg(long, value_name = "RANGE|1/K", default_value = "..", hide_default_value = true)]
    blocks: BlockChoice,

    /// Only these warps of each block, by their number in it
    #[arg(long, value_name = "RANGE", default_value = "..", hide_default_value = true)]
    warps: NumberRange,

    /// No launch after those that have recorded so many events; a launch that has begun is recorded to its
    /// end
    #[arg(long, value_name = "N")]
    max_events: Option<u64>,
}

impl Chosen {
    /// Converts it to a window of a session.
    pub(crate) fn window(&self) -> Window {
        let Self { kernels, launches, blocks, warps, max_events } = self;
        let (launches, blocks, warps) = (*launches, *blocks, *warps);
        Window { kernels: kernels.clone(), launches, blocks, warps, max_events: *max_events }
    }
}
