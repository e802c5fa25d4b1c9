//! Runs a subject, traced into a file or untraced.

use std::collections::HashMap;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use warptrace_host::writer::Summary;
use warptrace_host::{
    Device, LaunchReport, MemorySize, Policy, Prepare, RecordingSpec, Session, SessionError, Untraced,
};
use warptrace_workloads::WorkloadError;
use warptrace_workloads::dmr::DmrError;

use crate::arguments::Target;
use crate::codecs::Codec;
use crate::subject::{Subject, SubjectRun};
use crate::{files, machine};

/// Maximum device memory of streamed recordings, in bytes: they do not need more for more events.
const STREAMED_BYTES: u64 = 1 << 30;

/// A device, a folder for traces, and the device memory limits of the tracer.
pub(crate) struct Bench {
    pub(crate) device: Box<dyn Device>,
    folder: tempfile::TempDir,
    max_memory: u64,
    first_memory: u64,
    /// Memory with which nothing was lost, by case, codec and `dual`.
    enough: HashMap<(String, &'static str, bool), u64>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    /// Traced: `Session::start`, which splices and loads code, allocates device memory and begins the file.
    /// Untraced: `device.prepare`, which loads code.
    pub(crate) setup: Duration,
    /// `Session::finish` without writing: mostly freeing device memory. 0 if untraced.
    pub(crate) end: Duration,
    pub(crate) kernel: Duration,
    /// Kernels that encode logs on the device. 0 with streamed logs, which the host encodes.
    pub(crate) encoding: Duration,
    /// Copying the trace from the device, while the program waits.
    pub(crate) copy: Duration,
    /// Sorting, compressing and writing the trace, partly while the program runs, until the file is closed.
    /// Its bytes may not be on the disk yet.
    pub(crate) write: Duration,
    /// Copying the input, kernels, copying the result and, for a traced run, copying and writing the trace.
    /// Without `setup` and `end`.
    pub(crate) whole: Duration,
}

impl Times {
    /// Returns the mean of several runs' times. Panics if there are no runs.
    pub(crate) fn mean(runs: &[Self]) -> Self {
        let count = u32::try_from(runs.len()).expect("a sample has few runs");
        let mean = |of: fn(&Self) -> Duration| runs.iter().map(of).sum::<Duration>() / count;
        Self {
            setup: mean(|times| times.setup),
            end: mean(|times| times.end),
            kernel: mean(|times| times.kernel),
            encoding: mean(|times| times.encoding),
            copy: mean(|times| times.copy),
            write: mean(|times| times.write),
            whole: mean(|times| times.whole),
        }
    }
}

pub(crate) struct Recorded<'s> {
    pub(crate) run: SubjectRun<'s>,
    pub(crate) report: LaunchReport,
    /// Totals of the file: bytes, frames, chunks, events and payload bytes.
    pub(crate) summary: Summary,
    pub(crate) times: Times,
    pub(crate) path: PathBuf,
}

/// Returns the options of a recording with `memory` bytes of device memory, or at most [`STREAMED_BYTES`] if
/// it is streamed.
pub(crate) fn session_options(codec: &Codec, dual: bool, memory: u64) -> RecordingSpec {
    let memory = match codec.recording.policy {
        Policy::Stream => memory.min(STREAMED_BYTES),
        Policy::Stop | Policy::Ring => memory,
    };
    RecordingSpec { dual, memory: Some(MemorySize(memory)), ..codec.recording.clone() }
}

pub(crate) fn untraced<'s>(
    device: &mut dyn Device,
    subject: &'s dyn Subject,
) -> anyhow::Result<(SubjectRun<'s>, Times)> {
    let kernels: Vec<&str> = subject.program().kernels().collect();
    let started = Instant::now();
    device.prepare(&Prepare { kernels: &kernels, ..Prepare::default() })?;
    let setup = started.elapsed();
    let started = Instant::now();
    let run = subject.run(&mut Untraced(device)).context("the untraced run failed")?;
    let times = Times { setup, kernel: run.kernel, whole: started.elapsed(), ..Times::default() };
    Ok((run, times))
}

pub(crate) fn traced<'s>(
    device: &mut dyn Device,
    subject: &'s dyn Subject,
    options: &RecordingSpec,
    path: &Path,
) -> anyhow::Result<Recorded<'s>> {
    let file = files::create(path)?;
    let started = Instant::now();
    let output = BufWriter::with_capacity(1 << 20, file);
    let mut session = Session::start(device, &subject.program().traced(), options, output)?;
    let setup = started.elapsed();

    let started = Instant::now();
    let run = subject.run(&mut session)?;
    // The trace of the last launches may still be on the device or in transit to the file.
    session.flush()?;
    let mut whole = started.elapsed();

    let (written, started) = (session.recorder.total().write, Instant::now());
    let (file, summary, report) = session.finish()?;
    let index = report.write.saturating_sub(written);
    let end = started.elapsed().saturating_sub(index);
    let started = Instant::now();
    drop(file.into_inner().context("cannot write the trace")?);
    let flush = started.elapsed();
    whole += index + flush;
    let LaunchReport { kernel, encoding, copy, write, .. } = report;
    let times = Times { setup, end, kernel, encoding, copy, write: write + flush, whole };
    Ok(Recorded { run, report, summary, times, path: path.to_owned() })
}

impl Bench {
    pub(crate) fn open(target: &Target) -> anyhow::Result<Self> {
        let device = machine::open(target.device)?;
        let folder = files::scratch(target.scratch.as_deref())?;
        let first: u64 = if machine::is_gpu(&*device) { 8 << 30 } else { 256 << 20 };
        let max_memory = machine::most_memory(target.max_memory, &*device);
        Ok(Self { device, folder, max_memory, first_memory: first.min(max_memory), enough: HashMap::new() })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn untraced<'s>(
        &mut self,
        subject: &'s dyn Subject,
    ) -> anyhow::Result<(SubjectRun<'s>, Times)> {
        untraced(&mut *self.device, subject)
    }

    /// Records into the file `name` of the folder, with the memory limit of [`session_options`].
    pub(crate) fn traced<'s>(
        &mut self,
        subject: &'s dyn Subject,
        codec: &Codec,
        dual: bool,
        memory: u64,
        name: &str,
    ) -> anyhow::Result<Recorded<'s>> {
        let path = self.folder.path().join(name);
        let options = session_options(codec, dual, memory);
        traced(&mut *self.device, subject, &options, &path)
            .with_context(|| format!("the run traced with `{}` failed", codec.name))
    }

    /// Like [`traced`](Self::traced), but repeats with more memory until nothing is lost.
    pub(crate) fn traced_whole<'s>(
        &mut self,
        case: &str,
        subject: &'s dyn Subject,
        codec: &Codec,
        dual: bool,
        name: &str,
    ) -> anyhow::Result<Recorded<'s>> {
        let key = (case.to_owned(), codec.name, dual);
        let mut memory = self.enough.get(&key).copied().unwrap_or(self.first_memory);
        loop {
            let recorded = match self.traced(subject, codec, dual, memory, name) {
                Err(error) if memory < self.max_memory => {
                    // The error states the minimum memory of a launch.
                    let needed = needed_memory(&error).ok_or(error)?;
                    memory = needed.max(memory * 2).min(self.max_memory);
                    continue;
                }
                recorded => recorded?,
            };
            let LaunchReport { attempted, lost, twin_lost, .. } = recorded.report;
            let lost = lost.max(twin_lost);
            let kept = attempted.saturating_sub(lost);
            if lost == 0 {
                self.enough.insert(key, memory);
                return Ok(recorded);
            }
            anyhow::ensure!(
                memory < self.max_memory,
                "{lost} of {attempted} events are lost with all memory, {}: allow more with --max-memory",
                MemorySize(memory)
            );
            // Adds half to the memory that all events need: threads that wait for others produce different
            // numbers of events from run to run.
            let needed = memory as f64 * attempted as f64 / kept.max(1) as f64 * 1.5;
            memory = (needed as u64).clamp(memory * 2, u64::MAX).min(self.max_memory);
        }
    }
}

/// Returns the minimum memory for recording a launch, if the error states it.
pub(crate) fn needed_memory(error: &anyhow::Error) -> Option<u64> {
    let of_session = |error: &SessionError| match error {
        SessionError::Memory { needed, .. } => *needed,
        _ => None,
    };
    let of_program = |error: &WorkloadError| match error {
        WorkloadError::Session(error) => of_session(error),
        _ => None,
    };
    // `DmrError::Workload` and `WorkloadError::Session` are transparent: `chain` returns the outer error, but
    // not the error that it wraps. So each type is searched, and the wrapped error is unpacked.
    error.chain().find_map(|cause| {
        let dmr = cause.downcast_ref().and_then(|error| match error {
            DmrError::Workload(error) => of_program(error),
            _ => None,
        });
        dmr.or_else(|| cause.downcast_ref().and_then(of_program))
            .or_else(|| cause.downcast_ref().and_then(of_session))
    })
}
