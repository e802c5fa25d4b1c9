//! How commands open traces.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use warptrace_analysis::words::early_end;
use warptrace_decoder::{FileState, TraceFile};

use crate::output::{shown_name, url_of};
use crate::whole_file::keep_from_streams;

/// `--unlimited`.
static UNLIMITED: AtomicBool = AtomicBool::new(false);

/// Has traces that are opened from now on decoded whatever that costs.
pub(crate) fn lift_limits() {
    UNLIMITED.store(true, Ordering::Relaxed);
}

/// What a trace says of its launches that had not ended, or failed.
pub(crate) fn said_of(path: &Path) -> Vec<String> {
    let trace = match TraceFile::open(path) {
        Ok(trace) => trace,
        Err(error) => return vec![format!("{}: {error}", shown_name(path))],
    };
    trace.launches().filter_map(|info| early_end(&trace, info.number())).collect()
}

/// A trace, and what the file as a whole lacks.
pub(crate) struct Opened {
    pub(crate) trace: TraceFile,
    pub(crate) state: FileState,
}

/// Opens a trace.
///
/// # Errors
/// If it cannot be opened, or is what standard output or standard error is redirected to.
pub(crate) fn open(path: &Path) -> anyhow::Result<Opened> {
    // Whatever the command prints would damage it.
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
    /// Says on standard error what the file lacks or assumes: for commands whose output has no first line for
    /// it.
    pub(crate) fn warn(&self) {
        self.warn_of("");
    }

    /// As [`warn`](Self::warn), with `of`, the trace's name, before it.
    pub(crate) fn warn_of(&self, of: &str) {
        if self.state.warns() {
            crate::output::tell!("warning: {of}{}", self.state.sentence);
        }
    }
}
