//! The axis of exports: the time shared by all warps, each warp's own time, or the order of its events.

use std::ops::Range;

use warptrace_decoder::{DecodeError, EventRun, TraceFile};
use warptrace_format::file::LaunchInfo;
use warptrace_format::span::WarpSpan;

use crate::error::ExportError;
use crate::source::ExportSource;

/// Positions of consecutive runs on each warp's own axis.
pub(crate) struct Axis {
    is_timed: bool,
    /// The warp, the start of its first run, and the end of its last run on the axis.
    warp: Option<(u32, u64, u64)>,
}

impl Axis {
    pub(crate) fn new(trace: &TraceFile) -> Self {
        Self { is_timed: trace.has_times(), warp: None }
    }

    /// Returns the range of the next run. A run without a known end has one cycle.
    pub(crate) fn lasts(&mut self, run: &EventRun) -> Range<u64> {
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

    /// Returns the end of a warp's last run. `next_event` is the number of the warp's next event.
    pub(crate) fn end(&self, warp: u32, next_event: u64) -> u64 {
        match self.warp {
            _ if !self.is_timed => next_event,
            Some((last, _, end)) if last == warp => end,
            _ => 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Events of each warp, one after the other.
    Order,
    /// Cycles of each warp since its first run.
    Cycles,
    /// Nanoseconds of the global timer since `zero`, up to `until`. With `has_runs`, runs have times, too.
    Nanoseconds { zero: u64, until: u64, has_runs: bool },
}

impl Scale {
    pub(crate) fn own(trace: &TraceFile) -> Self {
        if trace.has_times() { Self::Cycles } else { Self::Order }
    }

    /// Returns the scale shared by all selected warps; [`own`](Self::own) without spans.
    pub(crate) fn shared(source: &ExportSource<'_>) -> Result<Self, ExportError> {
        let mut shared: Option<(u64, u64)> = None;
        for info in source.launches() {
            for span in spans(source, info) {
                let (_, span) = span?;
                let begin = span.begin_timer;
                let end = begin.saturating_add(span.nanoseconds().unwrap_or(0));
                let (zero, until) = shared.unwrap_or((begin, end));
                shared = Some((zero.min(begin), until.max(end)));
            }
        }
        let trace = source.trace();
        let Some((zero, until)) = shared else { return Ok(Self::own(trace)) };
        // The axis also covers the time from the start of the first launch by the host's clock.
        let lead = trace.on_host(zero).and_then(|on_host| {
            let begins = source.launches().filter_map(|info| Some(trace.host_launch(info.number())?.begin));
            Some(on_host.realtime.saturating_sub(begins.min()?))
        });
        let zero = zero.saturating_sub(lead.unwrap_or(0));
        Ok(Self::Nanoseconds { zero, until: until - zero, has_runs: trace.has_times() })
    }

    /// Returns the host's real-time clock at the axis' zero, in nanoseconds since 1970-01-01 UTC, if known.
    /// On the simulator, whose timer is unrelated to the host's, returns the start of the first launch.
    pub(crate) fn realtime(self, source: &ExportSource<'_>) -> Option<u64> {
        let Self::Nanoseconds { zero, .. } = self else { return None };
        let trace = source.trace();
        let begins = source.launches().filter_map(|info| Some(trace.host_launch(info.number())?.begin));
        trace.on_host(zero).map(|on_host| on_host.realtime).or_else(|| begins.min())
    }

    /// Returns the selected launches with a detected end, and their ranges by the host's clocks on the axis,
    /// by start. Empty if the host's clocks were not compared with the device's timer.
    pub(crate) fn on_host<'a>(self, source: &'a ExportSource<'_>) -> Vec<(&'a LaunchInfo, Range<u64>)> {
        let trace = source.trace();
        let is_known = trace.on_host(0).is_some();
        let zero = self.realtime(source).filter(|_| is_known);
        let lasts = |info: &'a LaunchInfo| {
            let ran = trace.host_launch(info.number())?;
            let from = ran.begin.saturating_sub(zero?);
            Some((info, from..from.saturating_add(ran.nanoseconds?)))
        };
        let mut launches: Vec<_> = source.launches().filter_map(lasts).collect();
        launches.sort_by_key(|(_, lasts)| lasts.start);
        launches
    }

    /// Returns the nanoseconds of a timeline for one unit of the axis.
    pub(crate) const fn unit(self) -> u64 {
        match self {
            Self::Nanoseconds { .. } => 1,
            _ => 1_000,
        }
    }

    pub(crate) const fn brief(self) -> &'static str {
        match self {
            Self::Order => "order of events, not time",
            Self::Cycles => "cycles of each warp from its first run on",
            Self::Nanoseconds { has_runs: true, .. } => "nanoseconds, one axis for all warps",
            Self::Nanoseconds { .. } => "nanoseconds, one axis for all warps; events have no times",
        }
    }

    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Order => {
                "Event order, not time: a warp's n-th event lasts from microsecond n to n + 1, in each warp anew. Nothing \
                 is said about the order between warps."
            }
            Self::Cycles => {
                "Time of each warp from its first run on: a microsecond is a cycle of its multiprocessor's clock. A run lasts \
                 until the warp's next one begins; how long a warp's last one lasted is not known, and drawn as one cycle. \
                 Warps begin at 0 each: nothing is said about the time between them."
            }
            Self::Nanoseconds { has_runs: true, .. } => {
                "Time in nanoseconds of the device's global timer, the same for all warps, from the begin of the first warp or launch on. \
                 The timer goes in steps. Runs lie between their warp's begin and end as they do by the clock of its \
                 multiprocessor. A run lasts until the warp's next one begins, the last one until the warp ends; where it is \
                 not known when the next one began, it is drawn as one nanosecond."
            }
            Self::Nanoseconds { .. } => {
                "Time in nanoseconds of the device's global timer, the same for all warps, from the begin of the first warp or launch on. \
                 The timer goes in steps. The trace says when warps ran, not when their events came: these are not drawn."
            }
        }
    }

    pub(crate) fn facts(self, source: &ExportSource<'_>) -> impl Iterator<Item = (&'static str, String)> {
        let realtime = self.realtime(source);
        let known = realtime.map(|_| match source.trace().on_host(0) {
            Some(on_host) => format!(
                "The device's timer was compared with the host's clocks: it is known to within {} ns where that was done.",
                on_host.within
            ),
            None => "The simulator's time is none of the host: its axis begins when the first launch did.".to_owned(),
        });
        let realtime = realtime.map(|realtime| ("realtime_at_axis_zero", realtime.to_string()));
        let host = realtime.into_iter().chain(known.map(|known| ("realtime", known)));
        let zero = match self {
            Self::Nanoseconds { zero, .. } => Some(("axis_zero", zero.to_string())),
            _ => None,
        };
        std::iter::once(("axis", self.words().to_owned())).chain(zero).chain(host)
    }
}

/// Returns the spans of the selected warps of a launch. Skips sections that cannot be read.
pub(crate) fn spans<'a>(
    source: &ExportSource<'a>,
    info: &LaunchInfo,
) -> impl Iterator<Item = Result<(u32, WarpSpan), DecodeError>> + use<'a> {
    let (selection, info) = (source.selection().clone(), *info);
    let spans = source.trace().warp_spans(info.number()).readable();
    spans.filter(move |found| found.as_ref().map_or(true, |(warp, _)| selection.has_warp(&info, *warp)))
}
