//! Launches of several ranks of a job on one axis of time.
//!
//! Each file has the times of its launches by a clock of its host. Files of one host share that clock. Clocks
//! of different hosts are compared by launches that end on all ranks at the same time, as collectives do: what
//! is left of differences between their ends is the error.

mod align;
mod named;

use serde::Serialize;
use warptrace_decoder::{DecodeError, TraceFile};
use warptrace_format::file::Origin;

use crate::selection::kernel_name;

pub use align::{Alignment, LateRank, RankLaunch, RankOnAxis, RankSlices, Timeline};

/// By what the launches of a file are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RankClock {
    /// By the device's timer, when warps began and ended, put on the host's clock.
    Device,
    /// By the host, when each was given to the device and was seen to have ended, which may be later than it
    /// did.
    Host,
}

/// A launch of a rank, by its host's real-time clock, in nanoseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    /// Index of its kernel in [`RankTimes::kernels`].
    pub(crate) kernel: u32,
    /// From when to when; `None`: it is not known.
    pub(crate) begin: Option<u64>,
    pub(crate) end: Option<u64>,
}

/// What the file of a rank says of its launches.
#[derive(Clone, Debug, Default)]
pub struct RankTimes {
    /// The file, as it is named in the output.
    pub(crate) file: String,
    pub(crate) origin: Option<Box<Origin>>,
    /// `None` if the file says of no launch when it ran.
    pub(crate) clock: Option<RankClock>,
    /// By how much moments of the device's timer may be off on the host's clock.
    pub(crate) within: u64,
    pub(crate) kernels: Vec<String>,
    /// In the order of the file.
    pub(crate) launches: Vec<Ran>,
    /// What the file lacks or assumes as a whole, in a sentence; empty if nothing.
    pub(crate) lacks: String,
}

impl RankTimes {
    /// Reads what a file says, which is called `file` in the output; `lacks` is what it lacks, in a sentence.
    /// Takes memory for each launch, and goes through the spans of warps if the file has them.
    ///
    /// # Errors
    /// The file asks for too much work.
    pub fn new(trace: &TraceFile, file: String, lacks: String) -> Result<Self, DecodeError> {
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
                // Moments of both kinds cannot be compared.
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
        Ok(Self { file, origin, clock, within, kernels: names, launches, lacks })
    }
}

/// When the first warp of a launch began and the last one ended, on the host's clock; no end where a warp is
/// not known to have ended.
fn on_device(trace: &TraceFile, launch: u32) -> Result<Option<(u64, Option<u64>)>, DecodeError> {
    let mut lasts: Option<(u64, Option<u64>)> = None;
    for found in trace.warp_spans(launch) {
        let (_, span) = match found {
            Ok(found) => found,
            Err(error @ DecodeError::TooMuchWork { .. }) => return Err(error),
            // When all of its warps ran is not known then.
            Err(_) => return Ok(None),
        };
        let end = span.nanoseconds().map(|length| span.begin_timer.saturating_add(length));
        let (begin, last) = lasts.unwrap_or((span.begin_timer, Some(0)));
        lasts = Some((begin.min(span.begin_timer), last.zip(end).map(|(last, end)| last.max(end))));
    }
    let on_host = |timer: u64| trace.on_host(timer).map(|moment| moment.realtime);
    Ok(lasts.and_then(|(begin, end)| Some((on_host(begin)?, end.and_then(on_host)))))
}
