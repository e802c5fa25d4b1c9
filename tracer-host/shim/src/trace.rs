//! Records launches: a recorder for each context of the program, begun by its first traced launch.
//!
//! A launch reserves room for its logs, goes to the driver, and the program goes on. The recorder's own
//! thread looks for launches that have ended, and drains what they recorded meanwhile. Only a launch that
//! finds no room waits, and not forever: a kernel may wait for what the program does next. The lock of all
//! traces is never held while something is waited for, but for a trace that begins.

mod hang;
mod memory;
mod noted;
mod recorder;
mod watch;

use std::collections::HashMap;
use std::ffi::c_void;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use warptrace_abi::log::LaunchLogs;
use warptrace_host::{LaunchShape, MemoryChange, NameParts, SessionError};

use self::memory::ProgramMemory;
pub(crate) use self::noted::{NotedLaunches, note};
use self::recorder::{ForeignDevice, Recorder, reason_of};
use self::watch::{Signals, at_exit};
use crate::driver::Answer;
use crate::exchange::{Kernel, NOT_ASKED};
use crate::settings::numbered;
use crate::state::{Code, State, lock};

/// How long the end of a process, or of a context, waits for launches that are being recorded.
const PATIENCE: Duration = Duration::from_secs(5);

/// The reason of launches that are not recorded where the process's report says it for all.
pub(crate) const SAID: &str = "nothing was traced";

/// A kernel that is launched.
#[derive(Clone, Copy)]
pub(crate) struct Item<'a> {
    pub(crate) code: &'a Code,
    pub(crate) kernel: &'a Kernel,
    pub(crate) shape: LaunchShape,
}

/// A launch that is to be recorded, or all of a graph.
pub(crate) struct Request<'a, L> {
    pub(crate) context: *mut c_void,
    pub(crate) stream: *mut c_void,
    pub(crate) items: Vec<Item<'a>>,
    /// Calls the driver, with the logs of each kernel; `None` where the untraced one is to run.
    pub(crate) launch: L,
}

/// The recorders of a process.
#[derive(Default)]
pub(crate) struct Traces {
    contexts: HashMap<usize, Context>,
    /// Devices of contexts whose traces have ended, for the next ones.
    devices: HashMap<usize, ForeignDevice>,
    /// How many traces were begun into each name.
    begun: HashMap<PathBuf, usize>,
    /// The same of the name that the settings give, while the program has asked for another.
    begun_unasked: HashMap<PathBuf, usize>,
    /// The name that the program has asked for itself.
    asked: Option<PathBuf>,
    /// Whether the program has said that nothing is to be recorded.
    is_paused: bool,
    /// Memory of the program.
    memory: ProgramMemory,
    /// Whether the process's end is known here.
    ends: bool,
    /// Whether it has begun.
    closed: bool,
}

/// A context, while it records or when it does no more.
enum Context {
    Recording(Arc<Recorder>),
    Ended(String),
}

/// Recorders that are to end, by their contexts.
type Ending = Vec<(usize, Arc<Recorder>)>;

/// Makes a launch that is recorded.
///
/// # Errors
/// Why it was not recorded. It may have been made all the same: the closure of the request knows.
pub(crate) fn record<L>(state: &'static State, request: Request<'_, L>) -> Result<(), String>
where
    L: FnOnce(&[Option<LaunchLogs>]) -> Answer,
{
    let key = request.context as usize;
    let recorder = lock(&state.traces).recorder(state, request.context)?;
    let error = match recorder.record(request, &state.settings) {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    let reason = reason_of(&error);
    // What the file cannot name is not recorded; the trace goes on without it.
    if !error.is_refusal() && !matches!(error, SessionError::Metadata(_)) {
        let mut traces = lock(&state.traces);
        if let Some(context) = traces.contexts.get_mut(&key)
            && matches!(context, Context::Recording(known) if Arc::ptr_eq(known, &recorder))
        {
            *context = Context::Ended(reason.clone());
        }
    }
    Err(reason)
}

/// Gives a trace up, and leaves its memory to whatever writes there.
pub(crate) fn abandon(state: &State, context: *mut c_void, why: &str) {
    let ended = Context::Ended(format!("the trace had ended: {why}"));
    let before = lock(&state.traces).contexts.insert(context as usize, ended);
    if let Some(Context::Recording(recorder)) = before {
        recorder.abandon(why);
    }
}

/// Ends the trace of a context that is about to end, if it has one.
pub(crate) fn end(state: &'static State, context: *mut c_void) {
    let key = context as usize;
    noted::begin_waiting(state, Some(context));
    let recorder = lock(&state.traces).contexts.remove(&key);
    let device = match recorder {
        Some(Context::Recording(recorder)) => {
            let device = recorder.finish(state);
            hang::wait();
            device
        }
        _ => lock(&state.traces).devices.remove(&key),
    };
    lock(&state.noted).end(Some(key));
    if let Some(device) = device {
        device.close();
    }
}

/// Ends all traces; what is launched from now on is recorded into others, of the name that is asked for.
pub(crate) fn begin_anew(state: &'static State, asked: Option<PathBuf>) {
    pause(state);
    let mut traces = lock(&state.traces);
    // A name that the program gives itself is written anew; traces of the one that was asked for are
    // numbered.
    if traces.asked.is_none() {
        traces.begun_unasked = std::mem::take(&mut traces.begun);
    }
    traces.begun = if asked.is_some() { HashMap::new() } else { std::mem::take(&mut traces.begun_unasked) };
    traces.asked = asked;
    traces.is_paused = false;
    state.is_paused.store(false, Ordering::Relaxed);
}

/// Ends all traces; what is launched from now on is not recorded.
pub(crate) fn pause(state: &'static State) {
    noted::begin_waiting(state, None);
    state.is_paused.store(true, Ordering::Relaxed);
    let ending = {
        let mut traces = lock(&state.traces);
        traces.is_paused = true;
        traces.take()
    };
    lock(&state.noted).end(None);
    let devices = Traces::finish(state, ending);
    hang::wait();
    lock(&state.traces).devices.extend(devices);
}

impl Traces {
    /// Traces of which nothing is recorded before the program says so.
    pub(crate) fn paused(is_paused: bool) -> Self {
        Self { is_paused, ..Self::default() }
    }

    /// Returns a context's recorder, which is started if there was none.
    ///
    /// # Errors
    /// Why nothing is recorded there.
    fn recorder(&mut self, state: &'static State, context: *mut c_void) -> Result<Arc<Recorder>, String> {
        if self.closed {
            return Err("the process was ending".to_owned());
        }
        if self.is_paused {
            return Err(NOT_ASKED.to_owned());
        }
        let key = context as usize;
        if !self.contexts.contains_key(&key) {
            let begun = self.begin(state, context);
            lock(&state.noted).begin(key, begun.as_ref().ok());
            // Why there is no trace was said once.
            let begun = begun.map_or_else(|_| Context::Ended(SAID.to_owned()), Context::Recording);
            self.contexts.insert(key, begun);
        }
        match self.contexts.get(&key) {
            Some(Context::Recording(recorder)) => Ok(Arc::clone(recorder)),
            Some(Context::Ended(reason)) => Err(reason.clone()),
            None => Err("its context has ended".to_owned()),
        }
    }

    /// Begins the trace of a context.
    fn begin(&mut self, state: &'static State, context: *mut c_void) -> Result<Arc<Recorder>, String> {
        // Threads that are started here leave the program's signals to its own.
        let _blocked = Signals::block();
        let started = self.prepare(state, context);
        let started = started.and_then(|(device, path)| Recorder::start(state, device, path, None));
        let recorder = started.inspect_err(|error| {
            lock(&state.summary).note(format!("nothing was traced: {error}"));
        })?;
        if state.records_accesses() {
            self.memory.tell_all(recorder.launches(), recorder.device);
            // Kernels may then reach what the program has of the host's memory.
            if crate::driver::reaches_pageable() {
                recorder.launches().change_memory(MemoryChange::Unknown);
            }
        }
        if !self.ends {
            // SAFETY: a function of this library, which stays loaded.
            self.ends = unsafe { libc::atexit(at_exit) } == 0;
        }
        Ok(recorder)
    }

    /// Opens the device of a context, and names a file for it.
    fn prepare(
        &mut self,
        state: &'static State,
        context: *mut c_void,
    ) -> Result<((ForeignDevice, usize), PathBuf), String> {
        let key = context as usize;
        let known = self.devices.remove(&key);
        let device = known.map_or_else(|| ForeignDevice::open(context), Ok)?;
        match self.name(state, device.ordinal()) {
            Ok(path) => Ok(((device, key), path)),
            Err(reason) => {
                self.devices.insert(key, device);
                Err(reason)
            }
        }
    }

    /// Names a file for a device, which no other process writes.
    fn name(&mut self, state: &State, device: u32) -> Result<PathBuf, String> {
        let parts = NameParts { process: std::process::id(), rank: warptrace_host::ranks().rank, device };
        let name = state.settings.file(self.asked.as_deref(), parts).map_err(|error| error.to_string())?;
        let begun = self.begun.get(&name).copied().unwrap_or(0) + 1;
        let path = numbered(&name, begun);
        if !lock(&state.summary).claim(&path) {
            return Err(format!(
                "another process writes {}: put %r, its rank, or %p, its number, into the name",
                path.display()
            ));
        }
        self.begun.insert(name, begun);
        Ok(path)
    }

    /// Takes all recorders out, to end them.
    fn take(&mut self) -> Ending {
        let all = self.contexts.drain().filter_map(|(key, context)| match context {
            Context::Recording(recorder) => Some((key, recorder)),
            Context::Ended(_) => None,
        });
        all.collect()
    }

    /// The same at the end of the process.
    fn close(&mut self) -> Ending {
        self.closed = true;
        self.take()
    }

    /// Ends traces, all at the same time; returns their devices.
    fn finish(state: &State, ending: Ending) -> Vec<(usize, ForeignDevice)> {
        ending.iter().for_each(|(_, recorder)| recorder.end());
        let finish = |(key, recorder): (usize, Arc<Recorder>)| Some((key, recorder.finish(state)?));
        ending.into_iter().filter_map(finish).collect()
    }
}
