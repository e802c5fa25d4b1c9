//! `record nbody`.

use clap::Args;
use warptrace_host::Launcher;
use warptrace_workloads::ProgramInfo;
use warptrace_workloads::nbody::{self, Bodies, NbodyOptions, NbodyOutcome};

use super::{INPUT_SEED, Program};
use crate::output::count;

/// Options of `record nbody`.
#[derive(Debug, Args)]
pub(crate) struct Nbody {
    /// Bodies, in a Plummer sphere
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=nbody::MAX_BODIES as i64))]
    bodies: u32,

    /// Only so many bodies attract, the first ones; all of them if not given
    #[arg(long, value_name = "BODIES", value_parser = clap::value_parser!(u32).range(1..))]
    sources: Option<u32>,

    /// Steps of time
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,

    /// Seed of the bodies' places
    #[arg(long, default_value_t = INPUT_SEED)]
    seed: u64,
}

impl Nbody {
    fn options(&self) -> NbodyOptions {
        NbodyOptions { sources: self.sources, ..NbodyOptions::new(self.steps) }
    }
}

impl Program for Nbody {
    type Input = Bodies;
    type Outcome = NbodyOutcome;

    fn info(&self) -> &'static ProgramInfo {
        &nbody::PROGRAM
    }

    fn input(&self) -> anyhow::Result<Bodies> {
        // Before the trace's file is opened, and an older one is lost.
        if let Some(sources) = self.sources.filter(|sources| *sources > self.bodies) {
            anyhow::bail!(
                "--sources is {sources}: there are {} bodies, and no more can attract",
                self.bodies
            );
        }
        Ok(nbody::plummer(self.bodies as usize, self.seed))
    }

    fn describe(&self, _: &Bodies) -> String {
        let sources =
            self.sources.map_or_else(String::new, |sources| format!(" x {} sources", count(sources.into())));
        format!("{} bodies{sources}, {} steps", count(self.bodies.into()), count(self.steps.into()))
    }

    fn properties(&self) -> Vec<(&'static str, String)> {
        let mut properties = vec![
            ("bodies", self.bodies.to_string()),
            ("steps", self.steps.to_string()),
            ("seed", self.seed.to_string()),
        ];
        properties.extend(self.sources.map(|sources| ("sources", sources.to_string())));
        properties
    }

    fn run(&self, launcher: &mut dyn Launcher, input: &Bodies) -> anyhow::Result<NbodyOutcome> {
        Ok(nbody::run(launcher, input, &self.options())?)
    }

    fn check(&self, input: &Bodies, outcome: &NbodyOutcome) -> anyhow::Result<String> {
        Ok(nbody::check(input, &self.options(), &outcome.bodies, &outcome.accelerations)?.to_string())
    }
}
