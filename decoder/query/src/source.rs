//! Traces, and what makes rows of them.

use std::fmt;
use std::sync::{Arc, OnceLock};

use datafusion::error::{DataFusionError, Result};
use warptrace_analysis::{Analysis, AnalysisError, Selection, analyse};
use warptrace_decoder::TraceFile;

/// A trace with what queries call it.
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) trace: TraceFile,
    /// The worker that has it.
    place: Option<String>,
    analysis: OnceLock<Result<Arc<Analysis>, Arc<AnalysisError>>>,
}

impl Named {
    pub(crate) fn new(name: String, trace: TraceFile) -> Self {
        Self { name, trace, place: None, analysis: OnceLock::new() }
    }

    /// Says which worker has it.
    pub(crate) fn at(self, place: &str) -> Self {
        Self { place: Some(place.to_owned()), ..self }
    }

    /// The worker that has it; `None` in this process.
    pub(crate) fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    /// How many events it has.
    pub(crate) fn events(&self) -> u64 {
        events(&self.trace)
    }

    /// The figures of the whole trace, which are computed once.
    pub(crate) fn analysis(&self) -> Result<Arc<Analysis>, Arc<AnalysisError>> {
        let analysed = || analyse(&self.trace, &Selection::default()).map(Arc::new).map_err(Arc::new);
        self.analysis.get_or_init(analysed).clone()
    }

    /// An error of this trace.
    pub(crate) fn error(&self, error: impl fmt::Display) -> DataFusionError {
        let place = self.place.as_ref().map(|place| format!(", with the worker {place}")).unwrap_or_default();
        DataFusionError::External(format!("{}{place}: {error}", self.name).into())
    }
}

impl fmt::Debug for Named {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Named").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Counts the events of a trace.
pub(crate) fn events(trace: &TraceFile) -> u64 {
    let events = trace.launches().map(|info| trace.totals(info.number(), 0).events);
    events.fold(0, u64::saturating_add)
}

/// Says what is missing or assumed of a trace, or that it is whole.
pub(crate) fn words(trace: &TraceFile) -> &str {
    let state = trace.state();
    if state.is_plain() { "whole trace" } else { &state.sentence }
}

/// A trace that can be asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FoundTrace {
    /// What queries call it; of workers its path, or the worker's name and its true path if another trace has that
    /// path.
    pub name: String,
    /// Which of the patterns it fits, from 0.
    pub pattern: u32,
    /// Whether it is whole.
    pub is_whole: bool,
    /// What is missing or assumed, or that it is whole.
    pub state: String,
    /// Its events.
    pub events: u64,
}

impl FoundTrace {
    /// Describes a trace of this process.
    pub fn new(name: String, trace: &TraceFile) -> Self {
        let (is_whole, state, events) = (trace.state().is_whole, words(trace).to_owned(), events(trace));
        Self { name, pattern: 0, is_whole, state, events }
    }
}
