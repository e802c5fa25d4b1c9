//! The recording of one context.

use std::collections::HashSet;
use std::ffi::c_void;
use std::io::BufWriter;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use warptrace_device::KernelCall;
use warptrace_host::{
    CudaDevice, ForeignLaunch, ForeignLaunches, LaunchReport, LaunchShape, MemorySize, Patience, Session,
    SessionError, TraceOutput, TracedProgram,
};

use warptrace_spec::RunSpec;

use super::{PATIENCE, Request};
use crate::settings::Settings;
use crate::state::{Code, State, lock};

/// What was recorded is written after so many times as long as writing it took the last time, and no sooner
/// than this: a kernel that fails, or a program that ends without telling anybody, takes no more with it, and
/// writing takes little of the program's time.
const WRITTEN_AFTER: u32 = 25;
const MIN_WRITTEN_AFTER: Duration = Duration::from_millis(20);
/// Without a launch for so long, the program is taken to do something else,
const QUIET: Duration = Duration::from_millis(5);
/// and what was recorded is written then, or after so long.
const LONGEST_WITHOUT: Duration = Duration::from_millis(250);
/// What was drained in less time is so little that the program waits until it is written.
const WORTH_WAITING: Duration = Duration::from_millis(50);
/// How long a launch in another stream waits for a kernel of which nobody knows yet how much it records.
const OTHER_STREAM: Duration = Duration::from_millis(200);

/// The tracer's view of a context. It lives until that ends, or the process.
pub(super) struct ForeignDevice {
    device: *mut CudaDevice,
    launches: ForeignLaunches,
}

// SAFETY: it has one user at a time, behind the lock of `Traces`.
unsafe impl Send for ForeignDevice {}

impl ForeignDevice {
    /// Takes a context of the program.
    fn open(context: *mut c_void) -> Result<Self, String> {
        // SAFETY: the program's context; what is made here is closed before it ends.
        let (device, launches) =
            unsafe { CudaDevice::adopt_foreign(context) }.map_err(|error| error.to_string())?;
        Ok(Self { device: Box::into_raw(Box::new(device)), launches })
    }

    /// Gives back what it has of the driver's.
    pub(super) fn close(self) {
        // SAFETY: made by `open`, and no session has it.
        drop(unsafe { Box::from_raw(self.device) });
    }
}

pub(super) struct Recorder {
    pub(super) session: Session<'static, BufWriter<TraceOutput>>,
    device: ForeignDevice,
    pub(super) path: PathBuf,
    /// Numbers of the modules that the file knows.
    told: HashSet<usize>,
    pub(super) kernels: HashSet<&'static str>,
    /// Streams of the launches that may still run.
    streams: HashSet<usize>,
    /// Whether something may have been recorded that is not written.
    is_dirty: bool,
    /// When something was launched the last time.
    launched_at: Instant,
    /// When what was recorded is written next.
    write_at: Instant,
}

// SAFETY: a session has one user at a time, behind the lock of `Traces`; its device makes its context the
// thread's own.
unsafe impl Send for Recorder {}

impl Recorder {
    pub(super) fn start(
        state: &State,
        context: *mut c_void,
        known: Option<ForeignDevice>,
        path: PathBuf,
    ) -> Result<Self, String> {
        let settings = &state.settings;
        let device = known.map_or_else(|| ForeignDevice::open(context), Ok)?;
        let mut spec = settings.spec.recording.clone();
        // Kernels that were not asked for have no traced copy.
        spec.window.kernels.clear();
        let arguments: Vec<String> =
            std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        spec.properties.push(("program".to_owned(), arguments.join(" ")));
        spec.properties.push(("points".to_owned(), settings.spec.points.to_string()));
        let file =
            TraceOutput::open(&path).map_err(|error| format!("cannot create {}: {error}", path.display()))?;
        let program = TracedProgram { kernels: &[], points: &[], modules: &[] };
        let file = BufWriter::with_capacity(1 << 20, file);
        // SAFETY: nobody else has it until the session has ended.
        let used = unsafe { &mut *device.device };
        let session =
            Session::start_overlapping(used, &program, &spec, file).map_err(|error| error.to_string())?;
        let (told, kernels) = (HashSet::new(), HashSet::new());
        Ok(Self {
            session,
            device,
            path,
            told,
            kernels,
            streams: HashSet::new(),
            is_dirty: false,
            launched_at: Instant::now(),
            write_at: Instant::now(),
        })
    }

    pub(super) fn record(&mut self, request: Request<'_>, settings: &Settings) -> Result<(), SessionError> {
        let Request { stream, items, launch, .. } = request;
        for item in &items {
            self.tell(item.code)?;
        }
        let next = ForeignLaunch::new(stream, launch);
        // SAFETY: the launch is of copies that were spliced for this session's way of recording.
        unsafe { self.device.launches.next(next) };
        let calls: Vec<(KernelCall, LaunchShape)> = items
            .iter()
            .map(|item| (KernelCall::new(item.kernel.readable, Vec::new(), || {}), item.shape))
            .collect();
        // What is behind a kernel in its stream does not keep that from its end; what is in another one may.
        let is_behind = self.streams.iter().all(|other| *other == stream as usize);
        let RunSpec { wait, .. } = settings.spec;
        let unknown = if is_behind { wait } else { wait.min(OTHER_STREAM) };
        // SAFETY: the program's own launches, on its own memory.
        let begun = unsafe { self.session.begin(&calls, Patience { short: wait, unknown }) };
        drop(self.device.launches.take());
        begun?;
        self.is_dirty = true;
        self.launched_at = Instant::now();
        self.streams.insert(stream as usize);
        self.kernels.extend(items.iter().map(|item| item.kernel.readable));
        if settings.waits() {
            self.session.wait(Duration::MAX)?;
            self.launched_at -= QUIET;
            self.look()?;
        }
        if settings.spec.recording.window.max_events.is_some() {
            // The next launch asks how many events there are.
            self.session.flush()?;
        }
        Ok(())
    }

    /// Looks for launches that have ended, and writes what they have recorded if it is time; tells whether
    /// there is more to do.
    pub(super) fn look(&mut self) -> Result<bool, SessionError> {
        if !self.is_dirty {
            return Ok(false);
        }
        let started = Instant::now();
        if !self.session.look()? {
            return Ok(true);
        }
        self.streams.clear();
        // While kernels follow each other, draining would keep the next one waiting.
        let is_quiet = started >= self.launched_at + QUIET || started >= self.write_at + LONGEST_WITHOUT;
        if started < self.write_at || !is_quiet {
            return Ok(true);
        }
        self.session.drain_now()?;
        // Who has much to write, waits for it at the end only.
        if started.elapsed() < WORTH_WAITING {
            self.session.flush()?;
        }
        let ended = Instant::now();
        self.write_at = ended + ((ended - started) * WRITTEN_AFTER).max(MIN_WRITTEN_AFTER);
        self.is_dirty = false;
        Ok(false)
    }

    /// Tells the file of a module's kernels and locations, once.
    fn tell(&mut self, code: &Code) -> Result<(), SessionError> {
        if let Ok(module) = &code.traced
            && !self.told.contains(&code.number)
        {
            let kernels: Vec<(&str, &str)> =
                module.kernels().iter().map(|kernel| (kernel.readable, &*kernel.file)).collect();
            self.session.add_kernels(&kernels, module.locations.clone())?;
            if let Some((name, ptx)) = &module.kept {
                self.session.keep_text(name, ptx)?;
            }
            self.told.insert(code.number);
        }
        Ok(())
    }

    /// Ends the trace; answers the device, unless launches still run.
    pub(super) fn finish(self, state: &State) -> Option<ForeignDevice> {
        let Self { mut session, device, path, kernels, .. } = self;
        // What fails here, fails below.
        let _ = session.wait(PATIENCE);
        let finished = session.finish();
        let is_free = finished.is_ok();
        let line = match finished {
            Ok((file, _, report)) => match file.into_inner() {
                Ok(_) => described(&report, kernels.len()),
                Err(error) => format!("cannot be finished: {}", error.error()),
            },
            Err(error) => format!("it ends early: {error}{}", hint(state.settings.waits())),
        };
        lock(&state.summary).trace(&path, line);
        is_free.then_some(device)
    }
}

/// What helps where a trace ends early.
pub(super) const fn hint(sync: bool) -> &'static str {
    if sync { "" } else { "; with --sync more of what came before is kept" }
}

/// Why a launch is not recorded, in words.
pub(super) fn reason_of(error: &SessionError) -> String {
    match error {
        SessionError::Memory { streams, needed: Some(needed), .. } => {
            format!(
                "{streams} warps need more memory: --memory {}",
                MemorySize(needed.next_multiple_of(1 << 20))
            )
        }
        SessionError::Busy { .. } => format!("{error}: --memory; --wait says how long"),
        _ => error.to_string(),
    }
}

/// What a trace holds, in words.
pub(super) fn described(report: &LaunchReport, kernels: usize) -> String {
    let counted = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let launches = counted(report.recorded_launches, "launch").replace("launchs", "launches");
    let mut words =
        format!("{} of {launches}, {}", counted(report.recorded, "event"), counted(kernels as u64, "kernel"));
    words.push_str(&format!("; kernels took {:.4} ms", report.kernel.as_secs_f64() * 1e3));
    if report.lost > 0 {
        words.push_str(&format!(
            "; {} lost for want of memory: --memory, now {}",
            counted(report.lost, "event"),
            MemorySize(report.memory.limit)
        ));
    }
    words
}
