//! A kernel that fails or hangs. It is recorded, but not measured.

use std::borrow::Cow;

use clap::{Args, ValueEnum};
use warptrace_host::Launcher;
use warptrace_workloads::ProgramInfo;
use warptrace_workloads::fault::{self, FaultOptions};

use crate::subject::{Case, RunResult, Subject, SubjectRun};
use crate::table::count;

/// Options of `record fault`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Fault of one thread
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

impl Options {
    pub(crate) fn case(&self) -> Case {
        let Self { how, culprit, threads, turns } = *self;
        let fault = match how {
            How::Trap => fault::Fault::Trap,
            How::Stray => fault::Fault::Stray,
            How::Hang => fault::Fault::Hang,
            How::Nothing => fault::Fault::Nothing,
        };
        let input = format!("{} threads of {} turns", count(threads.into()), count(turns.into()));
        let make = move || Ok(Fault(FaultOptions { fault, threads, culprit, turns }));
        let how = format!("{how:?}").to_lowercase();
        Case::new(&fault::PROGRAM, input, make).with(&[
            ("how", &how),
            ("culprit", &culprit),
            ("threads", &threads),
            ("turns", &turns),
        ])
    }
}

struct Fault(FaultOptions);

impl Subject for Fault {
    fn program(&self) -> &'static ProgramInfo {
        &fault::PROGRAM
    }

    fn run(&self, launcher: &mut dyn Launcher) -> anyhow::Result<SubjectRun<'_>> {
        Ok(SubjectRun { kernel: fault::run(launcher, &self.0)?, launches: 1, result: Box::new(Ended) })
    }
}

struct Ended;

impl RunResult for Ended {
    fn bytes(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&[])
    }

    fn check(&self) -> Result<String, String> {
        Ok("the kernel has ended".to_owned())
    }
}
