//! Launches that are not traced: the trace has them all the same, with kernel, grid, block and label.
//!
//! A trace takes memory of the device, so it begins with the first launch that is traced. Launches before wait
//! here; where none is ever traced, they are written when the context ends.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;

use warptrace_host::LaunchShape;

use super::recorder::Recorder;
use super::watch::at_exit;
use crate::driver;
use crate::inside::Inside;
use crate::ranges;
use crate::state::{State, lock};

/// Launches that wait for the trace of their context; more are only counted.
const MAX_WAITING: usize = 1 << 20;

/// A launch that is not traced.
#[derive(Clone, Debug)]
pub(super) struct Noted {
    pub(super) kernel: Arc<str>,
    pub(super) shape: LaunchShape,
    pub(super) label: Option<Arc<str>>,
}

/// What becomes of launches of a context.
enum Notes {
    Waiting(Vec<Noted>),
    Written(Arc<Recorder>),
    Over,
}

/// Launches that are not traced, by their contexts.
#[derive(Default)]
pub(crate) struct NotedLaunches {
    contexts: HashMap<usize, Notes>,
    /// Whether nothing is to be recorded.
    pub(super) is_paused: bool,
    /// Whether the process's end is known here.
    ends: bool,
}

/// Notes a launch of the current context that is not traced.
pub(crate) fn note(state: &State, kernel: Arc<str>, shape: LaunchShape) -> Option<()> {
    let context = driver::current_context()? as usize;
    let noted = Noted { kernel, shape, label: ranges::label() };
    let recorder = {
        let mut launches = lock(&state.noted);
        if launches.is_paused {
            return None;
        }
        if !launches.ends {
            // SAFETY: a function of this library, which stays loaded.
            launches.ends = unsafe { libc::atexit(at_exit) } == 0;
        }
        match launches.contexts.entry(context).or_insert_with(|| Notes::Waiting(Vec::new())) {
            Notes::Waiting(waiting) => {
                if waiting.len() < MAX_WAITING {
                    waiting.push(noted);
                }
                return Some(());
            }
            Notes::Over => return None,
            Notes::Written(recorder) => Arc::clone(recorder),
        }
    };
    recorder.note(&noted);
    Some(())
}

impl NotedLaunches {
    /// Launches of which nothing is recorded before the program says so.
    pub(crate) fn paused(is_paused: bool) -> Self {
        Self { is_paused, ..Self::default() }
    }

    /// Writes the launches of a context into its trace from now on; there is none if it could not begin.
    pub(super) fn begin(&mut self, context: usize, recorder: Option<&Arc<Recorder>>) {
        let notes = recorder.map_or(Notes::Over, |recorder| Notes::Written(Arc::clone(recorder)));
        if let (Some(Notes::Waiting(waiting)), Some(recorder)) =
            (self.contexts.insert(context, notes), recorder)
        {
            waiting.iter().for_each(|noted| recorder.note(noted));
        }
    }

    /// Lets launches of a context, or of all, wait for its next trace.
    pub(super) fn end(&mut self, context: Option<usize>) {
        self.contexts.retain(|other, _| context.is_some_and(|context| context != *other));
    }

    /// The contexts with launches that wait.
    fn waiting(&self) -> Vec<usize> {
        let has = |notes: &Notes| matches!(notes, Notes::Waiting(waiting) if !waiting.is_empty());
        self.contexts.iter().filter(|(_, notes)| has(notes)).map(|(context, _)| *context).collect()
    }
}

/// Begins the traces of contexts, or of one, in which nothing was traced, with little memory.
pub(super) fn begin_waiting(state: &'static State, context: Option<*mut c_void>) {
    let mut waiting = lock(&state.noted).waiting();
    waiting.retain(|other| context.is_none_or(|context| context as usize == *other));
    for context in waiting {
        // A thread that ends has lost what libraries keep for it.
        let begin = move || {
            let _inside = Inside::enter();
            let context = std::ptr::with_exposed_provenance_mut(context);
            lock(&state.traces).begin_small(state, context);
        };
        if let Ok(thread) = std::thread::Builder::new().spawn(begin) {
            let _ = thread.join();
        }
    }
}
