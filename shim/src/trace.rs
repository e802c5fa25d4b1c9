//! Records launches: a session for each context of the program, begun by its first traced launch.
//!
//! A launch goes to the driver with its logs, and the program goes on. A thread looks for launches that have ended,
//! and drains what they recorded while nothing is launched. Only a launch that finds no room waits for those before
//! it, and not forever: a kernel may wait for what the program does next.

use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use warptrace_device::KernelCall;
use warptrace_host::{
    CudaDevice, ForeignLaunch, ForeignLaunches, LaunchReport, LaunchShape, Launching, MemorySize, Patience,
    Session, SessionError, SessionOptions, TracedProgram,
};

use crate::driver::{self, Answer, Current, Relaxed};
use crate::exchange::{Kernel, NOT_ASKED};
use crate::inside::{Inside, guarded};
use crate::settings::Settings;
use crate::state::{Code, State, lock, state};

/// What was recorded is written after so many times as long as writing it took the last time, and no sooner than
/// this: a kernel that fails, or a program that ends without telling anybody, takes no more with it, and writing
/// takes little of the program's time.
const WRITTEN_AFTER: u32 = 25;
const MIN_WRITTEN_AFTER: Duration = Duration::from_millis(20);
/// Without a launch for so long, the program is taken to do something else,
const QUIET: Duration = Duration::from_millis(5);
/// and what was recorded is written then, or after so long.
const LONGEST_WITHOUT: Duration = Duration::from_millis(250);
/// What was drained in less time is so little that the program waits until it is written.
const WORTH_WAITING: Duration = Duration::from_millis(50);
/// Where nothing is said, a session takes this part of the memory that is free when it begins,
const MEMORY_SHARE: u64 = 8;
/// and at most this much.
const MAX_MEMORY_BYTES: u64 = 16 << 30;
/// How long the end of a process, or of a context, waits for launches that are being recorded.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a launch in another stream waits for a kernel of which nobody knows yet how much it records.
const OTHER_STREAM: Duration = Duration::from_millis(200);
/// How often launches are looked at that have not ended.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The reason of launches that are not recorded where the process's report says it for all.
pub(crate) const SAID: &str = "nothing was traced";

/// What the driver has said to a launch, once it was made.
#[derive(Clone, Debug)]
pub(crate) struct Issued(Arc<AtomicU64>);

impl Issued {
    const NOT_YET: u64 = u64::MAX;

    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(Self::NOT_YET)))
    }

    pub(crate) fn set(&self, answer: Answer) {
        self.0.store(answer.into(), Ordering::Release);
    }

    /// The driver's answer; `None` if the launch was not made, or refused with its logs.
    pub(crate) fn answer(&self) -> Option<Answer> {
        Answer::try_from(self.0.load(Ordering::Acquire)).ok().filter(|answer| *answer == driver::SUCCESS)
    }
}

/// A kernel that is launched.
#[derive(Clone, Copy)]
pub(crate) struct Item<'a> {
    pub(crate) code: &'a Code,
    pub(crate) kernel: &'a Kernel,
    pub(crate) shape: LaunchShape,
}

/// A launch that is to be recorded, or all of a graph.
pub(crate) struct Request<'a> {
    pub(crate) context: *mut c_void,
    pub(crate) stream: *mut c_void,
    pub(crate) items: Vec<Item<'a>>,
    pub(crate) launch: Launching,
}

/// The sessions of a process.
#[derive(Default)]
pub(crate) struct Traces {
    contexts: HashMap<usize, Context>,
    /// Devices of contexts whose traces have ended, for the next ones.
    devices: HashMap<usize, ForeignDevice>,
    /// Traces that were begun, into the same name.
    begun: usize,
    /// The same of the name that the settings give, while the program has asked for another.
    begun_unasked: usize,
    /// The name that the program has asked for itself.
    asked: Option<PathBuf>,
    /// Whether the program has said that nothing is to be recorded.
    is_paused: bool,
    /// Whether the process's end is known here.
    ends: bool,
    /// Whether it has begun.
    closed: bool,
    /// Whether a thread looks for what has ended.
    is_watched: bool,
    /// Whether that thread has ended all traces, because the process ends.
    is_finished: bool,
}

/// The tracer's view of a context. It lives until that ends, or the process.
struct ForeignDevice {
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
    fn close(self) {
        // SAFETY: made by `open`, and no session has it.
        drop(unsafe { Box::from_raw(self.device) });
    }
}

/// A context, while it records or when it does no more.
enum Context {
    Recording(Box<Recorder>),
    Ended(String),
}

struct Recorder {
    session: Session<'static, BufWriter<File>>,
    device: ForeignDevice,
    path: PathBuf,
    /// Numbers of the modules that the file knows.
    told: HashSet<usize>,
    kernels: HashSet<&'static str>,
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

impl Traces {
    /// Makes a launch that is recorded.
    ///
    /// # Errors
    /// Why it was not recorded. It may have been made all the same: its [`Issued`] tells.
    pub(crate) fn record(&mut self, state: &'static State, request: Request<'_>) -> Result<(), String> {
        if self.closed {
            return Err("the process was ending".to_owned());
        }
        if self.is_paused {
            return Err(NOT_ASKED.to_owned());
        }
        let key = request.context as usize;
        if !self.contexts.contains_key(&key) {
            let begun = {
                // Threads that are started here leave the program's signals to its own.
                let _blocked = Signals::block();
                let begun = self.begin(state, request.context);
                if begun.is_ok() && !self.is_watched {
                    // Without the thread, what was recorded is written when room is short, and at the end.
                    self.is_watched = watch(state);
                }
                begun
            };
            // Why there is no trace was said once.
            let context = begun.map_or_else(
                |_| Context::Ended(SAID.to_owned()),
                |recorder| Context::Recording(Box::new(recorder)),
            );
            self.contexts.insert(key, context);
        }
        let recorder = match self.contexts.get_mut(&key) {
            Some(Context::Recording(recorder)) => recorder,
            Some(Context::Ended(reason)) => return Err(reason.clone()),
            None => return Err("its context has ended".to_owned()),
        };
        match recorder.record(request, &state.settings) {
            Ok(()) if state.settings.sync => Ok(()),
            Ok(()) => {
                state.launched.notify_one();
                Ok(())
            }
            // What the file cannot name is not recorded; the trace goes on without it.
            Err(error) if error.is_refusal() || matches!(error, SessionError::Metadata(_)) => {
                Err(reason_of(&error))
            }
            Err(error) => Err(self.ends_early(state, key, &error)),
        }
    }

    /// Gives a trace up, and leaves its memory to whatever writes there.
    pub(crate) fn abandon(&mut self, state: &State, context: *mut c_void, why: &str) {
        let ended = Context::Ended(format!("the trace had ended: {why}"));
        if let Some(Context::Recording(recorder)) = self.contexts.insert(context as usize, ended) {
            lock(&state.summary).trace(&recorder.path, format!("it ends early: {why}"));
            std::mem::forget(recorder);
        }
    }

    /// Ends a trace that cannot go on, and answers why.
    fn ends_early(&mut self, state: &State, key: usize, error: &SessionError) -> String {
        let reason = reason_of(error);
        let why = format!("the trace had ended: {reason}");
        if let Some(Context::Recording(recorder)) = self.contexts.insert(key, Context::Ended(why)) {
            let line = described(recorder.session.total(), recorder.kernels.len());
            let hint =
                if state.settings.sync { "" } else { "; with --sync more of what came before is kept" };
            let line = format!("{line}; it ends early: {reason}{hint}");
            lock(&state.summary).trace(&recorder.path, line);
        }
        reason
    }

    /// Looks for launches that have ended, and writes what is worth it. Tells whether it should be called again,
    /// even if nothing is launched meanwhile.
    fn look(&mut self, state: &State) -> bool {
        let (mut again, mut failed) = (false, Vec::new());
        for (key, context) in &mut self.contexts {
            if let Context::Recording(recorder) = context {
                match recorder.look() {
                    Ok(more) => again |= more,
                    Err(error) => failed.push((*key, error)),
                }
            }
        }
        for (key, error) in failed {
            self.ends_early(state, key, &error);
        }
        again
    }

    /// Begins the trace of a context.
    fn begin(&mut self, state: &State, context: *mut c_void) -> Result<Recorder, String> {
        let path = state.settings.file(self.asked.as_deref(), std::process::id(), self.begun + 1);
        if !lock(&state.summary).claim(&path) {
            let reason = format!("another process writes {}: put %p into the name", path.display());
            lock(&state.summary).note(format!("nothing was traced: {reason}"));
            return Err(reason);
        }
        self.begun += 1;
        let known = self.devices.remove(&(context as usize));
        let recorder = Recorder::start(state, context, known, path).inspect_err(|error| {
            lock(&state.summary).note(format!("nothing was traced: {error}"));
        })?;
        if !self.ends {
            // SAFETY: a function of this library, which stays loaded.
            self.ends = unsafe { libc::atexit(at_exit) } == 0;
        }
        lock(&state.summary).trace(&recorder.path, "the process ended before its trace did".to_owned());
        Ok(recorder)
    }

    /// Ends the trace of a context that is about to end.
    pub(crate) fn end(&mut self, state: &State, context: *mut c_void) {
        let key = context as usize;
        if let Some(Context::Recording(recorder)) = self.contexts.remove(&key)
            && let Some(device) = recorder.finish(state)
        {
            self.devices.insert(key, device);
        }
        if let Some(device) = self.devices.remove(&key) {
            device.close();
        }
    }

    /// Traces of which nothing is recorded before the program says so.
    pub(crate) fn paused(is_paused: bool) -> Self {
        Self { is_paused, ..Self::default() }
    }

    /// Ends all traces; what is launched from now on is recorded into others, of the name that is asked for.
    pub(crate) fn begin_anew(&mut self, state: &State, asked: Option<PathBuf>) {
        self.finish_all(state);
        // A name that the program gives itself is written anew; traces of the one that was asked for are numbered.
        if self.asked.is_none() {
            self.begun_unasked = self.begun;
        }
        self.begun = if asked.is_some() { 0 } else { self.begun_unasked };
        self.asked = asked;
        self.is_paused = false;
    }

    /// Ends all traces; what is launched from now on is not recorded.
    pub(crate) fn pause(&mut self, state: &State) {
        self.finish_all(state);
        self.is_paused = true;
    }

    fn finish_all(&mut self, state: &State) {
        // Without a context there may be no driver to ask.
        let _mode = (!self.contexts.is_empty()).then(|| (Current::keep(), Relaxed::enter()));
        for (key, context) in self.contexts.drain() {
            if let Context::Recording(recorder) = context
                && let Some(device) = recorder.finish(state)
            {
                self.devices.insert(key, device);
            }
        }
    }
}

impl Recorder {
    fn start(
        state: &State,
        context: *mut c_void,
        known: Option<ForeignDevice>,
        path: PathBuf,
    ) -> Result<Self, String> {
        let settings = &state.settings;
        let device = known.map_or_else(|| ForeignDevice::open(context), Ok)?;
        let mut options = SessionOptions::new(settings.codec);
        options.counted = true;
        options.policy = settings.policy;
        options.overlap = true;
        options.memory_bytes = settings
            .memory
            .or_else(|| driver::free_memory().map(|free| (free / MEMORY_SHARE).min(MAX_MEMORY_BYTES)));
        let arguments: Vec<String> =
            std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        options.properties.push(("program".to_owned(), arguments.join(" ")));
        options.properties.push(("points".to_owned(), settings.points.to_string()));
        let file =
            File::create(&path).map_err(|error| format!("cannot create {}: {error}", path.display()))?;
        let program = TracedProgram { kernels: &[], points: &[], modules: &[] };
        let file = BufWriter::with_capacity(1 << 20, file);
        // SAFETY: nobody else has it until the session has ended.
        let used = unsafe { &mut *device.device };
        let session = Session::start(used, &program, &options, file).map_err(|error| error.to_string())?;
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

    fn record(&mut self, request: Request<'_>, settings: &Settings) -> Result<(), SessionError> {
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
        let unknown = if is_behind { settings.wait } else { settings.wait.min(OTHER_STREAM) };
        // SAFETY: the program's own launches, on its own memory.
        let begun = unsafe { self.session.begin(&calls, Patience { short: settings.wait, unknown }) };
        drop(self.device.launches.take());
        begun?;
        self.is_dirty = true;
        self.launched_at = Instant::now();
        self.streams.insert(stream as usize);
        self.kernels.extend(items.iter().map(|item| item.kernel.readable));
        if settings.sync {
            self.session.wait(Duration::MAX)?;
            self.launched_at -= QUIET;
            self.look()?;
        }
        Ok(())
    }

    /// Looks for launches that have ended, and writes what they have recorded if it is time; tells whether there
    /// is more to do.
    fn look(&mut self) -> Result<bool, SessionError> {
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
    fn finish(self, state: &State) -> Option<ForeignDevice> {
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
            Err(error) => format!("it ends early: {error}"),
        };
        lock(&state.summary).trace(&path, line);
        is_free.then_some(device)
    }
}

/// Why a launch is not recorded, in words.
fn reason_of(error: &SessionError) -> String {
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

/// While this lives, the thread gets no signals, nor do threads that it starts, ever.
struct Signals(libc::sigset_t);

impl Signals {
    fn block() -> Self {
        // SAFETY: both sets are the system's own type, which it fills.
        unsafe {
            let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            Self(before)
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // SAFETY: the mask that the thread had.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) };
    }
}

/// Starts the thread that looks for launches that have ended, and ends all traces when the process ends.
fn watch(state: &'static State) -> bool {
    let look = || {
        let Some(_inside) = Inside::enter() else { return };
        let _ = guarded(|| {
            let _relaxed = Relaxed::enter();
            let mut traces = lock(&state.traces);
            while !traces.closed {
                traces = if traces.look(state) {
                    // Not woken by each launch: they need the lock.
                    drop(traces);
                    std::thread::sleep(LOOK_EVERY);
                    lock(&state.traces)
                } else {
                    state.launched.wait(traces).unwrap_or_else(PoisonError::into_inner)
                };
            }
            traces.finish_all(state);
        });
        lock(&state.traces).is_finished = true;
        state.finished.notify_all();
    };
    std::thread::Builder::new().name("warptrace".to_owned()).spawn(look).is_ok()
}

/// What a trace holds, in words.
fn described(report: &LaunchReport, kernels: usize) -> String {
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

/// Ends all traces of the process.
extern "C" fn at_exit() {
    let Some(_inside) = Inside::enter() else { return };
    let _ = guarded(|| {
        let Some(state) = state() else { return };
        let started = Instant::now();
        let traces = loop {
            match state.traces.try_lock() {
                Ok(traces) => break Some(traces),
                Err(TryLockError::Poisoned(poisoned)) => break Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if started.elapsed() > PATIENCE => break None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        if let Some(mut traces) = traces {
            traces.closed = true;
            if traces.is_watched {
                // This thread has lost its own variables, which libraries need: the other one ends the traces.
                state.launched.notify_one();
                while !traces.is_finished {
                    traces = state.finished.wait(traces).unwrap_or_else(PoisonError::into_inner);
                }
            } else {
                traces.finish_all(state);
            }
        }
        lock(&state.summary).write();
    });
}
