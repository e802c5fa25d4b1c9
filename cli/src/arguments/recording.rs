//! How to record, for every program.

use std::path::PathBuf;

use clap::Args;
use warptrace_host::{DeviceChoice, SimOptions};
use warptrace_spec::RecordingSpec;

/// How to record.
#[derive(Debug, Args)]
#[command(next_help_heading = "Recording")]
pub(crate) struct Recording {
    /// Where to write the trace
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// Where to run: `auto` takes the first GPU, or the simulator where there is none
    #[arg(long, value_name = "auto|cuda[:N]|sim", default_value = "auto", value_parser = parse_device)]
    pub(crate) device: DeviceChoice,

    /// Take the program's automatic trace points, at every decision, instead of those placed by hand
    #[arg(long)]
    pub(crate) automatic: bool,

    /// Seed of the order in which the simulator runs blocks and warps
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) sim_seed: u64,

    /// Leave out the check of the program's result, which takes the CPU long for large inputs
    #[arg(long)]
    pub(crate) no_check: bool,

    /// What is recorded, and how.
    #[command(flatten)]
    pub(crate) spec: RecordingSpec,
}

impl Recording {
    /// Returns how the simulator runs, if it is taken.
    pub(crate) fn simulator(&self) -> SimOptions {
        SimOptions { seed: self.sim_seed, ..SimOptions::default() }
    }
}

fn parse_device(text: &str) -> Result<DeviceChoice, String> {
    text.parse().map_err(|error| format!("{error}; `warptrace devices` lists them"))
}
