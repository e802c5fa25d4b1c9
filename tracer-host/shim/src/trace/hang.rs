//! Launches that do not end: a thread detects them and ends the traces.
//!
//! All of the program's threads may wait for the driver, so another thread polls for signals, for a request
//! file of `warptrace run`, and for launches above the time limit. When it ends the traces, the files contain
//! the records so far, with the positions of warps.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};

use warptrace_abi::run::ASKED;
use warptrace_spec::OnHang;

use super::recorder::Recorder;
use super::{Context, Traces};
use crate::inside::{Inside, guarded};
use crate::settings::report_folder;
use crate::state::{State, lock};

/// Polling interval.
const EVERY: Duration = Duration::from_millis(50);
/// A launch that is a recorder's oldest at a request for positions hangs if it still is after this time.
const HANGS_AFTER: Duration = Duration::from_millis(500);
/// How long the thread waits for the lock of all traces to end them.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// Signals that end a program without a handler.
const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGQUIT];

/// The received signal; 0 if none.
static CAME: AtomicI32 = AtomicI32::new(0);
/// Id of the process with the polling thread; 0 if it does not run.
static WATCHED: AtomicU32 = AtomicU32::new(0);
/// Locked while traces are ended.
static ENDING: Mutex<()> = Mutex::new(());

/// Stores a signal for the polling thread. Ends the process at a second signal, or without that thread.
extern "C" fn note(signal: libc::c_int) {
    // SAFETY: `getpid` is async-signal-safe.
    let process = unsafe { libc::getpid() }.cast_unsigned();
    if WATCHED.load(Ordering::Relaxed) != process || CAME.swap(signal, Ordering::Relaxed) != 0 {
        end_by(signal);
    }
}

fn end_by(signal: libc::c_int) {
    // SAFETY: these functions are async-signal-safe.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::kill(libc::getpid(), signal);
    }
}

/// Starts the thread, once. Does not change signals that the program handles or ignores.
pub(super) fn watch(state: &'static State) {
    static STARTED: AtomicBool = AtomicBool::new(false);
    if STARTED.swap(true, Ordering::Relaxed) {
        return;
    }
    let watch = move || {
        let _inside = Inside::enter();
        let _ = guarded(|| Watch::new(state).run());
        WATCHED.store(0, Ordering::Relaxed);
    };
    WATCHED.store(std::process::id(), Ordering::Relaxed);
    // Without this thread, hanging launches are not detected.
    if std::thread::Builder::new().name("warptrace watch".to_owned()).spawn(watch).is_err() {
        WATCHED.store(0, Ordering::Relaxed);
        return;
    }
    for signal in SIGNALS {
        // SAFETY: the structures have the system's types. The handler is async-signal-safe.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut before);
            if before.sa_sigaction == libc::SIG_DFL {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
                action.sa_flags = libc::SA_RESTART;
                libc::sigaction(signal, &raw const action, std::ptr::null_mut());
            }
        }
    }
}

/// Waits until traces that are being ended have ended.
pub(super) fn wait() {
    drop(lock(&ENDING));
}

/// A request of `warptrace run` for the positions of launches that hang.
struct Asked {
    since: Instant,
    /// The recorders with running launches at that time, and the oldest launch of each.
    running: Vec<(Arc<Recorder>, u32)>,
}

struct Watch {
    state: &'static State,
    /// Contents of the request file when it was last read.
    known: String,
    asked: Option<Asked>,
    said_at: Instant,
}

impl Watch {
    fn new(state: &'static State) -> Self {
        Self { state, known: read_asked(), asked: None, said_at: Instant::now() }
    }

    fn run(mut self) {
        loop {
            std::thread::sleep(EVERY);
            let signal = CAME.load(Ordering::Relaxed);
            if signal != 0 {
                self.end(|_| true);
                lock(&self.state.summary).write();
                return end_by(signal);
            }
            self.look();
        }
    }

    /// Checks for a request, and for launches above the time limit.
    fn look(&mut self) {
        let Some(recorders) = self.recorders(Duration::ZERO) else { return };
        if self.said_at.elapsed() >= Recorder::LONG {
            self.said_at = Instant::now();
            recorders.iter().for_each(|recorder| recorder.say_unfinished(self.state));
        }
        let asked = read_asked();
        let oldest = |recorder: &Arc<Recorder>| recorder.launches().oldest();
        if asked != self.known {
            self.known = asked;
            let running = |recorder: &Arc<Recorder>| Some((recorder.clone(), oldest(recorder)?.launch));
            let running = recorders.iter().filter_map(running).collect();
            self.asked = Some(Asked { since: Instant::now(), running });
        }
        if let Some(Asked { running, .. }) = self.asked.take_if(|it| it.since.elapsed() >= HANGS_AFTER) {
            let is_same = |(recorder, launch): &(Arc<Recorder>, u32)| {
                oldest(recorder).is_some_and(|oldest| oldest.launch == *launch)
            };
            if running.iter().any(is_same) {
                self.end(|recorder| oldest(recorder).is_some());
            }
        }
        let spec = &self.state.settings.spec;
        let Some(limit) = spec.launch_limit else { return };
        let is_long =
            |recorder: &Arc<Recorder>| oldest(recorder).is_some_and(|oldest| oldest.since.elapsed() >= limit);
        if recorders.iter().any(is_long) && self.end(is_long) && spec.on_hang == OnHang::Stop {
            lock(&self.state.summary).write();
            end_by(libc::SIGTERM);
        }
    }

    /// Returns the process's recorders; `None` if the lock is not free within `patience`.
    fn recorders(&self, patience: Duration) -> Option<Vec<Arc<Recorder>>> {
        let started = Instant::now();
        loop {
            match self.state.traces.try_lock() {
                Ok(traces) => return Some(traces.recording()),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner().recording()),
                Err(TryLockError::WouldBlock) if started.elapsed() >= patience => return None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// Ends traces now. Returns true if there were any.
    fn end(&self, which: impl Fn(&Arc<Recorder>) -> bool) -> bool {
        let _ending = lock(&ENDING);
        let mut recorders = self.recorders(LOCK_PATIENCE).unwrap_or_default();
        recorders.retain(|recorder| !recorder.is_over() && which(recorder));
        recorders.iter().for_each(|recorder| recorder.launches().end_now());
        for recorder in &recorders {
            // The process's end frees the driver's objects.
            std::mem::forget(recorder.finish(self.state));
        }
        !recorders.is_empty()
    }
}

impl Traces {
    fn recording(&self) -> Vec<Arc<Recorder>> {
        let recording = |context: &Context| match context {
            Context::Recording(recorder) => Some(Arc::clone(recorder)),
            Context::Ended(_) => None,
        };
        self.contexts.values().filter_map(recording).collect()
    }
}

fn read_asked() -> String {
    let read = report_folder().and_then(|folder| std::fs::read_to_string(folder.join(ASKED)).ok());
    read.unwrap_or_default()
}
