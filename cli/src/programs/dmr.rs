//! `record dmr`.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use warptrace_host::Launcher;
use warptrace_workloads::check::mesh::{self as checker, Parameters};
use warptrace_workloads::dmr::{self, DmrOptions, DmrOutcome};
use warptrace_workloads::inputs::geometry::AngleBound;
use warptrace_workloads::inputs::{Limits, Mesh, generate, load_mesh};
use warptrace_workloads::{Grid, ProgramInfo};

use super::{INPUT_SEED, Program, grid_property};
use crate::output::count;

/// Options of `record dmr`.
#[derive(Debug, Args)]
pub(crate) struct Dmr {
    /// A mesh in Triangle's files: the stem of .node and .ele (and .poly), or one of them; plain, gzip or xz
    #[arg(long, value_name = "FILE", conflicts_with_all = ["points", "seed"])]
    mesh: Option<PathBuf>,

    /// Random points in a triangle, triangulated, instead of a file
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(3..=1 << 28))]
    points: u32,

    /// Seed of the points
    #[arg(long, default_value_t = INPUT_SEED)]
    seed: u64,

    /// The sharpest angle allowed, in degrees
    #[arg(long, value_name = "DEGREES", default_value_t = 30.0)]
    angle: f64,

    /// Blocks and threads of a block, as in 192x256; a grid that fills the device if not given
    #[arg(long, value_name = "BLOCKSxTHREADS")]
    grid: Option<Grid>,
}

impl Program for Dmr {
    type Input = Mesh;
    type Outcome = DmrOutcome;

    fn info(&self) -> &'static ProgramInfo {
        &dmr::PROGRAM
    }

    fn input(&self) -> anyhow::Result<Mesh> {
        match &self.mesh {
            Some(path) => Ok(load_mesh(path, &Limits::default()).context("cannot load the mesh")?.0),
            None => Ok(generate::mesh_r1m_like(self.points as usize, self.seed)?),
        }
    }

    fn describe(&self, mesh: &Mesh) -> String {
        let source = self.mesh.as_ref().map_or("random".to_owned(), |path| path.display().to_string());
        format!(
            "{source}: {} points, {} triangles",
            count(mesh.points().len() as u64),
            count(mesh.triangles().len() as u64)
        )
    }

    fn properties(&self) -> Vec<(&'static str, String)> {
        let mut properties = match &self.mesh {
            Some(path) => vec![("mesh", path.display().to_string())],
            None => vec![("points", self.points.to_string()), ("seed", self.seed.to_string())],
        };
        properties.push(("angle", self.angle.to_string()));
        properties.extend(grid_property(self.grid));
        properties
    }

    fn run(&self, launcher: &mut dyn Launcher, mesh: &Mesh) -> anyhow::Result<DmrOutcome> {
        let options = DmrOptions { angle_degrees: self.angle, grid: self.grid, ..DmrOptions::default() };
        Ok(dmr::run(launcher, mesh, &options)?)
    }

    fn check(&self, mesh: &Mesh, outcome: &DmrOutcome) -> Result<String, String> {
        let refined = &outcome.refined;
        let bound = AngleBound::from_degrees(self.angle).ok_or("the angle is none")?;
        let parameters = Parameters { bound, ..Parameters::default() };
        let report = checker::check(refined.view(), mesh, &parameters);
        // Some sharp angles stay, and the result says which: the only problems may be these.
        let kept = refined.kept_corner + refined.kept_short + refined.kept_unsure;
        let sound = report.problem_count == report.bad_triangles - report.bad_between_segments
            && report.bad_triangles == kept
            && report.bad_between_segments == refined.kept_corner
            && refined.left_bad == 0;
        if !sound {
            let first = report.problems.first().map(ToString::to_string).unwrap_or_default();
            return Err(format!(
                "{} triangles left to do, {} problems: {first}",
                refined.left_bad, report.problem_count
            ));
        }
        Ok(format!(
            "conforming and Delaunay: {} triangles, {} sharp ones that have to stay",
            count(report.triangles as u64),
            count(kept as u64)
        ))
    }
}
