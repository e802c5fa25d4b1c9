//! The programs, one file each, and the lists of inputs.

pub(crate) mod dmr;
pub(crate) mod fault;
pub(crate) mod fractal;
mod graphs;
pub(crate) mod matmul;
pub(crate) mod mis;
pub(crate) mod mst;
pub(crate) mod nbody;
pub(crate) mod stress;
pub(crate) mod triad;

use std::path::{Path, PathBuf};

use anyhow::Context;
use warptrace_workloads::Grid;

use crate::arguments::{Inputs, Target};
use crate::subject::Case;

/// Seed of every generated input.
const SEED: u64 = 1;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Selection<'a> {
    /// Selects inputs small enough for the simulator; otherwise the thesis's or similar ones.
    pub(crate) quick: bool,
    pub(crate) inputs: Option<&'a Path>,
    pub(crate) grid: Option<Grid>,
    /// Only these programs; all if empty.
    pub(crate) programs: &'a [String],
}

impl<'a> Selection<'a> {
    pub(crate) fn new(target: &'a Target) -> Self {
        let Target { quick, grid, .. } = *target;
        Self { quick, inputs: target.inputs.as_deref(), grid, programs: &target.programs }
    }

    /// Returns the input's name, with the grid if one was given.
    fn name(&self, input: &str) -> String {
        self.grid.map_or_else(|| input.to_owned(), |grid| format!("{input}, grid {grid}"))
    }
}

/// Returns the cases for `check` and `bench`: the thesis's five programs, then the others.
pub(crate) fn measured(selection: &Selection<'_>) -> anyhow::Result<Vec<Case>> {
    let quick = selection.quick;
    let lists = vec![
        fractal::cases(quick),
        nbody::cases(quick),
        mis::cases(selection),
        mst::cases(selection),
        dmr::cases(selection),
        matmul::cases(quick),
        stress::cases(quick),
    ];
    selected(lists, selection.programs)
}

/// Returns the cases that run in separate processes: one input of each of the thesis's programs, or the
/// inputs for the comparison of policies.
pub(crate) fn in_processes(inputs: Inputs, selection: &Selection<'_>) -> anyhow::Result<Vec<Case>> {
    let first = |cases: Vec<Case>| cases.into_iter().take(1).collect();
    let quick = selection.quick;
    let lists = match inputs {
        Inputs::Short => vec![
            first(fractal::cases(quick)),
            first(nbody::cases(quick)),
            first(mis::cases(selection)),
            first(mst::cases(selection)),
            first(dmr::cases(selection)),
        ],
        Inputs::Long => vec![
            vec![fractal::long(quick)],
            vec![nbody::long(quick)],
            vec![mis::long(selection)],
            vec![mst::long(selection)],
            vec![dmr::long(selection)],
        ],
        Inputs::Policies => vec![
            stress::cases(quick),
            vec![mis::huge(selection)],
            first(nbody::cases(quick)),
            vec![triad::case(quick)],
        ],
    };
    selected(lists, selection.programs)
}

/// Returns small cases, because a profiler runs each kernel twice and slowly; of all `programs` if it is
/// empty.
pub(crate) fn fidelity(programs: &[String]) -> anyhow::Result<Vec<Case>> {
    let lists = vec![
        vec![fractal::case(1024, 512)],
        vec![nbody::fidelity()],
        vec![matmul::case(512)],
        vec![stress::fidelity()],
        vec![dmr::fidelity()],
        mis::fidelity(),
        vec![mst::fidelity()],
    ];
    selected(lists, programs)
}

pub(crate) fn named<'c>(cases: &'c [Case], name: &str) -> anyhow::Result<&'c Case> {
    let known = || cases.iter().map(|case| format!("`{}`", case.name())).collect::<Vec<_>>().join(", ");
    let case = cases.iter().find(|case| case.name() == name);
    case.with_context(|| format!("there is no `{name}`; there are {}", known()))
}

fn selected(lists: Vec<Vec<Case>>, programs: &[String]) -> anyhow::Result<Vec<Case>> {
    let mut cases: Vec<Case> = lists.into_iter().flatten().collect();
    let mut known: Vec<&str> = cases.iter().map(|case| case.program).collect();
    known.dedup();
    if let Some(unknown) = programs.iter().find(|name| !known.contains(&name.as_str())) {
        anyhow::bail!("there is no program `{unknown}`; the programs are {}", known.join(", "));
    }
    keep_chosen(&mut cases, programs);
    Ok(cases)
}

fn keep_chosen(cases: &mut Vec<Case>, programs: &[String]) {
    cases.retain(|case| programs.is_empty() || programs.iter().any(|name| name == case.program));
}

/// Returns small cases of programs whose lanes do not depend on the order of threads, to compare by lane.
/// (MIS and MST are asynchronous.)
pub(crate) fn twins(selection: &Selection<'_>) -> Vec<Case> {
    let Selection { quick, programs, .. } = *selection;
    let mut cases = vec![
        fractal::twin(quick),
        nbody::twin(quick),
        dmr::twin(quick),
        matmul::twin(quick),
        stress::twin(quick),
    ];
    keep_chosen(&mut cases, programs);
    cases
}

/// Finds the first file, by name, in `folder` or in its subfolder `below` that matches.
fn find(folder: &Path, below: &str, fits: impl Fn(&str) -> bool) -> Option<PathBuf> {
    [folder.to_owned(), folder.join(below)].iter().find_map(|folder| {
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
        files.sort();
        files.into_iter().find(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(&fits))
    })
}
