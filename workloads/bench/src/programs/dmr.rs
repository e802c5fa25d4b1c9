//! DMR.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use warptrace_host::Launcher;
use warptrace_workloads::dmr::{self, DmrOptions, Refined};
use warptrace_workloads::inputs::{Limits, Mesh, generate, load_mesh, mesh_files};
use warptrace_workloads::{Grid, ProgramInfo};

use super::{SEED, Selection};
use crate::subject::{Case, RunResult, Subject, SubjectRun};
use crate::table::count;

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
        cases.push(case(selection, "ttimeu100000.2", move || load(&path)));
    }
    cases
}

pub(super) fn long(selection: &Selection<'_>) -> Case {
    let points = if selection.quick { 600 } else { 1_000_000 };
    let name = format!("r1M-like, {} points", count(points));
    case(selection, &name, move || Ok(generate::mesh_r1m_like(points as usize, SEED)?))
}

/// Returns a refinement with the same grid on every device, because the result depends on it.
pub(super) fn twin(quick: bool) -> Case {
    on_small_grid(if quick { 100 } else { 2_000 })
}

/// Returns a case with few points, because only the first launches are profiled.
pub(super) fn fidelity() -> Case {
    on_small_grid(500)
}

fn on_small_grid(points: u64) -> Case {
    let grid = Grid::new(4, 64).expect("a block has two warps");
    Case::new(&dmr::PROGRAM, format!("r1M-like, {} points, grid {grid}", count(points)), move || {
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
    Case::new(&dmr::PROGRAM, selection.name(input), move || {
        Ok(Dmr { mesh: make()?, options: options.clone() })
    })
}

/// Options of `record dmr`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// A mesh in Triangle's files: the stem of .node and .ele (and .poly), or one of them; plain, gzip or xz
    #[arg(long, value_name = "FILE", conflicts_with_all = ["points", "seed"])]
    mesh: Option<PathBuf>,

    /// Random points in a triangle, triangulated, instead of a file
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(3..=1 << 28))]
    points: u32,

    /// Seed of the points
    #[arg(long, default_value_t = SEED)]
    seed: u64,

    /// The sharpest angle allowed, in degrees
    #[arg(long, value_name = "DEGREES", default_value_t = 30.0)]
    angle: f64,

    /// Blocks and threads of a block, as in 192x256; a grid that fills the device if not given
    #[arg(long, value_name = "BLOCKSxTHREADS")]
    grid: Option<Grid>,
}

impl Options {
    pub(crate) fn case(&self) -> Case {
        let Self { ref mesh, points, seed, angle, grid } = *self;
        let options = DmrOptions { angle_degrees: angle, grid, ..DmrOptions::default() };
        let source = mesh.as_ref().map_or_else(|| "random".to_owned(), |path| path.display().to_string());
        let path = mesh.clone();
        let files = mesh.as_ref().map(mesh_files).unwrap_or_default();
        let case = Case::new(&dmr::PROGRAM, &source, move || {
            let mesh = match &path {
                Some(path) => load(path)?,
                None => generate::mesh_r1m_like(points as usize, seed)?,
            };
            Ok(Dmr { mesh, options: options.clone() })
        });
        let case = match mesh {
            Some(_) => case.with(&[("mesh", &source)]),
            None => case.with(&[("points", &points), ("seed", &seed)]),
        };
        files.iter().fold(case.with(&[("angle", &angle)]).on_grid(grid), |case, path| case.file(Some(path)))
    }
}

fn load(path: &Path) -> anyhow::Result<Mesh> {
    Ok(load_mesh(path, &Limits::default()).context("cannot load the mesh")?.0)
}

struct Dmr {
    mesh: Mesh,
    options: DmrOptions,
}

impl Subject for Dmr {
    fn program(&self) -> &'static ProgramInfo {
        &dmr::PROGRAM
    }

    fn size(&self) -> Option<String> {
        let (points, triangles) = (self.mesh.points().len() as u64, self.mesh.triangles().len() as u64);
        Some(format!("{} points, {} triangles", count(points), count(triangles)))
    }

    fn run(&self, launcher: &mut dyn Launcher) -> anyhow::Result<SubjectRun<'_>> {
        let outcome = dmr::run(launcher, &self.mesh, &self.options)?;
        let result = Mended { subject: self, refined: outcome.refined };
        Ok(SubjectRun { kernel: outcome.kernel, launches: outcome.launches, result: Box::new(result) })
    }
}

struct Mended<'s> {
    subject: &'s Dmr,
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
        dmr::check(&self.subject.mesh, &self.subject.options, &self.refined)
    }
}
