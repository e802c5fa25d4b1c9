//! Runs a program once in its own process, so that Nsight Compute can profile it.

use std::fs;
use std::io::BufWriter;
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use warptrace_device::KernelCall;
use warptrace_host::{
    Device, LaunchShape, LaunchTime, Launcher, MemorySize, Prepare, Session, SessionError, Untraced,
};

use super::{MAX_LAUNCHES, modes};
use crate::arguments::Fidelity;
use crate::codecs::UNTRACED;
use crate::{files, machine, programs, runs};

pub(super) const TRACE: &str = "trace.wtrc";
pub(super) const STORY: &str = "run.json";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Story {
    /// Names of the kernels, in launch order.
    pub(super) launches: Vec<String>,
    /// Number of lost events: the larger of the tracks' numbers.
    pub(super) lost: u64,
}

impl Story {
    pub(super) fn profiled(&self) -> &[String] {
        &self.launches[..self.launches.len().min(MAX_LAUNCHES)]
    }

    pub(super) fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(STORY);
        let text = fs::read(&path).with_context(|| format!("the run left no {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} cannot be read", path.display()))
    }
}

/// Launcher that notes the names of the kernels.
struct Noting<'l> {
    inner: &'l mut dyn Launcher,
    launches: Vec<String>,
}

impl Launcher for Noting<'_> {
    fn device(&mut self) -> &mut dyn Device {
        self.inner.device()
    }

    unsafe fn launch(&mut self, call: &KernelCall, shape: &LaunchShape) -> Result<LaunchTime, SessionError> {
        self.launches.push(call.name().to_owned());
        // SAFETY: the caller upholds the contract of `launch`.
        unsafe { self.inner.launch(call, shape) }
    }
}

/// Runs a program once, without a warm-up. Writes its trace, if recorded, and its report to a folder.
pub(super) fn run(arguments: &Fidelity, subject: &str) -> anyhow::Result<()> {
    let cases = programs::fidelity(&[])?;
    let case = programs::named(&cases, subject)?;
    let mode = modes::named(case, arguments.mode.as_deref().unwrap_or(UNTRACED))?;
    let subject = case.make()?;
    let program = subject.program();
    let mut device = machine::open(arguments.device)?;
    let story = match mode.codec {
        None => {
            let kernels: Vec<&str> = program.kernels().collect();
            device.prepare(&Prepare { kernels: &kernels, ..Prepare::default() })?;
            let mut launcher = Untraced(&mut *device);
            let mut noting = Noting { inner: &mut launcher, launches: Vec::new() };
            subject.run(&mut noting).context("the untraced run failed")?;
            Story { launches: noting.launches, lost: 0 }
        }
        Some(codec) => {
            let MemorySize(memory) = arguments.memory.unwrap_or(mode.memory);
            let options = runs::session_options(codec, mode.dual, memory);
            let path = arguments.out.join(TRACE);
            let output = BufWriter::with_capacity(1 << 20, files::create(&path)?);
            let mut session = Session::start(&mut *device, &program.traced(), &options, output)?;
            let mut noting = Noting { inner: &mut session, launches: Vec::new() };
            subject
                .run(&mut noting)
                .with_context(|| format!("the run traced with `{}` failed", mode.name))?;
            let launches = noting.launches;
            let (output, _, report) = session.finish()?;
            output.into_inner().context("cannot write the trace")?;
            Story { launches, lost: report.lost.max(report.twin_lost) }
        }
    };
    files::write(&arguments.out.join(STORY), serde_json::to_vec(&story)?)
}
