//! `record stress`.

use clap::Args;
use warptrace_host::Launcher;
use warptrace_workloads::ProgramInfo;
use warptrace_workloads::stress::{self, StressOptions, StressOutcome};

use super::Program;
use crate::output::count;

/// Where nothing else is asked for.
const DEFAULT: StressOptions = StressOptions::new(4096, 16);

/// Options of `record stress`.
#[derive(Debug, Args)]
pub(crate) struct Stress {
    /// Walks, one a thread
    #[arg(long, default_value_t = DEFAULT.walks,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(stress::MAX_WALKS)))]
    walks: u32,

    /// Most rounds of a walk
    #[arg(long, default_value_t = DEFAULT.rounds, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// What the walks are drawn from
    #[arg(long, default_value_t = DEFAULT.seed)]
    seed: u32,

    /// Threads of a block, a multiple of 32
    #[arg(long, value_name = "THREADS", default_value_t = DEFAULT.block, value_parser = parse_threads)]
    block: u32,
}

impl Stress {
    fn options(&self) -> StressOptions {
        let Self { walks, rounds, seed, block } = *self;
        StressOptions { walks, rounds, seed, block }
    }
}

impl Program for Stress {
    type Input = ();
    type Outcome = StressOutcome;

    fn info(&self) -> &'static ProgramInfo {
        &stress::PROGRAM
    }

    fn input(&self) -> anyhow::Result<()> {
        Ok(())
    }

    fn describe(&self, (): &()) -> String {
        format!(
            "{} walks of up to {} rounds, seed {}",
            count(self.walks.into()),
            count(self.rounds.into()),
            self.seed
        )
    }

    fn properties(&self) -> Vec<(&'static str, String)> {
        let Self { walks, rounds, seed, block } = self;
        [("walks", walks), ("rounds", rounds), ("seed", seed), ("block", block)]
            .map(|(name, value)| (name, value.to_string()))
            .into()
    }

    fn run(&self, launcher: &mut dyn Launcher, (): &()) -> anyhow::Result<StressOutcome> {
        Ok(stress::run(launcher, &self.options())?)
    }

    fn check(&self, (): &(), outcome: &StressOutcome) -> anyhow::Result<String> {
        Ok(stress::check(&self.options(), &outcome.result)?.to_string())
    }
}

fn parse_threads(text: &str) -> Result<u32, String> {
    let threads = text.parse().ok().filter(|threads: &u32| threads.is_multiple_of(32));
    threads
        .filter(|threads| (32..=1024).contains(threads))
        .ok_or_else(|| "a block has 32 to 1024 threads, a multiple of 32".to_owned())
}
