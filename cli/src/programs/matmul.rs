//! `record matmul`.

use clap::Args;
use warptrace_host::Launcher;
use warptrace_workloads::ProgramInfo;
use warptrace_workloads::matmul::{self, MatmulOutcome, Matrices};

use super::{INPUT_SEED, Program};
use crate::output::count;

/// Options of `record matmul`.
#[derive(Debug, Args)]
pub(crate) struct Matmul {
    /// Rows of the matrices, a multiple of 8; the default takes the simulator a while
    #[arg(long, value_name = "ROWS", default_value_t = matmul::DEFAULT_SIZE,
        value_parser = clap::value_parser!(u32).range(8..=i64::from(matmul::MAX_SIZE)))]
    size: u32,

    /// Seed of the matrices
    #[arg(long, default_value_t = INPUT_SEED)]
    seed: u64,
}

impl Program for Matmul {
    type Input = Matrices;
    type Outcome = MatmulOutcome;

    fn info(&self) -> &'static ProgramInfo {
        &matmul::PROGRAM
    }

    fn input(&self) -> anyhow::Result<Matrices> {
        Ok(Matrices::random(self.size, self.seed)?)
    }

    fn describe(&self, _: &Matrices) -> String {
        format!("matrices of {0} x {0}", count(self.size.into()))
    }

    fn properties(&self) -> Vec<(&'static str, String)> {
        vec![("size", self.size.to_string()), ("seed", self.seed.to_string())]
    }

    fn run(&self, launcher: &mut dyn Launcher, matrices: &Matrices) -> anyhow::Result<MatmulOutcome> {
        Ok(matmul::run(launcher, matrices)?)
    }

    fn check(&self, matrices: &Matrices, outcome: &MatmulOutcome) -> anyhow::Result<String> {
        Ok(matmul::check(matrices, &outcome.product)?.to_string())
    }
}
