//! The programs that can be recorded: one file for each, with its options.

mod dmr;
mod fault;
mod fractal;
mod graph;
mod matmul;
mod mis;
mod mst;
mod nbody;
mod stress;
mod triad;

use warptrace_host::Launcher;
use warptrace_workloads::{Grid, ProgramInfo};

pub(crate) use self::dmr::Dmr;
pub(crate) use self::fault::Fault;
pub(crate) use self::fractal::Fractal;
pub(crate) use self::matmul::Matmul;
pub(crate) use self::mis::Mis;
pub(crate) use self::mst::Mst;
pub(crate) use self::nbody::Nbody;
pub(crate) use self::stress::Stress;
pub(crate) use self::triad::Triad;

/// Seed of generated inputs where none is given; that of the evaluation's inputs.
const INPUT_SEED: u64 = 1;

/// A program as the command line names it.
pub(crate) trait Program {
    /// The input, loaded or generated.
    type Input;
    /// What a run gives.
    type Outcome;

    /// Kernels and trace points.
    fn info(&self) -> &'static ProgramInfo;

    /// Loads or generates the input.
    fn input(&self) -> anyhow::Result<Self::Input>;

    /// The input in a few words.
    fn describe(&self, input: &Self::Input) -> String;

    /// Name and value of each option that decides what is computed, for the trace.
    fn properties(&self) -> Vec<(&'static str, String)>;

    /// Runs the kernels.
    fn run(&self, launcher: &mut dyn Launcher, input: &Self::Input) -> anyhow::Result<Self::Outcome>;

    /// Checks the result as the program's own `check` does; answers its finding in a few words.
    fn check(&self, input: &Self::Input, outcome: &Self::Outcome) -> anyhow::Result<String>;

    /// Writes what else was asked for, and answers a line about it.
    fn write(&self, _outcome: &Self::Outcome) -> anyhow::Result<Option<String>> {
        Ok(None)
    }
}

/// The property that names a chosen grid.
fn grid_property(grid: Option<Grid>) -> Option<(&'static str, String)> {
    grid.map(|grid| ("grid", grid.to_string()))
}
