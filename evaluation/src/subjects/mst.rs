//! MST.

use std::borrow::Cow;
use std::path::Path;

use warptrace_host::Launcher;
use warptrace_workloads::ProgramInfo;
use warptrace_workloads::check::mst as checker;
use warptrace_workloads::inputs::{Graph, generate};
use warptrace_workloads::mst::{self, MstOptions};

use super::{SEED, graphs};
use crate::subject::{Case, Run, RunResult, Subject};

pub(super) const NAME: &str = "mst";

pub(super) fn cases(quick: bool, inputs: Option<&Path>) -> Vec<Case> {
    let case = |input: &str, make: fn() -> anyhow::Result<Graph>| {
        Case::new(NAME, input, move || Ok(Mst { graph: make()? }))
    };
    if quick {
        return vec![case("road-like, 1,024 nodes", || Ok(generate::usa_road_ny_like(1_024, SEED)?))];
    }
    let mut cases = vec![case("rmat12-like", || Ok(generate::rmat12(SEED)?)).like("MST, rmat12")];
    if let Some(path) = graphs::road_ny_file(inputs) {
        cases.push(Case::new(NAME, "USA-road-d.NY", move || Ok(Mst { graph: graphs::road_ny(&path)? })));
    }
    cases
}

struct Mst {
    graph: Graph,
}

impl Subject for Mst {
    fn program(&self) -> &'static ProgramInfo {
        &mst::PROGRAM
    }

    fn run(&self, launcher: &mut dyn Launcher) -> anyhow::Result<Run<'_>> {
        let outcome = mst::run(launcher, &self.graph, &MstOptions::default())?;
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
        checker::check(self.graph, &self.arcs).map_err(|error| error.to_string())?;
        let expected = checker::kruskal(self.graph).weight;
        if self.weight != expected {
            return Err(format!(
                "the weight is given as {}, Kruskal's forest weighs {expected}",
                self.weight
            ));
        }
        Ok(format!(
            "as heavy as Kruskal's: {} edges, weight {}",
            crate::table::count(self.arcs.len() as u64),
            crate::table::count(self.weight)
        ))
    }
}
