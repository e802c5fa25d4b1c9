//! A trace: from its options to its summary.

use std::fmt;
use std::io::BufWriter;
use std::io::IsTerminal;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use warptrace_device::{KernelCall, KernelModule, SafeCall};
use warptrace_format::file::is_recorders;
use warptrace_format::{RAW_EVENT_BYTES, shown_lines};
use warptrace_host::{
    Interrupted, LaunchShape, MemoryChange, Recorder, RecordingSpec, SessionError, Simulated, SpecError,
    TraceOutput, memory_of,
};

use crate::shared::{ReportedBuffers, Shared};
use crate::{Error, LaunchConfig};

/// A trace that has not started: [`Device::trace`](crate::Device::trace).
#[must_use = "`start` starts the trace"]
pub struct TraceBuilder {
    shared: Rc<Shared>,
    path: PathBuf,
    pub(crate) spec: RecordingSpec,
    pub(crate) interrupt: Option<Interrupt>,
    pub(crate) simulated: Simulated,
}

pub(crate) type Interrupt = (Arc<AtomicBool>, Box<dyn FnMut(&Interrupted)>);

impl fmt::Debug for TraceBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceBuilder")
            .field("path", &self.path)
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

impl TraceBuilder {
    pub(crate) fn new(shared: Rc<Shared>, path: PathBuf) -> Self {
        let simulated = Simulated { progress: std::io::stderr().is_terminal(), ..Simulated::default() };
        Self { shared, path, spec: RecordingSpec::default(), interrupt: None, simulated }
    }

    /// Creates the file and starts to record the kernels of `module`. Fails if the file cannot be created,
    /// memory is insufficient, the device has no code for the kernels (a GPU needs a build script that
    /// compiles them), or the options contradict each other.
    pub fn start(self, module: &KernelModule) -> Result<Trace, Error> {
        self.start_modules(&[module])
    }

    /// Like [`start`](Self::start), for the kernels of several modules. The ids of their locations must
    /// differ: `#[warptrace::kernels(first_id = 1001)]` sets a module's first id. If functions of a kernel
    /// call traced functions of another module, both modules' locations are recorded.
    pub fn start_modules(self, modules: &[&KernelModule]) -> Result<Trace, Error> {
        let Self { shared, path, spec, interrupt, simulated } = self;
        if let Some((name, _)) = spec.properties.iter().find(|(name, _)| is_recorders(name)) {
            return Err(SessionError::from(SpecError::RecordersProperty { name: name.clone() }).into());
        }
        let file = TraceOutput::open(&path).map_err(|source| Error::File { path: path.clone(), source })?;
        let output = BufWriter::with_capacity(1 << 20, file);
        let mut recorder = shared.with(|device| Recorder::start_modules(device, modules, &spec, output))?;
        if let Some((asked, tell)) = interrupt {
            shared.with(|device| recorder.interrupt_by(device, asked, tell))?;
        }
        let told = (!spec.spaces().is_none()).then(ReportedBuffers::default);
        let is_reached = |module: &&KernelModule| {
            let (variables, allocates) = memory_of(module.ptx);
            allocates || !variables.is_empty()
        };
        if told.is_some() && (!shared.owns_all() || modules.iter().any(is_reached)) {
            recorder.change_memory(MemoryChange::Unknown);
        }
        Ok(Trace { recorder, shared, path, simulated, told, has_ended: false })
    }
}

/// Records launches into a file, which [`finish`](Self::finish) ends. If a trace is dropped without `finish`,
/// it also ends the file and prints a note or an error to standard error.
#[must_use = "`launch` records into it, and `finish` ends its file"]
pub struct Trace {
    recorder: Recorder<BufWriter<TraceOutput>>,
    shared: Rc<Shared>,
    path: PathBuf,
    simulated: Simulated,
    /// Buffers reported to the file; `None` if accesses are not recorded.
    told: Option<ReportedBuffers>,
    /// True after `finish` was called or a launch failed, which ends the file.
    has_ended: bool,
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Trace {
    /// Runs a kernel, records it, and waits for it. Returns the kernel's duration. Fails if the kernel does
    /// not belong to the trace's modules, an argument is not memory of this device, a written argument
    /// overlaps another one, the kernel fails, or the file cannot be written.
    pub fn launch(&mut self, call: &SafeCall<'_>, config: &LaunchConfig) -> Result<Duration, Error> {
        self.shared.check(call, config)?;
        // SAFETY: all memory that the kernel uses was checked.
        unsafe { self.launch_unchecked(call, config) }
    }

    /// Like [`launch`](Self::launch), for kernels that take `Global<T>`. Arguments are not checked.
    ///
    /// # Safety
    /// The arguments name memory of this device that is valid for the kernel's accesses.
    pub unsafe fn launch_unchecked(
        &mut self,
        call: &KernelCall,
        config: &LaunchConfig,
    ) -> Result<Duration, Error> {
        let Self { recorder, shared, simulated, told, .. } = self;
        if let Some(told) = told {
            shared.tell_buffers(told, recorder);
        }
        let shape = LaunchShape { simulated: *simulated, ..*config.shape() };
        // SAFETY: guaranteed by the caller.
        let time = shared.with(|device| unsafe { recorder.record(device, call, &shape) });
        Ok(time.inspect_err(|_| self.has_ended = true)?.kernel)
    }

    /// Sets the label of later launches, which views show. An empty label removes it.
    pub fn label(&mut self, label: &str) {
        self.recorder.label(label);
    }

    /// Writes the data that the device still holds, ends the file, and returns a summary. Fails if the device
    /// fails, the file cannot be written, or an earlier launch failed.
    pub fn finish(mut self) -> Result<Summary, Error> {
        self.end()
    }

    fn end(&mut self) -> Result<Summary, Error> {
        self.has_ended = true;
        let (output, file, report) = self.shared.with(|device| self.recorder.finish(device))?;
        let failed = |source| Error::File { path: self.path.clone(), source };
        output.into_inner().map_err(|error| failed(error.into_error()))?.sync().map_err(failed)?;
        Ok(Summary {
            path: self.path.clone(),
            launches: report.launches,
            recorded: report.recorded,
            lost: report.lost,
            file_bytes: file.bytes,
            kernel: report.kernel,
        })
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        if !self.has_ended && !std::thread::panicking() {
            let ended = self.end();
            let path = self.path.display();
            let line = match ended {
                Ok(_) => format!("note: the trace {path} was dropped without `finish`; its file is whole"),
                Err(error) => {
                    format!("error: the trace {path} was dropped without `finish`, and not ended: {error}")
                }
            };
            // `eprintln!` panics if standard error cannot be written.
            let _ = writeln!(std::io::stderr(), "{}", shown_lines(&line));
        }
        self.shared.with(|device| self.recorder.close(device));
    }
}

/// Summary of a trace. `Display` prints a few sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    path: PathBuf,
    /// Launches of the program.
    pub launches: u64,
    /// Events in the trace.
    pub recorded: u64,
    /// Events that found no device memory.
    pub lost: u64,
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// Total time of the program's kernels alone.
    pub kernel: Duration,
}

impl Summary {
    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, launches, recorded, lost, file_bytes, kernel } = self;
        let raw = recorded.saturating_mul(u64::from(RAW_EVENT_BYTES));
        write!(
            f,
            "{}: {recorded} events of {launches} launches in {file_bytes} bytes ({raw} raw); kernels took {kernel:.1?}",
            path.display()
        )?;
        if *lost > 0 {
            write!(
                f,
                ". {lost} events found no room in device memory: allow more (`TraceBuilder::memory`), or have \
                 warps wait for it (`TraceBuilder::policy`)"
            )?;
        }
        Ok(())
    }
}
