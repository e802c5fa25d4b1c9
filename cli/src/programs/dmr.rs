//! `record dmr`.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use warptrace_host::Launcher;
use warptrace_workloads::dmr::{self, DmrOptions, DmrOutcome};
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

impl Dmr {
    fn options(&self) -> DmrOptions {
        DmrOptions { angle_degrees: self.angle, grid: self.grid, ..DmrOptions::default() }
    }
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
        Ok(dmr::run(launcher, mesh, &self.options())?)
    }

    fn check(&self, mesh: &Mesh, outcome: &DmrOutcome) -> anyhow::Result<String> {
        Ok(dmr::check(mesh, &self.options(), &outcome.refined)?.to_string())
    }
}
