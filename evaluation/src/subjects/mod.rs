//! The programs, a file each, and the lists of inputs.

mod dmr;
mod fractal;
mod graphs;
mod mis;
mod mst;
mod nbody;

use std::path::{Path, PathBuf};

use crate::subject::Case;

/// Seed of every generated input.
const SEED: u64 = 1;

/// What to run: `quick` inputs are small enough for the simulator; without it the inputs are the thesis's, or of
/// their families.
pub(crate) fn cases(quick: bool, inputs: Option<&Path>, programs: &[String]) -> anyhow::Result<Vec<Case>> {
    let lists = [
        fractal::cases(quick),
        nbody::cases(quick),
        mis::cases(quick, inputs),
        mst::cases(quick, inputs),
        dmr::cases(quick, inputs),
    ];
    let mut cases: Vec<Case> = lists.into_iter().flatten().collect();
    let known: Vec<&str> =
        [&fractal::NAME, &nbody::NAME, &mis::NAME, &mst::NAME, &dmr::NAME].map(|name| *name).into();
    if let Some(unknown) = programs.iter().find(|name| !known.contains(&name.as_str())) {
        anyhow::bail!("there is no program `{unknown}`; the programs are {}", known.join(", "));
    }
    if !programs.is_empty() {
        cases.retain(|case| programs.iter().any(|name| name == case.program));
    }
    Ok(cases)
}

/// The deterministic programs on inputs small enough to be run on the simulator as well and compared lane by lane.
pub(crate) fn twins(quick: bool, programs: &[String]) -> Vec<Case> {
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
