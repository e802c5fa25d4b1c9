//! MST.

use std::borrow::Cow;

use clap::Args;
use warptrace_host::Launcher;
use warptrace_workloads::inputs::{Graph, generate};
use warptrace_workloads::mst::{self, MstOptions};
use warptrace_workloads::{Grid, ProgramInfo};

use super::graphs::{self, GraphInput};
use super::{SEED, Selection};
use crate::subject::{Case, RunResult, Subject, SubjectRun};

pub(super) fn cases(selection: &Selection<'_>) -> Vec<Case> {
    let generated = |input, make: fn() -> anyhow::Result<Graph>| case(selection, input, make);
    if selection.quick {
        return vec![generated("road-like, 1,024 nodes", || Ok(generate::usa_road_ny_like(1_024, SEED)?))];
    }
    let mut cases = vec![generated("rmat12-like", || Ok(generate::rmat12(SEED)?)).like("MST, rmat12")];
    if let Some(path) = graphs::road_ny_file(selection.inputs) {
        cases.push(case(selection, "USA-road-d.NY", move || graphs::road_ny(&path)));
    }
    cases
}

pub(super) fn long(selection: &Selection<'_>) -> Case {
    if selection.quick {
        return case(selection, "road-like, 2,025 nodes", || Ok(generate::usa_road_ny_like(2_025, SEED)?));
    }
    let make = || Ok(generate::usa_road_ny_like(1 << 20, SEED)?);
    case(selection, "USA-road-d.NY-like, 2^20 nodes", make)
}

pub(super) fn fidelity() -> Case {
    case(&Selection::default(), "rmat12-like", || Ok(generate::rmat12(SEED)?)).asynchronous()
}

fn case(
    selection: &Selection<'_>,
    input: &str,
    make: impl Fn() -> anyhow::Result<Graph> + Send + Sync + 'static,
) -> Case {
    let options = MstOptions { grid: selection.grid };
    Case::new(&mst::PROGRAM, selection.name(input), move || Ok(Mst { graph: make()?, options }))
}

/// Options of `record mst`.
#[derive(Debug, Args)]
pub(crate) struct Options {
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

impl Options {
    pub(crate) fn case(&self) -> Case {
        let (input, weights, options) =
            (self.input.clone(), self.random_weights, MstOptions { grid: self.grid });
        let case = Case::new(&mst::PROGRAM, self.input.to_string(), move || {
            let graph = input.graph()?;
            Ok(Mst { graph: if weights { input.with_random_weights(graph)? } else { graph }, options })
        });
        let case = self.input.named(case);
        let case = if weights { case.with(&[("weights", &"random")]) } else { case };
        case.on_grid(self.grid)
    }
}

struct Mst {
    graph: Graph,
    options: MstOptions,
}

impl Subject for Mst {
    fn program(&self) -> &'static ProgramInfo {
        &mst::PROGRAM
    }

    fn size(&self) -> Option<String> {
        let weights = if self.graph.weights().is_some() { "weighted" } else { "all edges weigh 1" };
        Some(format!("{}, {weights}", graphs::size(&self.graph)))
    }

    fn run(&self, launcher: &mut dyn Launcher) -> anyhow::Result<SubjectRun<'_>> {
        let outcome = mst::run(launcher, &self.graph, &self.options)?;
        let result = Forest { graph: &self.graph, arcs: outcome.arcs, weight: outcome.weight };
        Ok(SubjectRun { kernel: outcome.kernel, launches: outcome.launches, result: Box::new(result) })
    }
}

struct Forest<'s> {
    graph: &'s Graph,
    arcs: Vec<u32>,
    weight: u64,
}

impl RunResult for Forest<'_> {
    fn bytes(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(bytemuck::cast_slice(&self.arcs))
    }

    fn check(&self) -> Result<String, String> {
        mst::check(self.graph, &self.arcs, self.weight)
    }
}
