//! `record mst`.

use clap::Args;
use warptrace_host::Launcher;
use warptrace_workloads::inputs::Graph;
use warptrace_workloads::mst::{self, MstOptions, MstOutcome};
use warptrace_workloads::{Grid, ProgramInfo};

use super::graph::GraphInput;
use super::{Program, grid_property};

/// Options of `record mst`.
#[derive(Debug, Args)]
pub(crate) struct Mst {
    #[command(flatten)]
    input: GraphInput,

    /// Give each edge a random weight from 1 to 1,000, by the seed, instead of its own; without weights all
    /// weigh 1
    #[arg(long)]
    random_weights: bool,

    /// Blocks and threads of a block, as in 192x256; a grid that fills the device if not given
    #[arg(long, value_name = "BLOCKSxTHREADS")]
    grid: Option<Grid>,
}

impl Program for Mst {
    type Input = Graph;
    type Outcome = MstOutcome;

    fn info(&self) -> &'static ProgramInfo {
        &mst::PROGRAM
    }

    fn input(&self) -> anyhow::Result<Graph> {
        let graph = self.input.graph()?;
        if self.random_weights { self.input.with_random_weights(graph) } else { Ok(graph) }
    }

    fn describe(&self, graph: &Graph) -> String {
        let weights = if graph.weights().is_some() { "weighted" } else { "all edges weigh 1" };
        format!("{}, {weights}", self.input.describe(graph))
    }

    fn properties(&self) -> Vec<(&'static str, String)> {
        let mut properties = self.input.properties();
        if self.random_weights {
            properties.push(("weights", "random".to_owned()));
        }
        properties.extend(grid_property(self.grid));
        properties
    }

    fn run(&self, launcher: &mut dyn Launcher, graph: &Graph) -> anyhow::Result<MstOutcome> {
        Ok(mst::run(launcher, graph, &MstOptions { grid: self.grid })?)
    }

    fn check(&self, graph: &Graph, outcome: &MstOutcome) -> anyhow::Result<String> {
        Ok(mst::check(graph, &outcome.arcs, outcome.weight)?.to_string())
    }
}
