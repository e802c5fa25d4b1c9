//! Recording of a program from the command line: options, recording and messages.

mod interrupt;
mod options;
mod progress;

use std::fmt;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use warptrace_format::codec::CodecSpec;
use warptrace_host::writer::Summary;
use warptrace_host::{
    Earlier, Interrupted, LaunchReport, Launcher, MemorySize, Policy, RecordingSpec, Session, SessionError,
    SimOptions, TraceOutput, TracedProgram,
};

pub use self::interrupt::{Asked, watch};
pub use self::options::Recording;
use crate::opened::said_of;
use crate::output::{self, shown_name};
use crate::whole_file::keep_apart;

/// Program to record.
#[derive(Clone, Debug)]
pub struct Recordable<'a> {
    /// Name of the program.
    pub name: &'a str,
    /// Kernels and trace points.
    pub kernels: TracedProgram<'a>,
    /// Names and values of the parameters that determine the computation. Stored in the trace.
    pub properties: Vec<(String, String)>,
    /// Files that the program reads or writes. The trace must be another file.
    pub files: Vec<PathBuf>,
}

/// Recording whose options were checked for the program.
#[derive(Debug)]
pub struct Prepared<'a> {
    recording: &'a Recording,
    program: &'a Recordable<'a>,
    spec: RecordingSpec,
}

/// Result of a recording.
#[derive(Debug)]
pub struct Recorded {
    program: String,
    device: String,
    path: PathBuf,
    spec: RecordingSpec,
    summary: Summary,
    report: LaunchReport,
    /// Time from the start of the session to the end of the file.
    whole: Duration,
}

impl Recording {
    /// Checks the options for a program, whose input is not needed yet. Fails if options contradict each
    /// other or name locations that the program does not have, or if the output is one of the program's
    /// files.
    pub fn prepare<'a>(&'a self, program: &'a Recordable<'a>) -> anyhow::Result<Prepared<'a>> {
        let mut spec = self.spec.clone();
        spec.properties.extend(program.properties.iter().cloned());
        spec.check()?;
        let files: Vec<_> = program.files.iter().map(|path| ("the program's file", path.as_path())).collect();
        keep_apart(&self.output, &files)?;
        if let Some(visits) = &spec.window.after {
            visits.among(&program.kernels.locations())?;
        }
        Ok(Prepared { recording: self, program, spec })
    }
}

impl Prepared<'_> {
    /// Opens the device, calls `run` to run the program's kernels, and writes the trace. `code` returns the
    /// kernels' PTX; it is called only if a GPU is tried. An existing file is unchanged until the recording
    /// has begun.
    ///
    /// # Errors
    /// If the device cannot be opened, memory is short, the file cannot be written, or `run` fails.
    pub fn record<T>(
        self,
        code: impl FnOnce() -> io::Result<&'static str>,
        run: impl FnOnce(&mut dyn Launcher) -> anyhow::Result<T>,
    ) -> anyhow::Result<(T, Recorded)> {
        let Self { recording, program, spec } = self;
        let (bar, hook) = progress::blocks();
        let simulator = SimOptions { progress: Some(hook), ..recording.simulator() };
        let opened = recording.device.open(code, simulator)?;
        if let Some(reason) = &opened.no_gpu {
            crate::output::tell!("note: running on the simulator: {reason}");
        }
        let mut device = opened.device;
        let path = &recording.output;
        let file = TraceOutput::open(path).with_context(|| format!("cannot create {}", shown_name(path)))?;
        let asked = watch().context("cannot watch for signals")?;
        let earlier = file.earlier();
        let started = Instant::now();
        let file = BufWriter::with_capacity(1 << 20, file);
        let of_file = |error: anyhow::Error| {
            let error = match error.downcast_ref() {
                Some(SessionError::Write(_)) => error.context(format!("cannot write {}", shown_name(path))),
                _ => error,
            };
            // A wrong option is no attempt to record.
            let is_wrong_option = matches!(error.downcast_ref(), Some(SessionError::NoSuchKernel { .. }));
            match Some(&earlier).filter(|_| !is_wrong_option).and_then(Earlier::set_aside) {
                Some(words) => error.context(words),
                None => error,
            }
        };
        let session = Session::start(&mut *device, &program.kernels, &spec, file);
        let mut session = session.map_err(|error| of_file(error.into()))?;
        let (signal, file, policy) = (asked.clone(), path.clone(), spec.policy);
        let tell = move |interrupted: &Interrupted| interrupt::end(interrupted, &file, policy, &signal);
        session.interrupt_by(Arc::clone(&asked.flag), tell).map_err(|error| of_file(error.into()))?;
        let outcome = match run(&mut session) {
            Ok(outcome) => outcome,
            Err(error) => {
                // Dropping the session writes the events that were recorded before the error.
                drop(session);
                if !earlier.is_kept() && path.is_file() && !said_of(path).is_empty() {
                    crate::output::tell!("the trace up to here is in {}", shown_name(path));
                }
                return Err(of_file(error));
            }
        };
        let (file, summary, report) = session.finish().map_err(|error| of_file(error.into()))?;
        let unfinished = || format!("cannot finish {}", shown_name(path));
        file.into_inner().with_context(unfinished)?.sync().with_context(unfinished)?;
        // A signal may have arrived while no kernel ran.
        asked.end_if_set(|| format!("the trace is in {}", shown_name(path)));
        let whole = started.elapsed();
        bar.finish_and_clear();
        let (program, path, device) = (program.name.to_owned(), path.clone(), device.facts().info.name);
        Ok((outcome, Recorded { program, device, path, spec, summary, report, whole }))
    }
}

impl Recorded {
    /// Returns true if the trace contains every event that was to be recorded.
    pub fn is_complete(&self) -> bool {
        self.report.lost == 0 && self.report.twin_lost == 0
    }

    /// Returns true if the trace was written to standard output.
    pub fn is_printed(&self) -> bool {
        self.path == Path::new("-")
    }

    /// Returns a message about lost events, with a remedy; `None` if nothing was lost. With `stop` and
    /// `stream`, it also states why events were lost.
    pub fn warning(&self) -> Option<String> {
        let LaunchReport { lost, attempted, recorded, twin_lost, memory, .. } = self.report;
        if lost == 0 {
            let lost = output::count(twin_lost);
            let words = format!("warning: {lost} events of the raw twin were lost: allow more with --memory");
            return (twin_lost > 0).then_some(words);
        }
        let (lost, attempted) = (output::count(lost), output::count(attempted));
        let limit = MemorySize(memory.limit);
        Some(match self.spec.policy {
            Policy::Stop => format!(
                "warning: {lost} of {attempted} events found no room in device memory; \
                 allow more with --memory (now {limit}), or record with --policy stream"
            ),
            Policy::Ring => format!(
                "note: the trace has the last {} of {attempted} events, of each warp an end; for more allow more with --memory (now {limit})",
                output::count(recorded)
            ),
            Policy::Stream => format!(
                "warning: {lost} of {attempted} events were lost, because lanes waited too long for memory; \
                 let them wait longer with --stall-limit (now {} s), or allow more with --memory (now {limit})",
                self.spec.stall().as_secs_f64()
            ),
        })
    }
}

/// Summary of a finished recording. Displays as lines, without a line end after the last one.
#[derive(Clone, Copy, Debug)]
pub struct Finished<'a> {
    /// The recording.
    pub recorded: &'a Recorded,
    /// Text after the device in the first line.
    pub of: &'a str,
    /// The program's input.
    pub input: &'a str,
    /// Outcome of the check of the program's result.
    pub result: Option<&'a str>,
}

impl fmt::Display for Finished<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { recorded, of, input, result } = self;
        let Recorded { program, device, path, spec, summary, report, whole } = recorded;
        writeln!(f, "recorded   {program} on {device}{of}")?;
        writeln!(f, "input      {input}")?;
        if !spec.window.is_all() {
            let (recorded, all) = (report.recorded_launches, report.launches);
            let launches = format!("{} of {} launches", output::count(recorded), output::count(all));
            writeln!(f, "window     {}; {launches} recorded", spec.window)?;
        }
        writeln!(f, "events     {}", output::count(report.recorded))?;
        let raw = report.recorded * u64::from(warptrace_format::RAW_EVENT_BYTES);
        let compared = match spec.codec {
            CodecSpec::Raw => "six bytes an event".to_owned(),
            _ => format!("{} times less than raw", output::times(raw, report.payload_bytes)),
        };
        let times = match report.time_bytes {
            0 => String::new(),
            bytes => format!("; {} of times beside", output::bytes(bytes)),
        };
        writeln!(f, "on device  {}, {compared}{times}", output::bytes(report.payload_bytes))?;
        writeln!(
            f,
            "in file    {}, {} times less than raw",
            output::bytes(summary.bytes),
            output::times(raw, summary.bytes)
        )?;
        let memory = report.memory;
        writeln!(
            f,
            "memory     {} of {} on the device, {} of it filled at most",
            output::bytes(memory.peak),
            output::bytes(memory.limit),
            output::bytes(memory.filled)
        )?;
        let times = [
            ("kernels", report.kernel),
            ("encoding", report.encoding),
            ("copy", report.copy),
            ("write", report.write),
            ("whole run", *whole),
        ];
        for (what, time) in times {
            writeln!(f, "{what:<10} {}", output::time(time))?;
        }
        if let Some(words) = result {
            writeln!(f, "result     {words}")?;
        }
        write!(f, "trace      {}", shown_name(path))
    }
}
