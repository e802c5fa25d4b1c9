//! The programs, a file each, and the lists of inputs.

mod dmr;
mod fractal;
mod graphs;
mod mis;
mod mst;
mod nbody;

use std::path::{Path, PathBuf};

use warptrace_workloads::Grid;

use crate::arguments::Target;
use crate::subject::Case;

/// Seed of every generated input.
const SEED: u64 = 1;

/// Which inputs to run on.
pub(crate) struct Selection<'a> {
    /// Inputs small enough for the simulator; otherwise they are the thesis's, or of their families.
    pub(crate) quick: bool,
    /// Folder with real inputs.
    pub(crate) inputs: Option<&'a Path>,
    /// Grid of the programs with persistent blocks.
    pub(crate) grid: Option<Grid>,
    /// Only these programs, if there are any.
    pub(crate) programs: &'a [String],
}

impl<'a> Selection<'a> {
    /// What the command line says.
    pub(crate) fn of(target: &'a Target) -> Self {
        let Target { quick, grid, .. } = *target;
        Self { quick, inputs: target.inputs.as_deref(), grid, programs: &target.programs }
    }

    /// The input's name, with the grid if it was chosen.
    fn name(&self, input: &str) -> String {
        self.grid.map_or_else(|| input.to_owned(), |grid| format!("{input}, grid {grid}"))
    }
}

/// What to run.
pub(crate) fn cases(selection: &Selection<'_>) -> anyhow::Result<Vec<Case>> {
    let Selection { quick, programs, .. } = *selection;
    let lists = [
        fractal::cases(quick),
        nbody::cases(quick),
        mis::cases(selection),
        mst::cases(selection),
        dmr::cases(selection),
    ];
    let mut cases: Vec<Case> = lists.into_iter().flatten().collect();
    let known = [fractal::NAME, nbody::NAME, mis::NAME, mst::NAME, dmr::NAME];
    if let Some(unknown) = programs.iter().find(|name| !known.contains(&name.as_str())) {
        anyhow::bail!("there is no program `{unknown}`; the programs are {}", known.join(", "));
    }
    if !programs.is_empty() {
        cases.retain(|case| programs.iter().any(|name| name == case.program));
    }
    Ok(cases)
}

/// The deterministic programs on inputs small enough to be run on the simulator as well and compared lane by lane.
pub(crate) fn twins(selection: &Selection<'_>) -> Vec<Case> {
    let Selection { quick, programs, .. } = *selection;
    let mut cases = vec![fractal::twin(quick), nbody::twin(quick)];
    cases.retain(|case| programs.is_empty() || programs.iter().any(|name| name == case.program));
    cases
}

/// The first file, by name, in `folder` or in its subfolder `below` whose name fits.
fn find(folder: &Path, below: &str, fits: impl Fn(&str) -> bool) -> Option<PathBuf> {
    [folder.to_owned(), folder.join(below)].iter().find_map(|folder| {
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
        files.sort();
        files.into_iter().find(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(&fits))
    })
}
