//! Puts launches of several ranks of a job on one time axis.
//!
//! Each file has the times of its launches by a clock of its host; files of one host share that clock. Clocks
//! of different hosts are aligned by launches that end on all ranks at the same time, such as collectives.
//! The remaining differences are the error.

mod align;
mod named;

use serde::Serialize;
use warptrace_decoder::{DecodeError, TraceFile};
use warptrace_format::file::Origin;

use crate::selection::kernel_name;

pub use align::{Alignment, LateRank, RankLaunch, RankOnAxis, RankSlices, Timeline};

/// Source of the launch times of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RankClock {
    /// The device's timer at the start and end of warps, converted to the host's clock.
    Device,
    /// The host's clock, at submission to the device and at the observed end, which can be late.
    Host,
}

/// Run time of a launch, by its host's real-time clock, in nanoseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    /// Index of its kernel in [`RankTimes::kernels`].
    pub(crate) kernel: u32,
    pub(crate) begin: Option<u64>,
    pub(crate) end: Option<u64>,
}

/// Launch times in the file of a rank.
#[derive(Clone, Debug, Default)]
pub struct RankTimes {
    pub(crate) file: String,
    pub(crate) origin: Option<Box<Origin>>,
    /// Source of the times; `None` if the file has no launch times.
    pub(crate) clock: Option<RankClock>,
    /// Error bound of the device's timer on the host's clock.
    pub(crate) within: u64,
    pub(crate) kernels: Vec<String>,
    pub(crate) launches: Vec<Ran>,
    /// Sentence about missing or assumed data of the file; may be empty.
    pub(crate) missing: String,
}

impl RankTimes {
    /// Reads the launch times of a file, including the spans of warps. `file` is its name in the output,
    /// `missing` a sentence about missing data. Takes memory for each launch. Fails above the work limit.
    pub fn new(trace: &TraceFile, file: String, missing: String) -> Result<Self, DecodeError> {
        let timer = if trace.has_spans() { trace.on_host(0) } else { None };
        let mut clock = None;
        let mut launches = Vec::with_capacity(trace.launches().len());
        for info in trace.launches() {
            let host = trace.host_launch(info.number());
            let by_host = (
                host.map(|ran| ran.begin),
                host.and_then(|ran| Some(ran.begin.saturating_add(ran.nanoseconds?))),
            );
            let by_device = if timer.is_some() { on_device(trace, info.number())? } else { None };
            let (begin, end) = match by_device {
                Some((begin, end)) => (Some(begin), end),
                // Times of the two sources are not comparable.
                None if timer.is_some() => (None, None),
                None => by_host,
            };
            if begin.is_some() {
                clock = Some(if timer.is_some() { RankClock::Device } else { RankClock::Host });
            }
            launches.push(Ran { kernel: info.kernel(), begin, end });
        }
        let kernels = trace.launches().map(|info| (info.kernel(), kernel_name(trace, info)));
        let mut names = Vec::new();
        for (kernel, name) in kernels {
            let at = kernel as usize;
            if names.len() <= at {
                names.resize(at + 1, String::new());
            }
            if names[at].is_empty() {
                name.clone_into(&mut names[at]);
            }
        }
        let within = timer.map_or(0, |timer| timer.within);
        let origin = trace.metadata().origin.clone();
        Ok(Self { file, origin, clock, within, kernels: names, launches, missing })
    }
}

/// Returns the first start and last end of a launch's warps on the host's clock; no end if one is unknown.
fn on_device(trace: &TraceFile, launch: u32) -> Result<Option<(u64, Option<u64>)>, DecodeError> {
    let mut lasts: Option<(u64, Option<u64>)> = None;
    for found in trace.warp_spans(launch) {
        let (_, span) = match found {
            Ok(found) => found,
            Err(error @ DecodeError::TooMuchWork { .. }) => return Err(error),
            // The run times of all warps are then unknown.
            Err(_) => return Ok(None),
        };
        let end = span.nanoseconds().map(|length| span.begin_timer.saturating_add(length));
        let (begin, last) = lasts.unwrap_or((span.begin_timer, Some(0)));
        lasts = Some((begin.min(span.begin_timer), last.zip(end).map(|(last, end)| last.max(end))));
    }
    let on_host = |timer: u64| trace.on_host(timer).map(|moment| moment.realtime);
    Ok(lasts.and_then(|(begin, end)| Some((on_host(begin)?, end.and_then(on_host)))))
}
