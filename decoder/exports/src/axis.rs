//! The axis of what is drawn: of a trace with times each warp's own time, of others the order of its events.

use std::ops::Range;

use warptrace_decoder::TraceFile;

use crate::runs::Run;

/// Where the runs of warps lie that are given one after the other.
pub(crate) struct Axis {
    is_timed: bool,
    /// The warp, when its first run began, and where its last run ended on the axis.
    warp: Option<(u32, u64, u64)>,
}

impl Axis {
    pub(crate) fn new(trace: &TraceFile) -> Self {
        Self { is_timed: trace.has_times(), warp: None }
    }

    /// Returns from where to where the next run lasts: a cycle if it is not known when it ended.
    pub(crate) fn lasts(&mut self, run: &Run) -> Range<u64> {
        if !self.is_timed {
            return run.first_event..run.first_event.saturating_add(run.count);
        }
        let (start, last) = match self.warp {
            Some((warp, start, last)) if warp == run.warp => (start, last),
            _ => (run.begin.unwrap_or(0), 0),
        };
        let at = |time: u64| time.saturating_sub(start);
        let from = run.begin.map_or(last, at).max(last);
        let to = run.end.map_or(from.saturating_add(1), at).max(from);
        self.warp = Some((run.warp, start, to));
        from..to
    }

    /// Returns where the last run of a warp ended, whose next event has this number.
    pub(crate) fn end(&self, warp: u32, next_event: u64) -> u64 {
        match self.warp {
            _ if !self.is_timed => next_event,
            Some((last, _, end)) if last == warp => end,
            _ => 0,
        }
    }
}

/// Says what the axis means, in words that stand in each file.
pub(crate) fn words(trace: &TraceFile) -> &'static str {
    if trace.has_times() {
        "Time of each warp from its first run on: a microsecond is a cycle of its multiprocessor's clock. A run lasts until the \
         warp's next one begins; how long a warp's last one lasted is not known, and drawn as one cycle. Warps begin at 0 each: \
         nothing is said about the time between them."
    } else {
        "Event order, not time: a warp's n-th event lasts from microsecond n to n + 1, in each warp anew. Nothing is said about \
         the order between warps."
    }
}
