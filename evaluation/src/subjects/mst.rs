//! MST.

use std::borrow::Cow;

use warptrace_host::Launcher;
use warptrace_workloads::ProgramInfo;
use warptrace_workloads::inputs::{Graph, generate};
use warptrace_workloads::mst::{self, MstOptions};

use super::{SEED, Selection, graphs};
use crate::subject::{Case, Run, RunResult, Subject, in_words};

pub(super) const NAME: &str = "mst";

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

/// A larger graph.
pub(super) fn long(selection: &Selection<'_>) -> Case {
    if selection.quick {
        return case(selection, "road-like, 2,025 nodes", || Ok(generate::usa_road_ny_like(2_025, SEED)?));
    }
    let make = || Ok(generate::usa_road_ny_like(1 << 20, SEED)?);
    case(selection, "USA-road-d.NY-like, 2^20 nodes", make)
}

/// An input whose counts are compared with hardware counters.
pub(super) fn fidelity() -> Case {
    case(&Selection::default(), "rmat12-like", || Ok(generate::rmat12(SEED)?)).asynchronous()
}

fn case(
    selection: &Selection<'_>,
    input: &str,
    make: impl Fn() -> anyhow::Result<Graph> + Send + Sync + 'static,
) -> Case {
    let options = MstOptions { grid: selection.grid };
    Case::new(NAME, selection.name(input), move || Ok(Mst { graph: make()?, options }))
}

struct Mst {
    graph: Graph,
    options: MstOptions,
}

impl Subject for Mst {
    fn program(&self) -> &'static ProgramInfo {
        &mst::PROGRAM
    }

    fn run(&self, launcher: &mut dyn Launcher) -> anyhow::Result<Run<'_>> {
        let outcome = mst::run(launcher, &self.graph, &self.options)?;
        let result = Forest { graph: &self.graph, arcs: outcome.arcs, weight: outcome.weight };
        Ok(Run { kernel: outcome.kernel, launches: outcome.launches, result: Box::new(result) })
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
        in_words(mst::check(self.graph, &self.arcs, self.weight))
    }
}
