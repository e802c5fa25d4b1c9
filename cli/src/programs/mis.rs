//! `record mis`.

use clap::Args;
use warptrace_host::Launcher;
use warptrace_workloads::inputs::Graph;
use warptrace_workloads::mis::{self, MisOptions, MisOutcome};
use warptrace_workloads::{Grid, ProgramInfo};

use super::graph::GraphInput;
use super::{Program, grid_property};

/// Options of `record mis`.
#[derive(Debug, Args)]
pub(crate) struct Mis {
    #[command(flatten)]
    input: GraphInput,

    /// Blocks and threads of a block, as in 192x256; a grid that fills the device if not given
    #[arg(long, value_name = "BLOCKSxTHREADS")]
    grid: Option<Grid>,
}

impl Program for Mis {
    type Input = Graph;
    type Outcome = MisOutcome;

    fn info(&self) -> &'static ProgramInfo {
        &mis::PROGRAM
    }

    fn input(&self) -> anyhow::Result<Graph> {
        self.input.graph()
    }

    fn describe(&self, graph: &Graph) -> String {
        self.input.describe(graph)
    }

    fn properties(&self) -> Vec<(&'static str, String)> {
        self.input.properties().into_iter().chain(grid_property(self.grid)).collect()
    }

    fn run(&self, launcher: &mut dyn Launcher, graph: &Graph) -> anyhow::Result<MisOutcome> {
        Ok(mis::run(launcher, graph, &MisOptions { grid: self.grid, ..MisOptions::default() })?)
    }

    fn check(&self, graph: &Graph, outcome: &MisOutcome) -> anyhow::Result<String> {
        Ok(mis::check(graph, &outcome.in_set)?.to_string())
    }
}
