//! Run times of launches by the host's clocks.

use crate::order::OrderItems;
use serde::Serialize;
use warptrace_decoder::TraceFile;
use warptrace_format::file::{ClockReading, HostLaunch, LaunchInfo};

use crate::figures::as_text;
use crate::selection::kernel_name;

/// Run time of a launch by the host's clocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HostRan {
    /// Number of the launch.
    pub launch: u32,
    /// Name of its kernel.
    pub kernel: String,
    /// Submission to the device, in nanoseconds since 1970-01-01 UTC. A string in JSON, because many JSON
    /// readers keep only 53 bits of a number.
    #[serde(serialize_with = "as_text")]
    pub begin: u64,
    /// Time until the host saw the launch's end; `None` if it did not.
    pub nanoseconds: Option<u64>,
    /// Time from the observed end of all earlier launches to this submission; 0 if none or unknown.
    pub gap_nanoseconds: u64,
}

/// Run times of launches by the host's clocks, from submission to observed end: upper bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HostSchedule {
    /// Launches with a known submission time, in that order.
    pub launches: Vec<HostRan>,
    /// Time from the first submission to the last known end.
    pub nanoseconds: u64,
    /// Time in between without a running launch.
    pub gap_nanoseconds: u64,
    /// Error bound of the device's timer on the host's clock; `None` if not compared, as on the simulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_within_nanoseconds: Option<u64>,
}

impl HostSchedule {
    pub(crate) fn new<'a>(trace: &TraceFile, launches: impl Iterator<Item = &'a LaunchInfo>) -> Option<Self> {
        let known = launches.filter_map(|info| Some((info, *trace.host_launch(info.number())?)));
        let mut known: Vec<(&LaunchInfo, HostLaunch)> = known.collect();
        known.sort_unstable_by_key(|(_, ran)| (ran.begin, ran.launch));
        let first = known.first()?.1.begin;
        let timer_within_nanoseconds = trace.on_host(0).map(|on_host| on_host.within);
        let mut schedule = Self { timer_within_nanoseconds, ..Self::default() };
        // End of the earlier launches; `None` if one of them has no known end.
        let (mut until, mut last) = (Some(first), first);
        for (info, HostLaunch { launch, begin, nanoseconds }) in known {
            let gap_nanoseconds = until.map_or(0, |until| begin.saturating_sub(until));
            let end = nanoseconds.map(|nanoseconds| begin.saturating_add(nanoseconds));
            until = until.zip(end).map(|(until, end)| until.max(end));
            last = last.max(end.unwrap_or(begin));
            schedule.gap_nanoseconds = schedule.gap_nanoseconds.saturating_add(gap_nanoseconds);
            let kernel = kernel_name(trace, info).to_owned();
            schedule.launches.push(HostRan { launch, kernel, begin, nanoseconds, gap_nanoseconds });
        }
        schedule.nanoseconds = last - first;
        Some(schedule)
    }

    /// Returns the launches with the longest gaps before them, at most `most`.
    pub fn longest_gaps(&self, most: usize) -> Vec<&HostRan> {
        let mut launches: Vec<&HostRan> =
            self.launches.iter().filter(|launch| launch.gap_nanoseconds > 0).collect();
        launches.order_by_key(|launch| std::cmp::Reverse(launch.gap_nanoseconds));
        launches.truncate(most);
        launches
    }
}

/// Summary of the host's clocks in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HostSummary {
    /// Launches with a known submission time.
    pub launches: u64,
    /// First submission, in nanoseconds since 1970-01-01 UTC; 0 if unknown.
    #[serde(serialize_with = "as_text")]
    pub begin: u64,
    /// Time from then to the last known end.
    pub nanoseconds: u64,
    /// Clock readings, in the order in which they were made.
    pub readings: Vec<HostReading>,
}

/// Simultaneous readings of the host's clocks and the device's timer, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HostReading {
    /// Real-time clock, since 1970-01-01 UTC.
    #[serde(serialize_with = "as_text")]
    pub realtime: u64,
    /// Monotonic clock.
    #[serde(serialize_with = "as_text")]
    pub monotonic: u64,
    /// Global timer of the device; `None` if it was not read.
    #[serde(serialize_with = "as_text_if_known")]
    pub timer: Option<u64>,
    /// Duration of the reading.
    pub width: u64,
}

fn as_text_if_known<S: serde::Serializer>(number: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => as_text(number, serializer),
        None => serializer.serialize_none(),
    }
}

impl HostSummary {
    pub(crate) fn new(trace: &TraceFile) -> Option<Self> {
        let reading = |&ClockReading { realtime, monotonic, timer, width }: &ClockReading| HostReading {
            realtime,
            monotonic,
            timer,
            width,
        };
        let readings: Vec<HostReading> = trace.clock_readings().iter().map(reading).collect();
        let schedule = HostSchedule::new(trace, trace.launches()).unwrap_or_default();
        let begin = schedule.launches.first().map_or(0, |launch| launch.begin);
        let (launches, nanoseconds) = (schedule.launches.len() as u64, schedule.nanoseconds);
        (launches > 0 || !readings.is_empty()).then_some(Self { launches, begin, nanoseconds, readings })
    }
}
