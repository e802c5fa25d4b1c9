//! Triad: waits for memory, on a grid that fills the card exactly.

use std::borrow::Cow;

use warptrace_host::Launcher;
use warptrace_workloads::triad::{self, Arrays, TriadOptions};
use warptrace_workloads::{Grid, ProgramInfo};

use crate::subject::{Case, Run, RunResult, Subject, in_words};
use crate::table::count;

pub(super) const NAME: &str = "triad";

/// Arrays of 256 MiB, which no cache holds, or short ones.
pub(super) fn case(quick: bool) -> Case {
    let (elements, options) = if quick {
        (5_000, TriadOptions { passes: 2, grid: Some(Grid::new(4, 64).expect("a block has two warps")) })
    } else {
        (1 << 26, TriadOptions { passes: 20, ..TriadOptions::default() })
    };
    let input = format!("{} elements, {} passes", count(elements.into()), options.passes);
    Case::new(NAME, input, move || Ok(Triad { arrays: Arrays::new(elements)?, options }))
}

struct Triad {
    arrays: Arrays,
    options: TriadOptions,
}

impl Subject for Triad {
    fn program(&self) -> &'static ProgramInfo {
        &triad::PROGRAM
    }

    fn run(&self, launcher: &mut dyn Launcher) -> anyhow::Result<Run<'_>> {
        let outcome = triad::run(launcher, &self.arrays, &self.options)?;
        let events =
            triad::expected_events(self.arrays.elements() as u64, outcome.grid) * u64::from(outcome.launches);
        let result = Summed { arrays: &self.arrays, a: outcome.a, events };
        Ok(Run { kernel: outcome.kernel, launches: outcome.launches, result: Box::new(result) })
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
        in_words(triad::check(self.arrays, &self.a))
    }

    fn expected_events(&self) -> Option<u64> {
        Some(self.events)
    }
}
