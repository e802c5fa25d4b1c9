//! The programs, a file each, and the lists of inputs.

mod dmr;
pub(crate) mod fractal;
mod graphs;
pub(crate) mod matmul;
mod mis;
mod mst;
pub(crate) mod nbody;
mod stress;
mod triad;

use std::path::{Path, PathBuf};

use warptrace_workloads::Grid;

use crate::arguments::{Inputs, Target};
use crate::subject::Case;

/// Seed of every generated input.
const SEED: u64 = 1;

/// Which inputs to run on.
#[derive(Clone, Copy, Debug, Default)]
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

/// What to check and to measure: the thesis's five programs, and after them the others.
pub(crate) fn measured(selection: &Selection<'_>) -> anyhow::Result<Vec<Case>> {
    let quick = selection.quick;
    let lists = vec![
        (fractal::NAME, fractal::cases(quick)),
        (nbody::NAME, nbody::cases(quick)),
        (mis::NAME, mis::cases(selection)),
        (mst::NAME, mst::cases(selection)),
        (dmr::NAME, dmr::cases(selection)),
        (matmul::NAME, matmul::cases(quick)),
        (stress::NAME, stress::cases(quick)),
    ];
    selected(lists, selection.programs)
}

/// What runs in processes of its own: an input of each of the thesis's programs, or what policies are
/// compared on.
pub(crate) fn in_processes(inputs: Inputs, selection: &Selection<'_>) -> anyhow::Result<Vec<Case>> {
    let first = |cases: Vec<Case>| cases.into_iter().take(1).collect();
    let quick = selection.quick;
    let lists = match inputs {
        Inputs::Short => vec![
            (fractal::NAME, first(fractal::cases(quick))),
            (nbody::NAME, first(nbody::cases(quick))),
            (mis::NAME, first(mis::cases(selection))),
            (mst::NAME, first(mst::cases(selection))),
            (dmr::NAME, first(dmr::cases(selection))),
        ],
        Inputs::Long => vec![
            (fractal::NAME, vec![fractal::long(quick)]),
            (nbody::NAME, vec![nbody::long(quick)]),
            (mis::NAME, vec![mis::long(selection)]),
            (mst::NAME, vec![mst::long(selection)]),
            (dmr::NAME, vec![dmr::long(selection)]),
        ],
        Inputs::Policies => vec![
            (stress::NAME, stress::cases(quick)),
            (mis::NAME, vec![mis::huge(selection)]),
            (nbody::NAME, first(nbody::cases(quick))),
            (triad::NAME, vec![triad::case(quick)]),
        ],
    };
    selected(lists, selection.programs)
}

/// What is compared with hardware counters, of the chosen `programs`, or of all if none is chosen. The inputs
/// are small: a profiler runs each kernel twice, and slower.
pub(crate) fn fidelity(programs: &[String]) -> anyhow::Result<Vec<Case>> {
    let lists = vec![
        (fractal::NAME, vec![fractal::case(1024, 512)]),
        (nbody::NAME, vec![nbody::fidelity()]),
        (matmul::NAME, vec![matmul::case(512)]),
        (stress::NAME, vec![stress::fidelity()]),
        (dmr::NAME, vec![dmr::fidelity()]),
        (mis::NAME, vec![mis::fidelity()]),
        (mst::NAME, vec![mst::fidelity()]),
    ];
    selected(lists, programs)
}

/// The cases of the chosen programs, of all if none is chosen.
fn selected(lists: Vec<(&'static str, Vec<Case>)>, programs: &[String]) -> anyhow::Result<Vec<Case>> {
    let known: Vec<&str> = lists.iter().map(|(name, _)| *name).collect();
    if let Some(unknown) = programs.iter().find(|name| !known.contains(&name.as_str())) {
        anyhow::bail!("there is no program `{unknown}`; the programs are {}", known.join(", "));
    }
    let is_chosen = |name: &str| programs.is_empty() || programs.iter().any(|program| program == name);
    Ok(lists.into_iter().filter(|(name, _)| is_chosen(name)).flat_map(|(_, cases)| cases).collect())
}

/// The programs whose lanes do not depend on the order in which threads run, on inputs small enough to be run
/// on the simulator as well and compared lane by lane. (MIS and MST are asynchronous.)
pub(crate) fn twins(selection: &Selection<'_>) -> Vec<Case> {
    let Selection { quick, programs, .. } = *selection;
    let mut cases = vec![
        fractal::twin(quick),
        nbody::twin(quick),
        dmr::twin(quick),
        matmul::twin(quick),
        stress::twin(quick),
    ];
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
