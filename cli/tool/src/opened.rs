//! Opens traces for commands.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use warptrace_analysis::words::early_end;
use warptrace_decoder::{FileState, TraceFile};

use crate::output::{shown_name, url_of};
use crate::whole_file::keep_from_streams;

static UNLIMITED: AtomicBool = AtomicBool::new(false);

/// Removes the work limit of traces that are opened from now on.
pub(crate) fn lift_limits() {
    UNLIMITED.store(true, Ordering::Relaxed);
}

/// Describes the launches of a trace that failed or did not end, after the rank if the trace has one. Returns
/// the error if the trace cannot be opened.
pub(crate) fn said_of(path: &Path) -> Vec<String> {
    let trace = match TraceFile::open(path) {
        Ok(trace) => trace,
        Err(error) => return vec![format!("{}: {error}", shown_name(path))],
    };
    let rank = trace.metadata().origin.as_ref().and_then(|origin| origin.rank);
    let rank = rank.map(|rank| format!("rank {rank}: ")).unwrap_or_default();
    let found = trace.launches().filter_map(|info| early_end(&trace, info.number()));
    found.map(|line| format!("{rank}{line}")).collect()
}

/// A trace and the state of its file.
pub(crate) struct Opened {
    pub(crate) trace: TraceFile,
    pub(crate) state: FileState,
}

/// Opens a trace from a file or URL. Fails if it cannot be opened, or if standard output or standard error is
/// redirected to it.
pub(crate) fn open(path: &Path) -> anyhow::Result<Opened> {
    // Output of the command would damage the trace.
    keep_from_streams(path)?;
    if path == Path::new("-") && !path.exists() {
        bail!("a trace is read from a file, not from standard input: name the file instead of `-`");
    }
    let opening = || format!("cannot open {}", shown_name(path));
    let mut trace = match url_of(path) {
        Some(url) => TraceFile::from_source(warptrace_store::open(url)?).with_context(opening)?,
        None => TraceFile::open(path).with_context(opening)?,
    };
    if UNLIMITED.load(Ordering::Relaxed) {
        trace = trace.unlimited();
    }
    let state = trace.state().clone();
    Ok(Opened { trace, state })
}

impl Opened {
    /// Prints a warning about missing or assumed parts of the file, for commands whose output has no line for
    /// it.
    pub(crate) fn warn(&self) {
        self.warn_of("");
    }

    /// Like [`warn`](Self::warn), with the prefix `of`, the trace's name.
    pub(crate) fn warn_of(&self, of: &str) {
        if self.state.warns() {
            crate::output::tell!("warning: {of}{}", self.state.sentence);
        }
    }
}
