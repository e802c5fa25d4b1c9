//! Launches that are not traced. The trace still lists them, with kernel, grid, block, label and call stack.
//!
//! A trace needs device memory, so the shim starts it at the first traced launch. Earlier launches wait here.
//! If a context has no traced launch, its waiting launches are written when the context ends.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use warptrace_host::{LaunchName, LaunchShape, MemorySize};

use super::recorder::Recorder;
use super::watch::{Signals, at_exit};
use super::{Context, PATIENCE};
use crate::driver;
use crate::inside::Inside;
use crate::ranges;
use crate::state::{State, lock};

/// Device memory for a trace without traced launches.
const SMALL: MemorySize = MemorySize(8 << 20);
/// Limit on waiting launches per context. Further launches are only counted.
const MAX_WAITING: usize = 1 << 20;

#[derive(Clone, Debug)]
struct Noted {
    kernel: Arc<str>,
    shape: LaunchShape,
    name: LaunchName,
}

enum Notes {
    Waiting(Vec<Noted>),
    Written(Arc<Recorder>),
    Over,
}

#[derive(Default)]
pub(crate) struct NotedLaunches {
    contexts: HashMap<usize, Notes>,
    /// True after the handler for the end of the process was registered.
    ends: bool,
}

/// Adds an untraced launch of the current context. The recorder caches the kernel's number in `known`.
pub(crate) fn note(
    state: &State,
    kernel: &Arc<str>,
    shape: LaunchShape,
    known: Option<&AtomicU64>,
) -> Option<()> {
    let context = driver::current_context()? as usize;
    let noted = || Noted { kernel: Arc::clone(kernel), shape, name: ranges::name() };
    let recorder = {
        let mut launches = lock(&state.noted);
        if !launches.ends {
            // SAFETY: `at_exit` is a function of this library, which stays loaded.
            launches.ends = unsafe { libc::atexit(at_exit) } == 0;
        }
        match launches.contexts.entry(context).or_insert_with(|| Notes::Waiting(Vec::new())) {
            Notes::Waiting(waiting) => {
                if waiting.len() < MAX_WAITING {
                    waiting.push(noted());
                }
                return Some(());
            }
            Notes::Over => return None,
            Notes::Written(recorder) => Arc::clone(recorder),
        }
    };
    recorder.note(kernel, &shape, &ranges::name(), known);
    Some(())
}

impl NotedLaunches {
    /// Writes a context's waiting launches, and later ones, to its trace. Without a recorder, drops them.
    pub(super) fn begin(&mut self, context: usize, recorder: Option<&Arc<Recorder>>) {
        let notes = recorder.map_or(Notes::Over, |recorder| Notes::Written(Arc::clone(recorder)));
        if let (Some(Notes::Waiting(waiting)), Some(recorder)) =
            (self.contexts.insert(context, notes), recorder)
        {
            for Noted { kernel, shape, name } in waiting {
                recorder.note_late(&kernel, &shape, &name);
            }
        }
    }

    /// Removes a context, or all of them. Later launches wait for the next trace.
    pub(super) fn end(&mut self, context: Option<usize>) {
        self.contexts.retain(|other, _| context.is_some_and(|context| context != *other));
    }

    fn waiting(&self) -> Vec<usize> {
        let has = |notes: &Notes| matches!(notes, Notes::Waiting(waiting) if !waiting.is_empty());
        self.contexts.iter().filter(|(_, notes)| has(notes)).map(|(context, _)| *context).collect()
    }
}

/// Starts small traces for contexts that have waiting launches and no traced ones. If `context` is given,
/// starts only its trace. Loading code waits for running kernels, so each context has a timeout.
pub(super) fn begin_waiting(state: &'static State, context: Option<*mut c_void>) {
    let mut waiting = lock(&state.noted).waiting();
    waiting.retain(|other| context.is_none_or(|context| context as usize == *other));
    for context in waiting {
        let (done, is_done) = std::sync::mpsc::channel();
        // A separate thread, since libraries have already freed the thread-local data of a thread that ends.
        let begin = move || {
            let _inside = Inside::enter();
            let _blocked = Signals::block();
            begin_small(state, std::ptr::with_exposed_provenance_mut(context));
            let _ = done.send(());
        };
        if std::thread::Builder::new().spawn(begin).is_ok() && is_done.recv_timeout(PATIENCE).is_err() {
            lock(&state.summary)
                .note("launches are in no file: kernels that are not traced still ran at the end");
        }
    }
}

/// Starts a trace without traced launches. Does not hold the lock of all traces while it starts.
fn begin_small(state: &'static State, context: *mut c_void) {
    let prepared = {
        let mut traces = lock(&state.traces);
        if traces.closed || traces.contexts.contains_key(&(context as usize)) {
            return;
        }
        traces.prepare(state, context)
    };
    let started = prepared.and_then(|(device, path)| Recorder::start(state, device, path, Some(SMALL)));
    if let Err(error) = &started {
        lock(&state.summary).note(format!("launches that were not traced are in no file: {error}"));
    }
    lock(&state.noted).begin(context as usize, started.as_ref().ok());
    if let Ok(recorder) = started {
        let mut traces = lock(&state.traces);
        if traces.closed || traces.contexts.contains_key(&(context as usize)) {
            drop(traces);
            recorder.finish(state);
        } else {
            traces.contexts.insert(context as usize, Context::Recording(recorder));
        }
    }
}
