//! Recording options of all programs.

use std::path::PathBuf;

use clap::Args;
use warptrace_host::{DeviceChoice, SimOptions};
use warptrace_spec::RecordingSpec;

/// How to record.
#[derive(Debug, Args)]
#[command(next_help_heading = "Recording")]
pub struct Recording {
    /// Where to write the trace
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,

    /// Where to run: `auto` takes the first GPU, or the simulator where there is none
    #[arg(long, value_name = "auto|cuda[:N]|sim", default_value = "auto", value_parser = parse_device)]
    pub device: DeviceChoice,

    /// Seed of the order in which the simulator runs blocks and warps
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub sim_seed: u64,

    /// Recording options.
    #[command(flatten)]
    pub spec: RecordingSpec,
}

impl Recording {
    /// Returns the options of the simulator.
    pub fn simulator(&self) -> SimOptions {
        SimOptions { seed: self.sim_seed, ..SimOptions::default() }
    }
}

fn parse_device(text: &str) -> Result<DeviceChoice, String> {
    text.parse().map_err(|error| format!("{error}; `warptrace devices` lists them"))
}
