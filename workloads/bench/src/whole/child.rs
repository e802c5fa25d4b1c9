//! The process in which a program runs.

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

/// What one run of a program took and left. Times are in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Sample {
    /// Opening the device: the driver, and its context.
    pub(super) device_s: f64,
    /// From the session's start until the program can begin: splicing, loading code, allocating the tracer's
    /// memory, starting the file. Untraced: loading the kernels.
    pub(super) setup_s: f64,
    /// The program's kernels.
    pub(super) kernel_s: f64,
    /// The kernels that encode what these have left.
    pub(super) encoding_s: f64,
    /// The whole program: inputs to the device, launches, results back; of a traced run until its file is
    /// whole and closed.
    pub(super) whole_s: f64,
    /// Giving the tracer's memory back.
    pub(super) end_s: f64,
    /// Waiting until the disk has the file.
    pub(super) disk_s: f64,
    /// The whole process as its parent sees it, less what making the input took.
    pub(super) process_s: f64,
    /// Making the input, or loading it.
    pub(super) input_s: f64,
    /// Launches.
    pub(super) launches: u32,
    /// Events that reached a trace point.
    pub(super) attempted: u64,
    /// Of these, in the trace.
    pub(super) recorded: u64,
    /// Of these, without room in device memory, or written over.
    pub(super) lost: u64,
    /// Device memory that the tracer was allowed, in bytes.
    pub(super) memory: u64,
    /// The file, in bytes.
    pub(super) file_bytes: u64,
    /// A digest of the program's result.
    pub(super) result: u64,
    /// Device memory with which the run would not be refused, if it was.
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

/// Waits until the disk has a file.
fn synced(path: &Path) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let file = File::options().append(true).open(path);
    let synced = file.and_then(|file| file.sync_all());
    synced.with_context(|| format!("cannot bring {} to the disk", path.display()))?;
    Ok(started.elapsed())
}

/// Runs a program once in one variant.
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

/// Runs a program once in one variant, and prints a line of JSON.
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
