//! Records launches. Each context has a recorder, started by the first traced launch.
//!
//! A launch reserves memory for its logs and goes to the driver; then the program continues. The recorder's
//! thread detects launches that have ended, and drains their records. Only a launch that finds too little
//! memory waits, and only for a limited time: a running kernel may wait for the program's next call. No
//! thread waits while it holds the lock of all traces, except to start a trace.

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

/// How long the end of a process or context waits for launches that are being recorded.
const PATIENCE: Duration = Duration::from_secs(5);

/// The reason for unrecorded launches if the process's report already has the actual reason.
pub(crate) const SAID: &str = "nothing was traced";

#[derive(Clone, Copy)]
pub(crate) struct Item<'a> {
    pub(crate) code: &'a Code,
    pub(crate) kernel: &'a Kernel,
    pub(crate) shape: LaunchShape,
}

/// A launch, or a graph launch, that is to be recorded.
pub(crate) struct Request<'a, L> {
    pub(crate) context: *mut c_void,
    pub(crate) stream: *mut c_void,
    pub(crate) items: Vec<Item<'a>>,
    /// Calls the driver with the logs of each kernel; `None` for kernels that run untraced.
    pub(crate) launch: L,
}

#[derive(Default)]
pub(crate) struct Traces {
    contexts: HashMap<usize, Context>,
    /// Devices of contexts whose traces have ended, for their next traces.
    devices: HashMap<usize, ForeignDevice>,
    /// Number of traces started, by file name.
    begun: HashMap<PathBuf, usize>,
    /// The same for the file name in the settings, while the program uses another name.
    begun_unasked: HashMap<PathBuf, usize>,
    /// The file name that the program has chosen.
    asked: Option<PathBuf>,
    is_paused: bool,
    memory: ProgramMemory,
    /// True if the exit handler is registered.
    ends: bool,
    /// True if the process is ending.
    closed: bool,
}

enum Context {
    Recording(Arc<Recorder>),
    Ended(String),
}

type Ending = Vec<(usize, Arc<Recorder>)>;

/// Records a launch, or returns the reason why not. `request.launch` knows whether it was made nevertheless.
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
    // If the file cannot name the kernel, only this launch is not recorded.
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

/// Abandons a trace. Does not free its memory, to which kernels may still write.
pub(crate) fn abandon(state: &State, context: *mut c_void, why: &str) {
    let ended = Context::Ended(format!("the trace had ended: {why}"));
    let before = lock(&state.traces).contexts.insert(context as usize, ended);
    if let Some(Context::Recording(recorder)) = before {
        recorder.abandon(why);
    }
}

/// Ends the trace of a context that is about to be destroyed.
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

/// Ends all traces. Records later launches into new files, named `asked` if it is given.
pub(crate) fn begin_anew(state: &'static State, asked: Option<PathBuf>) {
    pause(state);
    let mut traces = lock(&state.traces);
    // Files with a name from the program are overwritten. Files with the name from the settings are numbered.
    if traces.asked.is_none() {
        traces.begun_unasked = std::mem::take(&mut traces.begun);
    }
    traces.begun = if asked.is_some() { HashMap::new() } else { std::mem::take(&mut traces.begun_unasked) };
    traces.asked = asked;
    traces.is_paused = false;
    state.is_paused.store(false, Ordering::Relaxed);
}

/// Ends all traces. Does not record later launches.
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
    /// Creates the state. If `is_paused`, nothing is recorded before the program starts it.
    pub(crate) fn paused(is_paused: bool) -> Self {
        Self { is_paused, ..Self::default() }
    }

    /// Returns a context's recorder, started if necessary, or the reason why nothing is recorded there.
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
            // The summary already has the reason.
            let begun = begun.map_or_else(|_| Context::Ended(SAID.to_owned()), Context::Recording);
            self.contexts.insert(key, begun);
        }
        match self.contexts.get(&key) {
            Some(Context::Recording(recorder)) => Ok(Arc::clone(recorder)),
            Some(Context::Ended(reason)) => Err(reason.clone()),
            None => Err("its context has ended".to_owned()),
        }
    }

    fn begin(&mut self, state: &'static State, context: *mut c_void) -> Result<Arc<Recorder>, String> {
        // The program's signals must not go to threads of the shim.
        let _blocked = Signals::block();
        let started = self.prepare(state, context);
        let started = started.and_then(|(device, path)| Recorder::start(state, device, path, None));
        let recorder = started.inspect_err(|error| {
            lock(&state.summary).note(format!("nothing was traced: {error}"));
        })?;
        if state.records_accesses() {
            self.memory.tell_all(recorder.launches(), recorder.device);
            // Kernels may then access all of the program's host memory.
            if crate::driver::reaches_pageable() {
                recorder.launches().change_memory(MemoryChange::Unknown);
            }
        }
        if !self.ends {
            // SAFETY: `at_exit` is a function of this library, which stays loaded.
            self.ends = unsafe { libc::atexit(at_exit) } == 0;
        }
        Ok(recorder)
    }

    /// Opens the device of a context, and reserves a file for it.
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

    /// Reserves a file for a device that no other process writes.
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

    fn take(&mut self) -> Ending {
        let all = self.contexts.drain().filter_map(|(key, context)| match context {
            Context::Recording(recorder) => Some((key, recorder)),
            Context::Ended(_) => None,
        });
        all.collect()
    }

    fn close(&mut self) -> Ending {
        self.closed = true;
        self.take()
    }

    /// Ends traces, all at the same time. Returns their devices.
    fn finish(state: &State, ending: Ending) -> Vec<(usize, ForeignDevice)> {
        ending.iter().for_each(|(_, recorder)| recorder.end());
        let finish = |(key, recorder): (usize, Arc<Recorder>)| Some((key, recorder.finish(state)?));
        ending.into_iter().filter_map(finish).collect()
    }
}
