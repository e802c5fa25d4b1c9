//! Times of runs in nanoseconds, on an axis that all warps share.

use std::iter::Peekable;

use warptrace_decoder::{DecodeError, TraceFile};
use warptrace_format::span::{Axis, WarpSpan};

/// Returns the earliest begin of a warp in the trace, by the global timer; `None` if no warp has a time.
pub(crate) fn first_begin(trace: &TraceFile) -> Result<Option<u64>, DecodeError> {
    let mut first = None;
    for info in trace.launches() {
        for found in trace.warp_spans(info.number()).readable() {
            let begin = found?.1.begin_timer;
            first = Some(first.map_or(begin, |first: u64| first.min(begin)));
        }
    }
    Ok(first)
}

type Spans<'a> = Box<dyn Iterator<Item = Result<(u32, WarpSpan), DecodeError>> + 'a>;

/// Converts times of runs of one launch to nanoseconds. Warps must come in ascending order.
pub(crate) struct Nanoseconds<'a> {
    trace: &'a TraceFile,
    spans: Peekable<Spans<'a>>,
    zero: u64,
    /// The current warp, its span, and the axis of its times.
    warp: Option<u32>,
    span: Option<WarpSpan>,
    axis: Option<Axis>,
}

impl<'a> Nanoseconds<'a> {
    /// Starts at a launch. The axis begins when the global timer is `zero`.
    pub(crate) fn new(trace: &'a TraceFile, launch: u32, zero: u64) -> Self {
        let spans: Spans<'a> = Box::new(trace.warp_spans(launch).readable());
        Self { trace, spans: spans.peekable(), zero, warp: None, span: None, axis: None }
    }

    pub(crate) fn go_to(&mut self, warp: u32) -> Result<(), DecodeError> {
        if self.warp.replace(warp) == Some(warp) {
            return Ok(());
        }
        (self.span, self.axis) = (None, None);
        let is_next = |found: &Result<(u32, _), _>| found.as_ref().map_or(true, |(next, _)| *next <= warp);
        while let Some(found) = self.spans.next_if(is_next) {
            let (next, span) = found?;
            self.span = (next == warp).then_some(span);
        }
        Ok(())
    }

    /// Returns nanoseconds from the start of the axis to the clock `begin`; `None` if the warp has no axis.
    pub(crate) fn at(&mut self, begin: u64) -> Option<u64> {
        let Self { trace, span, .. } = self;
        self.axis = self.axis.or_else(|| span.as_ref().and_then(|span| trace.axis(span, begin)));
        Some(self.axis?.nanoseconds(begin).saturating_sub(self.zero))
    }
}
