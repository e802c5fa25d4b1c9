//! DMR.

use std::borrow::Cow;

use anyhow::Context;
use warptrace_host::Launcher;
use warptrace_workloads::check::mesh::{self as checker, Parameters};
use warptrace_workloads::dmr::{self, DmrOptions, Refined};
use warptrace_workloads::inputs::{Limits, Mesh, generate, load_mesh};
use warptrace_workloads::{Grid, ProgramInfo};

use super::{SEED, Selection};
use crate::subject::{Case, Run, RunResult, Subject};

pub(super) const NAME: &str = "dmr";

pub(super) fn cases(selection: &Selection<'_>) -> Vec<Case> {
    let generated = |input, make: fn() -> anyhow::Result<Mesh>| case(selection, input, make);
    if selection.quick {
        return vec![generated("r1M-like, 300 points", || Ok(generate::mesh_r1m_like(300, SEED)?))];
    }
    let mut cases = vec![
        generated("250k.2-like", || Ok(generate::mesh_250k_like(250_000, SEED)?)).like("DMR, 250k.2"),
        generated("r1M-like", || Ok(generate::mesh_r1m_like(1_000_000, SEED)?)).like("DMR, r1M"),
    ];
    let real = selection
        .inputs
        .and_then(|folder| super::find(folder, "meshes", |name| name.starts_with("ttimeu100000.2.ele")));
    if let Some(path) = real {
        cases.push(case(selection, "ttimeu100000.2", move || {
            Ok(load_mesh(&path, &Limits::default()).context("cannot load the mesh")?.0)
        }));
    }
    cases
}

/// A refinement on a grid that is the same on every device: its number of threads decides the result.
pub(super) fn twin(quick: bool) -> Case {
    let points = if quick { 100 } else { 2_000 };
    let grid = Grid::new(4, 64).expect("a block has two warps");
    Case::new(NAME, format!("r1M-like, {} points, grid {grid}", crate::table::count(points)), move || {
        let options = DmrOptions { grid: Some(grid), ..DmrOptions::default() };
        Ok(Dmr { mesh: generate::mesh_r1m_like(points as usize, SEED)?, options })
    })
}

fn case(
    selection: &Selection<'_>,
    input: &str,
    make: impl Fn() -> anyhow::Result<Mesh> + Send + Sync + 'static,
) -> Case {
    let options = DmrOptions { grid: selection.grid, ..DmrOptions::default() };
    Case::new(NAME, selection.name(input), move || Ok(Dmr { mesh: make()?, options: options.clone() }))
}

struct Dmr {
    mesh: Mesh,
    options: DmrOptions,
}

impl Subject for Dmr {
    fn program(&self) -> &'static ProgramInfo {
        &dmr::PROGRAM
    }

    fn run(&self, launcher: &mut dyn Launcher) -> anyhow::Result<Run<'_>> {
        let outcome = dmr::run(launcher, &self.mesh, &self.options)?;
        let result = Mended { mesh: &self.mesh, refined: outcome.refined };
        Ok(Run { kernel: outcome.kernel, launches: outcome.launches, result: Box::new(result) })
    }
}

struct Mended<'s> {
    mesh: &'s Mesh,
    refined: Refined,
}

impl RunResult for Mended<'_> {
    fn bytes(&self) -> Cow<'_, [u8]> {
        let Refined { points, triangles, segments, .. } = &self.refined;
        let mut bytes: Vec<u8> = points.iter().flatten().copied().flat_map(f64::to_le_bytes).collect();
        bytes.extend(
            triangles.iter().flatten().chain(segments.iter().flatten()).flat_map(|index| index.to_le_bytes()),
        );
        Cow::Owned(bytes)
    }

    fn check(&self) -> Result<String, String> {
        let Refined { kept_corner, kept_short, kept_unsure, left_bad, .. } = self.refined;
        let report = checker::check(self.refined.view(), self.mesh, &Parameters::default());
        let kept = format!(
            "left alone: {kept_corner} in corners, {kept_short} under the floor, {kept_unsure} for rounding"
        );
        // The only violations may be the sharp angles that the result itself declares.
        let sound = report.problem_count == report.bad_triangles - report.bad_between_segments
            && report.bad_triangles == kept_corner + kept_short + kept_unsure
            && report.bad_between_segments == kept_corner
            && left_bad == 0;
        if !sound {
            let first = report.problems.first().map(ToString::to_string).unwrap_or_default();
            return Err(format!(
                "{left_bad} left to do; {} problems ({first}); {kept}",
                report.problem_count
            ));
        }
        Ok(format!(
            "conforming, Delaunay, no bad triangle among {}; {kept}",
            crate::table::count(report.triangles as u64)
        ))
    }
}
