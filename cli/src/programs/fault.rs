//! `record fault`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use warptrace_host::Launcher;
use warptrace_workloads::ProgramInfo;
use warptrace_workloads::fault::{self, FaultOptions};

use super::Program;
use crate::output::count;

/// Options of `record fault`.
#[derive(Debug, Args)]
pub(crate) struct Fault {
    /// What happens to one thread
    #[arg(long, value_enum, default_value = "trap")]
    how: How,

    /// Number of the thread
    #[arg(long, value_name = "THREAD", default_value_t = 100)]
    culprit: u32,

    /// Threads
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    threads: u32,

    /// Turns that each thread takes before
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(0..=1 << 30))]
    turns: u32,
}

/// What happens to one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum How {
    /// It traps: the kernel fails
    Trap,
    /// It writes out of bounds: the kernel fails; on a GPU only
    Stray,
    /// It waits for ever: interrupt it with Ctrl-C
    Hang,
    /// Nothing
    Nothing,
}

impl Program for Fault {
    type Input = ();
    type Outcome = Duration;

    fn info(&self) -> &'static ProgramInfo {
        &fault::PROGRAM
    }

    fn input(&self) -> anyhow::Result<()> {
        Ok(())
    }

    fn describe(&self, (): &()) -> String {
        format!("{} threads of {} turns", count(self.threads.into()), count(self.turns.into()))
    }

    fn properties(&self) -> Vec<(&'static str, String)> {
        let how = format!("{:?}", self.how).to_lowercase();
        vec![
            ("how", how),
            ("culprit", self.culprit.to_string()),
            ("threads", self.threads.to_string()),
            ("turns", self.turns.to_string()),
        ]
    }

    fn run(&self, launcher: &mut dyn Launcher, (): &()) -> anyhow::Result<Duration> {
        let fault = match self.how {
            How::Trap => fault::Fault::Trap,
            How::Stray => fault::Fault::Stray,
            How::Hang => fault::Fault::Hang,
            How::Nothing => fault::Fault::Nothing,
        };
        let Self { threads, culprit, turns, .. } = *self;
        Ok(fault::run(launcher, &FaultOptions { fault, threads, culprit, turns })?)
    }

    fn check(&self, (): &(), _: &Duration) -> anyhow::Result<String> {
        Ok("the kernel has ended".to_owned())
    }
}
