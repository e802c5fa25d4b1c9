//! Matrix multiplication. Typical of programs that use a GPU's arithmetic units fully; not in the thesis.

use std::borrow::Cow;

use clap::Args;
use warptrace_decoder::lanes::LaneDigest;
use warptrace_host::Launcher;
use warptrace_workloads::ProgramInfo;
use warptrace_workloads::matmul::{self, Matrices};

use super::SEED;
use crate::subject::{Case, LaneReference, RunResult, Subject, SubjectRun};
use crate::table::count;

pub(super) fn cases(quick: bool) -> Vec<Case> {
    vec![case(size(quick))]
}

pub(crate) fn size(quick: bool) -> u32 {
    if quick { 128 } else { matmul::DEFAULT_SIZE }
}

/// Returns a case whose size is no multiple of a tile, so that quadrants and warps at the edges diverge.
pub(super) fn twin(quick: bool) -> Case {
    case(if quick { 72 } else { 200 })
}

pub(crate) fn case(size: u32) -> Case {
    seeded(size, SEED)
}

fn seeded(size: u32, seed: u64) -> Case {
    let input = format!("{0} x {0}", count(size.into()));
    Case::new(&matmul::PROGRAM, input, move || Ok(Matmul { matrices: Matrices::random(size, seed)? }))
}

/// Options of `record matmul`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Rows of the matrices, a multiple of 8; the default takes the simulator a while
    #[arg(long, value_name = "ROWS", default_value_t = matmul::DEFAULT_SIZE,
        value_parser = clap::value_parser!(u32).range(8..=i64::from(matmul::MAX_SIZE)))]
    size: u32,

    /// Seed of the matrices
    #[arg(long, default_value_t = SEED)]
    seed: u64,
}

impl Options {
    pub(crate) fn case(&self) -> Case {
        seeded(self.size, self.seed).with(&[("size", &self.size), ("seed", &self.seed)])
    }
}

struct Matmul {
    matrices: Matrices,
}

impl Subject for Matmul {
    fn program(&self) -> &'static ProgramInfo {
        &matmul::PROGRAM
    }

    fn run(&self, launcher: &mut dyn Launcher) -> anyhow::Result<SubjectRun<'_>> {
        let outcome = matmul::run(launcher, &self.matrices)?;
        let result = Product { matrices: &self.matrices, product: outcome.product };
        Ok(SubjectRun { kernel: outcome.kernel, launches: outcome.launches, result: Box::new(result) })
    }

    fn lanes(&self) -> Option<&dyn LaneReference> {
        Some(self)
    }
}

impl LaneReference for Matmul {
    fn lane(&self, _: u32, thread: u64) -> LaneDigest {
        LaneDigest::new(matmul::lane_locations(self.matrices.size(), thread))
    }
}

struct Product<'s> {
    matrices: &'s Matrices,
    product: Vec<f32>,
}

impl RunResult for Product<'_> {
    fn bytes(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(bytemuck::cast_slice(&self.product))
    }

    fn check(&self) -> Result<String, String> {
        matmul::check(self.matrices, &self.product)
    }

    fn expected_events(&self) -> Option<u64> {
        Some(matmul::expected_events(self.matrices.size()))
    }
}
