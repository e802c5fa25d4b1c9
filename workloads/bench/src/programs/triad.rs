//! Triad: limited by memory, with a grid that exactly fills the device.

use std::borrow::Cow;

use clap::Args;
use warptrace_host::Launcher;
use warptrace_workloads::triad::{self, Arrays, TriadOptions};
use warptrace_workloads::{Grid, ProgramInfo};

use crate::subject::{Case, RunResult, Subject, SubjectRun};
use crate::table::count;

/// Returns arrays of 256 MiB, which exceed every cache, or short ones.
pub(super) fn case(quick: bool) -> Case {
    let (elements, options) = if quick {
        (5_000, TriadOptions { passes: 2, grid: Some(Grid::new(4, 64).expect("a block has two warps")) })
    } else {
        (1 << 26, TriadOptions { passes: 20, ..TriadOptions::default() })
    };
    on(elements, options)
}

fn on(elements: u32, options: TriadOptions) -> Case {
    let plural = if options.passes == 1 { "" } else { "es" };
    let input = format!("{} elements, {} pass{plural}", count(elements.into()), options.passes);
    Case::new(&triad::PROGRAM, input, move || Ok(Triad { arrays: Arrays::new(elements)?, options }))
}

/// Options of `record triad`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Elements of each array
    #[arg(long, value_name = "N", default_value_t = triad::DEFAULT_ELEMENTS,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(triad::MAX_ELEMENTS)))]
    elements: u32,

    /// Launches, each of which computes all elements
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    passes: u32,

    /// Blocks and threads of a block, as in 192x256; as many threads as the device holds at once if not given
    #[arg(long, value_name = "BLOCKSxTHREADS")]
    grid: Option<Grid>,
}

impl Options {
    pub(crate) fn case(&self) -> Case {
        let Self { elements, passes, grid } = *self;
        on(elements, TriadOptions { passes, grid })
            .with(&[("elements", &elements), ("passes", &passes)])
            .on_grid(grid)
    }
}

struct Triad {
    arrays: Arrays,
    options: TriadOptions,
}

impl Subject for Triad {
    fn program(&self) -> &'static ProgramInfo {
        &triad::PROGRAM
    }

    fn run(&self, launcher: &mut dyn Launcher) -> anyhow::Result<SubjectRun<'_>> {
        let outcome = triad::run(launcher, &self.arrays, &self.options)?;
        let events =
            triad::expected_events(self.arrays.elements() as u64, outcome.grid) * u64::from(outcome.launches);
        let result = Summed { arrays: &self.arrays, a: outcome.a, events };
        Ok(SubjectRun { kernel: outcome.kernel, launches: outcome.launches, result: Box::new(result) })
    }
}

struct Summed<'s> {
    arrays: &'s Arrays,
    a: Vec<f32>,
    events: u64,
}

impl RunResult for Summed<'_> {
    fn bytes(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(bytemuck::cast_slice(&self.a))
    }

    fn check(&self) -> Result<String, String> {
        triad::check(self.arrays, &self.a)
    }

    fn expected_events(&self) -> Option<u64> {
        Some(self.events)
    }
}
