//! Traces with their names and figures.

use std::fmt;
use std::sync::{Arc, OnceLock};

use datafusion::error::{DataFusionError, Result};
use warptrace_analysis::{Analysis, AnalysisError, Selection, analyse};
use warptrace_decoder::TraceFile;

pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) trace: TraceFile,
    place: Option<String>,
    analysis: OnceLock<Result<Arc<Analysis>, Arc<AnalysisError>>>,
}

impl Named {
    pub(crate) fn new(name: String, trace: TraceFile) -> Self {
        Self { name, trace, place: None, analysis: OnceLock::new() }
    }

    pub(crate) fn at(self, place: &str) -> Self {
        Self { place: Some(place.to_owned()), ..self }
    }

    pub(crate) fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    pub(crate) fn events(&self) -> u64 {
        events(&self.trace)
    }

    /// Returns the figures of the whole trace. Computes them on the first call.
    pub(crate) fn analysis(&self) -> Result<Arc<Analysis>, Arc<AnalysisError>> {
        let analysed = || analyse(&self.trace, &Selection::default()).map(Arc::new).map_err(Arc::new);
        self.analysis.get_or_init(analysed).clone()
    }

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

pub(crate) fn events(trace: &TraceFile) -> u64 {
    let events = trace.launches().map(|info| trace.totals(info.number(), 0).events);
    events.fold(0, u64::saturating_add)
}

pub(crate) fn words(trace: &TraceFile) -> &str {
    let state = trace.state();
    if state.is_plain() { "whole trace" } else { &state.sentence }
}

/// A trace that can be queried.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FoundTrace {
    /// Name in queries: the path for workers' traces; if not unique, the worker's name and canonical path.
    pub name: String,
    /// Index of the pattern that it matches, from 0.
    pub pattern: u32,
    /// Whether the trace is complete.
    pub is_whole: bool,
    /// A description of what is missing or assumed, or that the trace is complete.
    pub state: String,
    /// Number of events.
    pub events: u64,
}

impl FoundTrace {
    /// Describes a trace of this process.
    pub fn new(name: String, trace: &TraceFile) -> Self {
        let (is_whole, state, events) = (trace.state().is_whole, words(trace).to_owned(), events(trace));
        Self { name, pattern: 0, is_whole, state, events }
    }
}
