//! MIS.

use std::borrow::Cow;
use std::path::Path;

use warptrace_host::Launcher;
use warptrace_workloads::ProgramInfo;
use warptrace_workloads::check::mis as checker;
use warptrace_workloads::inputs::{Graph, generate};
use warptrace_workloads::mis::{self, MisOptions};

use super::{SEED, graphs};
use crate::subject::{Case, Run, RunResult, Subject};

pub(super) const NAME: &str = "mis";

pub(super) fn cases(quick: bool, inputs: Option<&Path>) -> Vec<Case> {
    let case = |input: &str, make: fn() -> anyhow::Result<Graph>| {
        Case::new(NAME, input, move || Ok(Mis { graph: make()? }))
    };
    if quick {
        return vec![
            case("amazon-like, 2,000 nodes", || Ok(generate::amazon0312_like(2_000, SEED)?)),
            case("internet-like, 2,000 nodes", || Ok(generate::internet_like(2_000, SEED)?)),
            case("road-like, 2,025 nodes", || Ok(generate::usa_road_ny_like(2_025, SEED)?)),
        ];
    }
    let road = match graphs::road_ny_file(inputs) {
        Some(path) => Case::new(NAME, "USA-road-d.NY", move || Ok(Mis { graph: graphs::road_ny(&path)? })),
        None => case("USA-road-d.NY-like", || Ok(generate::usa_road_ny_like(264_346, SEED)?)),
    };
    vec![
        case("amazon0312-like", || Ok(generate::amazon0312_like(400_727, SEED)?)).like("MIS, amazon0312"),
        case("internet-like", || Ok(generate::internet_like(124_651, SEED)?)).like("MIS, internet"),
        road.like("MIS, USA-road-d.NY"),
    ]
}

struct Mis {
    graph: Graph,
}

impl Subject for Mis {
    fn program(&self) -> &'static ProgramInfo {
        &mis::PROGRAM
    }

    fn run(&self, launcher: &mut dyn Launcher) -> anyhow::Result<Run<'_>> {
        let outcome = mis::run(launcher, &self.graph, &MisOptions::default())?;
        let result = Set { graph: &self.graph, in_set: outcome.in_set };
        Ok(Run { kernel: outcome.kernel, launches: outcome.launches, result: Box::new(result) })
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
        checker::check(self.graph, &self.in_set).map_err(|error| error.to_string())?;
        if self.in_set != mis::reference(self.graph) {
            return Err("independent and maximal, but not the set that the ranks imply".to_owned());
        }
        let members = self.in_set.iter().filter(|&&inside| inside).count() as u64;
        Ok(format!(
            "independent, maximal, as on the CPU: {} of {} nodes",
            crate::table::count(members),
            crate::table::count(self.graph.nodes().into())
        ))
    }
}
