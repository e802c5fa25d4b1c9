//! `record triad`.

use clap::Args;
use warptrace_host::Launcher;
use warptrace_workloads::triad::{self, Arrays, TriadOptions, TriadOutcome};
use warptrace_workloads::{Grid, ProgramInfo};

use super::{Program, grid_property};
use crate::output::count;

/// Options of `record triad`.
#[derive(Debug, Args)]
pub(crate) struct Triad {
    /// Elements of each array
    #[arg(long, value_name = "N", default_value_t = triad::DEFAULT_ELEMENTS,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(triad::MAX_ELEMENTS)))]
    elements: u32,

    /// Launches, each of which computes all elements
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    passes: u32,

    /// Blocks and threads of a block, as in 192x256; as many threads as the device holds at once if not given
    #[arg(long, value_name = "BLOCKSxTHREADS")]
    grid: Option<Grid>,
}

impl Program for Triad {
    type Input = Arrays;
    type Outcome = TriadOutcome;

    fn info(&self) -> &'static ProgramInfo {
        &triad::PROGRAM
    }

    fn input(&self) -> anyhow::Result<Arrays> {
        Ok(Arrays::new(self.elements)?)
    }

    fn describe(&self, _: &Arrays) -> String {
        let plural = if self.passes == 1 { "" } else { "es" };
        format!("{} elements, {} pass{plural}", count(self.elements.into()), self.passes)
    }

    fn properties(&self) -> Vec<(&'static str, String)> {
        let numbers = [("elements", self.elements.to_string()), ("passes", self.passes.to_string())];
        numbers.into_iter().chain(grid_property(self.grid)).collect()
    }

    fn run(&self, launcher: &mut dyn Launcher, arrays: &Arrays) -> anyhow::Result<TriadOutcome> {
        Ok(triad::run(launcher, arrays, &TriadOptions { passes: self.passes, grid: self.grid })?)
    }

    fn check(&self, arrays: &Arrays, outcome: &TriadOutcome) -> anyhow::Result<String> {
        Ok(triad::check(arrays, &outcome.a)?.to_string())
    }
}
