//! Records launches: a session for each context of the program, begun by its first traced launch.
//!
//! A launch goes to the driver with its logs, and the program goes on. A thread looks for launches that have
//! ended, and drains what they recorded while nothing is launched. Only a launch that finds no room waits for
//! those before it, and not forever: a kernel may wait for what the program does next.

mod recorder;
mod watch;

use std::collections::HashMap;
use std::ffi::c_void;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use warptrace_host::{LaunchShape, Launching, SessionError};

use self::recorder::{ForeignDevice, Recorder, described, hint, reason_of};
pub(crate) use self::watch::end;
use self::watch::{Signals, at_exit, watch};
use crate::driver::{self, Answer, Current, Relaxed};
use crate::exchange::{Kernel, NOT_ASKED};
use crate::state::{Code, State, lock};

/// How long the end of a process, or of a context, waits for launches that are being recorded.
const PATIENCE: Duration = Duration::from_secs(5);

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
    /// Contexts whose traces that thread is to end.
    ending: Vec<usize>,
    /// Whether that thread has ended all traces, because the process ends.
    is_finished: bool,
}

/// A context, while it records or when it does no more.
enum Context {
    Recording(Box<Recorder>),
    Ended(String),
}

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
            Ok(()) if state.settings.waits() => Ok(()),
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
            let hint = hint(state.settings.waits());
            let line = format!("{line}; it ends early: {reason}{hint}");
            lock(&state.summary).trace(&recorder.path, line);
        }
        reason
    }

    /// Looks for launches that have ended, and writes what is worth it. Tells whether it should be called
    /// again, even if nothing is launched meanwhile.
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

    /// Ends the trace of a context, if it has one.
    fn end(&mut self, state: &State, key: usize) {
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
        // A name that the program gives itself is written anew; traces of the one that was asked for are
        // numbered.
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
