//! A single run of a program, in a child process.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use warptrace_host::{Device, MemorySize};

use super::variant::Variant;
use crate::arguments::Whole;
use crate::codecs::UNTRACED;
use crate::machine;
use crate::programs::{self, Selection};
use crate::runs::{self, Recorded, Times, needed_memory};
use crate::subject::{Subject, SubjectRun};

/// Measurements of one run, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Sample {
    /// Opening the device: the driver and its context.
    pub(super) device_s: f64,
    /// From the start of the session until the program can begin: splicing, loading code, allocating the
    /// tracer's memory, creating the file. Untraced: loading the kernels.
    pub(super) setup_s: f64,
    pub(super) kernel_s: f64,
    pub(super) encoding_s: f64,
    /// Copying inputs, launches, copying results; for a traced run, until its file is complete and closed.
    pub(super) whole_s: f64,
    /// Freeing the tracer's memory.
    pub(super) end_s: f64,
    /// Waiting until the file is on disk.
    pub(super) disk_s: f64,
    /// The whole process as measured by its parent, without making the input.
    pub(super) process_s: f64,
    pub(super) input_s: f64,
    pub(super) launches: u32,
    pub(super) attempted: u64,
    pub(super) recorded: u64,
    /// Events lost, because device memory was full or their entries were overwritten.
    pub(super) lost: u64,
    /// Device memory limit of the tracer in bytes.
    pub(super) memory: u64,
    pub(super) file_bytes: u64,
    pub(super) result: u64,
    /// If the run was refused: the device memory in bytes that it needs.
    pub(super) needed: Option<u64>,
}

impl Sample {
    fn new(run: &SubjectRun<'_>, times: &Times) -> Self {
        let mut hasher = DefaultHasher::new();
        run.result.bytes().hash(&mut hasher);
        Self {
            setup_s: times.setup.as_secs_f64(),
            kernel_s: times.kernel.as_secs_f64(),
            encoding_s: times.encoding.as_secs_f64(),
            whole_s: times.whole.as_secs_f64(),
            end_s: times.end.as_secs_f64(),
            launches: run.launches,
            result: hasher.finish(),
            ..Self::default()
        }
    }

    fn recorded(recorded: &Recorded<'_>) -> anyhow::Result<Self> {
        let report = &recorded.report;
        Ok(Self {
            attempted: report.attempted,
            recorded: report.recorded,
            lost: report.lost,
            memory: report.memory.limit,
            file_bytes: recorded.summary.bytes,
            disk_s: synced(&recorded.path)?.as_secs_f64(),
            ..Self::new(&recorded.run, &recorded.times)
        })
    }
}

fn synced(path: &Path) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let file = File::options().append(true).open(path);
    let synced = file.and_then(|file| file.sync_all());
    synced.with_context(|| format!("cannot bring {} to the disk", path.display()))?;
    Ok(started.elapsed())
}

fn run_once(
    device: &mut dyn Device,
    subject: &dyn Subject,
    variant: &Variant,
    memory: Option<MemorySize>,
    folder: &Path,
) -> anyhow::Result<Sample> {
    let Some(options) = variant.options(memory) else {
        let (run, times) = runs::untraced(device, subject)?;
        return Ok(Sample::new(&run, &times));
    };
    let path = folder.join("trace.wtrc");
    let sample = match runs::traced(device, subject, &options, &path) {
        Ok(recorded) => Sample::recorded(&recorded)?,
        Err(error) => {
            let needed = Some(needed_memory(&error).ok_or(error)?);
            Sample { needed, ..Sample::default() }
        }
    };
    fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    Ok(sample)
}

/// Runs a program once in one variant and prints the sample as a line of JSON.
pub(super) fn run(arguments: &Whole, subject: &str) -> anyhow::Result<()> {
    let variant = Variant::named(arguments.variant.as_deref().unwrap_or(UNTRACED))?;
    let cases = programs::in_processes(arguments.kind, &Selection::new(&arguments.target))?;
    let case = programs::named(&cases, subject)?;
    let started = Instant::now();
    let subject = case.make()?;
    let input_s = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let mut device = machine::open(arguments.target.device)?;
    let device_s = started.elapsed().as_secs_f64();
    if arguments.warm {
        runs::untraced(&mut *device, &*subject)?;
    }
    let sample = run_once(&mut *device, &*subject, &variant, arguments.memory, &arguments.out)
        .with_context(|| format!("{}, {}", case.name(), variant.name))?;
    println!("{}", serde_json::to_string(&Sample { device_s, input_s, ..sample })?);
    Ok(())
}
