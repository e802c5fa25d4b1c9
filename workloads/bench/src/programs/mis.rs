//! MIS.

use std::borrow::Cow;

use clap::Args;
use warptrace_host::Launcher;
use warptrace_workloads::inputs::{Graph, generate};
use warptrace_workloads::mis::{self, MisOptions};
use warptrace_workloads::{Grid, ProgramInfo};

use super::graphs::{self, GraphInput};
use super::{SEED, Selection};
use crate::subject::{Case, RunResult, Subject, SubjectRun};

pub(super) fn cases(selection: &Selection<'_>) -> Vec<Case> {
    let generated = |input, make: fn() -> anyhow::Result<Graph>| case(selection, input, make);
    if selection.quick {
        return vec![
            generated("amazon-like, 2,000 nodes", || Ok(generate::amazon0312_like(2_000, SEED)?)),
            generated("internet-like, 2,000 nodes", || Ok(generate::internet_like(2_000, SEED)?)),
            generated("road-like, 2,025 nodes", || Ok(generate::usa_road_ny_like(2_025, SEED)?)),
        ];
    }
    let road = match graphs::road_ny_file(selection.inputs) {
        Some(path) => case(selection, "USA-road-d.NY", move || graphs::road_ny(&path)),
        None => generated("USA-road-d.NY-like", || Ok(generate::usa_road_ny_like(264_346, SEED)?)),
    };
    vec![
        generated("amazon0312-like", || Ok(generate::amazon0312_like(400_727, SEED)?))
            .like("MIS, amazon0312"),
        generated("internet-like", || Ok(generate::internet_like(124_651, SEED)?)).like("MIS, internet"),
        road.like("MIS, USA-road-d.NY"),
    ]
}

/// Returns a larger graph. The run spends most of its time copying it to the device.
pub(super) fn long(selection: &Selection<'_>) -> Case {
    if selection.quick {
        return case(selection, "amazon-like, 4,000 nodes", || Ok(generate::amazon0312_like(4_000, SEED)?));
    }
    let make = || Ok(generate::amazon0312_like(1 << 20, SEED)?);
    case(selection, "amazon0312-like, 2^20 nodes", make)
}

/// Returns a graph of 2^24 nodes, with the only generator with hubs that makes it in seconds.
pub(super) fn huge(selection: &Selection<'_>) -> Case {
    let (nodes, input) = if selection.quick {
        (3_000, "internet-like, 3,000 nodes")
    } else {
        (1 << 24, "internet-like, 2^24 nodes")
    };
    case(selection, input, move || Ok(generate::internet_like(nodes, SEED)?))
}

pub(super) fn fidelity() -> Vec<Case> {
    let generated =
        |input, make: fn() -> anyhow::Result<Graph>| case(&Selection::default(), input, make).asynchronous();
    vec![
        generated("amazon0312-like, 100,000 nodes", || Ok(generate::amazon0312_like(100_000, SEED)?)),
        generated("internet-like, 100,000 nodes", || Ok(generate::internet_like(100_000, SEED)?)),
    ]
}

fn case(
    selection: &Selection<'_>,
    input: &str,
    make: impl Fn() -> anyhow::Result<Graph> + Send + Sync + 'static,
) -> Case {
    let options = MisOptions { grid: selection.grid, ..MisOptions::default() };
    Case::new(&mis::PROGRAM, selection.name(input), move || Ok(Mis { graph: make()?, options }))
}

/// Options of `record mis`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    input: GraphInput,

    /// Blocks and threads of a block, as in 192x256; a grid that fills the device if not given
    #[arg(long, value_name = "BLOCKSxTHREADS")]
    grid: Option<Grid>,
}

impl Options {
    pub(crate) fn case(&self) -> Case {
        let options = MisOptions { grid: self.grid, ..MisOptions::default() };
        let input = self.input.clone();
        let make = move || Ok(Mis { graph: input.graph()?, options });
        self.input.named(Case::new(&mis::PROGRAM, self.input.to_string(), make)).on_grid(self.grid)
    }
}

struct Mis {
    graph: Graph,
    options: MisOptions,
}

impl Subject for Mis {
    fn program(&self) -> &'static ProgramInfo {
        &mis::PROGRAM
    }

    fn size(&self) -> Option<String> {
        Some(graphs::size(&self.graph))
    }

    fn run(&self, launcher: &mut dyn Launcher) -> anyhow::Result<SubjectRun<'_>> {
        let outcome = mis::run(launcher, &self.graph, &self.options)?;
        let result = Set { graph: &self.graph, in_set: outcome.in_set };
        Ok(SubjectRun { kernel: outcome.kernel, launches: outcome.launches, result: Box::new(result) })
    }
}

struct Set<'s> {
    graph: &'s Graph,
    in_set: Vec<bool>,
}

impl RunResult for Set<'_> {
    fn bytes(&self) -> Cow<'_, [u8]> {
        Cow::Owned(self.in_set.iter().map(|&inside| u8::from(inside)).collect())
    }

    fn check(&self) -> Result<String, String> {
        mis::check(self.graph, &self.in_set)
    }
}
