//! When launches ran by the host's clocks.

use crate::order::OrderItems;
use serde::Serialize;
use warptrace_decoder::TraceFile;
use warptrace_format::file::{ClockReading, HostLaunch, LaunchInfo};

use crate::figures::as_text;
use crate::selection::kernel_name;

/// When a launch ran by the host's clocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HostRan {
    /// Number of the launch.
    pub launch: u32,
    /// Name of its kernel.
    pub kernel: String,
    /// When it was given to the device, in nanoseconds since 1970-01-01 UTC. In JSON a text, since readers
    /// there keep only 53 bits of a number.
    #[serde(serialize_with = "as_text")]
    pub begin: u64,
    /// From then to when it was seen to have ended; `None` if it was not.
    pub nanoseconds: Option<u64>,
    /// From when all launches that began before were seen to have ended to the begin of this one; 0 if one of
    /// them was not, and for the first.
    pub gap_nanoseconds: u64,
}

/// When launches ran by the host's clocks: from when each was given to the device to when it was seen to have
/// ended, which is never less than it took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HostSchedule {
    /// Launches of which it is known when they began, in that order.
    pub launches: Vec<HostRan>,
    /// From the first begin to the last end that is known.
    pub nanoseconds: u64,
    /// For how long none of them was under way in between.
    pub gap_nanoseconds: u64,
    /// By how much times of the device's global timer may be off on the host's clock; `None` if the two were
    /// not compared, as on the simulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_within_nanoseconds: Option<u64>,
}

impl HostSchedule {
    /// Reads when these launches ran; `None` if the file says it of none.
    pub(crate) fn new<'a>(trace: &TraceFile, launches: impl Iterator<Item = &'a LaunchInfo>) -> Option<Self> {
        let known = launches.filter_map(|info| Some((info, *trace.host_launch(info.number())?)));
        let mut known: Vec<(&LaunchInfo, HostLaunch)> = known.collect();
        known.sort_unstable_by_key(|(_, ran)| (ran.begin, ran.launch));
        let first = known.first()?.1.begin;
        let timer_within_nanoseconds = trace.on_host(0).map(|on_host| on_host.within);
        let mut schedule = Self { timer_within_nanoseconds, ..Self::default() };
        // Until when launches before are known to have run; `None` if one is not known to have ended.
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

    /// Returns the launches before which none was under way for longest, at most `most`.
    pub fn longest_gaps(&self, most: usize) -> Vec<&HostRan> {
        let mut launches: Vec<&HostRan> =
            self.launches.iter().filter(|launch| launch.gap_nanoseconds > 0).collect();
        launches.order_by_key(|launch| std::cmp::Reverse(launch.gap_nanoseconds));
        launches.truncate(most);
        launches
    }
}

/// What a file says of the host's clocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HostSummary {
    /// Launches of which it is known when they began.
    pub launches: u64,
    /// When the first one did, in nanoseconds since 1970-01-01 UTC; 0 if there is none.
    #[serde(serialize_with = "as_text")]
    pub begin: u64,
    /// From then to the last end that is known.
    pub nanoseconds: u64,
    /// Readings of the clocks, in the order in which they were made.
    pub readings: Vec<HostReading>,
}

/// The host's clocks at one moment, and the device's timer, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HostReading {
    /// The real-time clock, since 1970-01-01 UTC.
    #[serde(serialize_with = "as_text")]
    pub realtime: u64,
    /// The monotonic clock.
    #[serde(serialize_with = "as_text")]
    pub monotonic: u64,
    /// The device's global timer; `None` if it was not read.
    #[serde(serialize_with = "as_text_if_known")]
    pub timer: Option<u64>,
    /// How long the reading took.
    pub width: u64,
}

fn as_text_if_known<S: serde::Serializer>(number: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => as_text(number, serializer),
        None => serializer.serialize_none(),
    }
}

impl HostSummary {
    /// Reads what the file says; `None` if it says nothing.
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
